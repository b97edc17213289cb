"""What a flight recorder costs that is always on, and how long a dump takes.

Empty kernels are launched one by one in C++, in pieces of 10,000, while a recorder keeps the latest 64 MB, and beside
it without a recorder, with the floor, in a streamed trace, and in a process that only listens for `collector attach`.
Each runs in a separate process, alternating in random order. A dump is asked for after the launches: the time is that
until the segments have a second name, and that until another process has written them as a ``.pftrace``.

Claims: a launch costs at most 1.1 of what it costs in a streamed trace, a process that only listens launches as fast as
any other (at most 1.05), and a dump of the ring takes at most 0.5 s of the program.

    recorder.py --launches=20000000 --rounds=1      a ring that is overwritten many times
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from _collectors import COLLECTORS, FLOOR_OF_ALL, Collector, TracedProgram
from _program import Program, main, timed_ns
from streaming import PIECE, STREAMED, Streamed

FIGURES = {"a launch": "ns", "a dump": "ms", "a dump as .pftrace": "ms"}
RECORDER, LISTENER = "collector, recorder", "collector, listening"
MOST_TIMES, MOST_LISTENING, MOST_DUMP_MS = 1.1, 1.05, 500
KEEP = "64MB"


class Recorder(Collector):
    """This project's flight recorder."""

    records, floor = f"the latest {KEEP}", FLOOR_OF_ALL

    def start(self, program: TracedProgram) -> None:
        """Begin to record."""
        import collector

        self.folder = Path(tempfile.mkdtemp(prefix="recorder-"))
        self.recorder = collector.record(KEEP, folder=self.folder, strict=True)

    def dump(self) -> dict[str, Any]:
        """The milliseconds of a dump, and of one as a file, and its size."""
        before = timed_ns(self.recorder.dump) / 1e6
        began = time.perf_counter_ns()
        file = self.recorder.dump(self.folder / "dump.pftrace")
        file.wait()
        size = sum(each.stat().st_size for each in file.journal.iterdir())
        return {
            "a dump": before,
            "a dump as .pftrace": (time.perf_counter_ns() - began) / 1e6,
            "a dump: segments, MB": round(size / 1e6, 1),
        }

    def stop(self) -> None:
        """End."""
        self.recorder.stop()
        shutil.rmtree(self.folder)


class Listening(Collector):
    """This project, waiting for `collector attach`."""

    records = "nothing yet"

    def start(self, program: TracedProgram) -> None:
        """Listen to the end of the process."""
        import collector

        collector.listen(strict=True)


COMPARED = {
    "none": Collector,
    FLOOR_OF_ALL: COLLECTORS[FLOOR_OF_ALL],
    LISTENER: Listening,
    STREAMED: lambda: Streamed("kernels, copies, sets, both APIs, waits, annotations, in a journal"),
    RECORDER: Recorder,
}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Launch under the collector, and dump what a recorder has."""
    program.launch(PIECE)
    collector.start(program)
    pieces = max(launches // PIECE, 1)
    spent = sum(float(program.launch(PIECE).mean()) for _ in range(pieces))
    found: dict[str, Any] = {
        "a launch": spent / pieces,
        **dict.fromkeys(("a dump", "a dump as .pftrace"), "it has no dump"),
    }
    if isinstance(collector, Recorder):
        found |= collector.dump()
    collector.stop()
    if isinstance(collector, Streamed):
        collector.disk_bytes()
    return found


def claims(report: Any) -> str:
    """A line for each claim, with its figure: the lowest of the rounds, as other work only adds to it."""
    lowest = {
        each.name.partition(": ")[2]: {name: min(arm.times_ns) for name, arm in each.arms.items()}
        for each in report.comparisons
    }
    launch, plain = lowest["a launch"], lowest["a launch"]["none"]
    lines = [
        ("a launch recorded, of streamed", launch[RECORDER] / launch[STREAMED], MOST_TIMES),
        ("a launch of a process that listens, of none", launch[LISTENER] / plain, MOST_LISTENING),
        ("a dump, ms", lowest["a dump"][RECORDER], MOST_DUMP_MS),
    ]
    shown = [
        f"  {text}: {value:.2f}, at most {most:g}{'' if value <= most else ': MISSED'}" for text, value, most in lines
    ]
    floor = launch[FLOOR_OF_ALL] - plain
    times = f"{(launch[RECORDER] - plain) / floor:.2f}" if floor > 0 else "not known, the floor adds nothing:"
    return "\n".join(["\nClaims:", *shown, f"  a launch recorded adds {times} times what the floor adds"])


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, COMPARED, launches=4_000_000, rounds=3, after=claims)
