"""The limits of possible times, in Python and in the drawing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from collector.protos import StepStats
from collector.recording.possible_times import FAR_NS, is_near, is_possible
from collector.stepstats.node_times import step_bounds
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
    assert is_near(AT_NS + side * (FAR_NS + beyond), 5, AT_NS) == (not beyond)
    first, last = step_bounds(step)
    assert last - first == (5 if beyond else FAR_NS + 5)
