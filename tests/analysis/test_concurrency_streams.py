"""Concurrent activities, and the division of a device's time among its streams."""

from __future__ import annotations

import pytest

from collector.analysis import between, concurrency, devices, streams


def test_how_long_how_many_ran_at_once(example):
    answer = concurrency(example)
    assert {row["running"]: row["duration_ns"] for row in answer} == {0: 310, 1: 570, 2: 120}
    assert answer.totals["duration_ns"] == 1000
    assert answer["share"].tolist() == [0.31, 0.57, 0.12]
    assert answer["busy_share"].tolist() == [0, 570 / 690, 120 / 690]


def test_of_the_span_the_ends_are_left_out(example):
    answer = concurrency(example, window="span")
    assert {row["running"]: row["duration_ns"] for row in answer} == {0: 140, 1: 570, 2: 120}


def test_streams_of_the_worked_example(example):
    found = {row["stream_id"]: row for row in streams(example)}
    assert {stream: (row["activities"], row["total_ns"], row["busy_ns"]) for stream, row in found.items()} == {
        7: (6, 550, 540),
        8: (1, 100, 100),
        9: (1, 160, 160),
    }
    assert {stream: (row["alone_ns"], row["concurrent_ns"]) for stream, row in found.items()} == {
        7: (430, 110),
        8: (0, 100),
        9: (150, 10),
    }
    assert {stream: (row["busy_share"], row["concurrent_share"]) for stream, row in found.items()} == {
        7: (540 / 690, 110 / 540),
        8: (100 / 690, 1),
        9: (160 / 690, 10 / 160),
    }


def test_streams_have_the_names_that_the_program_gave_them(build):
    build.environment["device_labels"] = {"/gpu:0/stream:8": "copies"}
    build.kernel("k", 0, 100).memcpy(50, 100, stream_id=8)
    assert [(row["stream_id"], row["stream_name"]) for row in streams(build.recording())] == [(7, ""), (8, "copies")]


def test_of_a_part_of_a_step_the_times_of_streams_are_those_between_its_ends(build):
    build.kernel("k", 100, 500).memcpy(300, 100, stream_id=8).kernel("k", 390, 1000, stream_id=9)
    part = between(build.recording(), 350, 450)
    assert devices(part)["busy_ns"].tolist() == [100]
    found = [[row[name] for name in ("total_ns", "busy_ns", "alone_ns", "concurrent_ns")] for row in streams(part)]
    assert found == [[500, 100, 0, 100], [100, 50, 0, 50], [1000, 60, 0, 60]]
    assert streams(part)["busy_share"].tolist() == [1, 0.5, 0.6]


def test_a_stream_number_of_two_contexts_is_two_streams(build):
    build.kernel("k", 0, 100, context_id=1).kernel("k", 50, 100, context_id=2)
    answer = streams(build.recording())
    assert [(row["context_id"], row["stream_id"], row["alone_ns"]) for row in answer] == [(1, 7, 50), (2, 7, 50)]
    assert [list(evidence["kernels"]) for evidence in answer.evidence] == [[0], [1]]


@pytest.mark.medium
def test_parts_add_up_whatever_ran(build, some_work):
    hypothesis = pytest.importorskip("hypothesis")

    @hypothesis.given(some_work)
    def check(fill):
        recording = fill(type(build)()).recording()
        for device in devices(recording):
            number = device["device_id"]
            parts = [row for row in concurrency(recording) if row["device_id"] == number]
            assert sum(row["duration_ns"] for row in parts) == device["window_ns"]
            assert sum(row["duration_ns"] for row in parts if row["running"]) == device["busy_ns"]
            own = [row for row in streams(recording) if row["device_id"] == number]
            assert sum(row["activities"] for row in own) == device["activities"]
            assert sum(row["alone_ns"] for row in own) <= device["busy_ns"] <= sum(row["busy_ns"] for row in own)
            assert all(row["alone_ns"] + row["concurrent_ns"] == row["busy_ns"] <= row["total_ns"] for row in own)

    check()


@pytest.mark.parametrize(
    "name",
    [
        "hta/a100_rank0of2_nccl_metadata.json.gz",
        pytest.param("kineto/resnet50_13_streams.json.gz", marks=pytest.mark.slow),
        "nsys_ai/mock.sqlite.gz",
        "broken_derived/negative_missing_dur_and_args.json.gz",
        "broken_derived/repeated_kernels.json.gz",
    ],
)
def test_recorded_traces_add_up(load_trace, name):
    recording = load_trace(name).recording
    busy = {row["device_id"]: row["busy_ns"] for row in devices(recording)}
    assert busy
    for number, busy_ns in busy.items():
        rows = [row for row in concurrency(recording) if row["device_id"] == number]
        assert sum(row["duration_ns"] for row in rows if row["running"]) == busy_ns
        alone = [row["alone_ns"] for row in streams(recording) if row["device_id"] == number]
        assert sum(alone) <= busy_ns
