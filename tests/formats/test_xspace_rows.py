"""XSpace profiles: rows of a GPU beside its streams, and the processes of calls, come back."""

from __future__ import annotations

import json

import pytest

import collector
from collector.analysis import ops
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.profiler import ProfileOptionBuilder, Profiler
from collector.protos.xplane_pb2 import XSpace
from collector.recording.annotation_details import Argument, Details, Frame
from collector.recording.recording import Recording
from collector.web.recorded_with import recorded_with

EPOCH_NS = 1_700_000_000_000_000_000


@pytest.fixture
def converted(tmp_path):
    """The recording of a step that was written as XSpace, and the profile."""

    def convert(step):
        step.save(tmp_path / "step.xplane.pb")
        space = XSpace.FromString((tmp_path / "step.xplane.pb").read_bytes())
        return collector.load(tmp_path / "step.xplane.pb").recording, space

    return convert


def events_of(space, plane_name):
    """Line -> the names of its events, and those of their stats."""
    plane = next(plane for plane in space.planes if plane.name == plane_name)
    return {
        line.name: [
            (
                plane.event_metadata[event.metadata_id].name,
                {plane.stat_metadata[stat.metadata_id].name for stat in event.stats},
            )
            for event in line.events
        ]
        for line in plane.lines
    }


def a_profile(tmp_path):
    """A trace of PyTorch with annotations on two streams of two GPUs, and a kernel of each."""
    events = []
    for gpu in (0, 1):
        for stream in (7, 20):
            place = {"ph": "X", "pid": gpu, "tid": stream, "args": {"device": gpu, "stream": stream, "correlation": 3}}
            events.append({**place, "cat": "kernel", "name": "k", "ts": 10 * stream, "dur": 5})
            events.append({**place, "cat": "gpu_user_annotation", "name": f"step {gpu}", "ts": 10 * stream, "dur": 8})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": EPOCH_NS, "schemaVersion": 1}))
    return path


def ranges_of(recording, device="/gpu"):
    strings = recording.strings
    offset_ns = recording.clock.offset_ns
    return sorted(
        (strings[row.device_name_id], strings[row.thread_name_id], strings[row.name_id], row.start_ns + offset_ns)
        for row in recording.other_ranges
        if strings[row.device_name_id].startswith(device)
    )


def test_annotations_of_a_gpu_with_streams_come_back(converted, tmp_path):
    step = collector.load(a_profile(tmp_path))
    found, space = converted(step)
    assert ranges_of(found) == ranges_of(step.recording)
    assert len(found.kernels) == 4
    rows = ["Stream #20(Compute)", "Stream #7(Compute)", "annotations of stream 20", "annotations of stream 7"]
    assert sorted(events_of(space, "/device:GPU:1")) == rows


def test_xprof_takes_no_annotation_for_work_of_the_gpu(converted, tmp_path):
    """XProf adds events with a correlation id and a step to the times of the step."""
    _, space = converted(collector.load(a_profile(tmp_path)))
    ((name, stats),) = events_of(space, "/device:GPU:0")["annotations of stream 7"]
    assert name == "step 0"
    assert not stats & {"correlation_id", "_c", "_ct", "kernel_details", "memset_details"}


@pytest.mark.parametrize("has_streams", [False, True])
def test_launches_of_graphs_are_rows_of_their_gpu(build, start_ns, converted, has_streams):
    if has_streams:
        build.kernel("k", 100, 50)
    build.raw("graph_launches", start_ns=start_ns, end_ns=start_ns + 500, graph_id=4, stream_id=7, correlation_id=2)
    found, space = converted(Step(RecordingSource(build.recording())))
    assert (len(found.kernels), len(found.memsets)) == (has_streams, 0)
    (launch,) = found.graph_launches
    assert (launch.graph_id, launch.stream_id, launch.correlation_id, launch.device_id) == (4, 7, 2, 0)
    assert ranges_of(found) == []
    ((name, stats),) = events_of(space, "/device:GPU:0")["graphs"]
    assert (name, "correlation_id" in stats) == ("graph 4", False)


