"""TensorFlow's own bytes in Perfetto's trace processor: what it shows, to the slice, and what it does not.

TensorFlow's timeline has TensorFlow's lane numbers, and lane 0 of a process falls together with the lane that has the
process's number (T2); where slices of the two overlap, the later one is dropped (T1). An arrow whose reader began
before the writer was over is dropped. That is all that is lost, by the rules in trace_contents.py; our timeline loses
nothing.
"""

from __future__ import annotations

import json

import pytest

from collector.formats.loading import load
from collector.timeline import Timeline

pytestmark = pytest.mark.viewer

# Slices shown and dropped, arrows shown and dropped, values of counters.
INPUTS = {
    "inputs/gpu_mlp_adam/run_meta_0.pb.gz": (276, 5, 46, 22, 184),
    "inputs/resnet_small/run_meta_0.pb.gz": (258, 0, 3, 0, 610),
    "inputs/synth/gpu_tiny.step_stats.pb": (10, 0, 3, 6, 14),
    "inputs/synth/many_lanes.step_stats.pb.gz": (498, 2, 0, 0, 0),
}


@pytest.mark.medium
@pytest.mark.parametrize("name", INPUTS)
def test_perfetto_shows_tensorflows_events_but_for_lanes_that_fall_together(
    perfetto, trace_contents, shared, tmp_path, name
):
    path = tmp_path / "tensorflow.json"
    step = load(shared / "data/tf" / name).step_stats
    path.write_text(Timeline(step).generate_chrome_trace_format(show_memory=True))
    events = trace_contents.events_of(path)
    wanted, dropped, backwards = trace_contents.tensorflow_in_perfetto(events)
    view = perfetto(path, *trace_contents.PERFETTO_SQL, "select name from process where name is not null")
    assert view.load_errors == []
    expected = {"slice_drop_overlapping_complete_event": dropped, "flow_step_without_start": backwards}
    assert view.problems == {problem: number for problem, number in expected.items() if number}
    assert trace_contents.in_perfetto(view.answers[:-1], units=True) == wanted
    assert {process for [process] in view.answers[-1]} == {
        event["args"]["name"] for event in events if event["ph"] == "M"
    }
    values = sum(map(len, wanted.counters.values()))
    assert (wanted.num_slices, dropped, wanted.arrows.total(), backwards, values) == INPUTS[name]


@pytest.mark.parametrize("name", INPUTS)
def test_t2_with_lanes_apart_no_slice_is_lost(perfetto, trace_contents, shared, tmp_path, name):
    trace = json.loads(Timeline(load(shared / "data/tf" / name).step_stats).generate_chrome_trace_format())
    for event in trace["traceEvents"]:
        if "tid" in event:
            event["tid"] += 1_000_000
    path = tmp_path / "apart.json"
    path.write_text(json.dumps(trace))
    wanted, dropped, _ = trace_contents.tensorflow_in_perfetto(trace["traceEvents"])
    view = perfetto(path, *trace_contents.PERFETTO_SQL)
    assert dropped == view.problems.get("slice_drop_overlapping_complete_event", 0) == 0
    assert trace_contents.in_perfetto(view.answers, units=True).rows == wanted.rows
    assert wanted.num_slices == sum(event["ph"] == "X" for event in trace["traceEvents"])
