"""Adapters that drive `ProfileContext` and `ProfilerHook` from the loops of frameworks, without importing any."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from collector.profiler.context import ProfileContext
from collector.profiler.hook import ProfilerHook

T = TypeVar("T")

log = logging.getLogger("collector.profiler")


def steps(batches: Iterable[T], context: ProfileContext, kind: str = "") -> Iterator[T]:
    """A plain loop, also over a torch DataLoader: every iteration is a step, except one that ends with ``break``.

    >>> for batch in steps(batches, pctx):  # doctest: +SKIP
    ...     train(batch)
    """
    for batch in batches:
        with context.step(kind):
            yield batch


def after_each(batches: Iterable[T], hook: ProfilerHook, first_step: int = 1) -> Iterator[T]:
    """A plain loop: the hook is called before and after every iteration, and closed at the end.

    Loading a batch is not part of its step. An iteration that ends with ``break`` is not a step.

    Args:
        batches: the iterable of the loop.
        hook: the hook to call.
        first_step: the number of the first step. The next epoch continues the count of the previous one.
    """
    with hook:
        for step, batch in enumerate(batches, first_step):
            hook.before_step(step)
            yield batch
            hook.after_step(step)


class Optimizer(Protocol):
    """The part of a torch optimizer's interface that is used here."""

    def register_step_post_hook(self, hook: Callable[..., None]) -> Any:
        """Calls ``hook`` after every step."""


def on_optimizer(optimizer: Optimizer, hook: ProfilerHook, first_step: int = 1) -> Any:
    """Torch: a step ends with ``optimizer.step()``. Returns torch's handle, whose ``remove()`` detaches the hook.

    Other work between two calls, such as an evaluation, belongs to the second step.

    >>> with hook:  # also ends an open trace  # doctest: +SKIP
    ...     on_optimizer(optimizer, hook)
    ...     train()
    """
    step = first_step - 1

    def after(*_: Any) -> None:
        nonlocal step
        step += 1
        hook.after_step(step)

    return optimizer.register_step_post_hook(after)


class _Callback:
    """The interface of a callback for Keras 2 and 3: events that a subclass does not override do nothing."""

    _thread: int | None = None
    """The model that is trained."""
    _has_warned = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_implements_"):  # Keras 2 asks which events have an effect
            return lambda: True
        if not name.startswith(("on_", "set_")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return lambda *args, **kwargs: None

    def _begins_here(self) -> None:
        self._thread = threading.get_ident()

    def _is_late(self) -> bool:
        """Whether a batch ends only at the start of the next, as in Keras on some backends without a callback list.

        The end time of the batch is then unknown.
        """
        is_late = self._thread is not None and self._thread != threading.get_ident()
        if is_late and not self._has_warned:
            self._has_warned = True
            log.warning("no steps are traced: Keras reports their ends too late; write callbacks=[...], a list")
        return is_late


class KerasCallback(_Callback):
    """A hook for Keras: a step is a training batch, counted over all epochs and calls of ``fit``.

    A step's number is the value of ``optimizer.iterations`` after it. Validation is not part of any step.

    >>> with hook:  # also ends an open trace if ``fit`` fails  # doctest: +SKIP
    ...     model.fit(data, epochs=3, callbacks=[KerasCallback(hook)])

    Args:
        hook: the hook to call.
        first_step: the number of the first batch.
    """

    def __init__(self, hook: ProfilerHook, first_step: int = 1) -> None:
        self._hook = hook
        self._step = first_step - 1
        self._first_batch: int | None = None
        self._batches_per_call = 1

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins a step."""
        self._begins_here()
        self._first_batch = batch
        self._hook.before_step(self._step + self._batches_per_call)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends a step, or ``steps_per_execution`` steps, which share one file."""
        if self._is_late():
            return
        if self._first_batch is not None:
            self._batches_per_call = max(batch - self._first_batch, 0) + 1
        self._first_batch = None
        self._step += self._batches_per_call
        self._hook.after_step(self._step)

    def on_train_end(self, logs: Any = None) -> None:
        """Ends an open trace."""
        self._hook.close()


class KerasSteps(_Callback):
    """A context for Keras: every batch is a step of its kind, ``train``, ``test`` or ``predict``.

    >>> with ProfileContext("/tmp/profiles") as pctx:  # doctest: +SKIP
    ...     model.fit(data, callbacks=[KerasSteps(pctx)])
    """

    def __init__(self, context: ProfileContext) -> None:
        self._context = context
        self._open = contextlib.ExitStack()

    def __deepcopy__(self, memo: Any) -> KerasSteps:
        """Tuners copy callbacks for every trial; the copies share the open context."""
        return KerasSteps(self._context)

    def _begin(self, kind: str) -> None:
        self._abandon()
        self._begins_here()
        self._open.enter_context(self._context.step(kind))

    def _abandon(self, *_: Any, **__: Any) -> None:
        """End a batch that failed without an end event; its step is discarded."""
        with contextlib.suppress(_BatchFailedError), self._open:
            raise _BatchFailedError

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins a step of training."""
        self._begin("train")

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins a step of evaluation."""
        self._begin("test")

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins a step of prediction."""
        self._begin("predict")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends the step."""
        if not self._is_late():
            self._open.close()

    on_test_batch_end = on_predict_batch_end = on_train_batch_end
    on_train_begin = on_test_begin = on_predict_begin = _abandon


class _BatchFailedError(Exception):
    """Thrown into a step that never ended."""
