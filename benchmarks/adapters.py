"""The cost of names: an annotation beside the native push and pop, and a module's hooks beside PyTorch's own.

All figures are processor time in ns of one call, the lowest of all rounds, which take turns in one process.
Annotations go to the simulated CUPTI.

    adapters.py [--turns=N] [--rounds=N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import collector
from collector import _native, adapters
from collector.testing import SimulatedGpu


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


def module_calls() -> dict[str, Callable[[int], None]]:
    """Loops over an empty module: without hooks, with ours, and inside record_function. Empty without PyTorch."""
    try:
        import torch
    except ImportError:
        return {}

    class Empty(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    def loop(module: Any) -> Callable[[int], None]:
        def run(turns: int) -> None:
            for _ in range(turns):
                module(None)

        return run

    def recorded(turns: int) -> None:
        for _ in range(turns):
            with torch.profiler.record_function("Empty"):
                plain(None)

    plain, forward, both = Empty(), Empty(), Empty()
    adapters.annotate_modules(forward, backward=False)
    adapters.annotate_modules(both)
    return {
        "module, no hook": loop(plain),
        "module, record_function": recorded,
        "module, annotate_modules(backward=False)": loop(forward),
        "module, annotate_modules": loop(both),
    }


def table(title: str, found: dict[str, float], reference: str) -> None:
    """Print the figures with their ratio to one of them."""
    print(f"\n{title}\n\n| | ns | of {reference} |\n| --- | --- | --- |")
    for name, spent in found.items():
        print(f"| {name} | {spent:.0f} | {spent / found[reference]:.2f} |")


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    blocks = {"native push and pop": push_pop, "annotate": annotated, "annotate, one object": one_object}
    modules = module_calls()
    with SimulatedGpu():
        if modules:
            found = lowest(modules, arguments.turns, arguments.rounds)
            table("Nothing traced", found, "module, no hook")
        for title, calls, reference in (
            ("Traced", blocks, "native push and pop"),
            ("Traced, a module", modules, "module, record_function"),
        ):
            if calls:
                with collector.trace(strict=True):
                    found = lowest(calls, arguments.turns, arguments.rounds)
                table(title, found, reference)
    if not modules:
        print("\nPyTorch is not installed: the adapters of modules were not measured")


if __name__ == "__main__":
    main()
