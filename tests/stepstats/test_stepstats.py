"""Recording -> StepStats: devices, names, labels, times, order."""

from __future__ import annotations

import random
import re

import pytest

import collector
from collector.protos import NodeExecStats
from collector.recording.ledger import Ledger
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata, serialized, step_stats

START_MICROS = 1_700_000_000_000_000


def nodes_of(steps, device):
    return next(found.node_stats for found in steps.dev_stats if found.device == device)


def names_of(steps, device):
    return [node.node_name for node in nodes_of(steps, device)]


def devices_of(steps):
    return [device.device for device in steps.dev_stats]


def test_every_field_of_an_annotated_kernel(build, start_ns):
    build.launch(5, 1500, thread_id=42).annotation("layer1/conv", 1000, 9000, 3, 5)
    build.kernel(
        "_Z3addIfEvPT_i",
        7250,
        3_999,
        correlation_id=5,
        registers_per_thread=64,
        static_shared_bytes=1024,
        dynamic_shared_bytes=512,
        grid_x=8,
        grid_y=2,
        block_x=256,
    )
    node = nodes_of(step_stats(build.recording()), "/gpu:0/stream:7")[0]
    assert node == NodeExecStats(
        node_name="layer1/conv:add<float>",
        timeline_label="void add<float>(float*, int) regs:64 shm:1536 grid:8,2,1 block:256,1,1",
        all_start_micros=START_MICROS + 7,
        op_end_rel_micros=3,
        all_end_rel_micros=3,
        all_start_nanos=start_ns + 7250,
        op_end_rel_nanos=3999,
        all_end_rel_nanos=3999,
        scheduled_micros=START_MICROS + 1,
        scheduled_nanos=start_ns + 1500,
        thread_id=42,
        correlation_id=5,
        op_end=len("layer1/conv"),
    )


def test_a_kernel_without_annotation_or_seen_launch(build):
    node = nodes_of(step_stats(build.kernel("sgemm", 10).recording()), "/gpu:0/stream:all")[0]
    assert node.node_name == "sgemm:sgemm"
    assert (node.scheduled_micros, node.scheduled_nanos, node.thread_id) == (0, 0, 0)


NO_SHAPE = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 0)


@pytest.mark.parametrize("name", ["_Z3addIfEvPT_i", "odd regs:1 name"])
def test_a_kernel_whose_file_states_no_launch_shape_has_none_in_its_label(build, tmp_path, name):
    recording = build.kernel(name, 10, **NO_SHAPE).recording()
    (node,) = nodes_of(step_stats(recording), "/gpu:0/stream:7")
    assert node.timeline_label == recording.kernels.demangled_names()[0]
    collector.chrome_trace(step_stats(recording), tmp_path / "step.json")  # without the names that a recording has
    text = (tmp_path / "step.json").read_text()
    assert node.timeline_label in text
    assert not {"grid", "registers"} & set(re.findall(r"\w+", text))


@pytest.mark.parametrize("stated", [*NO_SHAPE, "registers_per_thread"])
def test_any_part_of_a_launch_shape_is_stated(build, tmp_path, stated):
    recording = build.kernel("k", 10, **{**NO_SHAPE, stated: 1}).recording()
    (node,) = nodes_of(step_stats(recording), "/gpu:0/stream:7")
    assert node.timeline_label.startswith("k regs:")
    collector.chrome_trace(recording, tmp_path / "step.json")
    (row,) = collector.load(tmp_path / "step.json").kernels
    assert getattr(row, stated) == 1


@pytest.mark.parametrize(
    ("row", "name", "label"),
    [
        ({"copy_kind": 1}, "MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)"),
        ({"copy_kind": 2, "src_kind": 3, "dst_kind": 2}, "MEMCPYDtoH", "MEMCPYDtoH 4096 bytes (Device to Pinned)"),
        ({"copy_kind": 8, "src_kind": 5, "dst_kind": 4}, "MEMCPYDtoD", "MEMCPYDtoD 4096 bytes (Managed to Array)"),
        (
            {"copy_kind": 10, "src_kind": 3, "src_device_id": 0, "dst_device_id": 3, "num_bytes": 1 << 33},
            "MEMCPYPtoP",
            "MEMCPYPtoP 8589934592 bytes (Device to Device) gpu:0 to gpu:3",
        ),
        (
            {"copy_kind": 99, "src_kind": 99, "dst_kind": 0},
            "MEMCPYkind 99",
            "MEMCPYkind 99 4096 bytes (kind 99 to Unknown)",
        ),
    ],
)
def test_copies_are_named_by_their_direction(build, row, name, label):
    build.memcpy(10, correlation_id=1, **row).memcpy(5000, correlation_id=2, **row).annotation("in", 0, 9, 4, 2)
    plain, annotated = nodes_of(step_stats(build.recording()), "/gpu:0/memcpy")
    assert (plain.node_name, plain.timeline_label) == (f"{name}:{name}", label)
    assert (annotated.node_name, annotated.timeline_label) == (f"in:{name}", label)


