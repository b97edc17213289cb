"""The steps of tasks, and the functions that executors run in a copied context: each gets the names of its context.

From CPython 3.14 the interpreter reports every switch of context. Before that, while a session is open, the classes of
asyncio and of thread pools are given methods that report it. A factory of tasks would miss the tasks that began before
the session, and the callbacks of the loop.
"""

from __future__ import annotations

import functools
from contextvars import Context
from typing import TYPE_CHECKING, Any

from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector._convert import AnnotationStack

_replaced: list[tuple[type, str, Any, Any]] = []
"""(class, name of the method, the method before, ours)."""
_stack: AnnotationStack | None = None


def follow(stack: AnnotationStack | None) -> None:
    """Give every step of a task the names of its context in ``stack``; None: follow no longer."""
    global _stack
    _stack = stack
    watch = getattr(convert_extension, "watch_contexts", None)
    if watch is not None:
        watch(stack)
    elif stack is None:
        _put_back()
    else:
        _replace_methods()


def _replace_methods() -> None:
    from asyncio import BaseEventLoop, Handle
    from concurrent.futures import ThreadPoolExecutor

    place = convert_extension.annotation_place()
    _replace(ThreadPoolExecutor, "submit", functools.partial(_submit_of, place))
    _replace(Handle, "_run", functools.partial(_run_of, place))
    _replace(BaseEventLoop, "create_task", functools.partial(_create_task_of, place))


def _replace(owner: type, name: str, ours_of: Callable[[Any], Any]) -> None:
    if any(each[:2] == (owner, name) for each in _replaced):
        return  # left there below the method of another tool
    before = getattr(owner, name)
    ours = functools.wraps(before)(ours_of(before))
    setattr(owner, name, ours)
    _replaced.append((owner, name, before, ours))


def _put_back() -> None:
    for each in list(_replaced):
        owner, name, before, ours = each
        if getattr(owner, name) is ours:  # otherwise another tool has replaced ours, and calls it
            setattr(owner, name, before)
            _replaced.remove(each)


def _run_of(place: Any, run: Callable[[Any], None]) -> Callable[[Any], None]:
    """``Handle._run``: the loop calls it for each step of a task, and for each callback."""

    def _run(self: Any) -> None:
        stack = _stack
        if stack is None:
            return run(self)
        stack.resume(self._context.get(place))
        try:
            return run(self)
        finally:
            stack.resume(place.get())  # of the code that runs the loop

    return _run


def _create_task_of(place: Any, create_task: Callable[..., Any]) -> Callable[..., Any]:
    """``BaseEventLoop.create_task``, which runs the first step of an eager task."""

    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return create_task(self, *args, **kwargs)
        finally:
            stack = _stack
            if stack is not None:
                stack.resume(place.get())

    return wrapper


def _submit_of(place: Any, submit: Callable[..., Any]) -> Callable[..., Any]:
    """``ThreadPoolExecutor.submit``: ``asyncio.to_thread`` and others give it the ``run`` of a copied context."""

    def wrapper(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        run = fn.func if type(fn) is functools.partial else fn
        context = getattr(run, "__self__", None)
        if _stack is None or type(context) is not Context or getattr(run, "__name__", "") != "run":
            return submit(self, fn, *args, **kwargs)
        return submit(self, _run_named, place, context, fn, *args, **kwargs)

    return wrapper


def _run_named(place: Any, context: Context, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    stack = _stack
    if stack is None:
        return function(*args, **kwargs)
    stack.resume(context.get(place))
    try:
        return function(*args, **kwargs)
    finally:
        stack.resume(place.get())
