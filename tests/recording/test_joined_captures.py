"""Captures of several processes as one: every row is there, and none is linked with a row of another process."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from collector.recording.joined_captures import joined_captures
from collector.recording.process_numbers import ProcessNumbers
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402
from reference.any_recording import recordings  # noqa: E402
from support.properties import examples  # noqa: E402

_OTHER_IDS = {
    *("device_id", "src_device_id", "dst_device_id", "end_device_id", "context_id", "src_context_id", "dst_context_id"),
    *("parent_context_id", "process_id", "thread_id", "end_thread_id", "correlation_id", "external_id"),
    *("captured_external_id", "graph_id", "original_graph_id", "update_correlation_id", "event_id", "event_sync_id"),
    "op_sequence",
}


_NO_OBJECT = (1 << 32) - 1


def values(recording):
    """Rows by what is not an id: with texts for their numbers, and the wall times of possible times."""
    found = Counter()
    for part in recording.parts:
        for name in SCHEMA:
            table = getattr(part, name)
            columns = []
            for column, numbers in table.columns.items():
                if column in _OTHER_IDS or column == "device_name_id":
                    continue
                if column.endswith(("name_id", "text_id")):
                    columns.append([recording.strings[number] for number in numbers.tolist()])
                elif column == "details_id":
                    columns.append([number and recording.details[number - 1] for number in numbers.tolist()])
                elif column in ("start_ns", "end_ns"):
                    offset_ns = recording.clock.wall_start_ns - recording.clock.cupti_start_ns
                    columns.append([time + offset_ns if time > 0 else time for time in numbers.tolist()])
                else:
                    columns.append(numbers.tolist())
            found.update((name, *row) for row in zip(*columns, strict=True))
    return found


def links(recording):
    """How many rows each row is linked with, by the ids that link them."""
    found = Counter()
    for kind, columns in {
        "launch": [("kernels", "correlation_id"), ("api_calls", "correlation_id"), ("memcpys", "correlation_id")],
        "thread": [("annotations", "thread_id"), ("api_calls", "thread_id"), ("nvtx_ranges", "thread_id")],
        "context": [("kernels", "context_id"), ("streams", "context_id"), ("contexts", "context_id")],
        "device": [("kernels", "device_id"), ("devices", "device_id"), ("memory_operations", "device_id")],
        "graph": [("kernels", "graph_id"), ("graph_launches", "graph_id"), ("graph_changes", "original_graph_id")],
    }.items():
        by_id = Counter()
        for table, column in columns:
            for part in recording.parts:
                by_id.update((number, table) for number in getattr(part, table)[column].tolist())
        groups = {}
        for (number, table), count in by_id.items():
            if number != _NO_OBJECT and (number or kind in ("context", "device", "thread")):
                groups.setdefault(number, {})[table] = count
        found.update((kind, *sorted(group.items())) for group in groups.values())
    return found


@pytest.mark.medium
@hypothesis.settings(max_examples=examples(40))
@hypothesis.given(st.lists(recordings(2), min_size=2, max_size=3))
def test_rows_of_all_processes_are_there_and_linked_as_they_were(given):
    joined = Recording.from_capture(joined_captures([recording.to_capture() for recording in given]))
    assert values(joined) == sum(map(values, given), Counter())
    assert links(joined) == sum(map(links, given), Counter())


def test_a_time_below_zero_is_none_on_the_joined_clock(build):
    captures = []
    for delay_ns in (0, 3000):
        capture = type(build)().kernel("damaged", 5).kernel("k", 10).capture()
        capture["tables"]["kernels"]["start_ns"][0] = -1000
        capture["clock"]["wall_start_ns"] += delay_ns
        captures.append(capture)
    joined = Recording.from_capture(joined_captures(captures))
    assert joined.ledger.invalid_timestamps == 2
    assert joined.invalid.kernels.start_ns.tolist() == [-1000, -1000]


def test_one_process_is_left_as_it_is(build):
    capture = build.kernel("k", 10, correlation_id=7).capture()
    assert joined_captures([capture]) is capture


def test_captures_of_one_process_share_its_devices_and_threads_but_no_launches(build):
    captures = []
    for name in ("first", "second"):
        made = type(build)()
        made.call("cudaLaunchKernel", 5, correlation_id=4, thread_id=11)
        made.kernel(name, 10, context_id=1, stream_id=7, device_id=0, correlation_id=4)
        captures.append(made.capture())
    joined = Recording.from_capture(joined_captures(captures, one_process=True))
    kernels = joined.kernels
    assert sorted(kernels.names()) == ["first", "second"]
    assert set(zip(kernels.device_id.tolist(), kernels.context_id.tolist(), strict=True)) == {(0, 1)}
    assert set(joined.api_calls.thread_id.tolist()) == {11}
    assert len(set(kernels.correlation_id.tolist())) == 2
    assert set(kernels.correlation_id.tolist()) == set(joined.api_calls.correlation_id.tolist())


def test_names_follow_their_devices_streams_and_threads(build):
    captures = []
    for name in ("first", "second"):
        made = type(build)()
        made.kernel("k", 10, context_id=1, stream_id=7, device_id=0)
        made.call("cudaLaunchKernel", 5)
        made.environment |= {
            "devices": {0: f"GPU of {name}"},
            "thread_names": {"11": f"thread of {name}"},
            "device_labels": {"/gpu:0": f"card of {name}", "/gpu:0/stream:7": f"stream of {name}"},
        }
        captures.append(made.capture())
    found = joined_captures(captures)["environment"]
    assert found["devices"] == {0: "GPU of first", 1: "GPU of second"}
    assert found["thread_names"] == {11: "thread of first", 1: "thread of second"}
    assert found["device_labels"] == {
        "/gpu:0": "card of first",
        "/gpu:0/stream:7": "stream of first",
        "/gpu:1": "card of second",
        "/gpu:1/stream:7": "stream of second",
    }


def test_unrecorded_copies_between_gpus_of_any_process_are_counted(build):
    """Even if the first process recorded such copies."""
    build.call("cudaMemcpyPeer_v4000", 10, correlation_id=4)
    captures = [build.capture() | {"environment": {"peer_copies": recorded}} for recorded in (True, False)]
    captures[0]["tables"]["memcpys"] = build.memcpy(500, correlation_id=4).capture()["tables"]["memcpys"]
    assert Recording.from_capture(joined_captures(captures)).ledger.peer_copies_unrecorded == 1


def test_a_kind_is_missing_from_the_first_time_on_at_which_a_capture_left_it_out(build):
    """Neither times nor budgets add up. The second capture begins 3,000 ns after the first."""
    figures = [
        {
            "budget_millionths": 10_000,
            "budget_highest_millionths": 40_000,
            "shed_memsets_ns": 900,
            "records_dropped": 2,
        },
        {"budget_millionths": 10_000, "budget_highest_millionths": 30_000, "shed_memsets_ns": 500, "records_dropped": 5}
        | {"budget_last_millionths": 7000, "shed_nvtx_ranges_ns": 1},
    ]
    captures = []
    for delay_ns, counters in zip((0, 3000), figures, strict=True):
        capture = type(build)().kernel("k", 10 + delay_ns).capture() | {"counters": counters}
        capture["clock"] = {name: time + (name != "uncertainty_ns") * delay_ns for name, time in build.clock.items()}
        captures.append(capture)
    for both in (captures, captures[::-1]):
        assert joined_captures(both, one_process=True)["counters"] == {
            "budget_millionths": 10_000,
            "budget_highest_millionths": 40_000,
            "budget_last_millionths": 7000,
            "shed_memsets_ns": 900,
            "shed_nvtx_ranges_ns": 3001,
            "records_dropped": 7,
        }


def test_numbers_of_processes():
    processes = np.array([1, 1, 1, 2, 2, 2, 3])
    ids = np.array([0, 5, 1, 0, 5, 2, 5])
    numbers = ProcessNumbers([(processes, ids)])
    assert numbers.of(processes, ids).tolist() == [0, 5, 1, 0, 3, 2, 4]
    counted_from_zero = ProcessNumbers([(processes, ids)], shared=())
    assert counted_from_zero.of(processes, ids).tolist() == [0, 5, 1, 3, 4, 2, 6]


def test_numbers_of_processes_of_which_some_come_first():
    processes, ids = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    numbers = ProcessNumbers([(processes, ids)], shared=(), first=[(np.array([1, 2]), np.array([1, 0]))])
    assert numbers.of(processes, ids).tolist() == [2, 4, 3, 1, 0, 5]
    again = ProcessNumbers([(processes, ids)], shared=(), first=[(processes[2:], ids[2:])])
    assert again.of(processes, ids).tolist() == [4, 5, 0, 1, 2, 3]


def test_a_gpu_keeps_its_number_where_other_processes_only_name_it(build):
    """As each rank of torchrun sees all GPUs, and works on one."""
    captures = []
    for rank in range(3):
        made = type(build)()
        made.kernel("k", 10, device_id=rank)
        captures.append(made.capture())
        captures[-1]["tables"]["devices"] = {"device_id": np.arange(3, dtype=np.uint32)}
    joined = Recording.from_capture(joined_captures(captures))
    assert sorted(joined.kernels.device_id.tolist()) == [0, 1, 2]
    assert sorted(joined.devices.device_id.tolist()) == list(range(9))
