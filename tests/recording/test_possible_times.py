"""The limits of possible times, in Python and in the drawing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from collector.protos import StepStats
from collector.recording.possible_times import FAR_NS, is_possible
from collector.runtime.extension import convert_extension
from collector.stepstats.node_times import node_times
from collector.timeline import chrome_trace

AT_NS = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("start", "end", "possible"),
    [(1, 1, True), (5, 9, True), (9, 5, False), (0, 5, False), (-3, 5, False), (5, 0, False)],
)
def test_times_of_an_activity(start, end, possible):
    assert is_possible(start, end) == possible
    assert is_possible(np.array([start]), np.array([end])).tolist() == [possible]


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("side", [-1, 1])
def test_the_drawing_and_everything_else_leave_out_the_same_nodes(beyond, side):
    """The middle of three starts is that of the node at `AT_NS`."""
    step = StepStats()
    device = step.dev_stats.add(device="/gpu:0/stream:7")
    for start in (AT_NS, AT_NS, AT_NS + side * (FAR_NS + beyond)):
        device.node_stats.add(node_name="k", all_start_nanos=start, all_end_rel_nanos=5)
    drawn = json.loads(chrome_trace(step))["otherData"]["drawn"]
    assert drawn["untimed"] == beyond
    [times] = node_times(step)
    assert [each is None for each in times] == [False, False, bool(beyond)]
    known = [each for each in times if each is not None]
    first, last = min(known)[0], max(map(sum, known))
    assert last - first == (5 if beyond else FAR_NS + 5)
    assert convert_extension.survey(step.SerializeToString(), is_run_metadata=False) == (first, last)


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({}, (0, 0)),
        ({"all_start_nanos": 7}, (7, 0)),
        ({"all_start_nanos": -7}, (-7, 0)),
        ({"all_start_micros": 7}, (7000, 0)),
        ({"all_end_rel_nanos": 70, "all_end_rel_micros": 1}, (0, 70)),
        ({"all_end_rel_micros": 5}, (0, 5000)),
        ({"all_start_nanos": 7, "all_end_rel_micros": 1}, (7, 0)),
        ({"all_start_nanos": 7, "all_end_rel_micros": 5}, (7, 5000)),
        ({"all_start_nanos": 7, "all_end_rel_nanos": -1}, None),
        ({"all_start_micros": 1 << 60}, None),
        ({"all_end_rel_micros": 1 << 60}, None),
        ({"all_start_nanos": 7, "all_end_rel_nanos": FAR_NS + 1}, None),
    ],
)
def test_the_times_of_a_node_from_the_fields_that_it_has(fields, times):
    """An absent field is 0."""
    step = StepStats()
    step.dev_stats.add(device="/cpu:0").node_stats.add(node_name="op", **fields)
    assert node_times(step) == [[times]]
    bounds = (times[0], sum(times)) if times is not None and any(times) else None  # nothing has a length at time 0
    assert convert_extension.survey(step.SerializeToString(), is_run_metadata=False) == bounds
    drawn = json.loads(chrome_trace(step))["otherData"]["drawn"]
    assert drawn["untimed"] == (times is None)
