"""Chrome traces of Triton's Proton (``proton.start(data="trace")``): kernels with times, and the scopes around them."""

from __future__ import annotations

import json

import pytest

from collector import analysis
from collector.formats.loading import load

HOST, STREAM = 0, 200_000
"""Proton's thread ids are the number of a thread of the host, and this number plus that of a stream."""


def scope(thread, start, duration, *path, **metrics):
    """A scope as Proton 3.9 writes it: its metrics are in its name, too."""
    shown = "".join(
        f"{', ' if place else ': '}<{name}, {value}>" for place, (name, value) in enumerate(metrics.items())
    )
    return {
        "args": {"call_stack": ["ROOT", *path], "scope_id": start, **({"metrics": metrics} if metrics else {})},
        "cat": "metric" if metrics else "scope",
        "dur": duration,
        "name": path[-1] + shown,
        "ph": "X",
        "pid": 0,
        "tid": thread,
        "ts": start,
    }


def kernel(stream, start, *path):
    return {
        "args": {"call_stack": ["ROOT", *path], "metrics": {}},
        "cat": "kernel",
        "dur": 10.0,
        "name": path[-1],
        "ph": "X",
        "pid": 0,
        "tid": STREAM + stream,
        "ts": start,
    }


EVENTS = [
    {"args": {"name": "Trace"}, "name": "process_name", "ph": "M", "pid": 0, "tid": 0},
    {"args": {"name": "CPU Thread 0"}, "name": "thread_name", "ph": "M", "pid": 0, "tid": 0},
    {"args": {"name": "GPU Stream 3"}, "name": "thread_name", "ph": "M", "pid": 0, "tid": STREAM + 3},
    {"args": {"name": "GPU Stream 7"}, "name": "thread_name", "ph": "M", "pid": 0, "tid": STREAM + 7},
    scope(HOST, 5.5, 90.25, "step"),
    scope(HOST, 10.0, 30.0, "step", "forward"),
    scope(HOST, 50.0, 20.0, "step", "layer/x", bytes="4", flops="12.000000"),
    {"bp": "e", "cat": "flow", "id": 1, "name": "launch->kernel", "ph": "s", "pid": 0, "tid": HOST, "ts": 10.0},
    {"bp": "e", "cat": "flow", "id": 1, "name": "launch->kernel", "ph": "f", "pid": 0, "tid": STREAM + 7, "ts": 0.0},
    kernel(3, 60.0, "/home/someone/train.py:12@step", "gemm<float, 2>"),
    kernel(7, 0.0, "step", "forward", "matmul"),
    kernel(7, 21.0, "step", "layer/x", "conv"),
    kernel(7, 42.0, "bare"),
]


@pytest.fixture
def write(tmp_path):
    def write_trace(*events):
        path = tmp_path / "x.chrome_trace"
        top = {"baseTimeNanoseconds": 1_795_894_067_878_047_533, "displayTimeUnit": "us", "traceEvents": events}
        path.write_text(json.dumps(top))
        return path

    return write_trace


@pytest.fixture
def step(write):
    return load(write(*EVENTS))


def test_streams_have_the_numbers_that_the_names_of_their_threads_state(step):
    assert step.recording.kernels.stream_id.tolist() == [3, 7, 7, 7]
    gpu = [device.device for device in step.step_stats.dev_stats if device.device.startswith("/gpu")]
    assert sorted(gpu) == ["/gpu:0/stream:3", "/gpu:0/stream:7", "/gpu:0/stream:all"]


def test_kernels_have_the_scopes_around_them_as_their_op(step):
    nodes = {
        node.node_name
        for device in step.step_stats.dev_stats
        if device.device.endswith("stream:all")
        for node in device.node_stats
    }
    assert nodes == {"step/forward:matmul", "step/layer/x:conv", "bare:bare", "train.py.12@step:gemm<float, 2>"}


def test_scopes_are_annotations_with_their_metrics(step):
    recording = step.recording
    names = {recording.strings[each] for each in recording.annotations.name_id.tolist()}
    assert names == {"step", "forward", "layer/x"}
    details = [recording.details[each - 1] for each in recording.annotations.details_id.tolist() if each]
    assert {(each.flops, each.num_bytes) for each in details} == {(12, 4)}


def test_no_folder_of_a_user_is_in_what_is_made_of_it(step, tmp_path):
    step.save(tmp_path / "y.json")
    step.save(tmp_path / "y.pb")
    assert "someone" not in (tmp_path / "y.json").read_text()
    assert b"someone" not in (tmp_path / "y.pb").read_bytes()
    assert "call_stack" not in (step.recording.environment.get("arguments_without_columns") or {})


def test_time_by_op_is_that_of_the_scopes(step):
    shown = str(analysis.ops(step))
    assert "forward" in shown
    assert "layer" in shown


def test_a_trace_with_a_slice_of_another_program_is_none_of_proton(write):
    other = {"cat": "kernel", "dur": 1, "name": "k", "ph": "X", "pid": 0, "tid": 5, "ts": 1}
    step = load(write(*EVENTS, other))
    assert 200_007 in step.recording.kernels.stream_id.tolist()


@pytest.mark.parametrize(
    "stack", [None, "ROOT", [], ["ROOT"], [1, {"a": 2}, None], ["ROOT", "a\x00<b>", "k"], [["x"] * 3] * 2]
)
def test_call_stacks_that_are_none_name_no_op(write, stack):
    bad = kernel(7, 5.0, "k")
    bad["args"]["call_stack"] = stack
    step = load(write(*EVENTS[:4], bad))
    assert step.recording.kernels.stream_id.tolist() == [7]
    assert step.step_stats.dev_stats
