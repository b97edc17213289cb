"""The share of the launched kernels in each collector's result and in its file: 1 is all of them.

From one stream, from eight threads, from replays of a graph, and in consecutive short sessions. For the file, further
figures are whether it is strict JSON, the number of partly overlapping slices of a row (viewers drop those), and the
number of slices that come after one that began later. Each collector runs in a separate process, alternating in random
order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _collectors import Collector
from _program import Program, collectors_but, main

NODES, SESSIONS, IN_SESSION, THREADS = 100, 20, 50, 8
WORKLOADS = ("one stream", "8 threads", "graph replays", "20 sessions")
FIGURES = dict.fromkeys((figure for name in WORKLOADS for figure in (name, f"{name}, in the file")), "of the launches")


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record every workload and count its kernels."""
    replays = max(launches // NODES, 10)
    workloads: dict[str, tuple[int, Callable[[], Any]]] = {
        "one stream": (launches, lambda: program.launch(launches)),
        "8 threads": (
            launches // THREADS * THREADS,
            lambda: program.launch_from_threads(THREADS, launches // THREADS),
        ),
        "graph replays": ((replays + 1) * NODES, lambda: program.replay(program.capture_graph(NODES), replays)),
    }
    found: dict[str, Any] = {}
    for name, (launched, run) in workloads.items():
        found |= figures_of(name, launched, [recorded(collector, program, run)])
    sessions = [recorded(collector, program, lambda: program.launch(IN_SESSION)) for _ in range(SESSIONS)]
    return found | figures_of("20 sessions", SESSIONS * IN_SESSION, sessions)


def recorded(collector: Collector, program: Program, run: Callable[[], Any]) -> dict[str, Any]:
    """The numbers of a run's kernels in the collector's result and in its file, and facts about both."""
    collector.start(program)
    run()
    program.cuda.synchronize()
    collector.stop()
    found: dict[str, Any] = {"kernels": collector.kernels() or 0}
    found["says it lost"] = "; ".join(collector.losses()) or "nothing"
    if collector.file:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"step{collector.file}"
            collector.write(path)
            found["in the file"], found["file"] = collector.read_back(path)
    return found


def figures_of(name: str, launched: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The recorded and written shares, or that there are none; for several runs, the errors of all."""
    seen = sum(run["kernels"] for run in runs)
    losses = list(dict.fromkeys(run["says it lost"] for run in runs if run["says it lost"] != "nothing"))
    found: dict[str, Any] = {
        name: seen / launched if seen else f"its result has none of {launched} kernels",
        f"{name}: launched": launched,
        f"{name}: recorded": seen,
        f"{name}: says it lost": "; ".join(losses) or "nothing",
    }
    figure = f"{name}, in the file"
    if not all("file" in run for run in runs):
        return found | {figure: "it writes no file"}
    written = sum(run["in the file"] for run in runs)
    found[figure] = written / launched if written else f"its file has none of {launched} kernels"
    found[f"{figure}: kernels"] = written
    for fact in dict.fromkeys(fact for run in runs for fact in run["file"]):
        values = list(dict.fromkeys(str(run["file"].get(fact, "not known")) for run in runs))
        wrong = [each for each in values if each not in ("yes", "none")]
        found[f"{figure}: {fact}"] = "; ".join(wrong or values)
    return found


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, collectors_but("none", "floor"), launches=50_000)
