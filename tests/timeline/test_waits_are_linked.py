"""Arrows in both viewers: from an awaited activity to the host's wait, from a recorded event to a stream's wait."""

from __future__ import annotations

import json

import pytest

import collector
from collector.stepstats.from_recording import serialized
from collector.testing import SimulatedGpu

NONE = 2**32 - 1
SLICES_SQL = """
select a.name, a.ts, a.ts + a.dur, b.name, b.ts, b.ts + b.dur from flow
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
    wait(1600, 1650, sync_type=2, stream_id=11, event_id=5, event_sync_id=1005, correlation_id=16)
    wait(1700, 1700, sync_type=2, stream_id=12, event_id=5, correlation_id=17)
    wait(1800, 1850, sync_type=2, stream_id=12, event_id=6, correlation_id=18)  # nobody has seen it recorded
    wait(800, 850, sync_type=2, stream_id=12, event_id=5, event_sync_id=1005, correlation_id=1)  # a clock that lies
    return build.recording()


ARROWS = [
    ("first", 3000, "Event Synchronize", 3500),
    ("second", 6000, "Stream Synchronize", 6000),
    ("third", 9000, "Context Synchronize", 9500),
]
EVENT_ARROWS = [("cudaEventRecord", 900, "Stream Wait Event", start) for start in (1500, 1600, 1700)]


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


def event_arrows_of(text):
    """Names of both ends of the arrows of events, with the starts in ns; the ends are found as viewers find them."""
    events = json.loads(text)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    ends = {}
    for event in events:
        if event.get("cat") == "event":
            holder = next(
                each
                for each in slices
                if each["tid"] == event["tid"] and each["ts"] <= event["ts"] <= each["ts"] + each["dur"]
            )
            ends.setdefault(event["id"], {})[event["ph"]] = holder["name"], round(1000 * holder["ts"])
    return sorted((*each["s"], *each["f"]) for each in ends.values())


def test_an_arrow_leads_from_the_call_that_records_an_event_to_each_stream_that_waits_for_it(recording):
    """The fixture's first slice is a wait whose call comes later by its clock; it has no arrow."""
    expected = [(name, start - 800, wait, at - 800) for name, start, wait, at in EVENT_ARROWS]
    assert event_arrows_of(collector.chrome_trace(serialized(recording))) == expected


def test_a_trace_of_chrome_has_an_arrow_to_each_wait_that_was_held_up(recording):
    base = 800
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
    ends = {
        frozenset([(name, end), (other, last)])
        for name, _, end, other, _, last in view.answers[0]
        if "cudaEventRecord" not in (name, other)
    }
    assert ends == {frozenset([(name, end - 800), (wait, last - 800)]) for name, end, wait, last in ARROWS}
    starts = [(name, start, other, at) for name, start, _, other, at, _ in view.answers[0] if name == "cudaEventRecord"]
    assert sorted(starts) == [(name, start - 800, wait, at - 800) for name, start, wait, at in EVENT_ARROWS]
    assert drawn.arrows == len(ARROWS) + len(EVENT_ARROWS) == len(view.answers[0])


@pytest.mark.slow
@pytest.mark.viewer
def test_catapult_finds_both_ends(catapult, recording, tmp_path):
    path = tmp_path / "step.json"
    collector.chrome_trace(serialized(recording), path)
    view = catapult(path)
    expected = [(name, wait) for name, _, wait, _ in [*ARROWS, *EVENT_ARROWS]]
    assert sorted((start[2], end[2]) for start, end in view["arrows"]) == sorted(expected)


def test_what_is_filtered_out_has_no_arrow(recording):
    text = collector.chrome_trace(serialized(recording), names="Synchronize|first|third", max_events=5)
    assert [(source, wait) for source, _, wait, _ in arrows_of(text)] == [("third", "Context Synchronize")]
    assert event_arrows_of(text) == []
    without = collector.chrome_trace(serialized(recording), arrows=False)
    assert arrows_of(without) == event_arrows_of(without) == []


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


@pytest.mark.simulator
def test_a_stream_of_a_simulated_program_waits_for_an_event_of_another():
    kinds = ["synchronizations", "kernels", "cuda_events", "runtime_api"]
    with SimulatedGpu() as gpu, collector.trace(strict=True, kinds=kinds) as step:
        gpu.launch("first", stream=7, duration_ns=1000)
        event = gpu.record_event(stream=7)
        gpu.wait_event(event, stream=9)
        gpu.launch("second", stream=9, duration_ns=1000)
        gpu.synchronize()
    arrows = [(call, wait) for call, _, wait, _ in event_arrows_of(collector.chrome_trace(step))]
    assert arrows == [("cudaEventRecord", "Stream Wait Event")]
