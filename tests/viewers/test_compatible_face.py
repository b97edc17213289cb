"""TensorFlow's own bytes in Perfetto's trace processor.

The compatible face repeats TensorFlow's lane numbers, and lane 0 of a process falls together with the lane that has
the process's number (T2). What that costs is shown here, and that nothing else does; our own face has no such lanes.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

from collector.loading import load
from collector.timeline import Timeline

DROPPED = "slice_drop_overlapping_complete_event"
SLICES = """
select process.name, slice.name, slice.ts, slice.dur
from slice join thread_track on slice.track_id = thread_track.id
join thread using (utid) join process using (upid) where slice.category = 'Op'"""
INPUTS = [
    "inputs/gpu_mlp_adam/run_meta_0.pb.gz",
    "inputs/resnet_small/run_meta_0.pb.gz",
    "inputs/synth/gpu_tiny.step_stats.pb",
    "inputs/synth/many_lanes.step_stats.pb.gz",
]


def expected(events):
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    return Counter(
        (names[event["pid"]], event["name"], event["ts"] * 1000, event["dur"] * 1000)
        for event in events
        if event["ph"] == "X"
    )


@pytest.mark.parametrize("name", INPUTS)
def test_every_op_is_shown_but_for_lanes_that_fall_together(perfetto, shared, tmp_path, name):
    trace = Timeline(load(shared / "data/tf" / name).step_stats).generate_chrome_trace_format(show_memory=True)
    wanted = expected(json.loads(trace)["traceEvents"])

    as_it_is = tmp_path / "tensorflow.json"
    as_it_is.write_text(trace)
    view = perfetto(as_it_is, SLICES)
    assert view.load_errors == []
    assert set(view.problems) <= {DROPPED}
    assert len(view.answers[0]) + view.problems.get(DROPPED, 0) == wanted.total()

    moved = json.loads(trace)
    for event in moved["traceEvents"]:
        if "tid" in event:
            event["tid"] += 1_000_000
    apart = tmp_path / "apart.json"
    apart.write_text(json.dumps(moved))
    view = perfetto(apart, SLICES)
    assert view.problems == {}
    seen = Counter((process, op, int(start_ns), duration_ns) for process, op, start_ns, duration_ns in view.answers[0])
    assert seen == wanted
