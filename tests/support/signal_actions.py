"""Actions of signals in tests and in started programs, whatever the tests themselves run under, such as nohup."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


def restore_default(number: int) -> None:
    """Give the signal the action that it has in a program that a shell starts in the foreground."""
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@contextlib.contextmanager
def default_action(number: int) -> Iterator[None]:
    """Give the signal this action within the block, in this process."""
    before = signal.getsignal(number)
    restore_default(number)
    try:
        yield
    finally:
        signal.signal(number, before)