def test_calls_of_several_processes_come_back_with_their_process(build, converted, tmp_path):
    for process, thread in ((100, 11), (200, 12)):
        build.call("cudaLaunchKernel", thread, process_id=process, thread_id=thread, correlation_id=thread)
        build.call("cuInit", 100 + thread, process_id=process, thread_id=thread)
        build.raw("annotations", start_ns=EPOCH_NS, end_ns=EPOCH_NS + 9, thread_id=thread, name_id=build.text("a"))
    recording = build.recording()
    found, space = converted(Step(RecordingSource(recording)))
    assert processes_of(found) == processes_of(recording)
    assert len(events_of(space, "/host:CPU")) == 3  # the annotations of a thread are on its line; steps have one
    found.save(tmp_path / "again.xplane.pb")
    again = collector.load(tmp_path / "again.xplane.pb").recording
    assert processes_of(again) == processes_of(recording)
    for each in (found, again):
        assert dict(each.environment["thread_names"]) == {11: "thread 11", 12: "thread 12"}
        assert sorted(each.annotations.thread_id.tolist()) == [11, 12]


def processes_of(recording):
    offset_ns = recording.clock.offset_ns
    names = recording.api_calls.recorded_names()
    return sorted(
        (name, row.start_ns + offset_ns, row.process_id, row.thread_id)
        for name, row in zip(names, recording.api_calls, strict=True)
    )


def test_calls_of_two_processes_on_one_thread_id_are_on_two_lines(build, converted):
    build.call("cuInit", 10, process_id=100, thread_id=11).call("cuInit", 900, process_id=200, thread_id=11)
    recording = build.recording()
    found, space = converted(Step(RecordingSource(recording)))
    assert processes_of(found) == processes_of(recording)
    assert sorted(events_of(space, "/host:CPU")) == ["Steps", "thread 11", "thread 11 of process 200"]


def test_ranks_of_a_merged_profile_may_have_the_same_process_id(build, tmp_path):
    build.call("cuInit", 10, process_id=100, thread_id=11)
    for rank in (0, 1):
        Step(RecordingSource(build.recording()), rank=rank).save(tmp_path / f"rank{rank}.pb")
    collector.merge([tmp_path / "rank0.pb", tmp_path / "rank1.pb"], tmp_path / "all.xplane.pb")
    calls = collector.load(tmp_path / "all.xplane.pb").recording.api_calls
    assert calls.process_id.tolist()[0] == 100
    assert len(set(calls.process_id.tolist())) == 2
    assert len(set(calls.thread_id.tolist())) == 2


@pytest.mark.parametrize("thread", [0, 1, 2, (1 << 32) - 1])
def test_a_thread_keeps_its_id_whatever_the_number_of_its_line(build, converted, thread):
    build.call("cuInit", 10, thread_id=7)
    build.call("cuInit", 30, thread_id=thread)
    build.raw("annotations", start_ns=EPOCH_NS, end_ns=EPOCH_NS + 9, thread_id=3, name_id=build.text("a"))
    found, _ = converted(Step(RecordingSource(build.recording())))
    assert found.api_calls.thread_id.tolist() == [7, thread]
    assert found.annotations.thread_id.tolist() == [3]


@pytest.mark.parametrize("stated", ["12", True, -1, 1 << 32, None, [12], 1.5])
def test_an_impossible_id_of_a_thread_is_that_of_its_line(build, converted, stated, tmp_path):
    build.call("cuInit", 10, thread_id=12)
    _, space = converted(Step(RecordingSource(build.recording())))
    (plane,) = (each for each in space.planes if each.name == "/host:CPU")
    (number,) = (number for number, entry in plane.stat_metadata.items() if entry.name == "line_threads")
    (stat,) = (each for each in plane.stats if each.metadata_id == number)
    stat.str_value = json.dumps(dict.fromkeys(json.loads(stat.str_value), stated))
    (tmp_path / "other.xplane.pb").write_bytes(space.SerializeToString())
    assert collector.load(tmp_path / "other.xplane.pb").recording.api_calls.thread_id.tolist() == [1]


