"""Launch latencies, the bandwidth of copies, and the time of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analysis import between, copies, kernels, launch_delays, launches
from collector.recording.possible_sizes import LARGEST_BYTES
from collector.testing.plugin.figures import figures_of


def test_delays_of_the_worked_example(example):
    names = example.kernels.names()
    found = {
        names[row["row"]]: (row["delay_ns"], row["queue_ns"], row["api_ns"])
        for row in launch_delays(example)
        if row["table"] == "kernels"
    }
    assert found["D"] == (120, 100, 20)
    assert (found["G1"][0], found["G2"][0]) == (85, 115)
    calls = {names[row["row"]]: row["api_row"] for row in launch_delays(example) if row["table"] == "kernels"}
    assert calls == {"A": 0, "B": 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL": 3, "D": 4, "F": 6, "G1": 7, "G2": 7}


def test_launches_by_function(example):
    rows = {row["api"]: row for row in launches(example)}
    assert list(rows) == ["cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync"]
    graph = rows["cudaGraphLaunch"]
    assert (graph["calls"], graph["activities"], graph["api_ns"]) == (1, 2, 20)
    assert (graph["min_delay_ns"], graph["median_delay_ns"], graph["max_delay_ns"]) == (85, 85, 115)
    assert (graph["min_queue_ns"], graph["median_queue_ns"], graph["max_queue_ns"]) == (65, 65, 95)


def test_the_activity_and_the_call_of_a_delay(example):
    answer = launch_delays(example)
    assert len(answer.evidence) == len(answer) > 0
    for row, evidence in zip(answer, answer.evidence, strict=True):
        assert {table: rows.tolist() for table, rows in evidence.items()} == {
            row["table"]: [row["row"]],
            "api_calls": [row["api_row"]],
        }


def test_the_calls_and_the_activities_that_a_row_of_launches_is_made_of(example):
    assert [{table: rows.tolist() for table, rows in each.items()} for each in launches(example).evidence] == [
        {"api_calls": [0, 1, 3, 4, 6], "kernels": [0, 1, 2, 3, 6]},
        {"api_calls": [7], "kernels": [4, 5]},
        {"api_calls": [2], "memcpys": [0]},
    ]


def test_work_that_began_before_its_call_returned_was_in_no_queue(build):
    build.call("cudaLaunchKernel", 1000, 500, correlation_id=5).kernel("k", 1200, 500, correlation_id=5)
    (row,) = launches(build.recording())
    assert (row["min_queue_ns"], row["median_queue_ns"], row["max_queue_ns"]) == (-300, 0, 0)


def test_clocks_that_disagree_make_negative_delays(build):
    build.launch(5, 1000).kernel("k", 900, 500, correlation_id=5)
    (row,) = launches(build.recording())
    assert (row["min_delay_ns"], row["max_queue_ns"]) == (-100, 0)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "delays"),
    [
        ("h100_2gpu_1s", (8704, 421303804, 438830012)),
        ("mfu_2gpu_before", (5353, 260557, 12978034)),
        ("mfu_2gpu_after", (5079, 87800, 16007563)),
        ("mock", (17455381, 17455381, 17948875)),
    ],
)
def test_delays_of_recorded_exports_of_nsight_systems(load_trace, name, delays):
    answer = launch_delays(load_trace(f"nsys_ai/{name}.sqlite.gz"))
    found = np.sort(answer["delay_ns"][answer["table"] == "kernels"])
    assert (found[0], found[(len(found) - 1) // 2], found[-1]) == delays


def test_bandwidth_of_the_worked_example(example):
    (row,) = copies(example)
    assert (row["kind"], row["source"], row["target"]) == ("HtoD", "Pageable", "Device")
    assert (row["num_bytes"], row["total_ns"], row["bandwidth"]) == (4000, 100, 40e9)
    assert (row["union_bandwidth"], row["hidden_ns"], row["hidden_share"]) == (40e9, 100, 1.0)


def test_copies_are_hidden_by_compute_kernels_of_their_own_device(build):
    build.memcpy(0, 1000).memcpy(500, 1000, stream_id=8).kernel("k", 200, 400).kernel("ncclA", 700, 100)
    build.kernel("other", 0, 1500, device_id=1)
    (row,) = copies(build.recording())
    assert (row["hidden_ns"], row["union_ns"], row["hidden_share"]) == (400, 1500, 400 / 1500)


def test_copies_that_overlap_are_faster_together_than_alone(build):
    build.memcpy(0, 1000, num_bytes=1000).memcpy(500, 1000, num_bytes=1000, stream_id=8)
    (row,) = copies(build.recording())
    assert (row["bandwidth"], row["union_bandwidth"], row["union_ns"]) == (1e9, 2000e9 / 1500, 1500)


def test_copies_of_unknown_size_are_counted_and_not_divided_by(build):
    build.memcpy(0, 1000, num_bytes=0).memcpy(2000, 1000, num_bytes=4096).memset(5000, 100, num_bytes=0)
    known, unknown = copies(build.recording())
    assert (known["count"], known["unknown_sizes"], known["bandwidth"]) == (2, 1, 4096 * 1e6)
    assert (unknown["kind"], np.isnan(unknown["bandwidth"])) == ("memset", True)


@pytest.mark.parametrize("size", [LARGEST_BYTES + 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_copies_of_impossible_sizes_have_unknown_ones(build, size):
    build.memcpy(0, 1000, num_bytes=size).memcpy(2000, 1000, num_bytes=4096).memset(5000, 100, num_bytes=size)
    answer = copies(build.recording())
    assert [(row["unknown_sizes"], row["num_bytes"]) for row in answer] == [(1, 4096), (1, 0)]
    assert (answer["bandwidth"][0], answer.totals["num_bytes"]) == (4096 * 1e6, 4096)
    figures = figures_of([build.recording()])
    assert (figures.memcpy_bytes, figures.memcpy_htod_bytes, figures.memset_bytes) == (4096, 4096, 0)


def test_kernels_by_name(example):
    answer = kernels(example)
    assert [(row["name"], row["total_ns"]) for row in answer][:2] == [
        ("D", 270),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 160),
    ]
    assert answer.totals == {"count": 7, "total_ns": 710}
    assert sum(answer["share"]) == pytest.approx(1)


def test_kernels_by_op_shape_stream_and_whole_name(build):
    build.launch(5, 1000).kernel("_Z3addIfEvPT_i", 2000, 100, correlation_id=5).annotation("conv", 500, 4000, 3, 5)
    build.kernel("_Z3addIfEvPT_i", 3000, 300, grid_x=8, stream_id=9)
    recording = build.recording()
    by_op = [(row["op"], row["name"], row["total_ns"]) for row in kernels(recording, by="op")]
    assert by_op == [("", "add<float>", 300), ("conv", "add<float>", 100)]
    assert [(row["grid"], row["count"]) for row in kernels(recording, by="shape")] == [("8,1,1", 1), ("1,1,1", 1)]
    assert [row["stream_id"] for row in kernels(recording, by="stream")] == [9, 7]
    (whole,) = kernels(recording, by="whole_name")
    assert (whole["whole_name"], whole["median_ns"]) == ("void add<float>(float*, int)", 100)


def test_what_kernels_cannot_be_counted_by(example):
    with pytest.raises(ValueError, match="by='colour': kernels are counted by name, whole_name, op, shape, stream"):
        kernels(example, by="colour")
    with pytest.raises(ValueError, match=r"by=\['op'\]: kernels are counted by name,"):
        kernels(example, by=["op"])


def test_the_kernels_that_a_row_is_made_of(build):
    build.kernel("a", 0).kernel("b", 2000).kernel("a", 4000)
    recording = build.recording()
    answer = kernels(recording)
    for row, evidence in zip(answer, answer.evidence, strict=True):
        assert set(recording.kernels[evidence["kernels"]].names()) == {row["name"]}
        assert len(evidence["kernels"]) == row["count"]


@pytest.mark.medium
@pytest.mark.parametrize("by", ["name", "op", "shape", "stream", "whole_name"])
def test_kernels_of_recorded_traces_add_up(load_trace, counts, by):
    name = "hta/a100_rank0of2_nccl_metadata.json.gz"
    answer = kernels(load_trace(name), by=by)
    truth = counts[name]["gpu"]
    assert answer.totals == {"count": truth["kernel_count"], "total_ns": truth["kernel_sum_ns"]}


def test_the_hidden_part_of_copies_in_a_window_is_that_between_its_ends(build):
    """Of a kernel that ran beside a copy before the window only the whole step knows."""
    build.memcpy(0, 1000, stream_id=8).kernel("before", 0, 500).kernel("k", 500, 200)
    (row,) = copies(between(build.recording(), 600, 800))
    assert (row["total_ns"], row["union_ns"]) == (1000, 1000)
    assert (row["hidden_ns"], row["hidden_share"]) == (100, 0.5)
