"""Overlap of compute, communication and copies, and their exposed parts."""

from __future__ import annotations

import pytest

from collector.analysis import devices, overlap


def test_the_worked_example(example):
    (row,) = overlap(example)
    assert row == {
        "device_id": 0,
        "busy_ns": 690,
        "compute_ns": 540,
        "exposed_graph_ns": 0,
        "exposed_communication_ns": 150,
        "exposed_copy_ns": 0,
        "exposed_memset_ns": 0,
        "communication_ns": 160,
        "hidden_communication": 0.0625,
        "copy_ns": 100,
        "hidden_copy": 1.0,
        "compute_communication_ns": 10,
        "compute_copy_ns": 100,
        "communication_copy_ns": 0,
        "graph_ns": 0,
    }


def test_the_rows_that_a_device_is_made_of(example):
    (evidence,) = overlap(example).evidence
    assert {table: rows.tolist() for table, rows in evidence.items()} == {"kernels": [*range(7)], "memcpys": [0]}


def test_a_copy_of_which_a_quarter_is_hidden(build):
    (row,) = overlap(build.memcpy(0, 100).kernel("k", 75, 100).recording())
    assert (row["exposed_copy_ns"], row["hidden_copy"]) == (75, 0.25)


def test_communication_by_stream(example):
    (row,) = overlap(example, by="stream")
    assert (row["stream_id"], row["kernels"], row["communication_ns"]) == (9, 1, 160)
    assert (row["hidden_ns"], row["exposed_ns"], row["exposed_alone_ns"]) == (10, 150, 150)


def test_the_time_of_several_communicators_at_once_is_a_row_of_its_own(build):
    build.kernel("ncclA", 0, 100, stream_id=20).kernel("ncclB", 50, 100, stream_id=21).kernel("k", 60, 20)
    answer = overlap(build.recording(), by="stream")
    assert [(row["stream_id"], row["exposed_ns"], row["exposed_alone_ns"]) for row in answer] == [
        (20, 80, 50),
        (21, 80, 50),
        (-1, 30, 30),
    ]
    assert answer.totals["exposed_alone_ns"] == 130
    assert [{table: rows.tolist() for table, rows in evidence.items()} for evidence in answer.evidence] == [
        {"kernels": [1]},
        {"kernels": [2]},
        {},
    ]
    several = list(answer)[-1]
    assert (several["kernels"], several["communication_ns"], several["hidden_ns"]) == (0, 30, 0)
    assert several["hidden_communication"] == 0


def test_communication_by_process_group_in_the_order_of_names(build, start_ns):
    for correlation, group in ((1, "tp"), (2, "dp"), (3, "")):
        place = {"context_id": 1, "stream_id": 7, "correlation_id": correlation}
        build.raw("collectives", start_ns=start_ns + 100 * correlation, group_name_id=build.text(group), **place)
        build.kernel("ncclA", 100 * correlation, 10 * correlation, **place)
    build.kernel("ncclB", 900, 5, correlation_id=4)
    answer = overlap(build.recording(), by="group")
    assert [(row["group"], row["kernels"], row["communication_ns"]) for row in answer] == [
        ("(no group)", 2, 30 + 5),
        ("dp", 1, 20),
        ("tp", 1, 10),
    ]


def test_an_unknown_division_of_overlap_is_refused(example):
    with pytest.raises(ValueError, match="by='colour': overlap is counted by device, stream"):
        overlap(example, by="colour")


@pytest.mark.medium
def test_parts_add_up_whatever_ran(build, some_work):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.given(some_work, st.sampled_from(["step", "span"]))
    def check(fill, window):
        recording = fill(type(build)()).recording()
        by_stream = list(overlap(recording, by="stream", window=window))
        rows = list(overlap(recording, window=window))
        for row, device in zip(rows, devices(recording, window=window), strict=True):
            exposed = sum(row[f"exposed_{kind}_ns"] for kind in ("graph", "communication", "copy", "memset"))
            assert row["compute_ns"] + exposed == row["busy_ns"] == device["busy_ns"]
            assert all(value == row[name] for name, value in device.items() if name in row)
            streams = [each for each in by_stream if each["device_id"] == row["device_id"]]
            assert sum(each["exposed_alone_ns"] for each in streams) == row["exposed_communication_ns"]
            assert all(each["hidden_ns"] + each["exposed_ns"] == each["communication_ns"] for each in streams)

    check()


@pytest.mark.parametrize(
    "name", ["a100_rank0of2_nccl_metadata", pytest.param("a100_rank0of16_orphan_kernels", marks=pytest.mark.slow)]
)
def test_recorded_traces(load_trace, counts, name):
    truth = counts[f"hta/{name}.json.gz"]["gpu"]["per_device"]
    recording = load_trace(f"hta/{name}.json.gz").recording
    by_stream = overlap(recording, by="stream")
    for row in overlap(recording):
        assert row["compute_communication_ns"] == truth[str(row["device_id"])]["comm_comp_overlap_ns"]
        exposed = [each["exposed_alone_ns"] for each in by_stream if each["device_id"] == row["device_id"]]
        assert sum(exposed) == row["exposed_communication_ns"] > 0