def test_rows_of_the_host_that_are_no_threads_are_rows_of_their_tables(build, converted, start_ns, tmp_path):
    """The profiler would take them for ops of the host, and count the time of calls twice."""
    build.annotation("train", 1000, 9000, 1)
    build.call("cudaDeviceSynchronize", 1000, 8000, thread_id=11, correlation_id=3)
    build.raw("synchronizations", start_ns=start_ns + 1000, end_ns=start_ns + 9000, sync_type=4, correlation_id=3)
    build.raw("overheads", start_ns=start_ns + 2000, end_ns=start_ns + 3000, overhead_kind=1 << 16, thread_id=11)
    build.raw("nvtx_ranges", start_ns=start_ns + 2000, end_ns=start_ns + 3000, name_id=build.text("data"), thread_id=11)
    step = Step(RecordingSource(build.recording()))
    found, _ = converted(step)
    assert [row[:3] for row in ranges_of(found, "/cpu")] == [("/cpu:0/steps", "Steps", "train")]
    assert found.synchronizations.sync_type.tolist() == [4]
    assert found.overheads.overhead_kind.tolist() == [1 << 16]
    assert found.nvtx_ranges.names() == ["data"]
    assert found.environment["arguments_without_columns"].keys() == {"_p", "_pt", "_r", "step_num"}  # of the step
    assert profiled_times(collector.load(tmp_path / "step.xplane.pb")) == profiled_times(step) == (9, 0)


def profiled_times(step):
    """Micros of the host and of GPUs in a profile."""
    profiler = Profiler()
    profiler.add_recorded_step(1, step)
    options = ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory(min_bytes=0)).with_empty_output().build()
    root = profiler.profile_name_scope(options)
    return root.total_cpu_exec_micros, root.total_accelerator_exec_micros


DETAILS = [
    Details(
        flops=7, num_bytes=1 << 40, op="Conv(2)", inputs=("net/a", "net/b"), stack=(Frame("net.py", 3, "conv", 1),)
    ),
    Details(arguments=(Argument((2, 3), "float", ""), Argument((), "Scalar", "0.5"), Argument(((1,), (2, 2)), "list"))),
    Details(op="Add\nMul"),
]


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_details_of_annotations_come_back(build, tmp_path, ranks):
    for number in (1, 2, 3):
        build.annotation(f"net/\n {number}", 1000 * number, 500, number)
        build.rows["annotations"][-1]["details_id"] = number
    build.annotation("net/outer", 1000, 5000, 4)
    capture = build.capture()
    capture["details"] = DETAILS
    files = [tmp_path / f"rank{rank}.gpurec" for rank in range(ranks)]
    for file in files:
        Recording.from_capture(capture).save(file)
    profile = tmp_path / "all.xplane.pb"
    if ranks == 1:
        collector.load(files[0]).save(profile)
    else:
        collector.merge(files, profile)
    step = collector.load(profile)
    table = step.recording.annotations
    given = [step.recording.details[number - 1] if number else Details() for number in table.details_id.tolist()]
    assert sorted(zip(table.names(), given, strict=True)) == sorted(
        [(f"net/\n {number}", details) for number, details in enumerate(DETAILS, start=1)] * ranks
        + [("net/outer", Details())] * ranks
    )
    known = {"flops", "num_bytes", "shapes", "types", "values", "stack", "timeline_label"}
    assert known.isdisjoint(step.recording.environment.get("arguments_without_columns", {}))


@pytest.mark.parametrize("source", ["native", "chrome"])
def test_paths_of_annotations_in_each_other_come_back(build, tmp_path, source):
    """A path that was cut while it was recorded encloses itself, and is no part of a longer path."""
    build.environment["source"] = source
    build.annotation("a", 100, 900, 1).annotation("a/a", 110, 800, 2).annotation("cut…", 120, 700, 3)
    build.annotation("cut…", 130, 600, 4, 1).launch(1, 140).kernel("k", 2000, 50, correlation_id=1)
    recording = build.recording()
    paths = {row["path"]: row["total_ns"] for row in ops(recording)}
    assert ("cut…" in paths) == (source == "native")
    for rank in range(2):
        Step(RecordingSource(recording), rank=rank).save(tmp_path / f"step{rank}.gpurec")
    collector.load(tmp_path / "step0.gpurec").save(tmp_path / "step.xplane.pb")
    collector.load(tmp_path / "step.xplane.pb").save(tmp_path / "again.json")
    for name in ("step.xplane.pb", "again.json"):
        found = collector.load(tmp_path / name)
        assert {row["path"]: row["total_ns"] for row in ops(found)} == paths
        assert ("source", "the trace of another profiler") not in recorded_with(found.recording)
    collector.merge([tmp_path / f"step{rank}.gpurec" for rank in range(2)], tmp_path / "merged.xplane.pb")
    merged = ops(collector.load(tmp_path / "merged.xplane.pb"))
    assert {row["path"]: row["total_ns"] for row in merged} == {path: 2 * total for path, total in paths.items()}
