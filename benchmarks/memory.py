"""The peak memory of a process while it is traced, and per launch.

The peak of the process's resident memory from the start of the collector until its result is complete. Each collector
runs in a separate process, alternating in random order.
"""

from __future__ import annotations

from typing import Any

from _collectors import Collector
from _program import Program, begin_peak, collectors_but, main, resident

FIGURES = {"peak memory": "bytes"}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record and stop."""
    before = begin_peak()
    collector.start(program)
    program.launch(launches)
    collector.stop()
    peak = resident()
    return {
        "peak memory": peak,
        "peak memory: before, MB": round(before / 1e6, 1),
        "peak memory: more per launch, bytes": round((peak - before) / launches),
    }


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, collectors_but(), launches=200_000)
