"""Writes fuzz/segments.journal, the journal of several segments that `fuzz_readers.py segments` damages.

    python fuzz/write_segments.py       after a change of the journal's format; needs the simulated GPU

A small run with rows of most tables, packed in every way, annotations that are open over the begin of a segment, a
graph, and the end of the session. Its bytes differ from run to run, as its times do.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import collector
from collector.options import KINDS, KINDS_ON_REQUEST, TraceOptions
from collector.testing import SimulatedGpu
from collector.tracing.session import Session

FOLDER = Path(__file__).resolve().parent / "segments.journal"
SEGMENT_BYTES = 300
"""So few that each hand-over of rows begins a segment."""
PERIOD_S = 0.7
"""More than the time between two hand-overs."""


def main() -> None:
    """Record."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    options = TraceOptions(
        journal=FOLDER, stream=True, segment_bytes=SEGMENT_BYTES, kinds=(*KINDS, *KINDS_ON_REQUEST[:-1]), budget="100%"
    )
    with SimulatedGpu() as gpu, Session(options), collector.annotate("run"):
        with gpu.capture() as graph:
            gpu.launch("captured")
        executable = graph.instantiate()
        for number in range(24):
            with collector.annotate(f"layer{number % 3}", flops=number):
                gpu.launch(f"kernel{number % 2}", duration_ns=1_000 + number)
                gpu.memcpy("HtoD", 64 * number)
                gpu.memset(64)
                executable.launch()
            gpu.record_event()
            if number % 12 == 11:
                gpu.synchronize()
                time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
