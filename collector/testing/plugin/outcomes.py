"""A test's outcome with a message of ours, in which names are escaped for pytest's terminal."""

from __future__ import annotations

from typing import NoReturn

import pytest

from collector.text.terminal import printable, printable_lines


def fail(message: str, *, pytrace: bool = False) -> NoReturn:
    """Fail the current test with ``message``; ``pytrace``: with pytest's traceback."""
    __tracebackhide__ = True
    pytest.fail(printable_lines(message), pytrace=pytrace)


def skip(reason: str) -> NoReturn:
    """Skip the current test for a ``reason`` of one line; pytest names the test as the place."""
    raise pytest.skip.Exception(printable(reason), _use_item_location=True)
