"""The viewers do notice: each trap is shown on a hand-made trace first, so that a passing test means something."""

from __future__ import annotations

import json


def complete(name, ts, dur, pid=1, tid=1, **more):
    return {"ph": "X", "name": name, "cat": "t", "ts": ts, "dur": dur, "pid": pid, "tid": tid, **more}


SLICES = "select name, ts, dur from slice order by ts, name"


def test_disjoint_slices_are_all_kept(perfetto, write_trace):
    view = perfetto(write_trace([complete("a", 0, 10), complete("b", 10, 5)]), SLICES)
    assert view.problems == {}
    assert view.answers == [[["a", 0, 10_000], ["b", 10_000, 5_000]]]


def test_t1_partly_overlapping_slices_in_one_lane_are_dropped(perfetto, write_trace):
    view = perfetto(write_trace([complete("a", 0, 10), complete("b", 5, 10)]), SLICES)
    assert view.problems == {"slice_drop_overlapping_complete_event": 1}
    assert [row[0] for row in view.answers[0]] == ["a"]


def test_t2_tid_zero_joins_the_thread_named_like_the_process(perfetto, write_trace):
    events = [complete("a", 0, 10, pid=7, tid=0), complete("b", 20, 10, pid=7, tid=7)]
    view = perfetto(write_trace(events), "select count(distinct track_id) from slice")
    assert view.answers == [[[1]]]


def test_t5_epoch_microseconds_lose_nanoseconds(perfetto, tmp_path):
    path = tmp_path / "epoch.json"
    path.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1700000000001245.375,"dur":1}]')
    exact = 1_700_000_000_001_245_375
    [[[start]]] = perfetto(path, "select ts from slice").answers
    assert int(start) != exact
    assert abs(int(start) - exact) < 1000


def test_t6_a_truncated_file_is_not_loaded(perfetto, tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(json.dumps({"traceEvents": [complete("a", 0, 10)]})[:-12])
    view = perfetto(path)
    assert view.load_errors


def test_t7_below_a_nanosecond_is_cut_to_zero(perfetto, write_trace):
    view = perfetto(write_trace([complete("a", 0, 0.0004)]), SLICES)
    assert view.problems == {}
    assert view.answers == [[["a", 0, 0]]]


def test_t10_a_counter_with_two_values_is_two_tracks(perfetto, write_trace):
    counter = {"ph": "C", "name": "memory", "pid": 1, "tid": 1, "ts": 0, "args": {"gpu": 1, "cpu": 2}}
    view = perfetto(write_trace([counter]), "select name from counter_track order by name")
    assert view.answers == [[["memory cpu"], ["memory gpu"]]]
