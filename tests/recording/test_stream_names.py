"""A part of a recording names its streams as the whole does, where several contexts use the same stream number."""

from __future__ import annotations

import json

import pytest

import collector
from collector import analysis
from collector.dataset import Dataset, DatasetWriter
from collector.recording.joined_captures import joined_captures
from collector.recording.recording import Recording
from collector.recording.stream_devices import FIRST_CONTEXTS
from collector.recording.stream_names import stream_names
from collector.stepstats.from_recording import step_stats
from collector.web.report_lanes import lanes_of

LABELS = {"/gpu:0/stream:7": "first", "/gpu:0/stream:7.2": "second"}
STATED = {"/gpu:0/stream:7": 1}


@pytest.fixture
def whole(build) -> Recording:
    build.environment["device_labels"] = LABELS
    build.kernel("short", 1000, 500, context_id=1)
    build.kernel("long", 3000, 50_000, context_id=2)
    build.kernel("other", 3000, 50_000, context_id=2, stream_id=9)
    return build.recording()


def streams(step) -> list[str]:
    """The streams by the names of their devices."""
    recording = step if isinstance(step, Recording) else step.recording
    devices = [each.device for each in step_stats(recording).dev_stats]
    return [device.rpartition(":")[2] for device in devices if "/stream:" in device and not device.endswith(":all")]


def test_a_part_without_the_first_context_names_streams_as_the_whole(whole):
    part = analysis.between(whole, 3000, 60_000)
    assert streams(whole) == ["7", "7.2", "9"]
    assert streams(part) == ["7.2", "9"]
    assert part.environment[FIRST_CONTEXTS] == STATED
    assert stream_names(part) == {(0, 2, 7): "second"}
    assert [(row["context_id"], row["stream_name"]) for row in analysis.streams(part)] == [(2, "second"), (2, "")]
    shown = [lane.name for lane in lanes_of(part).lanes if lane.kind == "stream"]
    assert shown == ["GPU 0 stream 7.2 (second)", "GPU 0 stream 9"]


def test_a_part_states_first_contexts_only_where_it_lacks_them(whole):
    for part in (whole.between(), analysis.between(whole, 0, 2000), analysis.between(whole, 60_000, 70_000)):
        assert FIRST_CONTEXTS not in part.environment
    inner = analysis.between(analysis.between(whole, 2000, 60_000), 2000, 60_000)
    assert streams(inner) == ["7.2", "9"]
    assert stream_names(analysis.between(whole, 0, 2000)) == {(0, 1, 7): "first"}


@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json", "xplane.pb"])
def test_a_saved_part_keeps_the_names(whole, tmp_path, suffix):
    analysis.between(whole, 3000, 60_000).save(tmp_path / f"part.{suffix}")
    part = collector.load(tmp_path / f"part.{suffix}")
    assert streams(part) == ["7.2", "9"]
    assert stream_names(part.recording) == {(0, 2, 7): "second"}


def test_a_part_in_a_dataset_keeps_the_names(whole, tmp_path):
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(analysis.between(whole, 3000, 60_000))
    (step,) = Dataset(tmp_path)
    assert streams(step) == ["7.2", "9"]
    assert stream_names(step.recording) == {(0, 2, 7): "second"}
    assert list(analysis.streams(step)) == list(analysis.streams(analysis.between(whole, 3000, 60_000)))


def test_a_part_that_is_joined_with_another_process_keeps_the_names(whole, build):
    part = analysis.between(whole, 3000, 60_000)
    other = type(build)().kernel("k", 10, context_id=2, device_id=1).recording()
    joined = Recording.from_capture(joined_captures([other.to_capture(), part.to_capture()]))
    (kernel,) = (each for each in joined.kernels if each.name == "long")
    assert kernel.context_id != 2  # it is that of the other process
    assert streams(joined) == [f"7.{kernel.context_id}", "9", "7"]
    assert stream_names(joined) == {(0, kernel.context_id, 7): "second"}


@pytest.mark.parametrize("stated", ["{", "[]", 7, {"/gpu:0/stream:x": 1, "/gpu:0/stream:7": True}, {"/gpu:0": -1}])
def test_a_statement_that_makes_no_sense_changes_no_name(build, stated):
    build.environment[FIRST_CONTEXTS] = stated
    recording = build.kernel("k", 10, context_id=2).recording()
    assert FIRST_CONTEXTS not in recording.environment
    assert streams(recording) == ["7"]


def test_rows_that_are_set_apart_leave_the_names_as_the_program_gave_them(build):
    """The source names streams of all rows; the first context has only work before the step."""
    build.environment |= {"device_labels": LABELS, FIRST_CONTEXTS: STATED}
    recording = build.kernel("early", -900, 100, context_id=1).kernel("k", 10, context_id=2).recording()
    assert stream_names(recording) == {(0, 2, 7): "second"}
    assert streams(recording) == ["7.2"]


@pytest.mark.parametrize(
    "options", [{"min_duration_ns": 1000}, {"window_ns": (3000, None)}, {"max_events": 2}, {"names": "long|other"}]
)
def test_a_view_names_streams_alike_from_each_format(whole, tmp_path, options):
    drawn = {}
    for suffix in ("gpurec", "pb", "json"):
        whole.save(tmp_path / f"step.{suffix}")
        text = collector.chrome_trace(collector.load(tmp_path / f"step.{suffix}"), **options)
        drawn[suffix] = [event for event in json.loads(text)["traceEvents"] if not event["name"].endswith("sort_index")]
        names = {event["args"]["name"] for event in drawn[suffix] if event["name"] == "thread_name"}
        assert names == {"stream 7.2 (second)", "stream 9"}, suffix
    assert drawn["gpurec"] == drawn["pb"]
    assert drawn["gpurec"] == drawn["json"]


def test_busy_streams_are_counted_where_several_are_drawn(whole, build, tmp_path):
    build.kernel("short", 5000, 500, context_id=1)
    whole = build.recording()
    whole.save(tmp_path / "step.pb")
    for step in (whole, collector.load(tmp_path / "step.pb")):
        for options, count in (({}, True), ({"min_duration_ns": 1000}, True), ({"window_ns": (0, 2000)}, False)):
            events = json.loads(collector.chrome_trace(step, **options))["traceEvents"]
            assert any(event["name"] == "busy streams" for event in events) == count, options
