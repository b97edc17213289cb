"""The cost of names: an annotation beside the native push and pop, and each adapter beside no hook and PyTorch's own.

All figures are processor time in ns of one call, the lowest of all rounds, which take turns in one process.
Annotations go to the simulated CUPTI. ``record_function`` is a block around the same call; no profiler listens to it.

    adapters.py [--turns=N] [--rounds=N]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import collector
from collector import _native, adapters
from collector.testing import SimulatedGpu

Loops: TypeAlias = dict[str, Callable[[int], None]]
"""Row of a table -> a loop of so many turns."""
NO_HOOK, RECORD_FUNCTION = "no hook", "record_function"


def lowest(calls: dict[str, Callable[[int], None]], turns: int, rounds: int) -> dict[str, float]:
    """Ns of one turn of each loop."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.process_time_ns()
            call(turns)
            spent = (time.process_time_ns() - began) / turns
            best[name] = min(best.get(name, spent), spent)
    return best


def push_pop(turns: int) -> None:
    """The native push and pop."""
    push, pop = _native.push_annotation, _native.pop_annotation
    for _ in range(turns):
        push("layer1/conv")
        pop()


def annotated(turns: int) -> None:
    """A new annotation for each block."""
    for _ in range(turns):
        with collector.annotate("layer1/conv"):
            pass


def one_object(turns: int) -> None:
    """One annotation for all blocks."""
    annotation = collector.annotate("layer1/conv")
    for _ in range(turns):
        with annotation:
            pass


def called(call: Callable[[], Any]) -> Callable[[int], None]:
    """A loop of calls."""

    def run(turns: int) -> None:
        for _ in range(turns):
            call()

    return run


def recorded(call: Callable[[], Any]) -> Callable[[int], None]:
    """A loop of calls, each inside PyTorch's block; without PyTorch the calls alone."""
    if find_spec("torch") is None:
        return called(call)
    import torch

    def run(turns: int) -> None:
        for _ in range(turns):
            with torch.profiler.record_function("name"):
                call()

    return run


def inside(hooks: Callable[[], AbstractContextManager[Any]], loop: Callable[[int], None]) -> Callable[[int], None]:
    """A loop with hooks that are those of the whole process."""

    def run(turns: int) -> None:
        with hooks():
            loop(turns)

    return run


