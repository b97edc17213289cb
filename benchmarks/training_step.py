"""The cost of tracing to a training step in PyTorch, with many small kernels and with few large ones.

A perceptron of 20 narrow layers, forward, backward and Adam, is bound by launches; one of 3 wide layers by the GPU. The
figure is the median step after a warm-up; our collector reports the number of kernels per step. PyTorch launches from
two threads, which share the whole node without a dedicated core. Each collector runs in a separate process, alternating
in random order. Needs PyTorch; without a GPU, PyTorch runs on the processor, where there is nothing to record.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _collectors import Collector, Ours
from _program import Program, collectors_but, main, timed_ns

FIGURES = {"a step of small kernels": "ns", "a step of large kernels": "ns"}
WARM_UP = 5


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


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Time steps under the collector."""
    with program.part("importing"):
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    scale = 1 if device == "cuda" else 16
    workloads = {
        "a step of small kernels": (training_step(device, 20, 256 // scale, 64), launches),
        "a step of large kernels": (training_step(device, 3, 4096 // scale, 4096 // scale), max(launches // 3, 3)),
    }
    found: dict[str, Any] = {}
    for figure, (step, count) in workloads.items():
        with program.part("warm-up"):
            for _ in range(WARM_UP):
                step()
        with program.part("start"):
            collector.start(program)
        with program.part("steps"):
            found[figure] = float(np.median([timed_ns(step) for _ in range(count)]))
        with program.part("stop"):
            collector.stop()
        found[f"{figure}: steps"] = count
        if isinstance(collector, Ours):
            found[f"{figure}: kernels of one"] = round(collector.kernels() / count, 1)
    return found


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("not run: needs torch")
        sys.exit(0)
    main(__file__, __doc__, FIGURES, measure, collectors_but(), launches=300)
