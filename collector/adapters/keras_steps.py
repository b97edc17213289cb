"""The steps and layers of Keras as annotations."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from collector.tracing.annotate import annotate

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS = {"train": "fit/step", "test": "evaluate/step", "predict": "predict/step"}

_namers: WeakKeyDictionary[Any, ref[Any]] = WeakKeyDictionary()
"""Model -> the callback that names the steps of its run. A callback keeps its model alive."""


def keras_names() -> Any:
    """A callback for ``fit``, ``evaluate`` and ``predict`` that names steps and, where Python calls them, layers.

    A step is ``fit/step``, ``evaluate/step`` or ``predict/step``. A layer is named by the path of layer names inside
    the step. With the PyTorch backend and with ``run_eagerly=True`` Python calls the layers in each step; in a compiled
    TensorFlow or JAX step it calls them only while the step is compiled. Of several of these callbacks in one run the
    last one names the steps.
    """
    import keras

    class KerasNames(keras.callbacks.Callback):  # type: ignore[misc]
        """Enters an annotation where a batch begins, and leaves it where the batch ends."""

        def __init__(self) -> None:
            super().__init__()
            self._open: list[annotate] = []
            self._calls: list[tuple[Any, Callable[..., Any]]] = []
            self._outer = ""

        def _begin(self, kind: str) -> None:
            if self._open or self._outer in ("", kind):  # else the evaluation of an epoch of `fit`
                self._finish()  # a run that failed has not ended
                self._outer = kind
                _namers[self.model] = ref(self)
                self._name_layers()

        def _end(self, kind: str) -> None:
            if kind == self._outer:
                self._finish()

        def _finish(self) -> None:
            self._outer = ""
            if _namers.get(self.model) == ref(self):
                del _namers[self.model]
            while self._open:
                self._open.pop().__exit__(None, None, None)
            while self._calls:
                layer, call = self._calls.pop()
                if layer.call is call:
                    del layer.call

        def _name_layers(self) -> None:
            for layer in self.model._flatten_layers(include_self=False, recursive=True):
                if "call" not in vars(layer):
                    named = _named(layer.name, layer.call)
                    layer.call = named
                    self._calls.append((layer, named))

        def _enter(self, kind: str) -> None:
            namer = _namers.get(self.model)
            if namer is not None and namer() is not self:
                return
            annotation = annotate(_STEPS[kind])
            self._open.append(annotation)
            annotation.__enter__()

        def _leave(self) -> None:
            if self._open:
                self._open.pop().__exit__(None, None, None)

    for kind in _STEPS:
        setattr(KerasNames, f"on_{kind}_begin", lambda self, logs=None, kind=kind: self._begin(kind))
        setattr(KerasNames, f"on_{kind}_end", lambda self, logs=None, kind=kind: self._end(kind))
        setattr(KerasNames, f"on_{kind}_batch_begin", lambda self, batch, logs=None, kind=kind: self._enter(kind))
        setattr(KerasNames, f"on_{kind}_batch_end", lambda self, batch, logs=None: self._leave())
    return KerasNames()


def _named(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    annotation = annotate(name)

    @functools.wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with annotation:
            return call(*args, **kwargs)

    return wrapper
