"""Models trained and evaluated with our callbacks: by Keras, and by a loop that calls callbacks in the same way.

Run as a program it prints the results of each scenario: `python keras_runs.py keras|stand-in FOLDER`. Every batch
launches a kernel on the simulated GPU, named after its purpose: train or infer.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import collector
from collector.profiler import ProfileContext, ProfilerHook, adapters
from collector.testing import SimulatedGpu

BATCH_FAILS = "the batch fails"
gpu: SimulatedGpu


class BatchError(Exception):
    """The error that a batch raises."""


class StandIn:
    """Calls callbacks like Keras 3, in its order, with its arguments."""

    def __init__(self, batches_per_call: int = 1) -> None:
        self.stop_training = False
        self._batches_per_call = batches_per_call
        self.fails_after: int | None = None
        self._trained = 0

    def _tell(self, callbacks: Sequence[Any], event: str, *arguments: Any, **logs: Any) -> None:
        for callback in callbacks:
            getattr(callback, event)(*arguments, **logs)

    def _begin(self, callbacks: Sequence[Any]) -> None:
        self._tell(callbacks, "set_model", self)
        self._tell(callbacks, "set_params", {"verbose": 0, "epochs": 1, "steps": 3})

    def _batches(self, callbacks: Sequence[Any], mode: str, count: int) -> None:
        for begin in range(0, count, self._batches_per_call):
            self._tell(callbacks, f"on_{mode}_batch_begin", begin, logs=None)
            end = min(begin + self._batches_per_call, count) - 1
            for _ in range(begin, end + 1):
                self._compute(mode)
            self._tell(callbacks, f"on_{mode}_batch_end", end, logs={"loss": 1.0})
            if mode == "train" and self.stop_training:
                break

    def _compute(self, mode: str) -> None:
        self._trained += mode == "train"
        gpu.launch("train" if mode == "train" else "infer")
        if self._trained == self.fails_after:
            raise BatchError(BATCH_FAILS)

    def fit(self, batches: int, epochs: int = 1, validation: int = 0, callbacks: Sequence[Any] = ()) -> None:
        self.stop_training = False
        self._begin(callbacks)
        self._tell(callbacks, "on_train_begin", None)
        for epoch in range(epochs):
            self._tell(callbacks, "on_epoch_begin", epoch, None)
            self._batches(callbacks, "train", batches)
            if validation:
                self._evaluate(validation, callbacks)
            self._tell(callbacks, "on_epoch_end", epoch, {"loss": 1.0})
            if self.stop_training:
                break
        self._tell(callbacks, "on_train_end", {"loss": 1.0})

    def _evaluate(self, batches: int, callbacks: Sequence[Any]) -> None:
        self._tell(callbacks, "on_test_begin", None)
        self._batches(callbacks, "test", batches)
        self._tell(callbacks, "on_test_end", {"loss": 1.0})

    def evaluate(self, batches: int, callbacks: Sequence[Any] = ()) -> None:
        self._begin(callbacks)
        self._evaluate(batches, callbacks)

    def predict(self, batches: int, callbacks: Sequence[Any] = ()) -> None:
        self._begin(callbacks)
        self._tell(callbacks, "on_predict_begin", None)
        self._batches(callbacks, "predict", batches)
        self._tell(callbacks, "on_predict_end", None)

    def stopper(self, after: int) -> Any:
        """A callback that stops the training after this many batches, in the middle of an epoch."""
        return _Stopper(self, after)


class _Stopper(adapters._Callback):
    def __init__(self, model: StandIn, after: int) -> None:
        self._model, self._left = model, after

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._left -= 1
        self._model.stop_training = self._left <= 0


class Keras:
    """The same scenarios, run by Keras."""

    def __init__(self, batches_per_call: int = 1) -> None:
        import keras

        outer = self
        self.fails_after: int | None = None
        self._trained = 0

        class Launching(keras.layers.Layer):
            def call(self, inputs: Any, training: bool = False) -> Any:
                if outer.is_built:
                    outer.compute("train" if training else "infer")
                return inputs

        self.is_built = False
        inputs = keras.Input((2,))
        self._model = keras.Model(inputs, keras.layers.Dense(1)(Launching()(inputs)))
        # A graph's operations do not return to Python, which launches on the simulated GPU.
        self._model.compile("sgd", "mse", run_eagerly=batches_per_call == 1, steps_per_execution=batches_per_call)
        self.is_built = batches_per_call == 1

    def compute(self, name: str) -> None:
        self._trained += name == "train"
        gpu.launch(name)
        if self._trained == self.fails_after:
            raise BatchError(BATCH_FAILS)

    @staticmethod
    def _data(batches: int) -> tuple[Any, Any]:
        import numpy as np

        return np.zeros((batches * 4, 2), "float32"), np.zeros((batches * 4, 1), "float32")

    def fit(self, batches: int, epochs: int = 1, validation: int = 0, callbacks: Sequence[Any] = ()) -> None:
        x, y = self._data(batches)
        validating = {"validation_data": self._data(validation), "validation_batch_size": 4} if validation else {}
        self._model.fit(x, y, batch_size=4, epochs=epochs, verbose=0, callbacks=list(callbacks), **validating)

    def evaluate(self, batches: int, callbacks: Sequence[Any] = ()) -> None:
        self._model.evaluate(*self._data(batches), batch_size=4, verbose=0, callbacks=list(callbacks))

    def predict(self, batches: int, callbacks: Sequence[Any] = ()) -> None:
        self._model.predict(self._data(batches)[0], batch_size=4, verbose=0, callbacks=list(callbacks))

    def stopper(self, after: int) -> Any:
        import keras

        class Stopper(keras.callbacks.Callback):
            left = after

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                self.left -= 1
                self.model.stop_training = self.left <= 0

        return Stopper()


Model = Callable[..., Any]


def kernels_of(folder: Path) -> dict[str, list[str]]:
    """The kernels in each timeline, by the file's name, in the order of the steps."""
    found = {}
    for path in sorted(folder.glob("timeline-*.json"), key=lambda path: int(path.stem.partition("-")[2])):
        events = json.loads(path.read_text())["traceEvents"]
        lanes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        found[path.name] = [
            event["name"] for event in events if event["ph"] == "X" and "/gpu:0/stream:all" in lanes[event["pid"]]
        ]
    return found


