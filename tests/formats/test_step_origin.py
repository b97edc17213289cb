"""What is stated of a step beside its columns goes along into every file that is made of it, and into its parts."""

from __future__ import annotations

import json
import shutil

import pytest

import collector
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.protos import DeviceStepStats, NodeExecStats, StepStats
from collector.protos.xplane_pb2 import XSpace
from collector.recording.step_origin import StepOrigin
from collector.timeline import chrome_trace

SUFFIXES = (".gpurec", ".pb", ".pbtxt", ".json", ".xplane.pb")
PREFIX = "/job:trainer/replica:0/task:3"
EPOCH_US = 1_700_000_000_000_000
LOSS = {"unreadable rest of the file": 1}


def kernels(start_us, count=3):
    return [
        {"ph": "X", "cat": "kernel", "name": f"k{place}", "ts": start_us + 10 * place, "dur": 5, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": place + 1}}
        for place in range(count)
    ]  # fmt: skip


@pytest.fixture
def torch_trace(tmp_path):
    """Writes a trace of a rank as PyTorch does; a cut one lacks its last event and its end."""

    def write(name="trace.json", *, rank=3, is_cut=False, events=None):
        text = json.dumps(
            {"distributedInfo": {"rank": rank, "world_size": 8}, "traceEvents": events or kernels(EPOCH_US)}
        )
        (tmp_path / name).write_text(text[: text.rindex('{"ph"') + 20] if is_cut else text)
        return tmp_path / name

    return write


def converted(path, suffix):
    target = path.with_name(f"converted{suffix}")
    collector.load(path).save(target)
    return collector.load(target)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rank_and_number_of_ranks_are_kept(torch_trace, suffix):
    once = converted(torch_trace(), suffix)
    again = converted(once.path, ".gpurec")
    for step in (once, again):
        assert (step.rank, step.world_size, step.device_prefix) == (3, 8, "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_step_without_a_rank_gets_none(build, tmp_path, suffix):
    build.kernel("k", 100).recording().save(tmp_path / f"step{suffix}")
    step = collector.load(tmp_path / f"step{suffix}")
    assert step.origin == StepOrigin()
    assert step.common_prefix == ""


def test_rank_0_is_a_rank(torch_trace):
    for suffix in SUFFIXES:
        assert converted(torch_trace(rank=0), suffix).rank == 0, suffix


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_converted_files_of_two_ranks_are_merged_as_one_step(torch_trace, tmp_path, suffix):
    paths = []
    for rank, name in enumerate(("first", "second")):
        step = converted(torch_trace(rank=rank), suffix)
        paths.append(shutil.copy(step.path, tmp_path / f"{name}{suffix}"))
    report = collector.merge(paths, tmp_path / "all.json")
    assert [(each.rank, each.step) for each in report.inputs] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("again", [".pb", ".gpurec"])
def test_the_prefix_of_devices_is_kept(build, tmp_path, suffix, again):
    Step(RecordingSource(build.kernel("k", 100).recording(), PREFIX)).save(tmp_path / f"step{suffix}")
    step = collector.load(tmp_path / f"step{suffix}")
    step.save(tmp_path / f"again{again}")
    for each in (step, collector.load(tmp_path / f"again{again}")):
        assert each.common_prefix == PREFIX
        assert all(device.device.startswith(f"{PREFIX}/") for device in each.step_stats.dev_stats)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_losses_of_a_damaged_file_are_kept(torch_trace, suffix):
    given = collector.load(torch_trace(is_cut=True))
    step = converted(given.path, suffix)
    again = converted(step.path, ".gpurec")
    for each in (step, again):
        assert dict(each.ledger.unread) == dict(given.ledger.unread) == LOSS
        assert each.warning == ""  # the converted file itself is whole


@pytest.mark.parametrize("suffix", ["", *SUFFIXES])
def test_a_part_of_a_step_keeps_what_is_stated_of_the_whole(torch_trace, tmp_path, suffix):
    path = torch_trace(is_cut=True)
    whole = converted(path, suffix) if suffix else collector.load(path)
    part = collector.load(whole.path, window=(0, 1e-6))
    assert len(part.kernels) == 1
    assert (part.rank, part.world_size, part.cut_at, part.kind) == (3, 8, whole.cut_at, whole.kind)
    assert part.warning == whole.warning
    assert dict(part.ledger.unread) == LOSS
    part.save(tmp_path / "part.gpurec")
    assert dict(collector.load(tmp_path / "part.gpurec").ledger.unread) == LOSS


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_part_of_a_step_keeps_the_prefix_of_devices(build, tmp_path, suffix):
    Step(RecordingSource(build.kernel("k", 100).recording(), PREFIX)).save(tmp_path / f"step{suffix}")
    collector.load(tmp_path / f"step{suffix}", window=(0, 1)).save(tmp_path / "part.pb")
    devices = collector.load(tmp_path / "part.pb").step_stats.dev_stats
    assert devices
    assert all(device.device.startswith(f"{PREFIX}/") for device in devices)


def test_a_window_of_a_drawing_states_the_losses_of_the_whole(torch_trace, tmp_path):
    step = converted(torch_trace(is_cut=True), ".gpurec")
    chrome_trace(step, tmp_path / "part.json", window_ns=(0, 1000))
    about = json.loads((tmp_path / "part.json").read_text())["otherData"]
    assert (about["unread"], about["rank"], about["world_size"]) == (LOSS, 3, 8)


def test_a_message_of_ours_alone_keeps_its_losses_without_its_bytes(torch_trace):
    step = converted(torch_trace(is_cut=True), ".pb").columns_alone()
    assert step.is_recording
    assert dict(step.ledger.unread) == LOSS


# --- merged files


@pytest.mark.parametrize("suffix", [".json", ".xplane.pb"])
def test_a_merged_file_states_the_losses_of_its_inputs(torch_trace, tmp_path, suffix):
    cut = [torch_trace(f"rank{rank}.json", rank=rank, is_cut=True) for rank in range(2)]
    target = tmp_path / f"all{suffix}"
    report = collector.merge(cut, target)
    assert [dict(each.unread) for each in report.inputs] == [LOSS, LOSS]
    found = collector.load(target).ledger.unread
    several = {f"rank {rank}: unreadable rest of the file": 1 for rank in range(2)}
    assert dict(found) == ({"unreadable rest of the file": 2} if suffix == ".json" else several)


# --- profiles of others


def test_warnings_of_a_profile_are_losses(torch_trace):
    path = converted(torch_trace(), ".xplane.pb").path
    space = XSpace.FromString(path.read_bytes())
    space.warnings.extend(["No GPU\nwas traced", "rows in the file that the step was read from: 7"])
    space.errors.append("out of memory")
    path.write_bytes(space.SerializeToString())
    assert dict(collector.load(path).ledger.unread) == {
        "the warning 'No GPU was traced'": 1,
        "rows": 7,
        "the warning 'out of memory'": 1,
    }


@pytest.mark.parametrize(
    "stated", ['{"rank": -1, "world_size": "8", "device_prefix": "/x", "unread": []}', "[]", "{", "7", '{"rank": true}']
)
def test_what_cannot_be_an_origin_is_left_out(torch_trace, stated):
    path = converted(torch_trace(), ".xplane.pb").path
    space = XSpace.FromString(path.read_bytes())
    [environment] = [plane for plane in space.planes if plane.name == "Task Environment"]
    [stat] = [each for each in environment.stats if each.HasField("str_value")]
    stat.str_value = stated
    path.write_bytes(space.SerializeToString())
    step = collector.load(path)
    assert (step.origin, step.device_prefix) == (StepOrigin(), "")


# --- parts that a drawing left out


def test_a_drawing_that_left_slices_out_is_no_complete_step(torch_trace, tmp_path):
    step = collector.load(torch_trace())
    for options, reason in (
        ({"max_events": 1}, "slices left out, as they were too many (max_events)"),
        ({"window_ns": (0, 1000)}, "slices filtered out"),
    ):
        chrome_trace(step, tmp_path / "part.json", **options)
        part = collector.load(tmp_path / "part.json")
        assert dict(part.ledger.unread) == {reason: 2}
        assert not part.ledger.complete
        part.save(tmp_path / "again.json")
        assert dict(collector.load(tmp_path / "again.json").ledger.unread) == {reason: 2}


def test_nodes_that_could_not_be_drawn_are_missing_in_the_trace(tmp_path):
    nodes = [
        NodeExecStats(node_name="k:k", all_start_micros=5, all_end_rel_micros=5),
        NodeExecStats(node_name="l:l", all_end_rel_micros=-1),
    ]
    chrome_trace(
        StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=nodes)]), tmp_path / "a.json"
    )
    assert dict(collector.load(tmp_path / "a.json").ledger.unread) == {"nodes without a possible time": 1}
