"""The critical path of a step."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analysis import critical_path
from collector.analysis.critical_path import KINDS

STREAM_WAIT_EVENT, STREAM_SYNCHRONIZE, EVENT_SYNCHRONIZE, CONTEXT_SYNCHRONIZE = 2, 3, 1, 4


def by_kind(given, **options):
    return {row["kind"]: row["total_ns"] for row in critical_path(given, **options)}


def record_event(build, start, stream, correlation, sync_id):
    build.call("cudaEventRecord", start, 10, correlation_id=correlation)
    build.raw(
        "cuda_events", context_id=1, stream_id=stream, correlation_id=correlation, event_id=3, event_sync_id=sync_id
    )


def wait_for_event(build, start, stream, correlation, sync_id):
    build.call("cudaStreamWaitEvent", start, 10, correlation_id=correlation)
    place = {"context_id": 1, "stream_id": stream, "correlation_id": correlation, "event_id": 3}
    build._add("synchronizations", start, 10, {"sync_type": STREAM_WAIT_EVENT, "event_sync_id": sync_id, **place})


def test_the_worked_example(example):
    assert by_kind(example) == {
        "host": 350,
        "launch_latency": 170,
        "compute": 390,
        "kernel_gap": 10,
        "synchronize": 10,
    }
    answer = critical_path(example)
    assert answer.totals["total_ns"] == 930
    assert [window.length_ns for window in answer.windows] == [930]
    assert sum(answer["share"]) == pytest.approx(1)


def test_the_worked_example_with_an_event(example_builder):
    record_event(example_builder, 200, 9, 9, 1 << 63)
    wait_for_event(example_builder, 215, 7, 10, 1 << 63)
    answer = critical_path(example_builder.recording())
    assert by_kind(example_builder.recording()) == {
        "host": 140,
        "launch_latency": 200,
        "communication": 160,
        "dependency": 20,
        "compute": 390,
        "kernel_gap": 10,
        "synchronize": 10,
    }
    assert answer.totals["total_ns"] == 930
    assert answer.losses == ()


def test_the_segments_of_the_worked_example(example):
    answer = critical_path(example, by="segment")
    assert [(row["start_ns"], row["duration_ns"], row["kind"], row["name"]) for row in answer] == [
        (0, 300, "host", "cudaLaunchKernel"),
        (300, 120, "launch_latency", "D"),
        (420, 270, "compute", "D"),
        (690, 10, "synchronize", "cudaStreamSynchronize"),
        (700, 50, "host", "cudaLaunchKernel"),
        (750, 50, "launch_latency", "F"),
        (800, 50, "compute", "F"),
        (850, 10, "kernel_gap", "G1"),
        (860, 30, "compute", "G1"),
        (890, 40, "compute", "G2"),
    ]
    assert [row["stream_id"] for row in answer] == [-1, 7, 7, -1, -1, 7, 7, 7, 7, 7]
    assert {row["thread_id"] for row in answer} == {-1, 11}
    names = [
        {table: getattr(example, table).text(int(getattr(example, table).name_id[rows[0]]))}
        for evidence in answer.evidence
        for table, rows in evidence.items()
    ]
    assert names[1:4] == [{"kernels": "D"}, {"kernels": "D"}, {"api_calls": "cudaStreamSynchronize_v3020"}]


def test_by_name_and_by_op(build):
    build.launch(5, 1000).kernel("_Z3addIfEvPT_i", 2000, 100, correlation_id=5).annotation("conv", 500, 4000, 3, 5)
    recording = build.recording()
    assert [(row["kind"], row["name"], row["total_ns"]) for row in critical_path(recording, by="name")] == [
        ("launch_latency", "add<float>", 1000),
        ("compute", "add<float>", 100),
    ]
    (evidence, _) = critical_path(recording, by="name").evidence
    assert {table: rows.tolist() for table, rows in evidence.items()} == {"kernels": [0]}
    assert [(row["op"], row["kind"]) for row in critical_path(recording, by="op")] == [
        ("conv", "launch_latency"),
        ("conv", "compute"),
    ]


def test_copies_and_memsets_have_names_and_kinds_of_their_own(build):
    build.memcpy(0, 100).memset(100, 100)
    assert [(row["kind"], row["name"]) for row in critical_path(build.recording(), by="segment")] == [
        ("copy", "HtoD"),
        ("memset", "memset"),
    ]


def test_a_wait_of_the_host_for_a_stream_is_not_for_another(build):
    build.call("cudaLaunchKernel", 0, 10, correlation_id=1).kernel("short", 50, 100, correlation_id=1)
    build.call("cudaLaunchKernel", 20, 10, correlation_id=2).kernel("long", 60, 240, correlation_id=2, stream_id=8)
    build.call("cudaStreamSynchronize", 40, 300, correlation_id=3)
    place = {"context_id": 1, "stream_id": 7, "correlation_id": 3}
    build._add("synchronizations", 40, 300, {"sync_type": STREAM_SYNCHRONIZE, **place})
    build.call("cudaLaunchKernel", 400, 10, correlation_id=4).kernel("last", 500, 100, correlation_id=4, stream_id=9)
    rows = critical_path(build.recording(), by="segment")
    assert [(row["kind"], row["name"], row["duration_ns"]) for row in rows] == [
        ("launch_latency", "short", 50),
        ("compute", "short", 100),
        ("synchronize", "cudaStreamSynchronize", 190),
        ("host", "cudaLaunchKernel", 60),
        ("launch_latency", "last", 100),
        ("compute", "last", 100),
    ]


@pytest.mark.parametrize(
    ("sync_type", "name"), [(CONTEXT_SYNCHRONIZE, "cudaDeviceSynchronize"), (EVENT_SYNCHRONIZE, "cudaEventSynchronize")]
)
def test_a_wait_of_the_host_for_a_context_or_an_event(build, sync_type, name):
    build.call("cudaLaunchKernel", 0, 10, correlation_id=1).kernel("first", 50, 150, correlation_id=1)
    record_event(build, 15, 7, 5, 77)
    build.call("cudaLaunchKernel", 30, 10, correlation_id=2).kernel("second", 210, 50, correlation_id=2)
    build.call(name, 45, 300, correlation_id=3)
    place = {"context_id": 1, "stream_id": 7, "correlation_id": 3, "event_sync_id": 77}
    build._add("synchronizations", 45, 300, {"sync_type": sync_type, **place})
    build.call("cudaLaunchKernel", 400, 10, correlation_id=4).kernel("last", 500, 100, correlation_id=4, stream_id=9)
    waited = next(row for row in critical_path(build.recording(), by="segment") if row["kind"] == "synchronize")
    assert waited["duration_ns"] == (345 - 260 if sync_type == CONTEXT_SYNCHRONIZE else 345 - 200)


def test_a_call_that_copies_and_returns_then_is_a_wait(build):
    build.call("cudaMemcpy_v3020", 0, 300, correlation_id=1).memcpy(50, 200, correlation_id=1)
    build.call("cudaLaunchKernel", 400, 10, correlation_id=2).kernel("k", 500, 100, correlation_id=2)
    kinds = [(row["kind"], row["duration_ns"]) for row in critical_path(build.recording(), by="segment")]
    assert kinds[:4] == [("launch_latency", 50), ("copy", 200), ("synchronize", 50), ("host", 100)]


def test_the_nodes_of_a_graph_wait_for_each_other_across_streams(build):
    build.call("cudaGraphLaunch_v10000", 0, 10, correlation_id=8)
    build.kernel("a", 100, 100, correlation_id=8, graph_id=1, graph_node_id=(1 << 63) + 1)
    build.kernel("b", 210, 50, correlation_id=8, graph_id=1, graph_node_id=(1 << 63) + 2, stream_id=8)
    assert [(row["kind"], row["name"]) for row in critical_path(build.recording(), by="segment")] == [
        ("launch_latency", "a"),
        ("compute", "a"),
        ("dependency", "b"),
        ("compute", "b"),
    ]


@pytest.fixture
def branches(build):
    """A launch of a graph whose nodes ran at once on one stream: the one that began first ended last."""
    build.call("cudaGraphLaunch_v10000", 0, 10, correlation_id=8)
    build.kernel("long", 100, 400, correlation_id=8, graph_id=1).kernel("short", 110, 10, correlation_id=8, graph_id=1)
    return build


def test_a_wait_of_the_host_ends_with_the_last_of_activities_that_ran_at_once_on_a_stream(branches):
    branches.call("cudaStreamSynchronize", 20, 500, correlation_id=9)
    place = {"context_id": 1, "stream_id": 7, "correlation_id": 9}
    branches._add("synchronizations", 20, 500, {"sync_type": STREAM_SYNCHRONIZE, **place})
    branches.call("cudaLaunchKernel", 600, 10, correlation_id=10).kernel("last", 700, 100, correlation_id=10)
    assert [(row["kind"], row["duration_ns"]) for row in critical_path(branches.recording(), by="segment")] == [
        ("launch_latency", 100),
        ("compute", 400),
        ("synchronize", 20),
        ("host", 80),
        ("launch_latency", 100),
        ("compute", 100),
    ]


def test_an_activity_waits_for_the_last_end_of_those_that_ran_at_once_before_it_on_its_stream(branches):
    branches.call("cudaLaunchKernel", 20, 10, correlation_id=9).kernel("next", 510, 100, correlation_id=9)
    assert [(row["kind"], row["duration_ns"]) for row in critical_path(branches.recording(), by="segment")] == [
        ("launch_latency", 100),
        ("compute", 400),
        ("kernel_gap", 10),
        ("compute", 100),
    ]


def test_a_wait_for_an_event_is_for_the_last_end_of_activities_that_ran_at_once(branches):
    record_event(branches, 20, 7, 9, 77)
    wait_for_event(branches, 30, 8, 10, 77)
    branches.call("cudaLaunchKernel", 40, 10, correlation_id=11)
    branches.kernel("next", 510, 100, correlation_id=11, stream_id=8)
    assert [(row["kind"], row["duration_ns"]) for row in critical_path(branches.recording(), by="segment")] == [
        ("launch_latency", 100),
        ("compute", 400),
        ("dependency", 10),
        ("compute", 100),
    ]


def test_an_activity_beside_one_that_still_runs_waits_for_the_activity_before_it(build):
    build.call("cudaLaunchKernel", 0, 5, correlation_id=1).kernel("long", 100, 400, correlation_id=1)
    build.call("cudaLaunchKernel", 10, 5, correlation_id=2).kernel("short", 110, 10, correlation_id=2)
    build.call("cudaLaunchKernel", 20, 5, correlation_id=3).kernel("next", 130, 500, correlation_id=3)
    rows = critical_path(build.recording(), by="segment")
    assert [(row["kind"], row["name"], row["duration_ns"]) for row in rows] == [
        ("launch_latency", "long", 100),
        ("compute", "long", 10),
        ("compute", "short", 10),
        ("kernel_gap", "next", 10),
        ("compute", "next", 500),
    ]


def test_a_path_goes_over_several_devices(build):
    build.call("cudaLaunchKernel", 0, 10, correlation_id=1).kernel("one", 50, 100, correlation_id=1)
    record_event(build, 20, 7, 5, 77)
    wait_for_event(build, 40, 20, 6, 77)
    build.call("cudaLaunchKernel", 60, 10, correlation_id=2)
    build.kernel("two", 160, 100, correlation_id=2, device_id=1, stream_id=20)
    answer = critical_path(build.recording(), by="segment")
    assert [row["device_id"] for row in answer if row["kind"] == "compute"] == [0, 1]


def test_what_is_not_known_is_said(build):
    wait_for_event(build, 5, 7, 4, 99)
    build.kernel("k", 100, 50, correlation_id=9)
    build.call("cudaLaunchKernel", 300, 10, correlation_id=10).kernel("l", 290, 50, correlation_id=10, stream_id=8)
    answer = critical_path(build.recording())
    assert by_kind(build.recording()) == {"host": 285, "compute": 50}
    assert answer.losses[-3:] == (
        "1 wait of streams for an event without a known record (kind cuda_events): not followed",
        "1 activity without a recorded call: the path does not continue on the host",
        "1 activity began before the call, as the clocks disagree: the call counts from the start on",
    )


def test_a_wait_for_an_unknown_event_is_no_launch_latency(build):
    """The time before an activity that a wait may explain has a kind of its own, unless something known explains it."""
    build.kernel("other", 40, 460, stream_id=8, correlation_id=1)
    build.call("cudaLaunchKernel", 10, 5, correlation_id=1)
    wait_for_event(build, 20, 7, 2, 99)
    build.call("cudaLaunchKernel", 30, 5, correlation_id=3).kernel("first", 501, 99, correlation_id=3)
    build.call("cudaLaunchKernel", 40, 5, correlation_id=4).kernel("second", 605, 95, correlation_id=4)
    wait_for_event(build, 50, 7, 5, 98)
    build.call("cudaLaunchKernel", 60, 5, correlation_id=6).kernel("third", 5000, 100, correlation_id=6)
    recording = build.recording()
    assert by_kind(recording) == {
        "event_wait": (5000 - 700) + (501 - 30),
        "compute": 99 + 95 + 100,
        "host": 30 - 10,
        "kernel_gap": 5,
    }
    assert by_kind(recording, kernel_gap_ns=5000)["kernel_gap"] == 5 + 5000 - 700
    assert "2 waits of streams for an event without a known record" in critical_path(recording).losses[-1]


def test_an_id_of_two_records_is_no_edge(example_builder):
    for correlation in (9, 10, 10):
        record_event(example_builder, 200, 9, correlation, 77)
    record_event(example_builder, 200, 9, 11, 78)
    record_event(example_builder, 200, 9, 11, 78)
    wait_for_event(example_builder, 215, 7, 12, 77)
    answer = critical_path(example_builder.recording())
    assert "1 wait of streams for an event without a known record (kind cuda_events): not followed" in answer.losses
    wait_for_event(example_builder, 215, 7, 13, 78)
    assert by_kind(example_builder.recording())["communication"] == 160


def test_nothing_has_no_path(build):
    answer = critical_path(build.recording())
    assert (len(answer), answer.totals, answer.windows) == (0, {"segments": 0, "total_ns": 0}, ())
    assert len(critical_path(build.recording(), by="segment")) == 0


def test_what_a_path_is_not_counted_by(example):
    with pytest.raises(ValueError, match="by='colour': a critical path is counted by kind, name, op, segment"):
        critical_path(example, by="colour")


def test_nodes_of_unknown_launches_do_not_wait_for_each_other(build):
    build.kernel("first", 100, 100, graph_id=3, stream_id=7).kernel("other", 500, 100, graph_id=4, stream_id=8)
    assert by_kind(build.recording()) == {"compute": 100, "unknown": 400}


def test_each_process_has_a_path(build):
    """Neither waits for the other: not at the end of a step, and not on all streams of a device."""
    for process, start in ((41, 0), (42, 300)):
        correlation, place = process, {"context_id": process, "device_id": process - 41}
        build.call("cudaLaunchKernel", start, 20, correlation_id=correlation, process_id=process, thread_id=process)
        build.kernel("k", start + 100, 100, correlation_id=correlation, **place)
        end = start + 20 + 200
        build.call("cudaDeviceSynchronize", start + 20, end - start - 20, process_id=process, thread_id=process)
        build.call(
            "cudaLaunchKernel", end + 30, 20, correlation_id=100 + process, process_id=process, thread_id=process
        )
        build.kernel("k", end + 80, 10, correlation_id=100 + process, **place)
    recording = build.recording()
    answer = critical_path(recording)
    assert [window.end_ns - window.start_ns for window in answer.windows] == [310, 310]
    lengths = {"launch_latency": 100 + 50, "compute": 100 + 10, "synchronize": 20, "host": 30}
    assert {row["kind"]: row["total_ns"] for row in answer} == {kind: 2 * length for kind, length in lengths.items()}
    assert answer.totals["total_ns"] == 620
    check_tiling(recording)


def test_a_path_begins_with_a_call_of_its_own_process(build):
    """Also where the other process has calls alone."""
    build.call("cudaGetDevice", 0, 20, process_id=41, thread_id=41)
    build.call("cudaLaunchKernel", 300, 20, correlation_id=42, process_id=42, thread_id=42)
    build.kernel("k", 400, 100, correlation_id=42)
    answer = critical_path(build.recording())
    assert [window.end_ns - window.start_ns for window in answer.windows] == [200]
    assert answer.totals["total_ns"] == 200


def check_tiling(recording):
    answer = critical_path(recording, by="segment")
    starts, durations = answer["start_ns"], answer["duration_ns"]
    assert (durations > 0).all()
    follows = starts[1:] == starts[:-1] + durations[:-1]
    assert (~follows).sum() < max(len(answer.windows), 1)  # each process has a path
    work = [getattr(recording, table) for table in ("kernels", "memcpys", "memsets")]
    if sum(map(len, work)):
        first = min(int(table.start_ns.min()) for table in (*work, recording.api_calls) if len(table))
        last = max(int(table.end_ns.max()) for table in work if len(table))
        assert max((window.end_ns for window in answer.windows), default=first) == last
        assert len(answer.windows) != 1 or answer.windows[0].start_ns == first
    assert answer.totals["duration_ns"] == sum(window.end_ns - window.start_ns for window in answer.windows)
    totals = {kind: int(durations[answer["kind"] == kind].sum()) for kind in KINDS}
    assert by_kind(recording) == {kind: total for kind, total in totals.items() if total}
    for by in ("name", "op"):
        assert critical_path(recording, by=by).totals["total_ns"] == answer.totals["duration_ns"]


@pytest.mark.medium
def test_segments_tile_the_time_whatever_happened(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    times = st.tuples(st.integers(0, 900), st.integers(0, 100))
    kernels = st.lists(st.tuples(times, st.integers(1, 8), st.integers(7, 9), st.integers(0, 1)), max_size=15)
    calls = st.lists(st.tuples(times, st.integers(1, 8), st.integers(11, 12)), max_size=12)
    waits = st.lists(
        st.tuples(times, st.integers(0, 5), st.integers(7, 10), st.integers(7, 9), st.integers(0, 3)), max_size=6
    )

    @hypothesis.given(kernels, calls, waits)
    def check(kernels, calls, waits):
        made = type(build)()
        for (start, duration), correlation, stream, device in kernels:
            made.kernel("k", start, duration, correlation_id=correlation, stream_id=stream, device_id=device)
        for (start, duration), correlation, thread in calls:
            name = "cudaGraphLaunch" if correlation > 6 else "cudaMemcpy" if correlation > 5 else "cudaLaunchKernel"
            made.call(name, start, duration, correlation_id=correlation, thread_id=thread)
            made.memcpy(start, duration, correlation_id=correlation)
        for number, ((start, duration), kind, stream, source, sync_id) in enumerate(waits, start=20):
            record_event(made, start // 2, source, number + 20, sync_id)
            made.call("cudaStreamSynchronize", start, duration, correlation_id=number)
            place = {"context_id": 1, "stream_id": stream, "correlation_id": number, "event_sync_id": sync_id}
            made._add("synchronizations", start, duration, {"sync_type": kind, **place})
        recording = made.recording()
        check_tiling(recording)
        made.rows["kernels"].reverse()
        made.rows["api_calls"].reverse()
        again, answer = critical_path(made.recording()), critical_path(recording)
        assert all(np.array_equal(answer[column.name], again[column.name]) for column in answer.columns)

    check()


@pytest.mark.medium
@pytest.mark.parametrize(
    "name",
    [
        "hta/a100_event_sync_multi_stream.json.gz",
        "hta/a100_rank0of2_nccl_metadata.json.gz",
        pytest.param("hta/v100_rank1of2_diff_test_graphs.json.gz", marks=pytest.mark.slow),
        pytest.param("kineto/resnet50_13_streams.json.gz", marks=pytest.mark.slow),
        "nsys_ai/h100_2gpu_1s.sqlite.gz",
        "xprof/gpu_multi_worker.xplane.pb.gz",
        "broken_derived/negative_missing_dur_and_args.json.gz",
        "broken_derived/repeated_kernels.json.gz",
    ],
)
def test_segments_tile_recorded_traces(load_trace, name):
    check_tiling(load_trace(name).recording)
