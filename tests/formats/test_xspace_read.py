"""XSpace profiles read: those of TensorFlow and JAX, our own, and damaged ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict

import numpy as np
import pytest

import collector
from collector.analysis.annotation_paths import annotation_paths
from collector.formats.xspace_events import xspace_events
from collector.protos import DeviceStepStats, NodeExecStats, StepStats
from collector.protos.xplane_pb2 import XEvent, XLine, XPlane, XSpace, XStat
from collector.recording.cupti_enums import COPY_KINDS

EPOCH_NS = 1_700_000_000_000_000_000


@pytest.fixture
def profile(shared):
    """A recorded profile, and what counts.json says of it."""
    name = "xprof/gpu_multi_worker.xplane.pb.gz"
    folder = shared / "data" / "gpu_traces"
    return folder / name, json.loads((folder / "counts.json").read_text())[name]["gpu"]


@pytest.fixture
def write(tmp_path):
    def write(*planes, name="host.xplane.pb"):
        path = tmp_path / name
        path.write_bytes(XSpace(planes=planes).SerializeToString())
        return path

    return write


def plane(name, *lines, **stats):
    """A plane of lines (name, events); an event is its name, its times in ps and its stats."""
    made = XPlane(name=name)
    numbers = {}

    def number(text, table):
        if text not in numbers:
            numbers[text] = len(numbers) + 1
            table[numbers[text]].name = text
        return numbers[text]

    def stat(key, value):
        if isinstance(value, str):
            return XStat(metadata_id=number(key, made.stat_metadata), ref_value=number(f"{value}", made.stat_metadata))
        return XStat(metadata_id=number(key, made.stat_metadata), uint64_value=value)

    made.stats.extend(stat(key, value) for key, value in stats.items())
    for line_name, events in lines:
        line = XLine(name=line_name)
        for event_name, offset_ps, duration_ps, given in events:
            line.events.append(
                XEvent(
                    metadata_id=number(f"event {event_name}", made.event_metadata),
                    offset_ps=offset_ps,
                    duration_ps=duration_ps,
                    stats=[stat(key, value) for key, value in given.items()],
                )
            )
            made.event_metadata[numbers[f"event {event_name}"]].name = event_name
        made.lines.append(line)
    return made


def gpu(*events, name="/device:GPU:0"):
    return plane(name, ("Stream #7(Compute)", events))


@pytest.mark.medium
def test_the_figures_of_a_recorded_profile(profile):
    path, truth = profile
    recording = collector.load(path).recording
    found = defaultdict(Counter)
    for kind, table in (("kernel", recording.kernels), ("memcpy", recording.memcpys)):
        places = zip(table.device_id.tolist(), table.stream_id.tolist(), table.duration_ns.tolist(), strict=True)
        for device, stream, nanos in places:
            found[str(device), str(stream)].update({f"{kind}_count": 1, f"{kind}_ns": nanos})
    for row in truth["per_stream"]:
        assert found.pop((row["device"], row["stream"])) == {
            key: value for key, value in row.items() if key not in ("device", "stream")
        }
    assert not found
    copies = recording.memcpys
    for kind, expected in truth["memcpy_by_kind"].items():
        rows = copies.copy_kind == COPY_KINDS.index(kind)
        assert (int(rows.sum()), int(copies.num_bytes[rows].sum())) == (expected["count"], expected["bytes"])
    assert len(np.unique(recording.kernels.name_id)) == truth["distinct_kernel_names"]


@pytest.mark.medium
def test_ops_calls_and_names_of_a_recorded_profile(profile):
    path, _ = profile
    step = collector.load(path)
    recording = step.recording
    assert repr(step).startswith(f"<Step '{path}': XSpace profile, kernels: 1,330, memcpys: 226, api_calls: 1,556, ")
    assert len(recording.other_ranges) == 6218
    assert np.isin(recording.kernels.correlation_id, recording.api_calls.correlation_id).all()
    ops = Counter(op.rpartition("/")[2] for op in recording.annotations_of(recording.kernels))
    assert ops["RandomUniform"] == 194
    assert ops[""] == 0
    assert "ExecutorState::Process" in recording.annotations.recorded_names()


@pytest.mark.medium
def test_the_same_figures_come_from_our_own_profile_of_it(profile, tmp_path):
    path, _ = profile
    given = collector.load(path)
    given.save(tmp_path / "host.xplane.pb")
    again = collector.load(tmp_path / "host.xplane.pb").recording
    for table in ("kernels", "memcpys"):
        first, second = getattr(given.recording, table), getattr(again, table)
        assert sorted(second.duration_ns.tolist()) == sorted(first.duration_ns.tolist())
        assert Counter(second.stream_id.tolist()) == Counter(first.stream_id.tolist())
    assert Counter(again.kernels.recorded_names()) == Counter(given.recording.kernels.recorded_names())
    assert Counter(again.annotations_of(again.kernels)) == Counter(
        given.recording.annotations_of(given.recording.kernels)
    )


@pytest.fixture
def with_waits(build, start_ns):
    times = {"start_ns": start_ns + 3000, "end_ns": start_ns + 4000, "correlation_id": 6}
    build.launch(5, 1000).kernel("sgemm", 2000, correlation_id=5)
    build.call("cudaStreamSynchronize_v3020", 2900, 1200, correlation_id=6)
    build.raw("synchronizations", **times, sync_type=3, stream_id=7).raw("overheads", **times, overhead_kind=1)
    return build.raw("memory_operations", start_ns=start_ns + 50, operation=1, correlation_id=7, num_bytes=64)


def test_only_calls_of_our_own_profile_come_back_as_calls(with_waits, tmp_path):
    given = with_waits.recording()
    given.save(tmp_path / "step.xplane.pb")
    again = collector.load(tmp_path / "step.xplane.pb").recording
    assert Counter(again.api_calls.recorded_names()) == {
        "cuLaunchKernel": 1, "cudaLaunchKernel": 1, "cudaStreamSynchronize": 1
    }  # fmt: skip
    assert len(again.other_ranges) == 1  # the step itself
    assert again.synchronizations.correlation_id.tolist() == again.overheads.correlation_id.tolist() == [6]
    assert again.memory_operations.num_bytes.tolist() == [64]


NAMES = ["forward", "$train.py:3 step", "cudaLaunchKernel", "Memset", "waits", "a@@b#c", "torch_prof.py(114): <module>"]


@pytest.mark.parametrize("correlation_id", [0, 5])
def test_rows_of_the_host_come_back_in_their_tables_whatever_they_are_called(build, tmp_path, correlation_id):
    devices = {"device_name_id": build.text("/cpu:0"), "thread_id": 12, "thread_name_id": build.text("loader")}
    for place, name in enumerate(NAMES):
        times = {"start_ns": build.clock["cupti_start_ns"] + 900 * place, "correlation_id": correlation_id}
        times["end_ns"] = times["start_ns"] + 500
        build.annotation(name, 900 * place, 800, place + 1)
        build.raw("other_ranges", **times, **devices, name_id=build.text(name))
    build.call("cudaLaunchKernel_v7000", 99, 100).call("of no prefix", 300, 100)
    given = build.kernel("k", 90_000).recording()
    given.save(tmp_path / "step.xplane.pb")
    again = collector.load(tmp_path / "step.xplane.pb")
    for recording in (given, again.recording):
        assert {name.removesuffix("_v7000") for name in recording.api_calls.names()} == {
            "cudaLaunchKernel",
            "of no prefix",
        }
        assert recording.annotations.recorded_names() == NAMES
        assert [name for name in recording.other_ranges.names() if name != "train"] == NAMES  # and the step itself
    assert again.ledger.unread == {}


@pytest.mark.parametrize("layout", ["sequence", "overlay"])
def test_only_calls_of_merged_ranks_come_back_as_calls(with_waits, tmp_path, layout):
    for rank in range(2):
        with_waits.recording().save(tmp_path / f"rank{rank}.pb")
    collector.merge(
        [tmp_path / "rank0.pb", tmp_path / "rank1.pb"], tmp_path / "all.xplane.pb", layout=layout, clock_offsets=None
    )
    again = collector.load(tmp_path / "all.xplane.pb").recording
    assert len(again.api_calls) == 6


def test_a_step_of_ours_comes_back(build, tmp_path):
    shape = {"registers_per_thread": 40, "static_shared_bytes": 256, "dynamic_shared_bytes": 1024, "grid_x": 8}
    build.launch(5, 1000).kernel("sgemm", 2000, correlation_id=5, **shape).memcpy(9000, num_bytes=4096)
    given = build.annotation("layer1/conv", 500, 4000, 3, 5).recording()
    given.save(tmp_path / "step.xplane.pb")
    again = collector.load(tmp_path / "step.xplane.pb").recording
    assert again.kernels.recorded_names() == ["sgemm"]
    (kernel,) = again.kernels
    assert {name: getattr(kernel, name) for name in shape} == shape
    assert again.annotations_of(again.kernels) == ["layer1/conv"]
    assert again.memcpys.num_bytes.tolist() == [4096]
    offset = given.clock.offset_ns - again.clock.offset_ns
    assert (again.kernels.start_ns - given.kernels.start_ns).tolist() == [offset]


LONG_NAME = f"void Kernel<{', '.join(f'cutlass_{each}_tensorop' for each in range(40))}>(int)"


def test_a_kernel_without_a_launch_shape_keeps_its_whole_name(build, tmp_path):
    no_shape = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 0)
    given = build.kernel(LONG_NAME, 2000, **no_shape).kernel("plain", 9000, **no_shape).recording()
    given.save(tmp_path / "step.xplane.pb")
    again = collector.load(tmp_path / "step.xplane.pb").recording
    assert again.kernels.recorded_names() == [LONG_NAME, "plain"]


def test_a_label_without_a_launch_shape_states_none(tmp_path):
    nodes = [
        NodeExecStats(node_name="op:k", timeline_label="void k()", all_start_nanos=EPOCH_NS, all_end_rel_nanos=50),
        NodeExecStats(node_name="op:r", timeline_label="r regs:8", all_start_nanos=EPOCH_NS + 90, all_end_rel_nanos=5),
    ]
    step = StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7", node_stats=nodes)])
    (tmp_path / "foreign.pb").write_bytes(step.SerializeToString())
    collector.load(tmp_path / "foreign.pb").save(tmp_path / "step.xplane.pb")
    kernels = collector.load(tmp_path / "step.xplane.pb").kernels
    assert kernels.registers_per_thread.tolist() == [0, 8]
    assert not any(getattr(kernels, f"{which}_{axis}").any() for which in ("grid", "block") for axis in "xyz")


def test_gpus_of_several_ranks_are_kept_apart(write):
    kernel = ("k", 0, 1000, {"kernel_details": "regs:8 grid:1,1,1 block:32,1,1"})
    path = write(gpu(kernel, name="/device:GPU:0 rank 0"), gpu(kernel, name="/device:GPU:0 rank 1"))
    assert collector.load(path).recording.kernels.device_id.tolist() == [0, 1]


def test_times_are_rounded_to_the_even_nanosecond(write):
    events = [("k", offset, 1499, {"kernel_details": ""}) for offset in (1499, 1500, 2500, 2501)]
    kernels = collector.load(write(gpu(*events))).recording.kernels
    assert (kernels.start_ns - kernels.start_ns[0]).tolist() == [0, 1, 1, 2]
    assert kernels.duration_ns.tolist() == [1, 1, 1, 1]


def test_the_profile_says_the_wall_time(write):
    kernel = ("k", 5_000, 1000, {"kernel_details": ""})
    path = write(gpu(kernel), plane("Task Environment", profile_start_time=EPOCH_NS))
    recording = collector.load(path).recording
    assert recording.kernels.start_ns.tolist() == [EPOCH_NS + 5]


def test_a_stream_alone_is_work_of_the_gpu(write):
    kernel = ("k", 0, 1000, {"kernel_details": "regs:8"})
    path = write(
        plane(
            "/device:GPU:2",
            ("Stream #7(Compute)", [kernel]),
            ("XLA Ops", [("fusion", 0, 1000, {})]),
            ("Steps", [("1", 0, 1000, {})]),
        )
    )
    recording = collector.load(path).recording
    assert (len(recording.kernels), recording.kernels.device_id.tolist()) == (1, [2])
    ranges = recording.other_ranges
    assert ranges.names() == ["fusion", "1"]
    assert [recording.strings[device] for device in ranges.device_name_id.tolist()] == ["/gpu:2/annotations"] * 2


@pytest.mark.parametrize("suffixes", [(), (".gpurec",), (".pb",), (".json",), (".json", ".pb", ".json")])
def test_lines_of_a_gpu_that_are_no_streams_are_rows_of_their_own(write, tmp_path, suffixes):
    lines = ["Steps", "XLA Ops #3", "XLA Ops #4", "XLA Ops", "Stream #2", "annotations of stream 7"]
    events = {line: [(f"on {line}", 3000, 9000, {}), (f"on {line}", 6000, 9000, {})] for line in lines}
    planes = [
        plane(name, ("Stream #7", [("k", 0, 1000, {})]), *events.items()) for name in ("/device:GPU:0", "/device:GPU:3")
    ]
    step = collector.load(write(*planes))
    for number, suffix in enumerate(suffixes):
        step.save(tmp_path / f"{number}{suffix}")
        step = collector.load(tmp_path / f"{number}{suffix}")
    ranges, strings = step.recording.other_ranges, step.recording.strings
    found = {
        (strings[row.device_name_id], strings[row.thread_name_id], strings[row.name_id], row.thread_id)
        for row in ranges
    }
    wanted = [name for name in lines if name != "Stream #2"]
    assert len(ranges) == 4 * len(wanted)
    assert sorted(row[:3] for row in found) == sorted(
        (f"/gpu:{gpu}/annotations", name, f"on {name}") for gpu in (0, 3) for name in wanted
    )
    assert len({(device, number) for device, _, _, number in found}) == 2 * len(wanted)


@pytest.mark.parametrize(
    ("stats", "op"),
    [
        ({"tf_op": "XlaModule:", "name": "jit(f)/dot", "hlo_op": "fusion.1", "hlo_module": "jit_f"}, "jit(f)/dot"),
        ({"tf_op": "XlaModule:", "prefix": "jit(f)", "name": "dot", "hlo_op": "fusion.1"}, "jit(f)/dot"),
        ({"tf_op": "XlaModule:", "prefix": "args[0]", "hlo_op": "copy.1", "hlo_module": "jit_f"}, "jit_f/copy.1"),
        ({"tf_op": "XlaModule:", "hlo_op": "copy.1"}, "copy.1"),
        ({"tf_op": "XlaModule:", "name": "jit(f)/dot"}, ""),
        ({"tf_op": "XlaModule:"}, ""),
        ({"tf_op": "model/dense/MatMul:MatMul", "name": "dot", "hlo_op": "dot.1"}, "model/dense/MatMul"),
        ({"annotation": "layer1", "hlo_op": "dot.1"}, "dot.1"),
        ({"tf_op": "layer1", "name": "n"}, "layer1"),
    ],
)
def test_the_op_of_a_kernel_of_xla_is_the_one_of_the_program(write, stats, op):
    """XLA states the same word as the op of all kernels of all of its modules."""
    recording = collector.load(write(gpu(("k", 0, 1000, {"kernel_details": "regs:8", **stats})))).recording
    assert recording.kernels.annotations() == [op]


def test_copies_of_rocm_have_the_direction_of_their_names(write):
    details = {"memcpy_details": "kind:Unknown size:64 dest:2 async:1"}
    names = ["CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice", "CopyWhereTo"]
    work = [(name, 2000 * place, 1000, details) for place, name in enumerate(names)]
    copies = collector.load(write(gpu(*work))).recording.memcpys
    assert [COPY_KINDS[kind] for kind in copies.copy_kind.tolist()] == ["HtoD", "DtoH", "DtoD", COPY_KINDS[0]]
    assert copies.num_bytes.tolist() == [64] * 4


@pytest.mark.parametrize("suffix", ["", ".gpurec", ".pb", ".json", ".xplane.pb"])
def test_work_of_a_tpu_is_no_annotation_of_the_host(write, tmp_path, suffix):
    tpus = [
        plane(f"/device:TPU:{tpu}", ("XLA Modules", [("jit_f", 0, 9000, {})]), ("XLA Ops", [("%dot", 1000, 5000, {})]))
        for tpu in range(2)
    ]
    path = write(*tpus, plane("/host:CPU", ("main", [("PjitFunction(f)", 0, 20_000, {})])))
    step = collector.load(path)
    if suffix:
        step.save(tmp_path / f"again{suffix}")
        step = collector.load(tmp_path / f"again{suffix}")
    recording = step.recording
    assert recording.annotations.recorded_names() == ["PjitFunction(f)"]
    assert recording.environment.get("thread_devices") is None
    ranges, strings = recording.other_ranges, recording.strings
    found = sorted((strings[row.device_name_id], strings[row.name_id]) for row in ranges)
    wanted = [(f"/device:TPU:{tpu}", name) for tpu in range(2) for name in ("%dot", "jit_f")]
    if suffix == ".xplane.pb":  # which has rows of GPUs and of the host, and a row of steps
        found, wanted = [row for row in found if row[1] != "train"], sorted(("/cpu:0", name) for _, name in wanted)
    assert found == wanted


def test_functions_of_python_are_no_ops(write):
    launch = ("cuLaunchKernel", 500_000, 1000, {"correlation_id": 9})
    host = plane(
        "/host:CPU",
        ("python", [("$train.py:3 step", 0, 1_000_000, {}), ("forward", 400_000, 200_000, {}), launch]),
    )
    kernel = ("k", 900_000, 1000, {"kernel_details": "", "correlation_id": 9, "tf_op": "forward"})
    recording = collector.load(write(host, gpu(kernel))).recording
    assert recording.annotations.recorded_names() == ["forward"]
    assert recording.api_calls.recorded_names() == ["cuLaunchKernel"]
    assert recording.annotations_of(recording.kernels) == ["forward"]


def test_correlation_ids_beyond_32_bits_still_link(write):
    large = (3 << 32) + 9
    host = plane("/host:CPU", ("main", [("cuLaunchKernel", 0, 1000, {"correlation_id": large})]))
    recording = collector.load(
        write(host, gpu(("k", 5000, 1, {"kernel_details": "", "correlation_id": large})))
    ).recording
    assert recording.kernels.correlation_id.tolist() == recording.api_calls.correlation_id.tolist() != [0]


@pytest.mark.medium
def test_a_profile_that_is_cut_off_anywhere_says_so(write):
    """Part of a plane may be a message as well, in which names are missing."""
    path = write(
        plane("/host:CPU", ("thread", [("cudaLaunchKernel", 0, 10, {"correlation_id": 1})])), gpu(("k", 5000, 9, {}))
    )
    data = path.read_bytes()
    planes = [len(XSpace(planes=XSpace.FromString(data).planes[:count]).SerializeToString()) for count in range(3)]
    for end in range(1, len(data)):
        whole = max(place for place in planes if place <= end)
        found = xspace_events(data[:end])
        assert (found.cut_at is None) == (end == whole), end
        assert len(found.rows("X")) == planes.index(whole), end


@pytest.mark.medium
def test_a_profile_that_is_cut_off_gives_the_planes_before_the_cut(profile, tmp_path):
    path, _ = profile
    data = gzip.decompress(path.read_bytes())
    cut = tmp_path / "cut.xplane.pb"
    cut.write_bytes(data[: len(data) * 3 // 4])
    step = collector.load(cut)
    assert (len(step.recording.kernels), len(step.recording.memcpys)) == (0, 19)
    assert "unreadable rest of the file" in step.warning


def test_a_profile_in_which_nothing_is_read_is_refused_in_one_line(write):
    path = write(plane("/device:GPU:0"))
    with pytest.raises(collector.InvalidFileError, match="an XSpace profile in which nothing can be read") as caught:
        collector.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_stats_that_no_column_takes_are_kept_as_text_and_bytes_are_counted(write, tmp_path):
    made = gpu(("k", 0, 5_000_000, {"kernel_details": "regs:8", "queued_ps": 7, "stack": "main.py:3"}))
    event = made.lines[0].events[0]
    for number, name in ((90, "hlo_proto"), (91, "flops"), (92, "queued_ps")):
        made.stat_metadata[number].name = name
    event.stats.append(XStat(metadata_id=90, bytes_value=b"\x08\x01"))
    of_all = made.event_metadata[event.metadata_id].stats
    of_all.extend([XStat(metadata_id=91, double_value=0.5), XStat(metadata_id=92, uint64_value=1)])
    given = collector.load(write(made))
    given.save(tmp_path / "step.gpurec")
    for recording in (given.recording, collector.load(tmp_path / "step.gpurec").recording):
        assert recording.arguments.of_row("kernels", 0) == {"queued_ps": "7", "stack": "main.py:3", "flops": "0.5"}
        assert recording.environment["arguments_without_columns"] == {"flops": 1, "queued_ps": 1, "stack": 1}
        assert recording.environment["arguments_not_kept"] == {"hlo_proto": 1}


@pytest.mark.medium
def test_details_of_gpu_work_that_calls_state_are_kept_as_text(shared):
    path = shared / "data" / "gpu_traces" / "xprof" / "gpu_multi_worker.xplane.pb.gz"
    recording = collector.load(path).recording
    assert recording.arguments.of_row("api_calls", 0) == {
        "context_id": "$$5",
        "memcpy_details": "size:112 dest:4 async:0",
    }
    assert recording.environment["arguments_without_columns"]["kernel_details"] == len(recording.kernels)


def test_numbers_that_name_nothing_and_times_before_the_start():
    space = XSpace(
        planes=[
            XPlane(
                name="/device:GPU:0",
                lines=[
                    XLine(
                        name="Stream #7",
                        events=[XEvent(metadata_id=9, offset_ps=-1_500_500, stats=[XStat(metadata_id=4, ref_value=5)])],
                    )
                ],
            )
        ]
    )
    found = xspace_events(space.SerializeToString())
    slices = found.rows("X")
    assert found.names(slices)[0] == [""]
    assert found.starts_ns(slices).tolist() == [-1500]
    assert list(found.arguments_of(slices)) == [{"": ""}]


def test_threads_of_two_hosts_are_not_one_thread(write):
    """Lines are counted in each plane: an op of one host is not inside one of the other."""
    hosts = [
        plane("/host:CPU", ("main", [(outer, 10_000 * begin, 800_000, {}), (inner, 300_000, 100_000, {})]))
        for outer, inner, begin in (("a", "b", 1), ("c", "d", 2))
    ]
    step = collector.load(write(*hosts))
    annotations = step.recording.annotations
    assert len(set(annotations.thread_id.tolist())) == 2
    assert dict(zip(annotations.recorded_names(), annotations.depth.tolist(), strict=True)) == {
        "a": 0,
        "b": 1,
        "c": 0,
        "d": 1,
    }
    assert sorted(annotation_paths(step.recording)[0]) == ["a", "a/b", "c", "c/d"]


@pytest.mark.parametrize("beginning", [b"\n[", b"\n{"])
def test_a_profile_whose_first_plane_has_the_length_of_a_bracket_is_no_json(write, beginning):
    first = XPlane(id=1, name="/device:GPU:0")
    first.lines.add(name="x")
    first.lines[0].name += "x" * (beginning[1] - first.ByteSize())
    path = write(first, plane("/host:CPU", ("python", [("step", 10**9, 10**9, {})])))
    assert path.read_bytes().startswith(beginning)
    assert collector.load(path).recording.annotations.names() == ["step"]
    packed = path.with_name("packed.xplane.pb.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert collector.load(packed).recording.annotations.names() == ["step"]
