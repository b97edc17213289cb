"""What a long trace takes: memory, disk and the time of a launch, streamed into a journal and kept in memory.

Empty kernels are launched one by one in C++, in pieces of 10,000, 25 of them a second: while records come faster
than they are decoded, buffers wait for it, up to the limit of `max_buffers`, and their memory is kept. Each collector
runs in a separate process, alternating in random order. The growth of memory is from the end of the first quarter of
the launches to the end of the last, while the collector records; the disk is that of the journal's segments.

Claims: streamed, memory does not grow by more than 16 MB however many launches there are, and a launch takes at most
60 bytes of disk and 1.1 of the time that it takes with the records in memory. In memory a launch takes at most 200
bytes.

    streaming.py --launches=50000000 --rounds=1 --seconds=1000      200 s of each
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from _collectors import COLLECTORS, FLOOR_OF_ALL, Collector, Ours, TracedProgram
from _program import Program, begin_peak, main, resident

FIGURES = {
    "a launch": "ns",
    "memory growth": "bytes",
    "memory of a launch": "bytes",
    "disk of a launch": "bytes",
}
PIECE, PIECE_S = 10_000, 0.04
IN_MEMORY, STREAMED = "collector, in memory", "collector, streamed"
MOST_GROWTH_BYTES = 16 << 20
MOST_DISK_BYTES, MOST_MEMORY_BYTES, MOST_TIMES = 60, 200, 1.1


class Streamed(Ours):
    """This project, with the records in the segments of a journal alone."""

    def start(self, program: TracedProgram) -> None:
        """Open a session."""
        self.folder = Path(tempfile.mkdtemp(prefix="streaming-"))
        self.options |= {"journal": self.folder / "run.journal", "stream": True}
        super().start(program)

    def disk_bytes(self) -> int:
        """The size of the segments, which are then removed."""
        size = sum(file.stat().st_size for file in (self.folder / "run.journal").iterdir())
        shutil.rmtree(self.folder)
        return size


COMPARED = {
    "none": Collector,
    FLOOR_OF_ALL: COLLECTORS[FLOOR_OF_ALL],
    IN_MEMORY: lambda: Ours("kernels, copies, sets, both APIs, waits, annotations"),
    STREAMED: lambda: Streamed("the same, in a journal"),
}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Launch under the collector."""
    pieces = max(launches // PIECE, 4)
    program.launch(PIECE)
    before = begin_peak()
    collector.start(program)
    at_quarter, spent = 0, 0.0
    begin = time.monotonic()
    for piece in range(pieces):
        time.sleep(max(begin + piece * PIECE_S - time.monotonic(), 0))
        spent += float(program.launch(PIECE).mean())
        if piece + 1 == pieces // 4:
            at_quarter = resident("VmRSS")
    at_end = resident("VmRSS")
    collector.stop()
    count = pieces * PIECE
    found: dict[str, Any] = {
        "a launch": spent / pieces,
        "memory growth": at_end - at_quarter,
        "memory of a launch": (at_end - at_quarter) / (count - pieces // 4 * PIECE),
        "disk of a launch": "it writes none",
        "memory growth: before, MB": round(before / 1e6, 1),
        "memory growth: launches": count,
    }
    if isinstance(collector, Streamed):
        found["disk of a launch"] = collector.disk_bytes() / count
        found["memory of a launch"] = "it keeps none"
    elif not isinstance(collector, Ours):
        found["memory of a launch"] = "it keeps none"
    return found


def claims(report: Any) -> str:
    """A line for each claim, with its figure: the lowest of the rounds, as other work only adds to it.

    Of the growth of memory it is the highest.
    """
    lowest = {
        each.name.partition(": ")[2]: {name: min(arm.times_ns) for name, arm in each.arms.items()}
        for each in report.comparisons
    }
    launch = lowest["a launch"]
    plain = launch["none"]
    growth = next(each for each in report.comparisons if each.name.endswith("memory growth"))
    most_growth = max(growth.arms[STREAMED].times_ns)
    floor = launch[FLOOR_OF_ALL] - plain
    lines = [
        ("memory grows by, MB", most_growth / 1e6, MOST_GROWTH_BYTES / 1e6),
        ("a launch on disk, bytes", lowest["disk of a launch"][STREAMED], MOST_DISK_BYTES),
        ("a launch streamed, of in memory", launch[STREAMED] / launch[IN_MEMORY], MOST_TIMES),
        ("a launch in memory, bytes", lowest["memory of a launch"][IN_MEMORY], MOST_MEMORY_BYTES),
    ]
    shown = [
        f"  {text}: {value:.2f}, at most {most:g}{'' if value <= most else ': MISSED'}" for text, value, most in lines
    ]
    times = f"{(launch[STREAMED] - plain) / floor:.2f}" if floor > 0 else "not known, the floor adds nothing:"
    return "\n".join(["\nClaims:", *shown, f"  a launch streamed adds {times} times what the floor adds"])


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, COMPARED, launches=2_000_000, rounds=3, after=claims)
