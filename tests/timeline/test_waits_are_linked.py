"""An arrow leads from the awaited activity to the host's wait, in both viewers."""

from __future__ import annotations

import json

import pytest

import collector
from collector.stepstats.from_recording import serialized
from collector.testing import SimulatedGpu

NONE = 2**32 - 1
SLICES_SQL = """
select a.name, a.ts + a.dur, b.name, b.ts + b.dur from flow
join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id order by a.ts, b.ts"""


@pytest.fixture
def recording(build, start_ns):
    def wait(start, end, **values):
        times = {"start_ns": start_ns + start, "end_ns": start_ns + end}
        build.raw("synchronizations", **{**times, "stream_id": NONE, "event_id": NONE, "context_id": 1, **values})

    build.kernel("first", 1000, 2000, correlation_id=1, stream_id=7)
    build.kernel("second", 3000, 3000, correlation_id=3, stream_id=7)
    build.kernel("third", 6500, 2500, correlation_id=4, stream_id=9)
    build.call("cudaEventRecord", 900, 50, correlation_id=2)
    build.raw("cuda_events", device_id=0, context_id=1, stream_id=7, correlation_id=2, event_id=5, event_sync_id=1005)
    wait(1500, 3500, sync_type=1, event_id=5, event_sync_id=1005, correlation_id=10)
    wait(3500, 6000, sync_type=3, stream_id=7, correlation_id=11)
    wait(6000, 9500, sync_type=4, correlation_id=12)
    wait(9600, 9700, sync_type=4, correlation_id=13)  # what it was for was over
    wait(1500, 9500, sync_type=4, context_id=2, correlation_id=14)  # nothing of the context is seen
    wait(1500, 9500, sync_type=2, stream_id=9, event_id=5, correlation_id=15)  # holds up a stream, not the host
    return build.recording()


ARROWS = [
    ("first", 3000, "Event Synchronize", 3500),
    ("second", 6000, "Stream Synchronize", 6000),
    ("third", 9000, "Context Synchronize", 9500),
]


def arrows_of(text):
    """Slices at both ends of the arrows of waits, with when they end after the first start, in ns."""
    events = json.loads(text)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    ends = {}
    for event in events:
        if event.get("cat") == "wait":
            holder = next(
                each
                for each in slices
                if each["tid"] == event["tid"] and each["ts"] < event["ts"] < each["ts"] + each["dur"]
            )
            ends.setdefault(event["id"], {})[event["ph"]] = holder["name"], round(1000 * (holder["ts"] + holder["dur"]))
    return sorted((*each["s"], *each["f"]) for each in ends.values())


def test_a_trace_of_chrome_has_an_arrow_to_each_wait_that_was_held_up(recording):
    base = 900
    expected = sorted((name, end - base, wait, last - base) for name, end, wait, last in ARROWS)
    assert arrows_of(collector.chrome_trace(serialized(recording))) == expected


@pytest.mark.viewer
@pytest.mark.parametrize("suffix", ["json", "pftrace"])
def test_perfetto_finds_both_ends(perfetto, recording, tmp_path, suffix):
    """It turns an arrow round whose wait starts before the activity."""
    path = tmp_path / f"step.{suffix}"
    drawn = collector.chrome_trace(serialized(recording), path)
    view = perfetto(path, SLICES_SQL)
    assert (view.load_errors, view.problems) == ([], {})
    found = {frozenset([(name, end), (other, last)]) for name, end, other, last in view.answers[0]}
    assert found == {frozenset([(name, end - 900), (wait, last - 900)]) for name, end, wait, last in ARROWS}
    assert drawn.arrows == len(ARROWS)


@pytest.mark.viewer
def test_catapult_finds_both_ends(catapult, recording, tmp_path):
    path = tmp_path / "step.json"
    collector.chrome_trace(serialized(recording), path)
    view = catapult(path)
    assert sorted((start[2], end[2]) for start, end in view["arrows"]) == [(name, wait) for name, _, wait, _ in ARROWS]


def test_what_is_filtered_out_has_no_arrow(recording):
    text = collector.chrome_trace(serialized(recording), names="Synchronize|first|third", max_events=5)
    assert [(source, wait) for source, _, wait, _ in arrows_of(text)] == [("third", "Context Synchronize")]
    assert arrows_of(collector.chrome_trace(serialized(recording), arrows=False)) == []


def test_the_call_that_records_an_event_names_it(recording):
    events = json.loads(collector.chrome_trace(serialized(recording)))["traceEvents"]
    call = next(event for event in events if event["name"] == "cudaEventRecord")
    assert call["args"] == {"correlation": 2, "event": 5, "stream": 7}


@pytest.mark.simulator
def test_a_simulated_program_waits_for_its_last_kernel():
    with (
        SimulatedGpu() as gpu,
        collector.trace(strict=True, kinds=["synchronizations", "kernels", "cuda_events"]) as step,
    ):
        gpu.launch("early", stream=7, duration_ns=1000)
        event = gpu.record_event(stream=7)
        gpu.launch("late", stream=7, duration_ns=50_000)
        gpu.synchronize_event(event)
        gpu.synchronize()
    arrows = [(source, wait) for source, _, wait, _ in arrows_of(collector.chrome_trace(step))]
    assert ("late", "Context Synchronize") in arrows
    assert ("late", "Event Synchronize") not in arrows
