"""Op names put on the launches made inside them."""

from __future__ import annotations

import functools
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from types import TracebackType

    from collector.sources import Source

    Function = TypeVar("Function", bound=Callable[..., Any])


class annotate:  # noqa: N801 - reads as the verb it is: `with annotate("conv"):`
    """Name the GPU work launched in a block or a function.

    Annotations nest, each thread and asyncio task on its own; the inner one's path is the outer one's, ``/`` and the
    inner name. ``/`` within a name nests as well. While nothing is traced nothing happens, and next to nothing is paid;
    one that was entered before the trace began names nothing in it.

    >>> with collector.annotate("layer1/conv"):
    ...     launch()
    >>> @collector.annotate("optimizer")
    ... def update(): ...

    A decorated generator or coroutine carries its name only while it runs, not while it waits. A ``with`` block that
    holds an ``await`` or a ``yield`` stays on its thread meanwhile, and names what others launch there.
    """

    __slots__ = ("_recorder", "name")

    def __init__(self, name: str) -> None:
        """Take the op's name; ValueError if there is nothing in it, TypeError if it is not text."""
        try:  # costs less than asking for the type first, and this runs also while nothing is traced
            is_empty = not name.strip("/ ")
        except (AttributeError, TypeError):
            raise TypeError(f"an annotation's name is text, not {type(name).__name__}") from None
        if is_empty:
            raise ValueError("an annotation needs a name; this one is empty")
        self.name = name
        self._recorder: _Recorder | None = None

    def __enter__(self) -> annotate:
        if _recorder is not None:
            self._recorder = _recorder
            _recorder.enter(self, self.name)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # The recorder it was entered under: the session may have ended, and another begun, since then.
        if self._recorder is not None:
            self._recorder.leave(self)

    def __call__(self, function: Function) -> Function:
        """Decorate a function, coroutine function, generator function or asynchronous generator function."""
        import inspect  # takes longer to import than the rest of this package's surface

        name = self.name
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return _AsyncGenerator(name, function(*args, **kwargs))

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await _Awaitable(_resumed(name, function(*args, **kwargs)))

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (yield from _resumed(name, function(*args, **kwargs)))

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if _recorder is None:
                    return function(*args, **kwargs)
                with annotate(name):
                    return function(*args, **kwargs)

        return cast("Function", wrapper)


class _Frame(NamedTuple):
    owner: object
    path: str
    outer: str


class _Recorder:
    """Passes annotations on to one session's source; a new session begins with a new one."""

    def __init__(self, source: Source) -> None:
        self._push = source.push_annotation
        self._pop = source.pop_annotation
        self._threads = threading.local()

    def enter(self, owner: object, name: str) -> None:
        recorder, outer = _place.get()
        if recorder is not self:  # what an earlier session left there
            outer = ""
        path = f"{outer}/{name}" if outer else name
        try:
            frames = self._threads.frames
        except AttributeError:
            frames = self._threads.frames = []
        self._push(path)
        frames.append(_Frame(owner, path, outer))
        _place.set((self, path))

    def leave(self, owner: object) -> None:
        frames: list[_Frame] = getattr(self._threads, "frames", [])
        at = len(frames) - 1
        while at >= 0 and frames[at].owner is not owner:
            at -= 1
        if at < 0:
            return  # closed with its session, or entered on another thread
        above = frames[at + 1 :]
        for _ in frames[at:]:
            self._pop()
        for frame in above:  # tasks that share a thread do not leave in the order they entered
            self._push(frame.path)
        _place.set((self, frames[at].outer))
        del frames[at]

    def end(self) -> None:
        """Close what this thread still has open; what other threads have, they close when they leave it."""
        frames: list[_Frame] = getattr(self._threads, "frames", [])
        for _ in frames:
            self._pop()
        frames.clear()
        _place.set((None, ""))

    def detach(self) -> None:
        """Touch the source no more, whoever still leaves an annotation."""
        self._push, self._pop = _push_nowhere, _pop_nowhere


def _push_nowhere(path: str) -> None:
    pass


def _pop_nowhere() -> None:
    pass


_recorder: _Recorder | None = None
_place: ContextVar[tuple[_Recorder | None, str]] = ContextVar("annotation", default=(None, ""))
"""Under which recorder's annotation path this thread or task is."""


def send_annotations_to(source: Source | None) -> None:
    """From now on pass annotations to ``source``; None: to nobody. For the session that owns the source."""
    global _recorder
    ended, _recorder = _recorder, None if source is None else _Recorder(source)
    if ended is not None:
        ended.end()


def forget_annotations() -> None:
    """From now on pass annotations to nobody and touch nothing, as in a forked child."""
    global _recorder
    if _recorder is not None:
        _recorder.detach()
    _recorder = None


def _resumed(name: str, generator: Any) -> Generator[Any, Any, Any]:
    """Drive ``generator`` (or a coroutine) under ``name``, which it carries only while it runs."""
    resume: Callable[[Any], Any] = generator.send
    value: Any = None
    while True:
        try:
            with annotate(name):
                produced = resume(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield produced
            resume = generator.send
        except GeneratorExit:
            with annotate(name):
                generator.close()
            raise
        except BaseException as error:  # whatever is thrown in belongs to the generator
            value = error
            resume = generator.throw


class _Awaitable:
    """A generator as something to await."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[Any, Any, Any]) -> None:
        self._generator = generator

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._generator


class _AsyncGenerator:
    """An asynchronous generator each of whose steps runs under a name."""

    __slots__ = ("_generator", "_name")

    def __init__(self, name: str, generator: AsyncGenerator[Any, Any]) -> None:
        self._name = name
        self._generator = generator

    def __aiter__(self) -> _AsyncGenerator:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Any]:
        return self._step(self._generator.__anext__())

    def asend(self, value: Any) -> Coroutine[Any, Any, Any]:
        return self._step(self._generator.asend(value))

    def athrow(self, *error: Any) -> Coroutine[Any, Any, Any]:
        return self._step(self._generator.athrow(*error))

    def aclose(self) -> Coroutine[Any, Any, Any]:
        return self._step(self._generator.aclose())

    async def _step(self, awaitable: Any) -> Any:
        return await _Awaitable(_resumed(self._name, awaitable))
