"""The processes and rows of every recorded trace as drawn: their names and their order in viewers."""

from __future__ import annotations

import json
import re

import pytest

from collector.formats.loading import load
from collector.timeline import chrome_trace

QUICK = [
    "gpu_traces/hta/a100_alexnet.json.gz",
    "gpu_traces/hta/a100_triton_example.json.gz",
    "gpu_traces/hta/gp100_gpu_user_annotation.json.gz",
    "gpu_traces/tf_ikhlestov/gpu_timeline_02_step_1.json.gz",
    "tf/inputs/gpu_mlp_adam/run_meta_0.pb.gz",
    "tf/inputs/synth/gpu_two.step_stats.pb.gz",
]
RECORDED = (
    "gpu_traces/hta/*.json.gz",
    "gpu_traces/hta/sampled_of128/*.json.gz",
    "gpu_traces/kineto/*.json.gz",
    "gpu_traces/torch_tutorial/*.json.gz",
    "gpu_traces/tf_ikhlestov/*.json.gz",
    "tf/inputs/*/run_meta_0*",
)
STREAM = re.compile(r"stream (\d+)(?: lane (\d+))?")


def place_of_process(name):
    return 0 if "GPU" in name else 2 if "CPU" in name or name.startswith("process ") else 1


def place_of_row(name):
    """Streams by number, each with its lanes; then what else there is; then copies."""
    stream = STREAM.fullmatch(name)
    if stream:
        return 0, int(stream[1]), int(stream[2] or 1)
    return (2 if name.startswith("copies") else 1), 0, 0


def check(path):
    """Processes and rows are shown in the order of their numbers, whatever else a file says."""
    events = json.loads(chrome_trace(load(path)))["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    shown = [processes[pid] for pid in sorted(processes)]
    assert len(set(shown)) == len(shown)
    assert sorted(shown, key=place_of_process) == shown
    rows = sorted(
        (event["tid"], event["pid"], event["args"]["name"]) for event in events if event["name"] == "thread_name"
    )
    for pid, process in processes.items():
        assert not process.startswith(("/", "-", "Spans", "Traces")), process
        names = [name for _, of, name in rows if of == pid]
        assert all(name.strip() and "/" not in name for name in names), names
        if "GPU" in process:
            assert sorted(names, key=place_of_row) == names
    sort_indexes = [event for event in events if event["name"] in ("process_sort_index", "thread_sort_index")]
    assert len(sort_indexes) == len(processes) + len(rows)
    assert all(event["args"]["sort_index"] == event.get("tid", event["pid"]) for event in sort_indexes)
    used = {event["tid"] for event in events if event["ph"] == "X"}
    assert used == {tid for tid, _, _ in rows}  # no row is empty


@pytest.mark.parametrize("name", QUICK)
def test_gpus_come_first_and_hosts_last(shared, name):
    check(shared / "data" / name)


@pytest.mark.slow
def test_gpus_come_first_and_hosts_last_in_every_recording(shared):
    paths = [path for pattern in RECORDED for path in sorted((shared / "data").glob(pattern))]
    assert len(paths) >= 40
    for path in paths:
        check(path)
