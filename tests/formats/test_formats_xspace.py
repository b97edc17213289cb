"""StepStats as XSpace: planes, lines, times relative to the start, kernel details in XProf's words."""

from __future__ import annotations

from io import BytesIO

import pytest
from support.xspaces import xspace

from collector.formats.xspace import XSpaceWriter
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.protos.xplane_pb2 import XSpace

EPOCH_NS = 1_700_000_000_000_001_245


def node(name, start_ns, duration_ns, label="", **more):
    return NodeExecStats(
        node_name=name,
        timeline_label=label,
        all_start_micros=start_ns // 1000,
        all_start_nanos=start_ns,
        all_end_rel_micros=max(duration_ns // 1000, 1),
        all_end_rel_nanos=duration_ns,
        **more,
    )


KERNEL = node(
    "layer1/conv:sgemm",
    EPOCH_NS + 2500,
    1001,
    "void sgemm<float>(int) regs:64 shm:1024 grid:8,1,1 block:256,1,1",
    correlation_id=17,
)
COPY = node("x:MEMCPYHtoD", EPOCH_NS + 5000, 0, "MEMCPYHtoD 4096 bytes (Pageable to Device)")


@pytest.fixture
def space():
    step = StepStats(
        dev_stats=[
            DeviceStepStats(
                device="/cpu:0",
                node_stats=[node("layer1/conv", EPOCH_NS, 9000, "layer1/conv = conv()", thread_id=31)],
                thread_names={31: "main"},
            ),
            DeviceStepStats(device="/gpu:1/stream:all", node_stats=[KERNEL, COPY]),
            DeviceStepStats(device="/gpu:1/stream:7", node_stats=[KERNEL, COPY]),
            DeviceStepStats(device="/gpu:1/memcpy", node_stats=[COPY]),
        ]
    )
    return xspace(RunMetadata(step_stats=step))


def stats_of(plane, event):
    return {
        plane.stat_metadata[stat.metadata_id].name: plane.stat_metadata[stat.ref_value].name
        if stat.WhichOneof("value") == "ref_value"
        else getattr(stat, stat.WhichOneof("value"))
        for stat in event.stats
    }


def test_a_plane_for_each_gpu_the_host_and_the_session(space):
    assert [plane.name for plane in space.planes] == ["/device:GPU:1", "/host:CPU", "Task Environment"]
    assert len({plane.id for plane in space.planes}) == 3
    assert not space.warnings


def test_one_line_for_each_stream_with_every_activity_once(space):
    [line] = space.planes[0].lines
    assert (line.id, line.name) == (7, "Stream #7(Compute,MemcpyH2D)")
    names = space.planes[0].event_metadata
    assert [names[event.metadata_id].name for event in line.events] == ["void sgemm<float>(int)", "MemcpyH2D"]


def test_t8_times_count_from_the_start_of_the_session(space):
    gpu, host, environment = space.planes
    assert all(line.timestamp_ns == 0 for plane in space.planes for line in plane.lines)
    assert [(e.offset_ps, e.duration_ps) for e in gpu.lines[0].events] == [(2_500_000, 1_001_000), (5_000_000, 1)]
    assert [[(e.offset_ps, e.duration_ps) for e in line.events] for line in host.lines] == [[(0, 9_000_000)]] * 2
    assert {environment.stat_metadata[s.metadata_id].name: s.uint64_value for s in environment.stats} == {
        "profile_start_time": EPOCH_NS,
        "profile_stop_time": EPOCH_NS + 9000,
    }


def test_details_are_in_xprofs_words(space):
    gpu, host, _ = space.planes
    kernel, copy = gpu.lines[0].events
    assert stats_of(gpu, kernel) == {
        "_ct": 1,
        "_c": 1,
        "correlation_id": 17,
        "tf_op": "layer1/conv",
        "kernel_details": "regs:64 static_shared:1024 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:0",
    }
    assert stats_of(gpu, copy) == {
        "_ct": 1,
        "_c": 1,
        "tf_op": "x",
        "memcpy_details": "kind:HtoD size:4096",
    }
    assert [line.name for line in host.lines] == ["main", "Steps"]
    assert stats_of(host, host.lines[1].events[0]) == {"step_num": 0, "_r": 1, "_pt": 1, "_p": 1}


@pytest.mark.parametrize(
    ("activity", "label", "details"),
    [
        ("MEMCPYPtoP", "MEMCPYPtoP (Device to Device) gpu:0 to gpu:1", "kind:PtoP"),
        ("MEMCPY<unknown>", "MEMCPY<unknown> (Device to Device)", "kind:<unknown>"),
        ("MEMCPYDtoH", "MEMCPYDtoH 8 bytes (Device to Pinned)", "kind:DtoH size:8"),
    ],
)
def test_copies_of_unknown_size_or_kind_are_copies_without_a_size(activity, label, details):
    stream = DeviceStepStats(device="/gpu:1/stream:7", node_stats=[node(f"x:{activity}", EPOCH_NS, 1, label)])
    gpu = xspace(RunMetadata(step_stats=StepStats(dev_stats=[stream]))).planes[0]
    (event,) = gpu.lines[0].events
    assert stats_of(gpu, event)["memcpy_details"] == details


def steps_of(space):
    """Number, start and duration (ns) of each step, and its number as a cause."""
    [host] = [plane for plane in space.planes if plane.name == "/host:CPU"]
    [line] = [line for line in host.lines if line.name == "Steps"]
    stats = [stats_of(host, event) for event in line.events]
    return [
        (found["step_num"], event.offset_ps // 1000, event.duration_ps // 1000, found["_p"])
        for found, event in zip(stats, line.events, strict=True)
    ]


def several(*steps, **common):
    """Steps of one kernel each: (start, what `add` takes)."""
    file = BytesIO()
    with XSpaceWriter(EPOCH_NS) as writer:
        for start_ns, more in steps:
            kernel = node("a:k", EPOCH_NS + start_ns, 100, correlation_id=5)
            device = DeviceStepStats(device="/gpu:0/stream:7", node_stats=[kernel])
            host = DeviceStepStats(device="/cpu:0", node_stats=[node("launch", EPOCH_NS + start_ns, 9, thread_id=3)])
            step = StepStats(dev_stats=[host, device]).SerializeToString()
            assert writer.add(step, is_run_metadata=False, **more, **common) == (2, 0)
        writer.write(file, about="{}")
    return XSpace.FromString(file.getvalue())


def test_steps_share_planes_and_lines_and_name_their_cause():
    space = several((0, {"number": 4}), (5000, {"number": 5}), (9000, {"number": 5}))
    assert [plane.name for plane in space.planes] == ["/device:GPU:0", "/host:CPU", "Task Environment"]
    [line] = space.planes[0].lines
    assert [event.offset_ps for event in line.events] == [0, 5_000_000, 9_000_000]
    assert steps_of(space) == [(4, 0, 100, 1), (5, 5000, 100, 2), (5, 9000, 100, 3)]
    kernels = [stats_of(space.planes[0], event) for event in line.events]
    assert [kernel["_c"] for kernel in kernels] == [1, 2, 3]
    assert len({kernel["correlation_id"] for kernel in kernels}) == 3  # each process counts from 1


def test_a_step_lasts_until_the_last_end_of_all_nodes():
    """TensorFlow's files may have work under ``stream:all`` that no stream shows."""
    late = node("late", EPOCH_NS + 7000, 500)
    devices = [("/gpu:0/stream:all", [KERNEL, late]), ("/gpu:0/stream:7", [KERNEL])]
    step = StepStats(dev_stats=[DeviceStepStats(device=name, node_stats=nodes) for name, nodes in devices])
    ((_, start_ns, duration_ns, _),) = steps_of(xspace(RunMetadata(step_stats=step)))
    assert (start_ns, duration_ns) == (0, 5000)  # from the start of the kernel


def test_ranks_have_planes_of_their_own_and_steps_together():
    ranks = [(1000 * rank, {"number": 2, "owner": f"rank {rank}"}) for rank in (0, 2, 10)]
    space = several(*ranks)
    assert [plane.name for plane in space.planes[:-2]] == [f"/device:GPU:0 rank {rank}" for rank in (0, 2, 10)]
    assert {line.name for line in space.planes[-2].lines} == {
        *(f"rank {rank} /cpu:0 thread 3" for rank in (0, 2, 10)),
        "Steps",
    }
    assert steps_of(space) == [(2, 0, 10_100, 1)]
    assert len(steps_of(several(*ranks, together=False))) == 3


def test_damaged_times_are_left_out_and_counted():
    bad = [node("zero", 0, 5), node("negative", EPOCH_NS, -5), node("far", EPOCH_NS + 2**62, 5)]
    step = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=[KERNEL, *bad, COPY])])
    space = xspace(RunMetadata(step_stats=step))
    assert [len(line.events) for line in space.planes[0].lines] == [2]
    assert list(space.warnings) == ["3 nodes without a possible time were left out"]


