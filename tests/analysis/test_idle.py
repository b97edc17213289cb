"""The causes of idle time."""

from __future__ import annotations

import pytest

from collector.analysis import idle, idle_gaps, idle_ops
from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.idle import CAUSES
from collector.recording.cupti_enums import LOADING_OVERHEADS

RECORDED = {
    "hta/v100_rank1of2_profile_memory": (732_352_000, 599_837_000, 110_046_000, 22_469_000, 0, 0),
    "torch_tutorial/h100_transformer_before": (2_181_000, 1_741_000, 425_000, 15_000, 0, 0),
    "hta/a100_rank0of16_orphan_kernels": (793_037_000, 10_261_000, 3_321_000, 687_370_000, 293_000, 91_792_000),
    "hta/v100_rank1of2_diff_test_graphs": (27_296_000, 387_000, 21_000, 26_349_000, 0, 539_000),
    "hta/a100_rank0of2_nccl_metadata": (503_050_991, 471_861_630, 29_137_837, 2_000_134, 51_390, 0),
}
"""Recording -> idle ns in its span, then by cause: host, launch latency, queued, synchronise, no launch."""


def by_cause(row):
    return {cause: row[f"{cause}_ns"] for cause in CAUSES if row[f"{cause}_ns"]}


def test_the_worked_example(example):
    (row,) = idle(example)
    assert (row["window_ns"], row["idle_ns"], row["gaps"]) == (1000, 310, 5)
    assert by_cause(row) == {"synchronize": 10, "host": 50, "launch_latency": 150, "kernel_gap": 30, "tail": 70}


def test_a_gap_longer_than_the_way_between_kernels_is_a_dependency(example):
    (row,) = idle(example, kernel_gap_ns=10)
    assert by_cause(row) == {
        "synchronize": 10,
        "host": 50,
        "launch_latency": 150,
        "kernel_gap": 10,
        "dependency": 20,
        "tail": 70,
    }


def test_each_gap_with_its_causes_the_longest_first(example):
    answer = idle_gaps(example)
    gaps = [(row["start_ns"], row["end_ns"], by_cause(row)) for row in answer]
    assert gaps == [
        (690, 800, {"synchronize": 10, "host": 50, "launch_latency": 50}),
        (0, 100, {"launch_latency": 100}),
        (930, 1000, {"tail": 70}),
        (400, 420, {"kernel_gap": 20}),
        (850, 860, {"kernel_gap": 10}),
    ]
    names = example.kernels.names()
    ended_by = [[names[row] for row in evidence.get("kernels", [])] for evidence in answer.evidence]
    assert ended_by == [["F"], ["A"], [], ["D"], ["G1"]]


def test_a_device_does_not_wait_for_another_process(build):
    """Neither the waits of another process nor its tracer are causes of a device's idle time."""
    for process, device in ((41, 0), (42, 1)):
        for correlation, start in ((1, 0), (2, 300)):
            own = {"correlation_id": 10 * process + correlation, "process_id": process}
            build.call("cudaLaunchKernel", start, 10, **own)
            build.kernel(
                "k", start + 20, 80, correlation_id=own["correlation_id"], device_id=device, context_id=process
            )
    build.call("cudaDeviceSynchronize", 100, 200, process_id=42, correlation_id=9)
    for start, kind, columns in ((110, 1, {"process_id": 42}), (130, 3, {"device_id": 1}), (150, 0, {})):
        build._add("overheads", start, 10, {"overhead_kind": 1 << 16, "object_kind": kind, **columns})
    waits = {row["device_id"]: row["synchronize_ns"] for row in idle(build.recording(), window="span")}
    assert waits == {0: 0, 1: 200}
    tracer = {row["device_id"]: row["tracer_ns"] for row in idle(build.recording(), window="span")}
    assert tracer == {0: 20, 1: 30}


@pytest.mark.parametrize("others", [(), (43,)])
def test_the_tracer_of_a_process_that_calls_nothing_is_that_of_another_process(build, others):
    """As in a window of a job in which the process only writes out its buffers."""
    build.call("cudaLaunchKernel", 0, 10, correlation_id=1, process_id=41).kernel("k", 200, 100, correlation_id=1)
    for process in others:
        build.call("cudaGetDevice", 20, 10, correlation_id=process, process_id=process)
    for start, process in ((50, 41), (70, 42), (90, 0)):
        kind = {"overhead_kind": 1 << 16, "object_kind": 2}
        build._add("overheads", start, 10, {**kind, "process_id": process, "thread_id": 1})
    (row,) = idle(build.recording())
    assert row["tracer_ns"] == 20


