"""A view cut from the columns of a recording equals the same view of its StepStats."""

from __future__ import annotations

import json
import random

import pytest

from collector.stepstats import from_recording
from collector.stepstats.from_recording import serialized
from collector.timeline import chrome_trace

FAR = 10**30


def large(build):
    """Launches of every kind on several streams and GPUs, many as long as each other, with waits and memory."""
    chance = random.Random(3)
    for number in range(1, 401):
        start = number * 400
        build.launch(number, start)
        length = chance.choice([100, 100, 200, 500])
        if number % 5 == 0:
            build.memcpy(start + 150, length, correlation_id=number, stream_id=chance.choice([7, 9]))
        elif number % 7 == 0:
            build.memset(start + 150, length, correlation_id=number)
        else:
            place = {"stream_id": chance.choice([7, 9, 13]), "device_id": chance.choice([0, 1])}
            build.kernel(f"k{number % 7}", start + 150, length, correlation_id=number, **place)
        build.annotation(f"op::{number % 11}", start - 50, 900, number, number)
        if number % 50 == 0:
            build.call("cudaMalloc", start + 300, 20, correlation_id=1000 + number)
            jit_ns = build.clock["cupti_start_ns"] + start + 310
            build.raw("jit_operations", start_ns=jit_ns, end_ns=jit_ns + length, jit_operation_type=3)
            build.raw(
                "memory_operations",
                start_ns=build.clock["cupti_start_ns"] + start + 305,
                operation=1,
                memory_kind=3,
                address=number,
                num_bytes=512,
                correlation_id=1000 + number,
            )
    return build.recording()


@pytest.fixture
def step(build):
    return large(build)


def shown(text):
    """Events without the numbers of processes and rows, which say what else there is in the trace."""
    trace = json.loads(text)
    events = [
        {key: value for key, value in event.items() if key not in ("pid", "tid")}
        for event in trace["traceEvents"]
        if event["ph"] != "M"
    ]
    rows = {event["args"].get("device") for event in trace["traceEvents"] if event["name"] == "thread_name"}
    return events, rows, trace["otherData"]


@pytest.mark.parametrize(
    ("view", "is_cut"),
    [
        ({"window_ns": (20_000, 28_000)}, True),
        ({"window_ns": (20_000, 28_000), "names": "k1"}, True),
        ({"window_ns": (None, 9_000), "counters": False, "arrows": False}, True),
        ({"window_ns": (150_000, None)}, True),
        ({"window_ns": (FAR, None)}, True),
        ({"window_ns": (None, -5)}, True),
        ({"max_events": 0}, True),
        ({"max_events": 7}, True),
        ({"max_events": 150}, True),
        ({"max_events": 7, "names": "k2"}, False),
        ({"max_events": 20, "window_ns": (0, 100_000)}, True),
        ({"max_events": FAR}, False),
        ({"min_duration_ns": 550}, True),
        ({"window_ns": (1_000, None)}, False),
        ({"window_ns": (0, 9_000), "devices": "stream:7"}, False),
    ],
    ids=str,
)
def test_a_view_of_a_recording_is_that_of_its_step(step, view, is_cut, monkeypatch):
    expected = shown(chrome_trace(serialized(step), **view))
    sizes = []

    def noted(recording, *rest):
        sizes.append(len(recording.kernels))
        return serialized(recording, *rest)

    monkeypatch.setattr(from_recording, "serialized", noted)
    assert shown(chrome_trace(step, **view)) == expected
    assert (sizes[0] < len(step.kernels)) == is_cut


def test_losses_of_the_whole_are_those_of_its_part(build):
    build.counters["records_dropped"] = 3
    build.kernel("before", -500)
    recording = large(build)
    view = {"window_ns": (20_000, 28_000)}
    about = json.loads(chrome_trace(recording, **view))["otherData"]
    assert about["ledger"] == recording.ledger.as_dict()
    assert about["losses"] == recording.ledger.losses() != []
    assert shown(chrome_trace(recording, **view)) == shown(chrome_trace(serialized(recording), **view))


def test_a_thread_has_the_process_that_its_calls_outside_the_part_state(build):
    build.call("cudaMalloc", 10, process_id=42).annotation("later", 5000, 900, 3)
    for number in range(10):
        build.call("cudaMalloc", 100 + number, thread_id=12, process_id=43)
    recording = build.recording()
    texts = [chrome_trace(step, window_ns=(4000, None)) for step in (recording, serialized(recording))]
    for text in texts:
        (thread,) = (event for event in json.loads(text)["traceEvents"] if event["name"] == "thread_name")
        assert thread["args"] == {"name": "thread 11", "device": "/cpu:0", "process": 42}
    assert texts[0] == texts[1]
