"""Driving `ProfileContext` and `ProfilerHook` from the loops of frameworks, without importing any."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from collector.profiler.context import ProfileContext
from collector.profiler.hook import ProfilerHook

T = TypeVar("T")


def steps(batches: Iterable[T], context: ProfileContext, kind: str = "") -> Iterator[T]:
    """A plain loop: every round is a step.

    >>> for batch in steps(batches, pctx):  # doctest: +SKIP
    ...     train(batch)
    """
    for batch in batches:
        with context.step(kind):
            yield batch


def after_each(batches: Iterable[T], hook: ProfilerHook, first_step: int = 0) -> Iterator[T]:
    """A plain loop: the hook is told after every round, and closed at the end."""
    with hook:
        for step, batch in enumerate(batches, first_step):
            yield batch
            hook.after_step(step)


class Optimizer(Protocol):
    """A torch optimizer, as far as it matters here."""

    def register_step_post_hook(self, hook: Callable[..., None]) -> Any:
        """Calls ``hook`` after every step."""


def on_optimizer(optimizer: Optimizer, hook: ProfilerHook, first_step: int = 0) -> Any:
    """Torch: a step ends with ``optimizer.step()``. Gives torch's handle, whose ``remove()`` ends it.

    >>> with hook:  # ends what is under way, too  # doctest: +SKIP
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
    """What Keras and what resembles it asks of a callback: the events that are not said otherwise do nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_implements_"):  # Keras 2 asks which events are worth calling
            return lambda: True
        if not name.startswith(("on_", "set_")):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class KerasCallback(_Callback):
    """A hook for Keras: a step is a training batch, counted over all epochs.

    >>> model.fit(data, callbacks=[KerasCallback(hook)])  # doctest: +SKIP
    """

    def __init__(self, hook: ProfilerHook) -> None:
        self._hook = hook
        self._step = -1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends a step."""
        self._step += 1
        self._hook.after_step(self._step)

    def on_train_end(self, logs: Any = None) -> None:
        """Ends what is under way."""
        self._hook.close()


class KerasSteps(_Callback):
    """A context for Keras: every batch is a step of its kind, ``train``, ``test`` or ``predict``.

    >>> with ProfileContext("/tmp/profiles") as pctx:  # doctest: +SKIP
    ...     model.fit(data, callbacks=[KerasSteps(pctx)])
    """

    def __init__(self, context: ProfileContext) -> None:
        self._context = context
        self._open = contextlib.ExitStack()

    def _begin(self, kind: str) -> None:
        self._open.close()  # a batch that failed had no end
        self._open.enter_context(self._context.step(kind))

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
        self._open.close()

    on_test_batch_end = on_predict_batch_end = on_train_batch_end
