"""The copies of TensorFlow's files: under the streams and under memcpy, or under memcpy alone."""

from __future__ import annotations

import json

import pytest

import collector
from collector.protos import RunMetadata

GPU = "/job:localhost/replica:0/task:0/gpu:0"


def step_of(tmp_path, devices):
    """A file with these nodes: device -> (name, start, duration in µs)."""
    message = RunMetadata()
    for device, nodes in devices.items():
        stats = message.step_stats.dev_stats.add(device=device)
        for name, start, duration in nodes:
            times = {"all_start_micros": start, "op_end_rel_micros": duration, "all_end_rel_micros": duration}
            stats.node_stats.add(node_name=name, **times)
    path = tmp_path / "step.pb"
    path.write_bytes(message.SerializeToString())
    return collector.load(path)


KERNELS = [("a:MatMul", 1000, 10)]
COPIES = [("a:MEMCPYHtoD", 1020, 1), ("MEMCPYDtoH", 1030, 5)]


def test_copies_that_are_under_memcpy_alone_are_copies(tmp_path):
    found = step_of(tmp_path, {f"{GPU}/stream:all": KERNELS, f"{GPU}/stream:7": KERNELS, f"{GPU}/memcpy": COPIES})
    assert [each.name for each in found.recording.kernels] == ["MatMul"]
    assert found.recording.memcpys.duration_ns.tolist() == [1000, 5000]
    (row,) = collector.analysis.devices(found)
    assert (row["compute_ns"], row["copy_ns"]) == (10_000, 6_000)


def test_copies_that_are_under_memcpy_alone_are_in_a_profile(tmp_path):
    devices = {f"{GPU}/stream:all": KERNELS, f"{GPU}/stream:7": [*KERNELS, COPIES[0]], f"{GPU}/memcpy": COPIES}
    step_of(tmp_path, devices).save(tmp_path / "step.xplane.pb")
    found = collector.load(tmp_path / "step.xplane.pb").recording
    assert [each.name for each in found.kernels] == ["MatMul"]
    assert sorted(found.memcpys.duration_ns.tolist()) == [1000, 5000]


def test_copies_that_are_in_both_places_count_once(tmp_path):
    twice = [("MEMCPYDtoH", 1030, 5)] * 2  # of one time, on two streams
    devices = {f"{GPU}/stream:7": [*KERNELS, *COPIES], f"{GPU}/stream:8": [COPIES[1]]}
    found = step_of(tmp_path, {f"{GPU}/stream:all": KERNELS, **devices, f"{GPU}/memcpy": [COPIES[0], *twice]})
    assert len(found.recording.memcpys) == 3
    assert sorted(found.recording.memcpys.stream_id.tolist()) == [7, 7, 8]
    assert len(found.recording.kernels) == 1


@pytest.mark.parametrize("streams", [(), ("stream:7",)])
def test_what_is_under_memcpy_is_no_kernel_whatever_its_name(tmp_path, streams):
    devices = {f"{GPU}/{stream}": KERNELS for stream in ("stream:all", *streams)}
    found = step_of(tmp_path, {**devices, f"{GPU}/memcpy": [("edge_12_b", 1050, 1)]})
    assert [each.name for each in found.recording.kernels] == ["MatMul"]
    assert found.recording.memcpys.duration_ns.tolist() == [1000]


def test_copies_that_have_the_names_of_their_ops_in_both_places_count_once(tmp_path):
    """As TensorFlow names the copies and memsets that an op makes by itself."""
    concat = ("decoder/concat:ConcatV2", 1040, 1)
    other = ("decoder/concat:ConcatV2", 1060, 4)  # a kernel of the same op
    devices = {
        f"{GPU}/stream:all": [*KERNELS, other],
        f"{GPU}/stream:7": [*KERNELS, concat, other],
        f"{GPU.replace('gpu:0', 'gpu:1')}/stream:7": [concat],
        f"{GPU}/memcpy": [*COPIES, concat],
    }
    found = step_of(tmp_path, devices).recording
    assert [(each.name, each.device_id, each.duration_ns) for each in found.kernels] == [
        ("MatMul", 0, 10_000), ("ConcatV2", 0, 4_000), ("ConcatV2", 1, 1_000),
    ]  # fmt: skip
    first_ns = found.kernels.start_ns.min()
    copies = sorted(
        zip(found.memcpys.start_ns.tolist(), found.memcpys.stream_id.tolist(), found.memcpys.annotations(), strict=True)
    )
    assert [(start - first_ns, stream, op) for start, stream, op in copies] == [
        (20_000, 0, "a"), (30_000, 0, ""), (40_000, 7, "decoder/concat"),
    ]  # fmt: skip


@pytest.mark.parametrize("streams", [(), ("stream:7",)])
def test_copies_that_have_the_names_of_their_ops_are_copies_in_a_profile(tmp_path, streams):
    copies = [("decoder/concat:ConcatV2", 1040, 1), ("MatMul:MatMul", 1050, 2), ("edge_12_b", 1053, 3)]
    kernels = [*KERNELS, ("MatMul:MatMul", 1060, 4)]  # the last one has the name of a copy
    devices = {f"{GPU}/stream:7": kernels, f"{GPU}/stream:8": copies if streams else [], f"{GPU}/memcpy": copies}
    step = step_of(tmp_path, {f"{GPU}/stream:all": kernels, **devices})
    step.save(tmp_path / "step.xplane.pb")
    found = collector.load(tmp_path / "step.xplane.pb")
    for each in (step.recording, found.recording):
        assert [kernel.name for kernel in each.kernels] == ["MatMul", "MatMul"]
        assert sorted(each.memcpys.duration_ns.tolist()) == [1000, 2000, 3000]
        assert set(each.memcpys.copy_kind.tolist()) == {0}
        assert sorted(each.memcpys.annotations()) == ["", "", "decoder/concat"]


def test_copies_of_another_gpu_are_not_taken_for_those_of_this_one(tmp_path):
    other = GPU.replace("gpu:0", "gpu:1")
    devices = {f"{GPU}/stream:7": [*KERNELS, *COPIES], f"{other}/stream:7": KERNELS, f"{other}/memcpy": COPIES}
    found = step_of(tmp_path, devices)
    assert sorted(found.recording.memcpys.device_id.tolist()) == [0, 0, 1, 1]


def test_the_timeline_of_such_a_step_has_the_copies_as_well(tmp_path):
    found = step_of(tmp_path, {f"{GPU}/stream:all": KERNELS, f"{GPU}/stream:7": KERNELS, f"{GPU}/memcpy": COPIES})
    text = collector.Timeline(found.step_stats).generate_chrome_trace_format()
    assert json.loads(text)["traceEvents"]
    (tmp_path / "timeline.json").write_text(text)
    drawn = collector.load(tmp_path / "timeline.json").recording
    assert (len(drawn.kernels), len(drawn.memcpys)) == (1, 2)
