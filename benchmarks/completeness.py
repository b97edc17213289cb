"""How many of the launched kernels each collector's result holds: 1 is all of them.

From one stream, from eight threads, by replays of a graph, and in short sessions one after another. Each collector in a
process of its own, by turns in random order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _collectors import COLLECTORS, Collector
from _program import Program, main

NODES, SESSIONS, IN_SESSION, THREADS = 100, 20, 50, 8
FIGURES = dict.fromkeys(("one stream", "8 threads", "graph replays", "20 sessions"), "of the launches")


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record every workload and count."""
    replays = max(launches // NODES, 10)
    workloads: dict[str, tuple[int, Callable[[], Any]]] = {
        "one stream": (launches, lambda: program.launch(launches)),
        "8 threads": (
            launches // THREADS * THREADS,
            lambda: program.launch_from_threads(THREADS, launches // THREADS),
        ),
        "graph replays": ((replays + 1) * NODES, lambda: program.replay_graph(NODES, replays)),
    }
    found: dict[str, Any] = {}
    for name, (launched, run) in workloads.items():
        found |= told(name, launched, recorded(collector, program, run), collector)
    counts = [recorded(collector, program, lambda: program.launch(IN_SESSION)) for _ in range(SESSIONS)]
    return found | told("20 sessions", SESSIONS * IN_SESSION, sum(counts), collector)


def recorded(collector: Collector, program: Program, run: Callable[[], Any]) -> int:
    """How many kernels the collector has of a run."""
    collector.start(program)
    run()
    program.cuda.synchronize()
    collector.stop()
    return collector.kernels() or 0


def told(figure: str, launched: int, seen: int, collector: Collector) -> dict[str, Any]:
    """The share that was recorded, or that it is nothing."""
    facts = {f"{figure}: launched": launched, f"{figure}: recorded": seen}
    facts[f"{figure}: says it lost"] = "; ".join(collector.losses()) or "nothing"
    return {figure: seen / launched if seen else f"its result has none of {launched} kernels", **facts}


if __name__ == "__main__":
    kept = {name: make for name, make in COLLECTORS.items() if name != "none" and not name.startswith("floor")}
    main(__file__, __doc__, FIGURES, measure, kept, launches=50_000)
