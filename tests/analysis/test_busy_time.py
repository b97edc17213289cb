"""Busy and idle time, concurrency and overlap."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analysis import devices


def test_the_worked_example(example):
    (row,) = devices(example)
    assert row == {
        "device_id": 0,
        "window_ns": 1000,
        "busy_ns": 690,
        "idle_ns": 310,
        "busy_share": 0.69,
        "compute_ns": 540,
        "communication_ns": 160,
        "copy_ns": 100,
        "memset_ns": 0,
        "graph_ns": 0,
        "overlap_ns": 10,
        "exposed_graph_ns": 0,
        "exposed_communication_ns": 150,
        "exposed_copy_ns": 0,
        "exposed_memset_ns": 0,
        "mean_concurrency": 0.81,
        "max_concurrency": 2,
        "activities": 8,
    }


def test_the_window_may_be_the_span(example):
    answer = devices(example, window="span")
    assert (answer["window_ns"].tolist(), answer["idle_ns"].tolist()) == ([830], [140])
    assert answer.windows[0].name == "span"


def test_another_window_is_refused_even_where_nothing_ran(build):
    with pytest.raises(ValueError, match="window 'day': neither 'step' nor 'span'"):
        devices(build.recording(), window="day")


def test_a_step_without_activities_has_no_rows(build):
    answer = devices(build.recording())
    assert len(answer) == 0
    assert answer.totals["busy_ns"] == 0


def test_a_span_without_length_has_no_busy_time(build):
    (row,) = devices(build.kernel("k", 500, 0).recording(), window="span")
    figures = ("window_ns", "busy_ns", "busy_share", "mean_concurrency", "max_concurrency", "activities")
    assert [row[name] for name in figures] == [0, 0, 0, 0, 0, 1]


def test_several_steps_are_distinguished(example):
    answer = devices([example, example])
    assert answer["step"].tolist() == [0, 1]
    assert answer.totals["busy_ns"] == 2 * 690
    assert answer.evidence == ()


def test_the_rows_that_a_figure_is_made_of(example):
    (evidence,) = devices(example).evidence
    assert {table: rows.tolist() for table, rows in evidence.items()} == {"kernels": [*range(7)], "memcpys": [0]}


@pytest.mark.slow
def test_recorded_traces_are_as_busy_as_was_counted(counts, load_trace):
    checked = 0
    for name, truth in counts.items():
        per_device = truth.get("gpu", {}).get("per_device")
        if not per_device or name.startswith(("tf_", "broken_derived")):
            continue
        answer = devices(load_trace(name), window="span")
        rows = {str(row["device_id"]): row for row in answer}
        assert rows.keys() == per_device.keys(), name
        for device, expected in per_device.items():
            row, work = rows[device], expected["all_gpu_work"]
            assert (row["busy_ns"], row["idle_ns"]) == (work["busy_ns"], work["idle_ns"]), name
            assert row["communication_ns"] == expected["comm_busy_ns"], name
            assert row["compute_ns"] == expected["comp_busy_ns"], name
            assert row["overlap_ns"] == expected["comm_comp_overlap_ns"], name
        checked += 1
    assert checked >= 30


@pytest.mark.medium
def test_parts_add_up_whatever_ran(build, some_work):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies

    @hypothesis.given(some_work, st.sampled_from(["step", "span"]))
    def check(fill, window):
        made = fill(type(build)())
        recording = made.recording()
        answer = devices(recording, window=window)
        for row in answer:
            assert row["busy_ns"] + row["idle_ns"] == row["window_ns"]
            kinds = ("graph", "communication", "copy", "memset")
            exposed = sum(row[f"exposed_{kind}_ns"] for kind in kinds)
            assert row["compute_ns"] + exposed == row["busy_ns"]
            assert row["busy_ns"] <= sum(row[f"{kind}_ns"] for kind in ("compute", *kinds))
            assert 0 <= row["overlap_ns"] <= min(row["compute_ns"], row["communication_ns"])
        made.rows["kernels"].reverse()
        made.rows["memcpys"].reverse()
        made.rows["graph_launches"].reverse()
        again = devices(made.recording(), window=window)
        assert all(np.array_equal(answer[column.name], again[column.name]) for column in answer.columns)

    check()