@pytest.mark.parametrize(
    "times",
    [
        {"all_start_micros": 2**64 // 1000, "all_end_rel_micros": 60},
        {"all_start_micros": 1, "all_end_rel_micros": 50 * 24 * 3600 * 10**6},
        {"all_start_nanos": 2**63 - 1, "all_end_rel_nanos": 2**63 - 1},
    ],
    ids=["start", "duration", "both"],
)
def test_a_step_of_impossible_times_alone_is_an_empty_profile(times):
    node = NodeExecStats(node_name="k", **times)
    step = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=[node])])
    space = xspace(RunMetadata(step_stats=step))
    assert not any(line.events for plane in space.planes for line in plane.lines)
    assert list(space.warnings) == ["1 node without a possible time was left out"]


@pytest.mark.medium
def test_many_streams_have_lines_of_their_own():
    many = 5_000  # each was looked for among all others before
    names = ["/gpu:0/stream:7", *(f"/gpu:0/stream:7.{context}" for context in range(many)), "/gpu:0/stream:8"] * 2
    space = xspace(RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device=name) for name in names])))
    numbers = [line.id for line in space.planes[0].lines]
    assert len(set(numbers)) == len(numbers) == many + 2  # those listed twice once
    assert (numbers[0], numbers[-1]) == (7, 8)


def test_an_empty_step_is_an_empty_profile():
    assert [plane.name for plane in xspace(RunMetadata()).planes] == ["/host:CPU", "Task Environment"]


def test_tensorflows_devices_are_distinguished():
    devices = ["/device:GPU:0/stream:all", "/job:worker/replica:0/task:3/device:GPU:2/stream:4", "/device:GPU:0"]
    step = StepStats(dev_stats=[DeviceStepStats(device=device, node_stats=[KERNEL]) for device in devices])
    planes = {plane.name: [line.name for line in plane.lines] for plane in xspace(RunMetadata(step_stats=step)).planes}
    assert planes == {
        "/device:GPU:0": ["Stream #all(Compute)"],
        "/device:GPU:2 job:worker/replica:0/task:3": ["Stream #4(Compute)"],
        "/host:CPU": ["/device:GPU:0 thread 0", "Steps"],
        "Task Environment": [],
    }


def test_t9_the_message_has_a_name_of_our_own():
    """Beside another package's XSpace in one process, the same full name would be refused."""
    assert XSpace.DESCRIPTOR.full_name == "collector.XSpace"