def slow_launches(build, **waiting):
    """A thread launches ten kernels of 10 µs each 100 µs; in all of that time a call waits, of these columns."""
    for number in range(1, 11):
        build.call("cudaLaunchKernel", 100_000 * number - 50_000, 10, correlation_id=number, thread_id=11, process_id=1)
        build.kernel("k", 100_000 * number - 49_900, 10_000, correlation_id=number)
    build.call("cudaEventSynchronize", 10, 990_000, correlation_id=99, **{"process_id": 1, **waiting})
    return build.recording()


def test_a_thread_does_not_wait_in_a_call_of_another_thread(build):
    """A watchdog, or the thread of another device, waits while the program launches too slowly."""
    (row,) = idle(slow_launches(build, thread_id=12), window="span")
    assert by_cause(row) == {"host": 9 * 89_900, "launch_latency": 9 * 100}


@pytest.mark.parametrize("thread", [11, 0])
def test_a_thread_waits_in_its_own_call_and_in_one_whose_thread_is_not_known(build, thread):
    (row,) = idle(slow_launches(build, thread_id=thread), window="span")
    assert by_cause(row) == {"synchronize": 9 * 89_900, "launch_latency": 9 * 100}


def test_a_thread_that_is_not_known_may_have_waited_in_any_call_of_its_process(build):
    build.call("cudaLaunchKernel", 500, 10, correlation_id=1, thread_id=0).kernel("k", 600, correlation_id=1)
    build.call("cudaDeviceSynchronize", 100, 50, thread_id=12).call("cudaDeviceSynchronize", 120, 80, thread_id=13)
    build.call("cudaDeviceSynchronize", 210, 90, thread_id=13, process_id=4)
    first = next(row for row in idle_gaps(build.recording()) if row["start_ns"] == 0)
    assert by_cause(first) == {"synchronize": 100, "host": 400, "launch_latency": 100}


def test_of_activities_that_start_at_once_the_thread_of_the_earliest_launch_counts(build):
    build.call("cudaLaunchKernel", 400, 10, correlation_id=1, thread_id=12)
    build.call("cudaLaunchKernel", 300, 10, correlation_id=2, thread_id=13)
    build.call("cudaDeviceSynchronize", 100, 50, thread_id=12).call("cudaDeviceSynchronize", 200, 80, thread_id=13)
    build.kernel("k", 1000, 500, correlation_id=1).kernel("l", 1000, 500, correlation_id=2, stream_id=8)
    build.clock["cupti_stop_ns"] = build.clock["cupti_start_ns"] + 1500
    (row,) = idle(build.recording())
    assert by_cause(row) == {"synchronize": 80, "host": 220, "launch_latency": 700}


def test_the_time_in_which_the_tracer_itself_ran(build, start_ns):
    """Overheads that lie in gaps, that overlap each other, and that run beside kernels."""
    build.kernel("k", 1000, 500).kernel("l", 2000, 500)
    for begin, end in ((900, 1100), (1600, 1800), (1700, 1900), (2100, 2200)):
        build.raw("overheads", start_ns=start_ns + begin, end_ns=start_ns + end, overhead_kind=1 << 16)
    for kind in LOADING_OVERHEADS:  # the driver's own time, without a tracer, too
        build.raw("overheads", start_ns=start_ns, end_ns=start_ns + 2000, overhead_kind=kind)
    recording = build.recording()
    gaps = {row["start_ns"]: row["tracer_ns"] for row in idle_gaps(recording)}
    assert gaps == {0: 100, 1500: 300, 2500: 0}
    for answer in (idle(recording), idle_ops(recording)):
        assert answer.totals["tracer_ns"] == 400
        assert sum(sum(by_cause(row).values()) for row in answer) == answer.totals["idle_ns"]


def test_work_whose_call_was_not_recorded(build):
    build.kernel("k", 1000, 500, correlation_id=9)
    (row,) = idle(build.recording())
    assert by_cause(row)["no_launch"] == 1000


