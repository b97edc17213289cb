"""Write one set of files in the formats of the current version: `write_format_files.py tests/data/formats/vN`.

Each change of a format adds one set, written by the last version before the change; `test_earlier_formats` reads all of
them in every run. `expected.json` beside the files contains the expected content.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import collector
from collector.errors import InvalidFileError
from collector.options import GRAPH_KIND, KINDS, KINDS_ON_REQUEST
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column
from collector.testing import SimulatedGpu


def run_program(gpu: SimulatedGpu) -> None:
    """A few activities of every kind that can be recorded."""
    with collector.annotate("model"), collector.annotate("conv", flops=7_000, op="Conv2D", inputs=["x"]):
        gpu.launch("_Z4gemmPfS_i", stream=7, duration_ns=12_000, grid=(64, 2, 1), block=(128, 1, 1), cluster=(2, 1, 1))
        gpu.launch("relu", stream=9, duration_ns=1_500)
    gpu.memcpy("HtoD", 4096, stream=9, src="pinned")
    gpu.memcpy_peer(0, 1, 8192, stream=13)
    gpu.memset(512, stream=9)
    with gpu.capture() as graph, collector.annotate("captured"):
        gpu.launch("graph_a")
        gpu.launch("graph_b", duration_ns=3_000)
    graph.instantiate().launch()
    event = gpu.record_event(stream=7)
    gpu.wait_event(event, stream=9)
    gpu.free(gpu.malloc(1 << 20, stream=7), stream=7)
    gpu.overhead(1, 2_000)
    gpu.synchronize()


def columns_of(recording: Recording) -> dict[str, dict[str, list[Any]]]:
    """Table -> column -> values, those of texts as text."""
    tables = {}
    for name in SCHEMA:
        table = getattr(recording, name)
        tables[name] = {
            column: table.texts(column) if text_column(column) else values.tolist()
            for column, values in table.columns.items()
        }
    return tables


def nodes_of(path: Path) -> list[list[Any]]:
    """Device, name, times and label of each node that is read from a file."""
    return [
        [device.device, node.node_name, node.all_start_nanos, node.all_end_rel_nanos, node.timeline_label]
        for device in collector.load(path).step_stats.dev_stats
        for node in device.node_stats
    ]


def main(folder: Path) -> None:
    """Trace a simulated program and write all formats into ``folder``."""
    folder.mkdir(parents=True)
    journal, kept = folder / "open.journal", folder / "step.journal"
    with SimulatedGpu(devices=2, cuda="13.5") as gpu:
        kinds = [kind for kind in (*KINDS, *KINDS_ON_REQUEST) if kind != GRAPH_KIND]  # the nodes of graphs instead
        with collector.trace(journal=journal, kinds=kinds, rank=3) as step:
            run_program(gpu)
            while True:  # until the journal is up to date
                kept.write_bytes(journal.read_bytes())
                try:
                    if len(Recording.load(kept).synchronizations) >= 2:
                        break
                except InvalidFileError:
                    pass
                time.sleep(0.05)
        for suffix in ("gpurec", "pb", "json"):
            step.save(folder / f"step.{suffix}")
    recording = Recording.load(folder / "step.gpurec")
    expected = {
        "tables": columns_of(recording),
        "strings": list(recording.strings),
        "details": [list(each) for each in recording.details],
        "journal_rows": {name: len(getattr(Recording.load(kept), name)) for name in SCHEMA},
        "nodes": {suffix: nodes_of(folder / f"step.{suffix}") for suffix in ("pb", "json")},
    }
    journal.unlink(missing_ok=True)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items())
    (folder / "expected.json").write_text(f"{{{lines}}}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