def test_a_copy_of_unknown_size_is_not_one_of_no_bytes(build):
    build.memcpy(10, num_bytes=0).memset(2000, num_bytes=0)
    labels = [node.timeline_label for node in nodes_of(step_stats(build.recording()), "/gpu:0/memcpy")]
    assert len(labels) == 2
    assert not any("bytes" in label for label in labels)
    assert labels[0].startswith("MEMCPYHtoD (")


def test_memsets_are_among_the_copies(build):
    build.memset(10, correlation_id=1).memset(5000, correlation_id=2, memory_kind=5).annotation("zero", 0, 9, 4, 2)
    plain, annotated = nodes_of(step_stats(build.recording()), "/gpu:0/memcpy")
    assert (plain.node_name, plain.timeline_label) == ("MEMSET:MEMSET", "MEMSET 4096 bytes (Device)")
    assert (annotated.node_name, annotated.timeline_label) == ("zero:MEMSET", "MEMSET 4096 bytes (Managed)")


def test_what_readers_split_at_is_not_in_the_parts(build):
    build.kernel("ns::k<a::b>", 10, correlation_id=1).annotation("torch::nn::Linear:0", 0, 9, 4, 1)
    name = names_of(step_stats(build.recording()), "/gpu:0/stream:7")[0]
    assert name == "torch.nn.Linear.0:k<b>"


def test_a_label_never_looks_like_tensorflows_annotation_syntax(build):
    # TensorFlow's newest timeline takes what stands between @@ and # for the op's name.
    label = nodes_of(step_stats(build.kernel("odd@@name#1", 10).recording()), "/gpu:0/stream:7")[0].timeline_label
    assert "@@" not in label


def test_the_host_holds_annotations_and_calls_with_real_threads(build):
    build.environment["thread_names"] = {"42": "loader", 7: "unused"}
    build.annotation("layer1/conv", 1000, 9000, 3)
    build.call("cudaLaunchKernel_v7000", 1500, thread_id=42).call("cuMemcpyHtoDAsync_v2", 3000, thread_id=43)
    steps = step_stats(build.recording())
    device = steps.dev_stats[0]
    assert device.device == "/cpu:0"
    assert [(node.node_name, node.timeline_label, node.thread_id) for node in device.node_stats] == [
        ("layer1/conv", "layer1/conv = conv()", 11),
        ("cudaLaunchKernel", "cudaLaunchKernel = cudaLaunchKernel()", 42),
        ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync = cuMemcpyHtoDAsync()", 43),
    ]
    assert dict(device.thread_names) == {11: "thread 11", 42: "loader", 43: "thread 43"}


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("cudaMemcpy_v3020", "cudaMemcpy"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"),
        ("cuLaunchKernel_ptsz", "cuLaunchKernel"),
        ("cuStreamWaitValue32_v2", "cuStreamWaitValue32"),
        ("cuCtxSynchronize", "cuCtxSynchronize"),
        ("_v2", "_v2"),
    ],
)
def test_api_names_lose_their_version(build, recorded, name):
    assert names_of(step_stats(build.call(recorded, 10).recording()), "/cpu:0") == [name]


def test_devices_come_in_order_and_hold_each_activity_where_it_belongs(build):
    build.kernel("d", 50, device_id=1, stream_id=13).memcpy(60, device_id=1, stream_id=13)
    build.kernel("b", 900, 10, stream_id=13).kernel("a", 100, 10, stream_id=7).kernel("c", 2000, 10, stream_id=120)
    steps = step_stats(build.call("cudaFree", 1).recording())
    assert devices_of(steps) == [
        "/cpu:0",
        "/gpu:0/stream:all",
        "/gpu:0/stream:7",
        "/gpu:0/stream:13",
        "/gpu:0/stream:120",
        "/gpu:1/stream:all",
        "/gpu:1/stream:13",
        "/gpu:1/memcpy",
    ]
    assert names_of(steps, "/gpu:0/stream:all") == ["a:a", "b:b", "c:c"]
    assert names_of(steps, "/gpu:1/stream:all") == ["d:d", "MEMCPYHtoD:MEMCPYHtoD"]
    assert names_of(steps, "/gpu:1/memcpy") == ["MEMCPYHtoD:MEMCPYHtoD"]


def test_streams_of_two_contexts_with_one_number_stay_apart(build):
    build.kernel("a", 10, context_id=3).kernel("b", 5000, context_id=1).kernel("c", 9000, context_id=3, stream_id=8)
    steps = step_stats(build.recording())
    assert devices_of(steps) == ["/gpu:0/stream:all", "/gpu:0/stream:7", "/gpu:0/stream:7.3", "/gpu:0/stream:8"]
    assert names_of(steps, "/gpu:0/stream:7") == ["b:b"]
    assert names_of(steps, "/gpu:0/stream:7.3") == ["a:a"]
    assert names_of(steps, "/gpu:0/stream:all") == ["a:a", "b:b", "c:c"]


