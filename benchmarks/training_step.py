"""The cost of tracing to a training step in PyTorch, with many small kernels and with few large ones.

A perceptron of 20 narrow layers, forward, backward and Adam, is bound by launches; one of 3 wide layers by the GPU.
Steps of one program differ by a quarter from process to process on a virtual machine. Therefore steps without and with
the collector take turns in one process: a figure is the median over the turns, "of before" that of the ratios to the
steps of the same turn before the collector began, and "afterwards" the last of those to the first steps of all. Our
collector reports the number of kernels per step. PyTorch launches from two threads, which share the whole node without
a dedicated core. Each collector runs in a separate process, alternating in random order. Needs PyTorch; without a GPU,
PyTorch runs on the processor, where there is nothing to record.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _collectors import Collector, Ours
from _program import Program, collectors_but, main, timed_ns

STEPS = ("a step of small kernels", "a step of large kernels")
FIGURES = {f"{step}{more}": unit for step in STEPS for more, unit in (("", "ns"), (", of before", "times"))}
WARM_UP, TURNS = 5, 5


def training_step(device: str, layers: int, width: int, batch: int) -> Callable[[], None]:
    """One step of a perceptron."""
    import torch

    sizes = [(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(layers)]
    model = torch.nn.Sequential(*(part for pair in sizes for part in pair)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(batch, width, device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def median_ns(step: Callable[[], None], count: int) -> float:
    """The median of so many steps."""
    return float(np.median([timed_ns(step) for _ in range(count)]))


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Time steps under the collector."""
    with program.part("importing"):
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    scale = 1 if device == "cuda" else 16
    workloads = {
        STEPS[0]: (training_step(device, 20, 256 // scale, 64), max(launches // TURNS, 1)),
        STEPS[1]: (training_step(device, 3, 4096 // scale, 4096 // scale), max(launches // (4 * TURNS), 1)),
    }
    found: dict[str, Any] = {}
    for figure, (step, count) in workloads.items():
        with program.part("warm-up"):
            for _ in range(WARM_UP):
                step()
        plain, traced = [], []
        kernels = 0
        for _ in range(TURNS):
            with program.part("steps without"):
                plain.append(median_ns(step, count))
            with program.part("start"):
                collector.start(program)
            with program.part("steps with"):
                traced.append(median_ns(step, count))
            with program.part("stop"):
                collector.stop()
            if isinstance(collector, Ours):
                kernels += collector.kernels()
        ratios = [during / before for during, before in zip(traced, plain, strict=True)]
        found[figure] = float(np.median(traced))
        found[f"{figure}, of before"] = float(np.median(ratios))
        found[f"{figure}, of before: each turn"] = " ".join(f"{ratio:.3f}" for ratio in ratios)
        found[f"{figure}, of before: without, ms"] = " ".join(f"{ns / 1e6:.3f}" for ns in plain)
        found[f"{figure}, of before: afterwards"] = round(plain[-1] / plain[0], 3)
        found[f"{figure}: steps"] = count * TURNS
        if isinstance(collector, Ours):
            found[f"{figure}: kernels of one"] = round(kernels / (count * TURNS), 1)
    return found


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("not run: needs torch")
        sys.exit(0)
    main(__file__, __doc__, FIGURES, measure, collectors_but(), launches=300)
