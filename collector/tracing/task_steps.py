"""The steps of tasks, and the functions that executors run in a copied context: each gets the names of its context.

From CPython 3.14 the interpreter reports every switch of context. Before that, while a session is open, the classes of
asyncio and of thread pools are given methods that report it. A factory of tasks would miss the tasks that began before
the session, and the callbacks of the loop.

Loops that are not built on asyncio's, such as uvloop's, run their callbacks themselves. Their classes are given methods
that wrap each callback when it is scheduled.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from contextvars import Context
from typing import TYPE_CHECKING, Any

from collector.runtime.extension import convert_extension, load_extension

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector._convert import AnnotationStack

_SCHEDULING = {
    "call_soon": 0, "call_soon_threadsafe": 0, "call_later": 1, "call_at": 1, "add_reader": 1, "add_writer": 1,
    "add_signal_handler": 1,
}  # fmt: skip
"""Method of a loop that takes a callback -> number of the arguments before it."""
_RUNNING = ("run_forever", "run_until_complete", "create_task")
"""Methods of a loop in which steps of tasks may run, and that the code around the loop calls."""

_replaced: list[tuple[type, str, Any, Any]] = []
"""(class, name of the method, the method before, ours); None: the method before is that of a base."""
_stack: AnnotationStack | None = None


def load() -> None:
    """Import the modules that `follow` needs."""
    if _watch_contexts() is None:
        from asyncio import BaseEventLoop  # noqa: F401

        with contextlib.suppress(RuntimeError):  # in an exit handler: no pool can run anything any more
            from concurrent.futures import ThreadPoolExecutor  # noqa: F401


def follow(stack: AnnotationStack | None) -> None:
    """Give every step of a task the names of its context in ``stack``; None: follow no longer."""
    global _stack
    _stack = stack
    watch = _watch_contexts()
    if watch is not None:
        watch(stack)
    elif stack is None:
        _put_back()
    else:
        _replace_methods()


def _watch_contexts() -> Callable[[AnnotationStack | None], None] | None:
    """The native function that follows contexts, from CPython 3.14 on.

    It is not asked for as an attribute: for one that is missing, CPython 3.13.0 raises SystemError in a process whose
    working directory was deleted.
    """
    watch: Callable[[AnnotationStack | None], None] | None = vars(load_extension()).get("watch_contexts")
    return watch


def _replace_methods() -> None:
    from asyncio import AbstractEventLoop, BaseEventLoop, Handle

    load()  # a recorder, and a process that others record, begin without a session that has called it
    place = convert_extension.annotation_place()
    if (pools := sys.modules.get("concurrent.futures.thread")) is not None:
        _replace(pools.ThreadPoolExecutor, "submit", functools.partial(_submit_of, place))
    _replace(Handle, "_run", functools.partial(_run_of, place))
    _replace(BaseEventLoop, "create_task", functools.partial(_method_of_runs, place))
    _replace(AbstractEventLoop, "__init_subclass__", functools.partial(_init_subclass_of, place))
    _follow_other_loops(place)


def _follow_other_loops(place: Any) -> None:
    """Replace the methods of loops that do not run their callbacks as `asyncio.BaseEventLoop` does."""
    from asyncio import AbstractEventLoop, BaseEventLoop

    ours_of = {name: functools.partial(_scheduling_of, place, before) for name, before in _SCHEDULING.items()}
    ours_of |= {name: functools.partial(_method_of_runs, place) for name in _RUNNING}
    loops = AbstractEventLoop.__subclasses__()
    while loops:
        loop = loops.pop()
        if issubclass(loop, BaseEventLoop):
            continue
        loops += loop.__subclasses__()
        for name, method_of in ours_of.items():
            method = getattr(loop, name)
            if method is not getattr(AbstractEventLoop, name) and not any(each[3] is method for each in _replaced):
                _replace(loop, name, method_of)


def _replace(owner: type, name: str, ours_of: Callable[[Any], Any]) -> None:
    if any(each[:2] == (owner, name) for each in _replaced):
        return  # left there below the method of another tool
    own = vars(owner).get(name)
    ours = ours_of(getattr(owner, name))
    with contextlib.suppress(TypeError):  # a class of an extension that cannot be changed
        setattr(owner, name, ours)
        _replaced.append((owner, name, own, ours))


def _put_back() -> None:
    for each in list(_replaced):
        owner, name, before, ours = each
        if vars(owner).get(name) is ours:  # otherwise another tool has replaced ours, and calls it
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
            _replaced.remove(each)


def _run_of(place: Any, run: Callable[[Any], None]) -> Callable[[Any], None]:
    """``Handle._run``: the loop calls it for each step of a task, and for each callback."""

    @functools.wraps(run)
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


def _method_of_runs(place: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method in which steps of tasks run: ``create_task`` runs the first one of an eager task."""

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            stack = _stack
            if stack is not None:
                stack.resume(place.get())

    return wrapper


def _scheduling_of(place: Any, num_before: int, schedule: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a loop that takes a callback after ``num_before`` arguments."""

    @functools.wraps(schedule)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _stack is None or len(args) <= num_before:
            return schedule(self, *args, **kwargs)
        return schedule(self, *args[:num_before], _run_callback, place, *args[num_before:], **kwargs)

    return wrapper


def _run_callback(place: Any, callback: Callable[..., Any], *args: Any) -> Any:
    """Run a callback that a loop has entered the context of."""
    stack = _stack
    if stack is None:
        return callback(*args)
    stack.resume(place.get())
    try:
        return callback(*args)
    finally:
        stack.resume(None)


def _init_subclass_of(place: Any, init_subclass: Callable[..., None]) -> Any:
    """``AbstractEventLoop.__init_subclass__``: the class of a loop may be made while a session is open."""

    def __init_subclass__(cls: type, /, **kwargs: Any) -> None:  # noqa: N807 - it becomes the method
        init_subclass(**kwargs)
        if _stack is not None:
            _follow_other_loops(place)

    return classmethod(__init_subclass__)


def _submit_of(place: Any, submit: Callable[..., Any]) -> Callable[..., Any]:
    """``ThreadPoolExecutor.submit``: ``asyncio.to_thread`` and others give it the ``run`` of a copied context."""

    @functools.wraps(submit)
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
