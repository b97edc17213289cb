"""What leaving out kinds of records saves: the levers of a budget, in the order in which they are used.

A program works in rounds: 2,000 empty kernels are launched in C++, and 100 copies, 100 memsets, 100 waits and 20
launches of a graph of 20 nodes follow from Python. It is traced with every kind, and then with one lever after the
other, as `trace(budget=...)` uses them; on the simulator with runtime and driver calls, on a card with driver calls,
which are then left out with all calls. Each runs in a separate process, alternating in random order.

"a launch" is the time of a launching call in the program's thread, "reading a round" the CPU time of the collector's
thread for the records of one round. What CUPTI adds to a call is in the first figure alone, and a budget cannot see it.
"""

from __future__ import annotations

from typing import Any

from _collectors import Collector, Ours
from _program import Program, main

FIGURES = {"a launch": "ns", "reading a round": "ns"}
KERNELS, OTHERS, REPLAYS, NODES = 2_000, 100, 20, 20
EVERYTHING = ("kernels", "memcpys", "memsets", "runtime_api", "driver_api", "external_correlations", "synchronizations")
LEVERS = {
    "without driver calls": ("driver_api",),
    "and waits": ("synchronizations",),
    "and all calls, names": ("runtime_api", "external_correlations"),
    "and memsets": ("memsets",),
    "and copies": ("memcpys",),
}
"""Name of an arm -> the kinds that it lacks beside those of the arms before it."""
WHOLE_GRAPHS = "and nodes of graphs"


def _arms() -> dict[str, Any]:
    kinds = EVERYTHING
    arms: dict[str, Any] = {"none": Collector, "every kind": lambda kinds=kinds: Ours("every kind", kinds=kinds)}
    for name, left_out in LEVERS.items():
        kinds = tuple(kind for kind in kinds if kind not in left_out)
        arms[name] = lambda kinds=kinds: Ours(", ".join(kinds), kinds=kinds)
    arms[WHOLE_GRAPHS] = lambda kinds=kinds: Ours("kernels, and graphs as a whole", kinds=kinds, graphs="whole")
    return arms


COMPARED = _arms()


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Work in rounds under the collector."""
    if program.target.simulated:
        from collector.testing.simulator.operations import LAUNCHES, number_of

        program.activity.launch = number_of(LAUNCHES, "both", "way to launch")
    cuda, stream = program.cuda, program.stream
    memory = cuda.allocate(1 << 20)
    rounds = max(launches // KERNELS, 1)
    with cuda.pinned(1 << 20) as host:
        collector.start(program)
        graph = program.capture_graph(NODES)
        spent = 0.0
        for _ in range(rounds):
            spent += float(program.launch(KERNELS).mean())
            for _ in range(OTHERS):
                cuda.copy_to_device(memory, host, 4096, stream)
                cuda.fill(memory, 0, 4096, stream)
                cuda.synchronize()
            program.replay(graph, REPLAYS)
        collector.stop()
    found: dict[str, Any] = {"a launch": spent / rounds, "reading a round": "it reads none"}
    if isinstance(collector, Ours):
        ledger = collector.step.ledger
        found["reading a round"] = ledger.decode_cpu_ns / rounds
        found["reading a round: records"] = round(ledger.records_decoded / rounds)
    return found


def savings(report: Any) -> str:
    """What each lever saves beside those before it, of the lowest of the rounds."""
    lowest = {
        each.name.partition(": ")[2]: {name: min(arm.times_ns) for name, arm in each.arms.items() if arm.times_ns}
        for each in report.comparisons
    }
    names = [name for name in COMPARED if name != "none"]
    lines = ["\nOf the cost with every kind, with each lever beside those before it (a launch, reading a round):"]
    launch, reading = lowest["a launch"], lowest["reading a round"]
    added = launch[names[0]] - launch["none"]
    for name in names[1:]:
        of_launch = f"{(launch[name] - launch['none']) / added:.2f}" if added > 0 else "not known"
        lines.append(f"  {name}: {of_launch}, {reading[name] / reading[names[0]]:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, COMPARED, launches=200_000, rounds=3, after=savings)
