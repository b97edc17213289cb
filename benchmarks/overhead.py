"""What tracing costs the program that is traced, against other collectors and against the floor.

Launch-bound: empty kernels launched one by one in C++, the waits in between left out. Then the same from eight threads,
replays of a graph of 100 kernels, kernels that keep the GPU busy, launches after the collector has stopped, and
starting and stopping it around 50 launches. Each collector runs in a process of its own, by turns in random order.

    overhead.py                  every collector that is installed; on the simulator where there is no GPU
    overhead.py --simulated      on the simulator in any case
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from _collectors import Collector
from _program import Program, main, timed_ns

FIGURES = {
    "a launch": "ns",
    "a launch, median": "ns",
    "a launch from 8 threads": "ns",
    "a replay of 100 kernels": "ns",
    "a kernel of 100 us": "ns",
    "a launch afterwards": "ns",
    "start": "ns",
    "stop": "ns",
}
SESSIONS = 5


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Run every workload under the collector."""
    collector.start(program)
    took = program.launch(launches)
    collector.stop()
    shares = {f"a launch: p{share} ns": round(float(np.percentile(took, share))) for share in (99, 99.99)}
    found: dict[str, Any] = {"a launch": float(took.mean()), **shares, "a launch: max ns": int(took.max())}
    found["a launch, median"] = float(np.median(took))
    found["a launch: lost"] = "; ".join(collector.losses()) or "nothing said"
    found["a launch afterwards"] = float(np.median(program.launch(max(launches // 4, 100))))
    collector.start(program)
    found["a launch from 8 threads"] = program.launch_from_threads(8, max(launches // 8, 10))
    collector.stop()
    collector.start(program)
    found["a replay of 100 kernels"] = program.replay_graph(100, max(launches // 100, 10))
    collector.stop()
    collector.start(program)
    busy_ns = program.keep_busy(100_000, max(launches // 100, 10))
    collector.stop()
    found["a kernel of 100 us"] = busy_ns if busy_ns > 90_000 else "the simulated GPU takes no time"
    if type(collector) is Collector:
        return found | dict.fromkeys(("start", "stop"), "there is nothing to start")
    opened, closed = [], []
    for _ in range(SESSIONS):
        opened.append(timed_ns(lambda: collector.start(program)))
        program.launch(50)
        closed.append(timed_ns(collector.stop))
    return found | {"start": statistics.median(opened), "stop": statistics.median(closed)}


def above_the_floor(report: Any) -> str:
    """What each collector adds to a launch, and how often that is what the floor of the same kinds adds."""
    launch = report.comparisons[0]
    cost = {name: launch.interval(name).estimate for name in launch.arms}
    if not {"none", "floor, kernels", "floor, all"} <= set(cost):
        return "\nWithout the floor there is nothing to hold added costs against."
    lines = ["\n| collector | added to a launch, ns | times what the floor adds |", "| --- | --- | --- |"]
    for name, taken in cost.items():
        only_kernels = name.endswith(("kernels", "CUDA")) and "CPU" not in name
        floor = cost["floor, kernels" if only_kernels else "floor, all"] - cost["none"]
        if name != "none":
            times = f"{(taken - cost['none']) / floor:.2f}" if floor > 0 else "the floor adds nothing"
            lines.append(f"| {name} | {taken - cost['none']:.0f} | {times} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, launches=100_000, after=above_the_floor)
