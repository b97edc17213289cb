"""The viewer checks detect errors: each trap is first shown on a hand-made trace, so that passing is meaningful."""

from __future__ import annotations

import json

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

pytestmark = pytest.mark.viewer


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


def varint(value):
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def message(**fields):
    """Protobuf bytes; `f8=3` is field 8."""
    content = b""
    for name, value in fields.items():
        number = int(name.removeprefix("f"))
        if isinstance(value, int):
            content += varint(number << 3) + varint(value)
        else:
            content += varint(number << 3 | 2) + varint(len(value)) + value
    return content


def test_t3_overlapping_slices_of_a_native_track_get_wrong_lengths(perfetto, tmp_path):
    """A lasts from 0 to 10 and B from 5 to 15: the first end is applied to the last begun slice."""
    track = message(f60=message(f1=1, f2=b"track"), f10=1)
    begins, ends = 1, 2
    events = [
        message(f8=ns, f10=1, f11=message(f9=kind, f11=1, **name))
        for ns, kind, name in [(0, begins, {"f23": b"A"}), (5, begins, {"f23": b"B"}), (10, ends, {}), (15, ends, {})]
    ]
    path = tmp_path / "overlap.pftrace"
    path.write_bytes(b"".join(message(f1=packet) for packet in [track, *events]))
    view = perfetto(path, SLICES)
    assert view.problems == {}
    assert view.answers == [[["A", 0, 15], ["B", 5, 5]]]


@pytest.mark.slow
def test_t4_the_page_cuts_names_of_processes_at_slashes(perfetto_ui, write_trace):
    process = {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "/device:GPU:0/stream:all Compute"}}
    seen = perfetto_ui(write_trace([process, complete("a", 0, 10, pid=5, tid=6)]))
    assert seen["problems"] == []
    assert seen["rows"] == [[0, "stream:all Compute 5"], [1, "Thread 6"]]


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


def test_t9_a_message_cannot_be_registered_twice():
    pool = descriptor_pool.DescriptorPool()
    for name in ("ours.proto", "theirs.proto"):
        file = descriptor_pb2.FileDescriptorProto(name=name, package="tensorflow")
        file.message_type.add(name="StepStats")
        if name == "ours.proto":
            pool.Add(file)
            pool.FindMessageTypeByName("tensorflow.StepStats")
    with pytest.raises(TypeError):
        pool.AddSerializedFile(file.SerializeToString())


def test_t10_a_counter_with_two_values_is_two_tracks(perfetto, write_trace):
    counter = {"ph": "C", "name": "memory", "pid": 1, "tid": 1, "ts": 0, "args": {"gpu": 1, "cpu": 2}}
    view = perfetto(write_trace([counter]), "select name from counter_track order by name")
    assert view.answers == [[["memory cpu"], ["memory gpu"]]]
