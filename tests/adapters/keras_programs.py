"""A Keras program with names from `collector.adapters`, on the CPU; its launches are made on the simulated GPU."""

from __future__ import annotations

import json
import os
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

if find_spec("tensorflow") is None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
import keras

import collector
from collector import adapters
from collector.testing import SimulatedGpu

gpu: SimulatedGpu


class Launch(keras.layers.Layer):
    """A layer with a kernel of its own."""

    def call(self, x: Any) -> Any:
        """Launch it."""
        gpu.launch(self.name)
        return x * 2


def paths(step: collector.Session) -> list[str]:
    """The path of each annotation."""
    return [step.recording.strings[each] for each in step.recording.annotations.name_id.tolist()]


def launched(step: collector.Session) -> list[str]:
    """Annotation path and kernel of each kernel."""
    devices = [device for device in step.step_stats.dev_stats if device.device.endswith("/stream:all")]
    return [node.node_name for device in devices for node in device.node_stats]


def model() -> Any:
    """A model with a model inside."""
    inner = keras.Sequential([keras.layers.Dense(4, name="dense"), Launch(name="launch")], name="inner")
    made = keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(1, name="out")])
    made.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return made


def main() -> dict[str, Any]:
    """What each use of the callback saw."""
    found: dict[str, Any] = {}
    data, labels = np.ones((4, 4), "float32"), np.ones((4, 1), "float32")
    made = model()
    made.fit(data, labels, batch_size=4, verbose=0)
    calls = {each.name: vars(each).get("call") for each in made._flatten_layers()}
    with collector.trace() as step:
        made.fit(data, labels, batch_size=2, verbose=0, callbacks=[adapters.keras_names()])
    found["fit"] = [path for path in paths(step) if "sequential" not in path.rpartition("/")[2]]
    found["launches"] = launched(step)
    with collector.trace() as step:
        made.fit(data, labels, epochs=2, verbose=0, validation_data=(data, labels), callbacks=[adapters.keras_names()])
    found["fit with validation"] = launched(step)
    with collector.trace() as step:
        made.predict(data, batch_size=4, verbose=0, callbacks=[adapters.keras_names()])
        made.fit(data, labels, batch_size=4, verbose=0)
    found["predict, then fit without"] = launched(step)
    found["is as before"] = calls == {each.name: vars(each).get("call") for each in made._flatten_layers()}
    return found


if __name__ == "__main__":
    warnings.simplefilter("error", collector.CollectorWarning)
    with SimulatedGpu() as gpu:
        print(json.dumps(main()))