def several_epochs(model: Model, folder: Path) -> Any:
    with ProfilerHook(save_steps=2, output_dir=folder) as hook:
        model().fit(3, epochs=3, validation=2, callbacks=[adapters.KerasCallback(hook)])
    return kernels_of(folder)


def fit_twice(model: Model, folder: Path) -> Any:
    hook = ProfilerHook(save_steps=2, output_dir=folder)
    trained, callback = model(), adapters.KerasCallback(hook)
    trained.fit(3, callbacks=[callback])
    trained.fit(3, callbacks=[callback])
    return kernels_of(folder)


def stopped_early(model: Model, folder: Path) -> Any:
    hook = ProfilerHook(save_steps=2, output_dir=folder)
    trained = model()
    trained.fit(3, epochs=3, callbacks=[adapters.KerasCallback(hook), trained.stopper(after=4)])
    with collector.trace() as step:  # nothing was left open
        gpu.launch("own")
    return kernels_of(folder), step.kernels.names()


def fails_in_a_traced_batch(model: Model, folder: Path) -> Any:
    """Later uses are unaffected: another session, and the same callback."""
    hook = ProfilerHook(save_steps=2, output_dir=folder)
    callback = adapters.KerasCallback(hook)
    failing = model()
    failing.fails_after = 2
    message = ""
    try:
        with hook:
            failing.fit(3, callbacks=[callback])
    except BatchError as error:
        message = next(line for line in str(error).splitlines() if BATCH_FAILS in line)  # Keras adds the place
    with collector.trace() as step:
        gpu.launch("own")
    failing.fit(3, callbacks=[callback])
    return message, step.kernels.names(), kernels_of(folder)


def fails_and_the_hook_was_not_closed(model: Model, folder: Path) -> Any:
    """The next fit ends the trace that the failed one left open."""
    callback = adapters.KerasCallback(ProfilerHook(save_steps=2, output_dir=folder))
    failing = model()
    failing.fails_after = 2
    try:
        failing.fit(3, callbacks=[callback])
    except BatchError:
        failing.fit(3, callbacks=[callback])
    return kernels_of(folder)


def several_batches_per_call(model: Model, folder: Path) -> Any:
    """The files have the number of the last batch; code inside Keras is compiled, so that it launches nothing here."""
    hook = ProfilerHook(save_steps=4, output_dir=folder)
    try:
        trained = model(2)
        trained.fit(1)
    except ValueError as error:  # Keras on torch does not support it
        return str(error)
    trained.fit(12, callbacks=[adapters.KerasCallback(hook)])
    return list(kernels_of(folder))


