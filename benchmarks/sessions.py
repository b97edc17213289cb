"""The cost of starting and stopping a collector, and the losses of short sessions.

The benchmark opens 100 sessions around 50 launches each, with pauses of a tenth of a second in which a collector may do
deferred work. For each: the caller's wait for the start and for the stop, and the number of kernels that are missing,
have no usable times or began before they were launched, as happens if times are converted by another clock in every
session but the first. Each collector runs in a separate process, alternating in random order.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from _collectors import COLLECTORS, Collector
from _program import Program, main, timed_ns

IN_SESSION = 50
IDLE_S = 0.1
SHOWN = 8
COMPARED = ("collector, kernels", "collector, all", "kineto, CUDA", "proton, tree")
"""Only a few, because the pauses alone take ten seconds for each."""
FIGURES = {"start": "ns", "stop": "ns", "kernels of all sessions": "of the launches"}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Open and close sessions, enough for that many launches."""
    opened: list[float] = []
    closed: list[float] = []
    trouble: dict[str, list[int | None]] = {"missing": [], "without usable times": [], "before their launch": []}
    sessions = max(launches // IN_SESSION, 3)
    for index in range(sessions):
        if index:
            time.sleep(0 if program.target.simulated else IDLE_S)  # nothing is deferred on the simulator
        opened.append(timed_ns(lambda: collector.start(program)))
        program.launch(IN_SESSION)
        closed.append(timed_ns(collector.stop))
        kernels, stamps = collector.kernels(), collector.stamps()
        trouble["missing"].append(None if kernels is None else IN_SESSION - kernels)
        trouble["without usable times"].append(None if stamps is None else stamps.bad())
        trouble["before their launch"].append(None if stamps is None else stamps.before_launch())
    found: dict[str, Any] = {}
    for figure, took in (("start", opened), ("stop", closed)):
        found[figure] = statistics.median(took)
        found |= {f"{figure}: first, ms": round(took[0] / 1e6, 2), f"{figure}: longest, ms": round(max(took) / 1e6, 2)}
    missing = [each for each in trouble["missing"] if each is not None]
    seen = len(missing) * IN_SESSION - sum(missing)
    share = "kernels of all sessions"
    found[share] = seen / (sessions * IN_SESSION) if seen else "it keeps none"
    texts = {f"{share}: {what}": sessions_text(each) for what, each in trouble.items()}
    return found | {f"{share}: sessions": sessions} | texts


def sessions_text(counts: list[int | None]) -> str:
    """The numbers of kernels and their sessions, counted from 1."""
    known = [count for count in counts if count is not None]
    if not known:
        return "not known"
    some = [f"session {number}: {count}" for number, count in enumerate(counts, 1) if count]
    more = f" and {len(some) - SHOWN} more sessions" if len(some) > SHOWN else ""
    return ", ".join(some[:SHOWN]) + more if some else "none"


if __name__ == "__main__":
    main(
        __file__,
        __doc__,
        FIGURES,
        measure,
        {name: COLLECTORS[name] for name in COMPARED},
        launches=100 * IN_SESSION,
        rounds=3,
    )
