"""How much memory a process needs at most while it is traced, and for each launch.

The peak of the process's resident memory from the start of the collector until its result is there. Each collector in a
process of its own, by turns in random order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _collectors import Collector
from _program import Program, main

FIGURES = {"peak memory": "bytes"}


def resident(which: str) -> int:
    """``VmHWM`` (the peak) or ``VmRSS`` of this process, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {which}")


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record and stop."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    collector.start(program)
    program.launch(launches)
    collector.stop()
    peak = resident("VmHWM")
    return {
        "peak memory": peak,
        "peak memory: before, MB": round(before / 1e6, 1),
        "peak memory: more per launch, bytes": round((peak - before) / launches),
    }


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, launches=200_000)
