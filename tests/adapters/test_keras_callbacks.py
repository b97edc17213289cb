"""The callback for Keras, called in Keras' order, without Keras."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("collector._native", reason="the native extension is not built")

import collector
from collector import adapters
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


class Layer:
    """A layer with a kernel."""

    name = "block"

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu

    def call(self) -> None:
        self._gpu.launch("kernel")


class Model:
    """A model of one layer, which calls its callback as Keras does."""

    def __init__(self, gpu: SimulatedGpu, callback: Any) -> None:
        self.layer = Layer(gpu)
        self.callback = callback
        callback.model = self

    def _flatten_layers(self, *, include_self: bool, recursive: bool) -> list[Layer]:
        return [self.layer]

    def batch(self, kind: str, failure: BaseException | None = None) -> None:
        getattr(self.callback, f"on_{kind}_batch_begin")(0)
        self.layer.call()
        if failure is not None:
            raise failure
        getattr(self.callback, f"on_{kind}_batch_end")(0)

    def evaluate(self) -> None:
        self.callback.on_test_begin()
        self.batch("test")
        self.callback.on_test_end()

    def fit(self, epochs: int, failure: BaseException | None = None) -> None:
        self.callback.on_train_begin()
        for _ in range(epochs):
            self.batch("train", failure)
            self.evaluate()
        self.callback.on_train_end()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Any:
    keras = SimpleNamespace(callbacks=SimpleNamespace(Callback=type("Callback", (), {"__init__": lambda self: None})))
    monkeypatch.setitem(sys.modules, "keras", keras)
    return adapters.keras_names()


def test_layers_keep_their_names_after_the_evaluation_of_an_epoch(names: Any) -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        model = Model(gpu, names)
        model.fit(epochs=3)
        model.layer.call()
        model.evaluate()
        model.layer.call()
    epoch = ["fit/step/block", "evaluate/step/block"]
    assert step.recording.kernels.annotations() == [*epoch * 3, "", "evaluate/step/block", ""]
    assert "call" not in vars(model.layer)


@pytest.mark.parametrize("following", ["fit", "evaluate"])
def test_a_run_after_one_that_failed_has_its_own_names(names: Any, following: str) -> None:
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        model = Model(gpu, names)
        with pytest.raises(KeyboardInterrupt):
            model.fit(epochs=1, failure=KeyboardInterrupt())
        if following == "fit":
            model.fit(epochs=1)
        else:
            model.evaluate()
        model.layer.call()
    own = ["fit/step/block", "evaluate/step/block"] if following == "fit" else ["evaluate/step/block"]
    assert step.recording.kernels.annotations() == ["fit/step/block", *own, ""]
    assert "call" not in vars(model.layer)


def test_two_callbacks_of_a_fit_name_it_once(names: Any) -> None:
    other = adapters.keras_names()
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        model = Model(gpu, names)
        other.model = model

        class Both:
            def __getattr__(self, method: str) -> Any:
                def call(*arguments: Any) -> None:
                    for callback in (names, other):
                        getattr(callback, method)(*arguments)

                return call

        model.callback = Both()
        model.fit(epochs=1)
        model.layer.call()
        model.callback = names
        model.fit(epochs=1)
    epoch = ["fit/step/block", "evaluate/step/block"]
    assert step.recording.kernels.annotations() == [*epoch, "", *epoch]
    assert (
        step.recording.annotations.names() == ["fit/step", "fit/step/block", "evaluate/step", "evaluate/step/block"] * 2
    )
    assert "call" not in vars(model.layer)
