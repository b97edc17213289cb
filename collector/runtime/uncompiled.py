"""Keeping torch.compile out of our own code, where a compiled function calls it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def uncompiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let ``function``, and whatever it calls, run as it is written also inside a compiled function.

    torch.compile compiles every Python function that is called while a compiled one runs, NumPy's calls into torch's:
    what opens or ends a trace there takes seconds, and fails. A break of the graph is all that remains.
    """

    @functools.wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        dynamo = sys.modules.get("torch._dynamo")  # which torch imports with the first compilation
        disable = getattr(dynamo, "disable", None)
        if disable is None:
            return function(*args, **kwargs)
        result: Result = disable(function)(*args, **kwargs)
        return result

    return wrapper
