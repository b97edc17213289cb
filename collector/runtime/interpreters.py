"""The main Python interpreter of a process, as opposed to its sub-interpreters."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from collector.errors import CuptiUnusableError


@functools.cache  # each interpreter has its own module; every session calls this, and a failed import searches again
def is_main_interpreter() -> bool:
    """Whether the caller runs in the process's main interpreter; True if Python cannot tell.

    The C++ extensions work only there. On Python 3.10 and 3.11, even importing one of them in a sub-interpreter
    deadlocks on a lock that the caller itself holds (PyGILState, which supports one interpreter).
    """
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on; before
        try:
            interpreters: Any = importlib.import_module(name)
        except ImportError:
            continue
        return bool(_number(interpreters.get_current()) == _number(interpreters.get_main()))
    return True


def check_main_interpreter() -> None:
    """Raise `collector.CuptiUnusableError` in a sub-interpreter."""
    if not is_main_interpreter():
        raise CuptiUnusableError(
            "tracing works in the main interpreter of a process, and this is a sub-interpreter",
            "Trace there, or in a process of its own",
        )


def _number(interpreter: Any) -> int:
    """The interpreter's id; Python 3.13 returns its creator too, and 3.12 and before return an object."""
    return int(interpreter[0] if isinstance(interpreter, tuple) else interpreter)
