"""Exceptions of the program's signal handlers are told from those of other code."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.errors import OutputError
from collector.files.atomic_files import atomic_write
from collector.runtime.signal_handlers import error_of_handler


def fail(*_: object) -> None:
    raise TimeoutError("too late")


class Watchdog:
    def fail(self, *_: object) -> None:
        fail()

    __call__ = fail


@pytest.fixture(params=[fail, functools.partial(fail, 1), Watchdog().fail, Watchdog()])
def handler(request):
    before = signal.signal(signal.SIGUSR1, request.param)
    yield request.param
    signal.signal(signal.SIGUSR1, before)


def raised_by(function: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (any)
        function()
    return caught.value


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(100_000):  # the interpreter runs the handler between two instructions
        pass


def interrupt_a_write() -> None:
    with atomic_write(os.devnull):
        interrupt()


@pytest.mark.parametrize("function", [interrupt, interrupt_a_write])
def test_the_error_of_a_handler_is_found(handler, function):
    found = error_of_handler(raised_by(function))
    assert isinstance(found, TimeoutError)
    assert str(found) == "too late"


def write_after_an_interruption(folder: Path) -> None:
    try:
        interrupt()
    except TimeoutError:
        with atomic_write(folder):
            pass


def test_an_error_that_the_program_has_caught_is_none(handler, tmp_path):
    error = raised_by(lambda: write_after_an_interruption(tmp_path))
    assert isinstance(error, OutputError)
    assert error_of_handler(error) is None


def test_other_errors_are_none_of_a_handler(handler):
    assert error_of_handler(raised_by(lambda: int("x"))) is None
    assert error_of_handler(ValueError()) is None


def test_an_error_that_was_its_own_context_has_an_end(handler):
    first, second = ValueError(), ValueError()
    first.__context__, second.__context__ = second, first
    assert error_of_handler(first) is None
