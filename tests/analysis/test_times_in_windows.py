"""Busy and idle times in many windows at once: the same as those of the parts of the recording between their ends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from collector import analysis
from collector.analysis.device_times import EXPOSURE, exposed_in_windows
from collector.analysis.idle import CAUSES, causes_in_windows
from tests.support.captures import CaptureBuilder

COLUMNS = ("compute_ns", "exposed_graph_ns", "exposed_communication_ns", "exposed_copy_ns", "exposed_memset_ns")
"""The columns of `devices` with the times of `EXPOSURE`."""
SPAN = 200
UNIT_NS = 500
"""Times are multiples of it, so that many meet; a gap of two is longer than that from one kernel to the next."""


def filled(build, rows):
    """Work of two devices, each launched by a thread of its own, and waits of these threads."""
    for number, (kind, start, duration, device, ahead) in enumerate(rows, 1):
        at, length = start * UNIT_NS, duration * UNIT_NS
        place = {"device_id": device, "context_id": device + 1, "stream_id": 7 + device}
        if kind == "wait":
            build.call("cudaStreamSynchronize_v3020", at, length, thread_id=11 + device)
            continue
        if ahead:
            called = max(at - ahead * UNIT_NS, 0)
            build.call("cudaLaunchKernel_v7000", called, UNIT_NS, correlation_id=number, thread_id=11 + device)
        place["correlation_id"] = number
        if kind == "graph":
            build.whole_graph(at, length, **place, graph_id=3)
        elif kind in ("memcpy", "memset"):
            getattr(build, kind)(at, length, **place)
        else:
            build.kernel(kind, at, length, **place)
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + SPAN * UNIT_NS
    return build.recording()


def in_parts(recording, windows):
    """The times of both questions about each part."""
    parts = [analysis.between(recording, start * UNIT_NS, end * UNIT_NS) for start, end in windows]
    busy = [analysis.devices(part) for part in parts]
    idle = [analysis.idle(part).totals for part in parts]
    return (
        [[int(answer[column].sum()) for answer in busy] for column in COLUMNS],
        [[totals[f"{cause}_ns"] for totals in idle] for cause in CAUSES],
    )


def at_once(recording, windows):
    bounds = np.array(windows, np.int64).reshape(-1, 2).T * UNIT_NS + recording.clock.cupti_start_ns
    return (
        exposed_in_windows(recording, *bounds).tolist(),
        causes_in_windows(recording, *bounds).tolist(),
    )


@pytest.mark.medium
def test_times_in_windows_are_those_of_the_parts_between_their_ends():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    kinds = ["gemm", "ncclDevKernel_AllReduce", "memcpy", "memset", "graph", "wait"]
    times = st.integers(0, 30)
    rows = st.tuples(st.sampled_from(kinds), times, st.integers(0, 6), st.integers(0, 1), st.integers(0, 8))

    @hypothesis.given(st.lists(rows, max_size=12), st.lists(times, max_size=8, unique=True))
    @hypothesis.settings(max_examples=150)
    def check(rows, ends):
        bounds = sorted(ends)
        windows = [*zip(bounds[:-1:2], bounds[1::2], strict=True)]
        touching = [*pairwise(bounds)]
        recording = filled(CaptureBuilder(), rows)
        for each in (windows, touching):
            assert at_once(recording, each) == in_parts(recording, each)

    check()


def test_a_gap_over_the_end_of_a_window_is_its_tail_and_has_its_cause_in_the_next():
    recording = filled(CaptureBuilder(), [("gemm", 0, 2, 0, 0), ("gemm", 10, 2, 0, 3)])
    busy, idle = at_once(recording, [(0, 4), (4, 8), (8, 12)])
    assert dict(zip(EXPOSURE, busy, strict=True))[EXPOSURE[0]] == [1000, 0, 1000]
    assert {cause: times for cause, times in zip(CAUSES, idle, strict=True) if any(times)} == {
        "tail": [1000, 2000, 0],
        "kernel_gap": [0, 0, 1000],
    }


def test_work_without_length_at_the_end_of_a_window_ends_its_gap():
    recording = filled(CaptureBuilder(), [("gemm", 4, 0, 0, 3), ("gemm", 4, 2, 0, 1)])
    _, idle = at_once(recording, [(0, 4), (4, 8)])
    assert {cause: times for cause, times in zip(CAUSES, idle, strict=True) if any(times)} == {
        "host": [500, 0],
        "launch_latency": [1500, 0],
        "tail": [0, 1000],
    }


def test_without_windows_there_are_no_times():
    recording = filled(CaptureBuilder(), [("gemm", 0, 2, 0, 0)])
    assert at_once(recording, []) == ([[]] * len(EXPOSURE), [[]] * len(CAUSES))
