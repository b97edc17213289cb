"""The time from the end of a traced step until its file is complete, its size, and the memory used.

For a step of 500,000 empty launches, a million records: the caller's wait for the collector to stop, the time until the
file is written and closed, its bytes per launch, uncompressed and compressed, and the peak of the process's memory from
the start of the collector until then, beyond its initial memory. The compression ratio is estimated from the file's
first part. Each collector and format runs in a separate process, alternating in random order.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any

from _collectors import Collector, Ours
from _program import Program, begin_peak, collectors_but, main, resident, timed_ns

FIGURES = {
    "until the caller goes on": "ns",
    "until the file is there": "ns",
    "file, per launch": "bytes",
    "file, compressed, per launch": "bytes",
    "memory until then, per launch": "bytes",
}
COMPRESSED = 16 << 20
FORMATS = (".json", ".json.gz", ".pftrace", ".xplane.pb", ".pb", ".gpurec")
WRITERS = {f"collector {suffix}": lambda suffix=suffix: Ours(f"everything, as {suffix}", suffix) for suffix in FORMATS}
OTHERS = collectors_but("none", "floor", "collector")


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record, stop, write."""
    before = begin_peak()
    collector.start(program)
    program.launch(launches)
    stopped = timed_ns(collector.stop)
    found: dict[str, Any] = {"until the caller goes on": stopped}
    if not collector.file:
        return found | dict.fromkeys(list(FIGURES)[1:], "it writes no file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"step{collector.file}"
        written = timed_ns(lambda: collector.write(path))
        peak = resident()
        num_bytes = path.stat().st_size
        share = compressed_share(path)
    return found | {
        "until the file is there": stopped + written,
        "file, per launch": num_bytes / launches,
        "file, compressed, per launch": num_bytes * share / launches,
        "memory until then, per launch": max(peak - before, 1) / launches,
    }


def compressed_share(path: Path) -> float:
    """The compressed size of the file's first `COMPRESSED` bytes, as a share of them."""
    with path.open("rb") as file:
        data = file.read(COMPRESSED)
    return len(zlib.compress(data, 6)) / len(data)


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, {**WRITERS, **OTHERS}, launches=500_000)