def copied(model: Model, folder: Path) -> Any:
    """Copies as tuners make for every trial, which then counts separately, and as pools of processes make."""
    callback = adapters.KerasCallback(ProfilerHook(save_steps=2, output_dir=folder))
    model().fit(1, callbacks=[callback])
    for name, twin in (("deep", copy.deepcopy(callback)), ("pickled", pickle.loads(pickle.dumps(callback)))):
        twin._hook._folder = folder / name
        model().fit(3, callbacks=[twin])
    model().fit(3, callbacks=[callback])
    return [kernels_of(folder), kernels_of(folder / "deep"), kernels_of(folder / "pickled")]


def beside_a_session_of_ones_own(model: Model, folder: Path) -> Any:
    """The program's session has all records; the hook has none, and does not end the training."""
    hook = ProfilerHook(save_steps=2, output_dir=folder)
    with collector.trace() as step:
        model().fit(3, callbacks=[adapters.KerasCallback(hook)])
    trained = [name for name in step.kernels.names() if name == "train"]  # on torch, Keras tries the model out before
    return trained, kernels_of(folder)


def steps_by_kind(model: Model, folder: Path) -> Any:
    """0-2 train, 3-4 validate, 5-7 train, 8-9 validate, 10 evaluates, 11-12 predict."""
    chosen = [1, 3, 5, 10, 12]
    with ProfileContext(folder, trace_steps=chosen, dump_steps=[12], debug=True) as context:
        trained, callback = model(), adapters.KerasSteps(context)
        trained.fit(3, epochs=2, validation=2, callbacks=[callback])
        trained.evaluate(1, callbacks=[callback])
        trained.predict(2, callbacks=[copy.deepcopy(callback)])
    texts = {step: (folder / f"run_meta_{step}").read_text() for step in chosen}
    kinds = {step: [kind for kind in ("train", "infer") if f'"{kind}:{kind}"' in text] for step, text in texts.items()}
    return kinds, sorted(context._seen), (folder / "profile_12").exists()


def a_failed_batch_is_no_step(model: Model, folder: Path) -> Any:
    with ProfileContext(folder, trace_steps=range(9), dump_steps=[]) as context:
        trained, callback = model(), adapters.KerasSteps(context)
        trained.fails_after = 2
        try:
            trained.fit(3, callbacks=[callback])
        except BatchError:
            trained.fit(1, callbacks=[callback])
    return sorted(context._traced)  # 1 failed


def the_context_ends_with_a_failed_batch(model: Model, folder: Path) -> Any:
    """While the callback, and with it the batch without an end, is still referenced."""
    trained = model()
    trained.fails_after = 2
    try:
        with ProfileContext(folder, trace_steps=range(9), dump_steps=[]) as context:
            callback = adapters.KerasSteps(context)
            trained.fit(3, callbacks=[callback])
    except BatchError:
        with collector.trace() as step:
            gpu.launch("own")
    del callback
    return step.kernels.names(), sorted(context._traced)


def nothing_is_left(model: Model, folder: Path) -> Any:
    """After all other scenarios: misuses of CUPTI, and anything left open."""
    with collector.trace() as step:
        gpu.launch("own")
    return gpu.misuse(), step.kernels.names(), step.ledger.losses()


SCENARIOS = [
    several_epochs,
    fit_twice,
    stopped_early,
    fails_in_a_traced_batch,
    fails_and_the_hook_was_not_closed,
    several_batches_per_call,
    copied,
    beside_a_session_of_ones_own,
    steps_by_kind,
    a_failed_batch_is_no_step,
    the_context_ends_with_a_failed_batch,
    nothing_is_left,
]


def run(model: Model, folder: Path) -> dict[str, Any]:
    """The results of every scenario."""
    global gpu
    results = {}
    with SimulatedGpu() as gpu:
        for scenario, number in zip(SCENARIOS, itertools.count(), strict=False):
            results[scenario.__name__] = scenario(model, folder / str(number))
    return results


if __name__ == "__main__":
    if find_spec("tensorflow") is None:
        os.environ.setdefault("KERAS_BACKEND", "torch")
    print(json.dumps(run(Keras if sys.argv[1] == "keras" else StandIn, Path(sys.argv[2]))))