def module_calls() -> Loops:
    """An empty module of PyTorch."""
    import torch

    class Empty(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    module, other = Empty(), Empty()
    call = partial(module, None)

    def named(model: Any, **choices: Any) -> Callable[[int], None]:
        return inside(partial(adapters.annotate_modules, model, **choices), called(call))

    return {
        NO_HOOK: called(call),
        RECORD_FUNCTION: recorded(call),
        "annotate_modules(backward=False)": named(module, backward=False),
        "annotate_modules": named(module),
        "annotate_modules(another model)": named(other),
        "annotate_all_modules": inside(adapters.annotate_all_modules, called(call)),
    }


def optimizer_steps() -> Loops:
    """A step of PyTorch's SGD without a gradient."""
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    return {
        NO_HOOK: called(optimizer.step),
        RECORD_FUNCTION: recorded(optimizer.step),
        "annotate_torch_steps": inside(adapters.annotate_torch_steps, called(optimizer.step)),
    }


def batches() -> Loops:
    """A batch of PyTorch's data loader: one number."""
    import torch

    loader = torch.utils.data.DataLoader(range(1 << 30), batch_size=None)

    def fetch(turns: int) -> None:
        batches = iter(loader)
        for _ in range(turns):
            next(batches)

    def fetch_recorded(turns: int) -> None:
        batches = iter(loader)
        recorded(partial(next, batches))(turns)

    return {
        NO_HOOK: fetch,
        RECORD_FUNCTION: fetch_recorded,
        "annotate_torch_steps": inside(adapters.annotate_torch_steps, fetch),
    }


def torch_ops() -> Loops:
    """``add_`` of one number. Only a build with CUDA emits ranges of ops."""
    import torch

    add = partial(torch.ones(1).add_, 1)
    loops = {NO_HOOK: called(add), RECORD_FUNCTION: recorded(add)}
    if torch.version.cuda:
        if not torch.cuda.is_available():
            torch.cuda.synchronize = lambda *_: None  # the only call of emit_nvtx that needs a device
        loops["annotate_torch_ops"] = inside(adapters.annotate_torch_ops, called(add))
    return loops


def triton_launches() -> Loops:
    """Triton's hooks around a launch, which a launcher calls with the description of the kernel."""
    from triton import knobs
    from triton.compiler.compiler import LazyDict

    runtime = knobs.runtime

    def launch() -> None:
        described = LazyDict({"name": "kernel", "function": None, "stream": 0})
        runtime.launch_enter_hook(described)
        runtime.launch_exit_hook(described)

    return {
        NO_HOOK: called(launch),
        RECORD_FUNCTION: recorded(launch),
        "annotate_triton_launches": inside(adapters.annotate_triton_launches, called(launch)),
    }


def keras_steps() -> Loops:
    """Keras' calls of its callbacks around a batch."""
    import keras

    class Silent(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            pass

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

    def batch(callbacks: Any) -> Callable[[], None]:
        listed = keras.callbacks.CallbackList(callbacks, model=keras.Sequential([keras.layers.Dense(1)]))

        def run() -> None:
            listed.on_train_batch_begin(0)
            listed.on_train_batch_end(0)

        return run

    plain = batch([Silent()])
    return {
        NO_HOOK: called(plain),
        RECORD_FUNCTION: recorded(plain),
        "keras_names": called(batch([adapters.keras_names()])),
    }


def keras_layers() -> Loops:
    """An empty layer of Keras."""
    import keras

    class Empty(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x

    model = keras.Sequential([keras.Input((1,)), Empty()])
    names = adapters.keras_names()
    names.set_model(model)
    layer, x = model.layers[0], keras.ops.ones((1, 1))

    @contextmanager
    def named() -> Iterator[None]:
        names.on_train_begin()
        yield
        names.on_train_end()

    call = partial(layer, x)
    return {NO_HOOK: called(call), RECORD_FUNCTION: recorded(call), "keras_names": inside(named, called(call))}


GROUPS: Mapping[str, Callable[[], Loops]] = {
    "a call of an empty module": module_calls,
    "a step of SGD": optimizer_steps,
    "a batch of a data loader": batches,
    "an op, add_": torch_ops,
    "Triton's hooks of a launch": triton_launches,
    "Keras' callbacks of a batch": keras_steps,
    "a call of an empty Keras layer": keras_layers,
}
"""Title -> the loops; a framework that is not installed has none."""


def table(title: str, found: dict[str, float], references: list[str]) -> None:
    """Print the figures with their ratios to some of them."""
    heads = ["", "ns", *(f"of {reference}" for reference in references)]
    print(f"\n{title}\n\n| {' | '.join(heads)} |\n| {' | '.join('---' for _ in heads)} |")
    for name, spent in found.items():
        ratios = " | ".join(f"{spent / found[reference]:.2f}" for reference in references)
        print(f"| {name} | {spent:.0f} | {ratios} |")


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    if find_spec("tensorflow") is None:
        os.environ.setdefault("KERAS_BACKEND", "torch")
    blocks = {"native push and pop": push_pop, "annotate": annotated, "annotate, one object": one_object}
    left_out = []
    with SimulatedGpu():
        with collector.trace(strict=True):
            found = lowest(blocks, arguments.turns, arguments.rounds)
        table("Traced, a block", found, ["native push and pop"])
        for title, group in GROUPS.items():
            try:
                loops = group()
            except ImportError:
                left_out.append(title)
                continue
            references = [NO_HOOK, RECORD_FUNCTION] if find_spec("torch") else [NO_HOOK]
            table(f"Nothing traced, {title}", lowest(loops, arguments.turns, arguments.rounds), references)
            with collector.trace(strict=True):
                found = lowest(loops, arguments.turns, arguments.rounds)
            table(f"Traced, {title}", found, references)
    if left_out:
        print(f"\nNot measured, since the framework is not installed: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
