"""Exceptions of the program's own signal handlers, which may be raised at any line of this package."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, TracebackType

_PACKAGE = str(Path(__file__).parent.parent)


def error_of_handler(error: BaseException) -> BaseException | None:
    """The exception that a signal handler of the program raised, if it is ``error`` or the reason for it; else None.

    A handler may raise any exception, such as a `TimeoutError` after `signal.alarm`. The interpreter runs it between
    two instructions of the code that is running, so that its exception looks like one of that code.
    """
    codes = _codes_of_handlers()
    found: BaseException | None = error
    passed: set[int] = set()
    while found is not None and codes and id(found) not in passed:
        passed.add(id(found))
        if any(frame_code in codes for frame_code in _codes_of(found.__traceback__)):
            return found
        found = found.__cause__ or found.__context__
        if found is not None and not _was_caught_here(found.__traceback__):
            return None  # the program caught it, and opened or ended the session in its except clause
    return None


def _was_caught_here(traceback: TracebackType | None) -> bool:
    return traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def _codes_of(traceback: TracebackType | None) -> list[CodeType]:
    codes = []
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return codes


def _codes_of_handlers() -> set[CodeType]:
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    return {code for handler in handlers if callable(handler) and (code := _code_of(handler)) is not None}


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    code = getattr(handler, "__code__", None)  # also of a bound method
    if code is None:  # an object that can be called
        code = getattr(vars(type(handler)).get("__call__"), "__code__", None)
    return code
