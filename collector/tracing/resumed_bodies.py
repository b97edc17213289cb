"""Functions whose bodies run in turns with other code of the thread: coroutines and generators of both kinds.

A decorator that does something while such a body runs must undo it whenever the body waits. The wrappers made here are
functions of the same kind as what they wrap, so that `inspect` and other decorators see no difference.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    Function = TypeVar("Function", bound=Callable[..., Any])


class Runs(Protocol):
    """The runs of the body of one call."""

    def next(self) -> AbstractContextManager[object]:
        """The block around the next run: from a resumption to the next wait."""


def wrapped(function: Function, begin: Callable[[], AbstractContextManager[Runs]]) -> Function | None:
    """A wrapper of a coroutine or generator function of either kind; None for any other function.

    Args:
        function: the function to be wrapped.
        begin: called when the body of a call begins; the block that it returns ends with the body.

    Raises:
        TypeError: it is a class, or a descriptor such as `staticmethod`, of which a wrapper would be something else.
    """
    if isinstance(function, type):
        raise TypeError(
            f"{function.__name__} is a class, which a wrapper would replace by a function: decorate its methods, such "
            "as __init__"
        )
    if isinstance(function, (staticmethod, classmethod, property)):
        raise TypeError(f"a {type(function).__name__} is no function: write this decorator below it")
    import inspect  # slower to import than the rest of the tracing API

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with begin() as runs:
                generator = function(*args, **kwargs)
                resume: Callable[[Any], Any] = generator.asend
                value: Any = None
                while True:
                    try:
                        produced = await _Awaitable(_resumed(runs, resume(value)))
                    except StopAsyncIteration:
                        return
                    try:
                        value = yield produced
                        resume = generator.asend
                    except GeneratorExit:
                        await _Awaitable(_resumed(runs, generator.aclose()))
                        raise
                    except BaseException as error:  # exceptions thrown in belong to the generator
                        value = error
                        resume = generator.athrow

    elif inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with begin() as runs:
                return await _Awaitable(_resumed(runs, function(*args, **kwargs)))

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with begin() as runs:
                return (yield from _resumed(runs, function(*args, **kwargs)))

    else:
        return None
    return cast("Function", wrapper)


def _resumed(runs: Runs, generator: Any) -> Generator[Any, Any, Any]:
    """Run ``generator`` (or a coroutine, or a step of an asynchronous generator), each run in a block of its own."""
    resume: Callable[[Any], Any] = generator.send
    value: Any = None
    while True:
        try:
            with runs.next():
                produced = resume(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield produced
            resume = generator.send
        except GeneratorExit:
            with runs.next():
                generator.close()
            raise
        except BaseException as error:  # exceptions thrown in belong to the generator
            value = error
            resume = generator.throw


class _Awaitable:
    """An awaitable made of a generator."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[Any, Any, Any]) -> None:
        self._generator = generator

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._generator