def test_of_activities_that_start_at_once_one_without_a_call_leaves_the_cause_open(build):
    build.launch(5, 100).kernel("k", 1000, 500, correlation_id=5).kernel("l", 1000, 500, correlation_id=6, stream_id=8)
    (row,) = idle(build.recording())
    assert by_cause(row)["no_launch"] == 1000


def test_devices_wait_each_for_itself(build):
    build.kernel("k", 1000, 500, device_id=0).kernel("k", 2000, 500, device_id=1)
    answer = idle(build.recording(), window="span")
    assert answer["idle_ns"].tolist() == [0, 0]
    assert [list(evidence["kernels"]) for evidence in answer.evidence] == [[0], [1]]


@pytest.mark.medium
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_traces(load_trace, name):
    (row,) = idle(load_trace(f"{name}.json.gz"), window="span")
    total, host, latency, queued, synchronize, no_launch = RECORDED[name]
    assert row["idle_ns"] == total
    assert (row["host_ns"], row["launch_latency_ns"]) == (host, latency)
    assert row["kernel_gap_ns"] + row["dependency_ns"] == queued
    assert (row["synchronize_ns"], row["no_launch_ns"], row["tail_ns"]) == (synchronize, no_launch, 0)


def test_causes_add_up_to_the_idle_time_whatever_happened(build):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    times = st.tuples(st.integers(0, 900_000), st.integers(1, 100_000))
    kernels = st.lists(st.tuples(times, st.integers(1, 6), st.integers(7, 9)), max_size=20)
    calls = st.lists(st.tuples(times, st.integers(1, 6)), max_size=20)

    @hypothesis.given(kernels, calls, st.lists(times, max_size=5), st.sampled_from(["step", "span"]))
    def check(kernels, calls, waits, window):
        made = type(build)()
        for (start, duration), correlation, stream in kernels:
            made.kernel("k", start, duration, correlation_id=correlation, stream_id=stream)
        for (start, duration), correlation in calls:
            made.call("cudaLaunchKernel", start, duration, correlation_id=correlation)
        for start, duration in waits:
            made.call("cudaDeviceSynchronize", start, duration)
        recording = made.recording()
        for row in idle(recording, window=window):
            assert sum(by_cause(row).values()) == row["idle_ns"]
            assert all(part > 0 for part in by_cause(row).values())
        gaps, whole = idle_gaps(recording, window=window), idle(recording, window=window)
        assert gaps.totals["idle_ns"] == whole.totals["idle_ns"]
        assert all(sum(by_cause(gap).values()) == gap["idle_ns"] == gap["end_ns"] - gap["start_ns"] for gap in gaps)

    check()


def test_idle_time_by_the_annotation_that_ended_it(build):
    """Of two annotations at once the first in order counts; a tail and work without an annotation have none."""
    names = {1: "b", 2: "a", 3: "b", 4: None}
    for correlation, name in names.items():
        if name:
            build.annotation(name, 10 * correlation, 5, 100 + correlation, correlation)
        build.call("cudaLaunchKernel", 10 * correlation, 5, correlation_id=correlation)
    build.kernel("k", 1000, 500, correlation_id=1, stream_id=8).kernel("k", 1000, 200, correlation_id=2)
    build.kernel("k", 9000, 500, correlation_id=3).kernel("k", 10_000, 500, correlation_id=4)
    recording = build.recording()
    answer = idle_ops(recording)
    length = recording.clock.window_ns
    found = {row["path"]: (row["gaps"], row["idle_ns"]) for row in answer}
    assert found == {NO_ANNOTATION: (2, 500 + length - 10_500), "b": (1, 7500), "a": (1, 1000)}
    assert [row["path"] for row in answer] == [NO_ANNOTATION, "b", "a"]
    assert by_cause(list(answer)[1]) == {"dependency": 7500}
    assert [{table: rows.tolist() for table, rows in each.items()} for each in answer.evidence][1] == {"kernels": [1]}
    whole = idle(recording)
    assert all(answer.totals[name] == whole.totals[name] for name in answer.totals)
    assert [row["path"] for row in idle_ops(recording, window="span")] == ["b", NO_ANNOTATION]
