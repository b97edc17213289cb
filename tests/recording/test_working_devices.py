"""A device that worked in the whole recording was idle in a part of it that lacks its work."""

from __future__ import annotations

import json

import pytest

import collector
from collector import analysis
from collector.recording.joined_captures import joined_captures
from collector.recording.recording import Recording
from collector.recording.working_devices import WORKING_DEVICES, stated_working_devices


@pytest.fixture
def whole(build):
    """Device 0 works in the first and in the last part of the step, and device 1 in its last part alone."""
    build.kernel("a", 1000, 500, device_id=0).kernel("b", 60_000, 500, device_id=0)
    return build.kernel("c", 61_000, 1000, device_id=1).recording()


@pytest.fixture
def part(whole):
    return analysis.between(whole, 0, 10_000)


def test_a_device_without_work_in_a_part_was_idle_in_it(whole, part):
    busy = [(row["device_id"], row["window_ns"], row["busy_ns"], row["activities"]) for row in analysis.devices(part)]
    assert busy == [(0, 10_000, 500, 1), (1, 10_000, 0, 0)]
    idle = [(row["device_id"], row["idle_ns"], row["gaps"], row["tail_ns"]) for row in analysis.idle(part)]
    assert idle == [(0, 9500, 2, 8500), (1, 10_000, 1, 10_000)]
    gaps = [(row["device_id"], row["start_ns"], row["end_ns"]) for row in analysis.idle_gaps(part)]
    assert gaps == [(1, 0, 10_000), (0, 1500, 10_000), (0, 0, 1000)]
    running = [(row["device_id"], row["running"], row["share"]) for row in analysis.concurrency(part)]
    assert running == [(0, 0, 0.95), (0, 1, 0.05), (1, 0, 1.0)]
    assert [row["device_id"] for row in analysis.overlap(part)] == [0, 1]


def test_a_span_is_that_of_devices_with_work(part):
    assert [row["device_id"] for row in analysis.devices(part, window="span")] == [0]
    assert [row["device_id"] for row in analysis.idle(part, window="span")] == [0]


def test_a_part_states_them_only_where_one_has_no_work(whole, part):
    assert WORKING_DEVICES not in whole.environment
    assert part.environment[WORKING_DEVICES] == [0, 1]
    assert WORKING_DEVICES not in analysis.between(whole, 50_000, 70_000).environment


def test_a_part_of_a_part_knows_the_devices_of_the_whole(whole, part):
    later = analysis.between(analysis.between(whole, 60_900, 70_000), 0, 50)
    assert [(row["device_id"], row["idle_ns"]) for row in analysis.idle(later)] == [(0, 50), (1, 50)]
    assert list(analysis.devices(analysis.between(part, 0, 10_000))) == list(analysis.devices(part))


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".pbtxt", ".json", ".xplane.pb"])
def test_a_saved_part_knows_them_too(part, tmp_path, suffix):
    path = tmp_path / f"part{suffix}"
    part.save(path)
    assert list(analysis.idle(collector.load(path))) == list(analysis.idle(part))


def test_parts_of_two_processes_have_devices_of_their_own(part):
    joined = Recording.from_capture(joined_captures([part.to_capture(), part.to_capture()]))
    devices = [row["device_id"] for row in analysis.devices(joined)]
    assert len(devices) == 4
    assert stated_working_devices(joined.environment) == tuple(devices)


@pytest.mark.parametrize("stated", [3, "01", [True, -1, 1 << 32, "1", None], {"0": 1}, None])
def test_what_a_stranger_states_is_no_device(part, stated):
    environment = json.loads(json.dumps({**part.environment, WORKING_DEVICES: stated}))
    assert [row["device_id"] for row in analysis.devices(part.restated(environment=environment))] == [0]