def test_a_rank_stands_before_every_device(build):
    build.kernel("a", 10).call("cudaFree", 1)
    devices = devices_of(step_stats(build.recording(), "/job:worker/replica:0/task:3"))
    assert devices[0] == "/job:worker/replica:0/task:3/cpu:0"
    assert devices[1] == "/job:worker/replica:0/task:3/gpu:0/stream:all"


@pytest.mark.parametrize(("duration", "micros"), [(0, 1), (1, 1), (999, 1), (1000, 1), (1999, 1), (2000, 2), (2001, 2)])
def test_durations_are_cut_to_micros_and_at_least_one_while_nanos_are_true(build, duration, micros):
    node = nodes_of(step_stats(build.kernel("k", 10, duration).recording()), "/gpu:0/stream:7")[0]
    assert (node.op_end_rel_micros, node.all_end_rel_micros) == (micros, micros)
    assert (node.op_end_rel_nanos, node.all_end_rel_nanos) == (duration, duration)


@pytest.mark.parametrize("offset", [-1_600_000_000_000_000_001, -86_400_000_000_001, 0, 3_600_000_000_007])
def test_wall_time_is_signed_arithmetic(build, start_ns, offset):
    # TensorFlow's unsigned arithmetic made traces of 583 years out of a clock that ran behind.
    build.clock["wall_start_ns"] = start_ns + offset
    node = nodes_of(step_stats(build.kernel("k", 2500).recording()), "/gpu:0/stream:7")[0]
    assert node.all_start_nanos == start_ns + 2500 + offset
    assert node.all_start_micros == (start_ns + 2500 + offset) // 1000


def test_rows_set_apart_are_in_no_device(build):
    build.kernel("in", 10).kernel("early", -10).kernel("late", 2_000_000).raw("kernels", name_id=build.text("never"))
    assert names_of(step_stats(build.recording()), "/gpu:0/stream:all") == ["in:in"]


def test_an_empty_recording_has_no_devices(build):
    assert devices_of(step_stats(build.recording())) == []


def shuffled(capture, seed):
    """The same rows in another order of arrival."""
    order = random.Random(seed)
    for columns in capture["tables"].values():
        rows = list(range(len(next(iter(columns.values())))))
        order.shuffle(rows)
        for column, values in columns.items():
            columns[column] = values[rows]
    return capture


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_arrival_does_not_show(build, seed):
    for number in range(30):
        build.launch(number + 1, 1000 * number, thread_id=number % 3)
        build.kernel(f"k{number % 4}", 100 * (number % 7), 50, device_id=number % 2, correlation_id=number + 1)
        build.memcpy(100 * (number % 5), 50, stream_id=number % 3, correlation_id=number + 1)
    build.annotation("op", 0, 500, 9, *range(1, 20))
    capture = build.capture()
    expected = run_metadata(Recording.from_capture(capture)).SerializeToString(deterministic=True)
    again = run_metadata(Recording.from_capture(shuffled(capture, seed))).SerializeToString(deterministic=True)
    assert again == expected


def test_the_provenance_says_where_it_came_from_and_what_was_lost(build, start_ns):
    build.clock["wall_start_ns"] = start_ns - 5000
    build.counters["records_dropped"] = 3
    build.environment["devices"] = {0: "H100"}
    recording = build.kernel("k", 10).recording()
    provenance = run_metadata(recording).provenance
    assert (provenance.source, provenance.simulated) == ("test", True)
    assert provenance.environment["devices"] == '{"0": "H100"}'
    assert Ledger.from_dict(provenance.ledger) == recording.ledger
    assert provenance.clock_offset_nanos == -5000
    assert provenance.window_start_nanos == start_ns - 5000
    assert provenance.window_end_nanos == start_ns + 1_000_000 - 5000
    assert provenance.collector_version


# --- the wire bytes of a step


def test_the_bytes_of_a_step_are_those_of_its_message(build):
    build.launch(5, 1500, thread_id=42).annotation("layer1/conv", 1000, 9000, 3, 5)
    build.kernel("_Z3addIfEvPT_i", 7250, 3_999, correlation_id=5)
    recording = build.recording()
    for prefix in ("", "/job:worker/replica:0/task:3"):
        assert serialized(recording, prefix) == run_metadata(recording, prefix).SerializeToString(deterministic=True)


def test_the_bytes_of_an_empty_step_are_those_of_its_message(build):
    recording = build.recording()
    assert serialized(recording) == run_metadata(recording).SerializeToString(deterministic=True)
