"""The cost of tracing to the traced program, compared with other collectors and with the floor.

Launch-bound: empty kernels launched one by one in C++ from a dedicated core, without the waits in between. Then the
same from eight threads, replays of a graph of 100 kernels, kernels that keep the GPU busy, and launches after the
collector has stopped, compared with those before it ever started. Each collector runs in a separate process,
alternating in random order. The cost of starting and stopping is in sessions.py, and the cost to a training step in
training_step.py.

Graphs are recorded node by node, as all of these collectors do by default, and captured while the collector runs. For
the replays, further figures are the GPU memory of the collector, its growth per
replay, and the number of kernels without usable times.

    overhead.py                  every collector that is installed; on the simulator if there is no GPU
    overhead.py --simulated      on the simulator in any case

With COLLECTOR_BENCHMARK_LAUNCHES_ALONE=1 only the launches one by one are measured.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from _collectors import COLLECTORS, Collector
from _program import Program, main

LAUNCH = {
    "a launch": "the mean",
    "a launch, median": "p50",
    "a launch, p99": "p99",
    "a launch, p99.99": "p99.99",
    "a launch, longest": "longest",
}
ADDED = "a launch, median, more than before"
FIGURES = {
    **dict.fromkeys((*LAUNCH, ADDED), "ns"),
    "a launch from 8 threads": "ns",
    "a replay of 100 kernels": "ns",
    "a kernel of 100 us": "ns",
    "a launch afterwards": "ns",
    "a launch afterwards, of before": "times",
}
THREADS, NODES = 8, 100
LAUNCHES_ALONE = "COLLECTOR_BENCHMARK_LAUNCHES_ALONE"
"""The environment variable that leaves out all workloads but the first, where time is short."""


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Run every workload under the collector."""
    before = float(np.median(program.launch(max(launches // 4, 100))))
    collector.start(program)
    took = program.launch(launches)
    collector.stop()
    losses = "; ".join(collector.losses()) or "nothing said"
    afterwards = float(np.median(program.launch(max(launches // 4, 100))))
    left = {
        "a launch afterwards": afterwards,
        "a launch afterwards, of before": afterwards / before,
        "a launch afterwards, of before: before, ns": before,
    }
    if collector.only_afterwards:
        return left | dict.fromkeys(set(FIGURES) - set(left), "it is here for what it leaves behind")
    shares = np.percentile(took, [50, 99, 99.99])
    found: dict[str, Any] = dict(zip(LAUNCH, map(float, [took.mean(), *shares, took.max()]), strict=True))
    found[ADDED] = added_to(before, float(shares[0]), collector)
    found["a launch: lost"] = losses
    if os.environ.get(LAUNCHES_ALONE):
        return found | dict.fromkeys(set(FIGURES) - set(found) - set(left), "not asked for") | left
    collector.start(program)
    found["a launch from 8 threads"] = program.launch_from_threads(THREADS, max(launches // 4, 10))
    collector.stop()
    found |= replays(collector, program, max(launches // 40, 10))
    collector.start(program)
    busy_ns = program.keep_busy(100_000, max(launches // 100, 10))
    collector.stop()
    found["a kernel of 100 us"] = busy_ns if busy_ns > 90_000 else "the simulated GPU takes no time"
    return found | left


def added_to(before: float, during: float, collector: Collector) -> float | str:
    """What a collector adds to a median launch of its process, in ns; figures are positive."""
    return max(during - before, 1.0) if type(collector) is not Collector else "it adds nothing"


def replays(collector: Collector, program: Program, count: int) -> dict[str, Any]:
    """Replay a graph under the collector, and measure the card's memory and check the kernels' times."""
    figure = "a replay of 100 kernels"
    empty = program.cuda.free_memory()
    collector.start(program)
    graph = program.capture_graph(NODES)
    begun = program.cuda.free_memory()
    found: dict[str, Any] = {figure: program.replay(graph, count)}
    ended = program.cuda.free_memory()
    collector.stop()
    found[f"{figure}: GPU memory taken at first, MB"] = round((empty - begun) / 1e6, 1)
    found[f"{figure}: and more at the end, MB"] = round((begun - ended) / 1e6, 1)
    stamps = collector.stamps()
    if stamps is not None:
        found[f"{figure}: without usable times"] = f"{stamps.bad()} of {len(stamps.start)} kernels"
        found[f"{figure}: launched"] = (count + 1) * NODES
    return found


def above_the_floor(report: Any) -> str:
    """The cost that each collector adds to a launch, and its ratios to that of the floor with the same kinds.

    The median over the rounds, and for the mean also the least. The first ratio is that of the least means. The second
    one is that of the median launch less the one of the same process before the collector began: on a virtual machine
    launches differ by half from process to process.
    """
    rounds = {
        figure: {name: arm.times_ns for name, arm in each.arms.items()}
        for each in report.comparisons
        if (figure := each.name.partition(": ")[2]) in (*LAUNCH, ADDED)
    }
    launches = rounds["a launch"]
    if "none" not in launches:
        return "\nWithout plain launches there is nothing to hold added costs against."
    ratios_of = ("times what the floor adds, least mean", "in its process")
    heads = ["least mean", *LAUNCH.values(), "in its process", *ratios_of]
    lines = [f"\n| added to a launch, ns | {' | '.join(heads)} |", f"{'| --- ' * (len(heads) + 1)}|"]

    def added(figure: str, name: str, of: Any = statistics.median) -> float:
        return float(of(rounds[figure][name]) - of(rounds[figure]["none"]))

    def in_its_process(name: str) -> float:
        return float(statistics.median(rounds[ADDED][name]))

    def of_the_floor(name: str, cost: Callable[[str], float]) -> str:
        floor = COLLECTORS[name]().floor
        least = cost(floor) if floor in launches else 0
        return f"{cost(name) / least:.2f} ({floor})" if least > 0 else "no floor that adds anything"

    def least_mean(name: str) -> float:
        return added("a launch", name, min)

    for name in launches:
        if name == "none":
            continue
        cells = [least_mean(name), *(added(figure, name) for figure in LAUNCH), in_its_process(name)]
        ratios = [of_the_floor(name, least_mean), of_the_floor(name, in_its_process)]
        lines.append(f"| {name} | {' | '.join([*(f'{each:.0f}' for each in cells), *ratios])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, launches=200_000, after=above_the_floor)
