"""Excludes the code of this package from torch.compile, if a compiled function calls it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def uncompiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run ``function``, and the functions that it calls, uncompiled even inside a compiled function.

    torch.compile compiles every Python function that is called while a compiled one runs, and converts NumPy's calls
    into torch's: opening or ending a trace there would take seconds, and fail. With this decorator there is only a
    break of the graph.
    """

    @functools.wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        dynamo = sys.modules.get("torch._dynamo")  # torch imports it with the first compilation
        disable = getattr(dynamo, "disable", None)
        if disable is None:
            return function(*args, **kwargs)
        result: Result = disable(function)(*args, **kwargs)
        return result

    return wrapper
