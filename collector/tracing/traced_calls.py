"""Functions whose every call is a traced step: the wrappers that `collector.trace` makes as a decorator."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from collector.runtime.original_functions import getpid
from collector.runtime.uncompiled import uncompiled
from collector.tracing import session_slot
from collector.tracing.resumed_bodies import wrapped
from collector.tracing.session_slot import Use, new_use

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

    from collector.tracing.resumed_bodies import Runs

    Function = TypeVar("Function", bound=Callable[..., Any])


class CalledSession(session_slot.OpenSession, Protocol):
    """The methods of `collector.tracing.session.Session` that this module uses."""

    def begin_use(self, use: Use) -> None:
        """Begin to trace, or report why that is impossible."""

    def end_use(self, use: Use, exc: BaseException | None) -> None:
        """End, and take and save the results."""


def traced_function(function: Function, session: CalledSession) -> Function:
    """A function of the same kind whose calls ``session`` traces, each from its first step to the last.

    A call inside a traced one, as in a recursion, is part of it.
    """
    wrapper = wrapped(function, lambda: _block_of_body(session))
    if wrapper is None:

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            if _is_in_step(session):
                return function(*args, **kwargs)
            with _Call(session):
                return function(*args, **kwargs)

        wrapper = cast("Function", plain)
    wrapper.session = session  # type: ignore[attr-defined]
    return wrapper


def _block_of_body(session: CalledSession) -> AbstractContextManager[Runs]:
    """The block around the body of a coroutine or generator."""
    return contextlib.nullcontext(_PART) if _is_in_step(session) else _ResumedCall(session)


@uncompiled
def _is_in_step(session: CalledSession) -> bool:
    """Whether the code that calls is part of a step: in the session's block, or called by the traced function."""
    use = session_slot.open_use()
    if use is None or use.last_session() is not session:
        return False
    if not use.is_resumed:
        return use.is_here
    return _running.get() is use and use.process_id == getpid()


class _Call:
    """A call, as a block. If its end is never reached, the object's destruction ends it."""

    def __init__(self, session: CalledSession) -> None:
        self._session = session
        self._use = new_use(session)

    def __enter__(self) -> _Call:
        try:
            self._session.begin_use(self._use)
        except BaseException:
            self._session.abandon(self._use)
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._session.end_use(self._use, exc)
        finally:
            self._session.abandon(self._use)

    def __del__(self) -> None:
        use: Use | None = getattr(self, "_use", None)  # absent after a Ctrl-C in `__init__`
        if use is not None and use is session_slot.open_use():
            self._session.abandon(use)


class _ResumedCall(_Call):
    """A call of a coroutine or generator function. Between its runs, other code of the thread runs."""

    def __enter__(self) -> _ResumedCall:
        self._use.is_resumed = True
        super().__enter__()
        return self

    def next(self) -> AbstractContextManager[object]:
        """See `collector.tracing.resumed_bodies.Runs`."""
        return _Run(self._use)


_running: contextvars.ContextVar[Use | None] = contextvars.ContextVar("collector_running", default=None)
"""The use whose body runs in this context, where bodies run in turns."""


class _Run:
    """A run of the body of a call, as a block."""

    __slots__ = ("_before", "_use")

    def __init__(self, use: Use) -> None:
        self._use = use

    def __enter__(self) -> None:
        self._before = _running.get()
        _running.set(self._use)

    def __exit__(self, *_: object) -> None:
        _running.set(self._before)


class _Part:
    """The runs of a body that is part of a step already."""

    def next(self) -> AbstractContextManager[object]:
        """See `collector.tracing.resumed_bodies.Runs`."""
        return contextlib.nullcontext()


_PART = _Part()
