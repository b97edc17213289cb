"""Values that several questions about a recording need, computed once for questions that are asked together."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Parameters = ParamSpec("_Parameters")
_Value = TypeVar("_Value")

_VALUES: ContextVar[dict[tuple[Any, ...], tuple[Any, Any]] | None] = ContextVar("shared values", default=None)
"""Function and ids of arguments -> the arguments, kept alive so that no id is reused, and the value."""


@contextmanager
def shared_values() -> Iterator[None]:
    """Keep the values of `shared` functions until the end of this block, or of the outermost such block."""
    if _VALUES.get() is not None:
        yield
        return
    token = _VALUES.set({})
    try:
        yield
    finally:
        _VALUES.reset(token)


def is_sharing() -> bool:
    """Whether values of `shared` functions are kept now."""
    return _VALUES.get() is not None


def shared(function: Callable[_Parameters, _Value]) -> Callable[_Parameters, _Value]:
    """Decorate a function of recordings, texts and numbers, so that `shared_values` keeps its values."""

    @wraps(function)
    def value_of(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Value:
        values = _VALUES.get()
        if values is None:
            return function(*arguments, **options)
        plain = (each if isinstance(each, (str, int)) else id(each) for each in arguments)
        key = (function, *plain, *options.items())
        if key not in values:
            values[key] = arguments, function(*arguments, **options)
        value: _Value = values[key][1]
        return value

    return value_of
