"""How long it takes from the end of a traced step until its file is there, and how large that is.

Of a step of empty launches: how long the caller waits for the collector to stop, how long until the file is written and
closed, and its bytes for each launch. Each collector and format in a process of its own, by turns in random order.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from _collectors import COLLECTORS, Collector, Ours
from _program import Program, main, timed_ns

FIGURES = {"until the caller goes on": "ns", "until the file is there": "ns", "file, per launch": "bytes"}
FORMATS = (".json", ".json.gz", ".pftrace", ".pb", ".gpurec")
WRITERS = {f"collector {suffix}": lambda suffix=suffix: Ours(f"everything, as {suffix}", suffix) for suffix in FORMATS}
OTHERS = {name: make for name, make in COLLECTORS.items() if name.startswith(("kineto", "proton", "cupti-python"))}


def measure(collector: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Record, stop, write."""
    collector.start(program)
    program.launch(launches)
    stopped = timed_ns(collector.stop)
    if not collector.file:
        return {"until the caller goes on": stopped} | dict.fromkeys(list(FIGURES)[1:], "it writes no file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"step{collector.file}"
        written = timed_ns(lambda: collector.write(path))
        num_bytes = path.stat().st_size
    return {
        "until the caller goes on": stopped,
        "until the file is there": stopped + written,
        "file, per launch": num_bytes / launches,
    }


if __name__ == "__main__":
    main(__file__, __doc__, FIGURES, measure, {**WRITERS, **OTHERS}, launches=200_000)
