"""The source over NVIDIA's Python package, with a stand-in whose interface is compared with the real package."""

import ctypes
import gc
import inspect
import itertools
import re
import sys
import threading
import time
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pytest

import collector
from collector import errors
from collector.options import KINDS, KINDS_ON_REQUEST, TraceOptions
from collector.recording.schema import RECORDS, SCHEMA
from collector.sources import native, open_source
from collector.sources.cupti_python import CuptiPythonSource
from collector.sources.cupti_python_records import FIELDS, KINDS_OF_OPTION

RECORD_CLASSES = {record.kind: f"Activity{record.name.title().replace('_', '')}" for record in RECORDS} | {
    10: "ActivityKernel10",
    1: "ActivityMemcpy6",
    22: "ActivityMemcpyPtoP4",
    2: "ActivityMemset4",
    4: "ActivityAPI",
    5: "ActivityAPI",
    39: "ActivityExternalCorrelation",
    38: "ActivitySynchronization2",
    17: "ActivityOverhead3",
    49: "ActivityMemory4",
}
"""Activity kind -> the class of its records in cupti-python 13.0, some with the number of their layout."""

FUNCTIONS = {
    "activity_disable": ["kind"],
    "activity_enable": ["kind"],
    "activity_enable_and_dump": ["kind"],
    "activity_flush_all": ["flag"],
    "activity_get_num_dropped_records": ["context", "stream_id", "dropped"],
    "activity_pop_external_correlation_id": ["kind"],
    "activity_push_external_correlation_id": ["kind", "id"],
    "activity_set_attribute": ["attr", "value_size", "value"],
    "activity_register_callbacks": ["func_buffer_requested", "func_buffer_completed"],
    "get_callback_name": ["domain", "cbid"],
    "get_timestamp": [],
    "set_thread_id_type": ["type"],
    "subscribe": ["callback", "userdata"],
    "unsubscribe": ["subscriber"],
}
"""What the source calls, with the parameters it relies on."""


class CuptiError(Exception):
    def __init__(self, status):
        self.status = status
        super().__init__(f"ERROR ({status})")


class NoDriverError(RuntimeError):
    pass


class Record:
    """Attributes of one record; they can be read only while CUPTI's callback runs, as in the real package."""

    def __init__(self, fake, **fields):
        self._fake, self._fields = fake, fields

    def __getattr__(self, name):
        if not self._fake.in_callback:
            raise AssertionError(f"{name} was read after the callback had returned")
        self._fake.garbage_collector_was_on |= gc.isenabled()
        if name not in self._fields:
            raise AttributeError(name)
        return self._fields[name]


class FakeCupti:
    """A `cupti.cupti` module that delivers the records a test hands it when it is flushed."""

    cuptiError = CuptiError  # noqa: N815  (NVIDIA's spelling)

    def __init__(self):
        self.calls = []
        self.enabled = []
        self.pending = []
        self.stacks = []
        self.dropped = 0
        self.fail = {}
        self.in_callback = False
        self.garbage_collector_was_on = False
        self.now = 1_000

    def record(self, kind, **fields):
        filled = {attribute.partition(".")[0]: 0 for attribute in FIELDS[kind].values()} | {"kind": kind} | fields
        record_class = type(RECORD_CLASSES[kind], (Record,), {})
        self.pending.append(record_class(self, **filled))

    def _called(self, name, *arguments):
        self.calls.append((name, *arguments))
        if name in self.fail:
            raise self.fail[name]

    def get_timestamp(self):
        self._called("get_timestamp")
        self.now += 1
        return self.now

    def subscribe(self, callback, userdata):
        self._called("subscribe")
        return 77

    def unsubscribe(self, subscriber):
        self._called("unsubscribe", subscriber)

    def set_thread_id_type(self, type):  # noqa: A002
        self._called("set_thread_id_type", type)

    def activity_register_callbacks(self, func_buffer_requested, func_buffer_completed):
        self._called("activity_register_callbacks")
        self.requested, self.completed = func_buffer_requested, func_buffer_completed

    def activity_enable(self, kind):
        self._called("activity_enable", kind)
        if kind in self.fail.get("kinds", ()):
            raise CuptiError(21)
        self.enabled.append(kind)

    def activity_enable_and_dump(self, kind):
        self._called("activity_enable_and_dump", kind)
        self.enabled.append(kind)

    def activity_disable(self, kind):
        self._called("activity_disable", kind)
        self.enabled.remove(kind)

    def activity_flush_all(self, flag):
        self._called("activity_flush_all", flag)
        if self.pending:
            size, max_records = self.requested()
            assert size >= 4096
            assert max_records == 0
            self.in_callback = True
            self.completed(self.pending)
            self.in_callback = False
            self.pending = []

    def activity_get_num_dropped_records(self, context, stream_id, dropped):
        self._called("activity_get_num_dropped_records", context, stream_id)
        ctypes.c_size_t.from_address(dropped).value = self.dropped

    def activity_set_attribute(self, attr, value_size, value):
        self._called("activity_set_attribute", attr, ctypes.c_size_t.from_address(value_size).value)
        self.zeroing = ctypes.c_uint8.from_address(value).value

    def activity_push_external_correlation_id(self, kind, id):  # noqa: A002
        self._called("push", kind)
        self.stacks.append(id)

    def activity_pop_external_correlation_id(self, kind):
        self._called("pop", kind)
        return self.stacks.pop()

    def get_callback_name(self, domain, cbid):
        self._called("get_callback_name", domain, cbid)
        if cbid == 9999:
            raise CuptiError(1)
        return {1: "cuLaunchKernel", 2: "cudaLaunchKernel_v7000"}[domain]


@pytest.fixture
def cupti(monkeypatch):
    fake = FakeCupti()
    package = types.ModuleType("cupti")
    package.__spec__ = ModuleSpec("cupti", None)
    package.cupti = fake
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so.1")
    return fake


def capture_of(source, **options):
    source.start(TraceOptions(**options))
    return source.stop(synchronize=True, timeout_ms=0)


def row(capture, table, index=0):
    return {column: values[index].item() for column, values in capture["tables"][table].items()}


def test_every_column_of_a_kernel(cupti):
    cupti.record(
        10, start=100, end=150, device_id=1, context_id=2, stream_id=7, correlation_id=41, name="_Z4gemmPf",
        grid_x=8, grid_y=4, grid_z=2, block_x=256, block_y=1, block_z=1, cluster_x=2, cluster_y=1, cluster_z=1,
        registers_per_thread=168, static_shared_memory=1024, dynamic_shared_memory=2048, local_memory_per_thread=16,
        launch_type=1, graph_id=5, graph_node_id=(5 << 32) + 3, priority=-3,
    )  # fmt: skip
    capture = capture_of(open_source("cupti-python"))
    assert capture["strings"] == ["_Z4gemmPf"]
    assert row(capture, "kernels") == {
        "start_ns": 100, "end_ns": 150, "device_id": 1, "context_id": 2, "stream_id": 7, "correlation_id": 41,
        "name_id": 0, "grid_x": 8, "grid_y": 4, "grid_z": 2, "block_x": 256, "block_y": 1, "block_z": 1,
        "cluster_x": 2, "cluster_y": 1, "cluster_z": 1, "registers_per_thread": 168, "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 2048, "local_bytes_per_thread": 16, "launch_type": 1, "graph_id": 5,
        "graph_node_id": (5 << 32) + 3, "priority": -3,
        "source_graph_node_id": 0, "captured_external_id": 0, "graph_degree": 0,
    }  # fmt: skip


def test_copies_sets_and_waits(cupti):
    place = {"device_id": 0, "context_id": 1, "stream_id": 13, "correlation_id": 9}
    cupti.record(1, start=20, end=30, bytes=4096, copy_kind=1, src_kind=2, dst_kind=3, flags_=1, **place)
    cupti.record(22, start=10, end=15, bytes=64, copy_kind=10, flags_=0, **place | {"device_id": 1},
                 src_device_id=1, src_context_id=2, dst_device_id=3, dst_context_id=4)  # fmt: skip
    cupti.record(2, start=40, end=41, bytes=256, value=255, memory_kind=3, flags_=1, **place)
    cupti.record(38, start=50, end=60, type=3, stream_id=13, cuda_event_id=2**32 - 1, return_value=0)
    capture = capture_of(CuptiPythonSource())
    host_to_device, peer = row(capture, "memcpys", 0), row(capture, "memcpys", 1)
    assert (host_to_device["num_bytes"], host_to_device["is_async"]) == (4096, 1)
    assert (host_to_device["src_device_id"], host_to_device["dst_context_id"]) == (0, 1)
    assert [peer[f"{end}_{what}_id"] for end in ("src", "dst") for what in ("device", "context")] == [1, 2, 3, 4]
    assert row(capture, "memsets")["value"] == 255
    assert row(capture, "synchronizations")["event_id"] == 2**32 - 1


@pytest.mark.parametrize(("kinds", "recorded"), [(KINDS, False), ((*KINDS, "peer_copies"), True), (("kernels",), None)])
def test_the_environment_states_whether_peer_copies_were_recorded(cupti, kinds, recorded):
    source = CuptiPythonSource()
    source.start(TraceOptions(kinds=kinds))
    assert (22 in cupti.enabled) == bool(recorded)
    assert source.stop(synchronize=False, timeout_ms=0)["environment"].get("peer_copies") is recorded


def test_the_object_of_an_overhead_is_read_from_its_side_of_the_union(cupti):
    both = SimpleNamespace(
        pt=SimpleNamespace(process_id=11, thread_id=12),
        dcs=SimpleNamespace(device_id=11, context_id=12, stream_id=13),
    )
    cupti.record(17, object_kind=2, object_id=both, overhead_kind=65536)
    cupti.record(17, object_kind=5, object_id=both)
    capture = capture_of(CuptiPythonSource())
    thread, stream = row(capture, "overheads", 0), row(capture, "overheads", 1)
    assert [thread[name] for name in ("process_id", "thread_id", "device_id", "stream_id")] == [11, 12, 0, 0]
    assert [stream[name] for name in ("process_id", "thread_id", "device_id", "stream_id")] == [0, 0, 11, 13]


def test_memory_operations_and_the_pools_they_came_from(cupti):
    def pool(kind):
        sizes = SimpleNamespace(size_=1 << 25, process_id=1 << 25)
        return SimpleNamespace(memory_pool_type=kind, address=512, utilized_size=64, pool=sizes)

    for kind in range(3):
        cupti.record(49, timestamp=20 + kind, memory_operation_type=1, memory_kind=3, address=1 << 40, bytes=4096,
                     stream_id=2**32 - 1, is_async=2 * kind, memory_pool_config=pool(kind))  # fmt: skip
    capture = capture_of(CuptiPythonSource())
    none, local, imported = (row(capture, "memory_operations", index) for index in range(3))
    assert [none[n] for n in ("start_ns", "operation", "memory_kind", "address", "num_bytes", "stream_id")] == [
        20, 1, 3, 1 << 40, 4096, 2**32 - 1,
    ]  # fmt: skip
    assert [(one["is_async"], one["pool_type"]) for one in (none, local, imported)] == [(0, 0), (1, 1), (1, 2)]
    sizes = ("pool_address", "pool_bytes", "pool_used_bytes")
    assert [tuple(one[name] for name in sizes) for one in (none, local, imported)] == [
        (0, 0, 0),
        (512, 1 << 25, 64),
        (512, 0, 0),
    ]
    assert capture["strings"][none["name_id"]] == ""


def test_what_is_made_once_is_asked_for_and_read(cupti):
    cupti.record(9, context_id=3, device_id=1, compute_api_kind=1, null_stream_id=7, num_multiprocessors=132)
    cupti.record(37, context_id=3, stream_id=13, priority=2**32 - 5, flag=2)
    cupti.record(8, id=1, name="Some GPU", num_multiprocessors=132, compute_capability_major=9)
    capture = capture_of(CuptiPythonSource(), kinds=(*KINDS, "contexts", "streams", "devices"))
    dumped = [kind for name, *kinds in cupti.calls if name == "activity_enable_and_dump" for kind in kinds]
    assert dumped == [9, 37, 8]
    assert [row(capture, "contexts")[name] for name in ("device_id", "context_id", "null_stream_id")] == [1, 3, 7]
    assert [row(capture, "streams")[name] for name in ("stream_id", "priority", "stream_flag")] == [13, -5, 2]
    device = row(capture, "devices")
    assert (capture["strings"][device["name_id"]], device["compute_major"]) == ("Some GPU", 9)


def test_a_field_that_an_older_package_lacks_is_0(cupti):
    cupti.record(36, event_id=4, stream_id=7, graph_id=5, graph_node_id=6)
    del cupti.pending[0]._fields["graph_id"]
    event = row(capture_of(CuptiPythonSource(), kinds=(*KINDS, "cuda_events")), "cuda_events")
    assert [event[name] for name in ("event_id", "stream_id", "graph_id", "graph_node_id")] == [4, 7, 0, 6]


def test_rows_come_by_stream_and_time_whatever_the_buffers_order(cupti):
    for stream, start in ((9, 30), (7, 40), (9, 10), (7, 20)):
        cupti.record(10, name="k", stream_id=stream, start=start, end=start + 1)
    kernels = capture_of(CuptiPythonSource())["tables"]["kernels"]
    assert list(zip(kernels["stream_id"].tolist(), kernels["start_ns"].tolist(), strict=True)) == [
        (7, 20), (7, 40), (9, 10), (9, 30),
    ]  # fmt: skip


def test_api_calls_are_named_without_cuptis_version_suffix(cupti):
    cupti.record(5, cbid=211, correlation_id=1)
    cupti.record(4, cbid=307, correlation_id=1)
    cupti.record(5, cbid=9999, correlation_id=2)
    capture = capture_of(CuptiPythonSource())
    calls = capture["tables"]["api_calls"]
    names = [capture["strings"][name_id] for name_id in calls["name_id"]]
    assert list(zip(names, calls["domain"], strict=True)) == [("cuLaunchKernel", 1), ("cudaLaunchKernel", 2), ("", 2)]


def test_annotations_reach_the_launches_made_inside_them(cupti):
    source = CuptiPythonSource()
    source.push_annotation("before")  # nothing is recorded yet: nothing may reach CUPTI
    assert cupti.stacks == []
    source.start(TraceOptions())
    source.push_annotation("layer1")
    source.push_annotation("layer1/conv")
    inner = cupti.stacks[-1]
    cupti.record(39, external_kind=5, external_id=inner, correlation_id=3)
    source.pop_annotation()
    source.pop_annotation()
    source.pop_annotation()  # one too many is forgiven
    capture = source.stop(synchronize=False, timeout_ms=0)
    assert cupti.stacks == []
    outer_row, inner_row = row(capture, "annotations", 0), row(capture, "annotations", 1)
    assert [capture["strings"][one["name_id"]] for one in (outer_row, inner_row)] == ["layer1", "layer1/conv"]
    assert [outer_row["depth"], inner_row["depth"]] == [0, 1]
    assert inner_row["external_id"] == inner == row(capture, "external_correlations")["external_id"]
    assert outer_row["start_ns"] < inner_row["start_ns"] < inner_row["end_ns"] < outer_row["end_ns"]


def test_ticks_of_another_profilers_clock_are_nanoseconds(cupti, monkeypatch):
    """PyTorch's profiler makes CUPTI count ticks for the rest of the process (kineto#917, pytorch#192021)."""
    ticks_per_ns = 2.5
    monkeypatch.setattr(cupti, "get_timestamp", lambda: int(time.monotonic_ns() * ticks_per_ns))
    begin_ns = time.time_ns()
    source = CuptiPythonSource()
    source.start(TraceOptions())
    source.push_annotation("layer")
    source.pop_annotation()
    start = cupti.get_timestamp()
    cupti.record(10, start=start, end=start + int(20_000_000 * ticks_per_ns), correlation_id=1)
    cupti.record(10, start=0, end=0, correlation_id=2)
    cupti.record(10, start=begin_ns, end=begin_ns + 5, correlation_id=3)  # in CUPTI's own clock
    instant = source.instant()
    capture = source.stop(synchronize=False, timeout_ms=0)
    kernels = [row(capture, "kernels", index) for index in range(3)]
    times = {kernel["correlation_id"]: (kernel["start_ns"], kernel["end_ns"]) for kernel in kernels}
    assert times[1][1] - times[1][0] == pytest.approx(20_000_000, rel=2e-3)
    assert times[2] == (0, 0)
    assert times[3] == (begin_ns, begin_ns + 5)
    end_ns = time.time_ns()
    annotation = row(capture, "annotations")
    clock = capture["clock"]
    now = (instant.cupti_ns, clock["cupti_start_ns"], clock["cupti_stop_ns"])
    for time_ns in (times[1][0], annotation["start_ns"], annotation["end_ns"], *now):
        assert begin_ns - 1_000_000 <= time_ns <= end_ns + 1_000_000


def test_a_wall_clock_that_is_set_back_while_it_is_read_is_not_the_closest_reading(cupti, monkeypatch):
    hour_ns, begin_ns, away_ns = 3_600_000_000_000, time.time_ns(), []
    for set_back_at in range(1, 30):
        readings = itertools.count()

        def wall_ns(readings: Iterator[int] = readings, set_back_at: int = set_back_at) -> int:
            number = next(readings)
            return begin_ns + number - (hour_ns if number >= set_back_at else 0)

        monkeypatch.setattr(time, "time_ns", wall_ns)
        source = CuptiPythonSource()
        source.start(TraceOptions())
        clock = source.stop(synchronize=False, timeout_ms=0)["clock"]
        away_ns += [(begin_ns - clock[f"wall_{end}_ns"]) % hour_ns for end in ("start", "stop")]
        away_ns.append(clock["uncertainty_ns"])
    assert max(min(abs(each), hour_ns - each) for each in away_ns) < 1000


def test_an_annotation_left_open_ends_with_its_session_and_does_not_reach_the_next(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions())
    source.push_annotation("forgotten")
    capture = source.stop(synchronize=False, timeout_ms=0)
    assert row(capture, "annotations")["end_ns"] == capture["clock"]["cupti_stop_ns"]
    forgotten = cupti.stacks[-1]
    source.start(TraceOptions())
    source.push_annotation("next")
    assert forgotten not in cupti.stacks
    source.pop_annotation()
    assert cupti.stacks == []
    assert row(source.stop(synchronize=False, timeout_ms=0), "annotations")["depth"] == 0


@pytest.mark.parametrize("call", ["activity_push_external_correlation_id", "activity_pop_external_correlation_id"])
def test_a_ctrl_c_right_after_a_call_of_cupti_leaves_no_annotation_behind(cupti, monkeypatch, call):
    source = CuptiPythonSource()
    does = getattr(cupti, call)

    def interrupted(*arguments):
        does(*arguments)
        raise KeyboardInterrupt

    source.start(TraceOptions())
    with monkeypatch.context() as patch:
        patch.setattr(cupti, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            annotate_with(source)
    source.abort()
    source.start(TraceOptions())
    annotate_with(source)
    assert cupti.stacks == []
    capture = source.stop(synchronize=False, timeout_ms=0)
    assert row(capture, "annotations")["depth"] == 0


def annotate_with(source):
    source.push_annotation("op")
    source.pop_annotation()


def test_tables_have_exactly_the_schemas_columns_even_when_nothing_ran(cupti):
    capture = capture_of(CuptiPythonSource())
    not_of_cupti = (
        "collectives",
        "graph_changes",
        "nvtx_ranges",
        "other_ranges",
        "counter_samples",
    )  # other tools and our library fill these tables
    assert {table: {name: values.dtype.str[1:] for name, values in columns.items()}
            for table, columns in capture["tables"].items()} == {
                table: columns for table, columns in SCHEMA.items() if table not in not_of_cupti}  # fmt: skip
    assert all(len(values) == 0 for columns in capture["tables"].values() for values in columns.values())
    assert capture["clock"]["cupti_start_ns"] < capture["clock"]["cupti_stop_ns"]


def test_counters_say_what_was_seen_and_what_cupti_lost(cupti):
    cupti.dropped = 3
    cupti.record(10, name="k")
    stranger = Record(cupti, kind=12)
    cupti.pending.append(stranger)
    counters = capture_of(CuptiPythonSource())["counters"]
    assert counters == {
        "records_decoded": 2, "records_unknown_kind": 1, "records_dropped": 3, "buffers_requested": 1,
        "buffers_completed": 1, "callback_calls": 2,
    }  # fmt: skip


def test_damaged_times_are_kept_as_they_are(cupti):
    cupti.record(10, name="k", start=0, end=2**64 - 1, cluster_x=70000)
    kernel = row(capture_of(CuptiPythonSource()), "kernels")
    assert (kernel["start_ns"], kernel["end_ns"], kernel["cluster_x"]) == (0, -1, 255)


def test_the_garbage_collector_is_off_inside_a_callback_and_only_there(cupti):
    cupti.record(10, name="k")
    assert gc.isenabled()
    assert len(capture_of(CuptiPythonSource())["tables"]["kernels"]["start_ns"]) == 1
    assert not cupti.garbage_collector_was_on
    assert gc.isenabled()


def test_cupti_zeroes_the_buffers_again_after_a_native_session_asked_it_not_to(cupti):
    capture_of(CuptiPythonSource())
    assert ("activity_set_attribute", 5, 1) in cupti.calls
    assert cupti.zeroing == 0


def test_the_collectors_own_calls_at_the_end_are_left_out(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions())
    mine = threading.get_native_id()
    for correlation_id, thread, start in (
        (1, mine, cupti.now),
        (2, mine, cupti.now + 5000),
        (3, mine + 1, cupti.now + 5000),
    ):
        cupti.record(4, cbid=1, thread_id=thread, start=start, end=start + 1, correlation_id=correlation_id)
        cupti.record(38, correlation_id=correlation_id, type=4)
    tables = source.stop(synchronize=True, timeout_ms=0)["tables"]
    assert tables["api_calls"]["correlation_id"].tolist() == [1, 3]
    assert tables["synchronizations"]["correlation_id"].tolist() == [1, 3]


def test_stop_flushes_disables_flushes_again_and_unsubscribes_last(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions(kinds=("kernels", "memcpys", "peer_copies")))
    assert cupti.enabled == [10, 1, 22]
    cupti.calls.clear()
    source.stop(synchronize=False, timeout_ms=0)
    order = [call for call in cupti.calls if call[0] not in ("get_timestamp", "activity_get_num_dropped_records")]
    assert order == [
        ("activity_flush_all", 0), ("activity_disable", 22), ("activity_disable", 1), ("activity_disable", 10),
        ("activity_flush_all", 1), ("unsubscribe", 77),
    ]  # fmt: skip


def test_the_first_error_rolls_back_everything_in_reverse(cupti):
    cupti.fail["kinds"] = (22,)
    source = CuptiPythonSource()
    with pytest.raises(errors.CuptiCallError, match="cuptiActivityEnable"):
        source.start(TraceOptions(kinds=("kernels", "memcpys", "peer_copies")))
    assert cupti.enabled == []
    assert [call for call in cupti.calls if call[0] in ("activity_disable", "unsubscribe")] == [
        ("activity_disable", 1), ("activity_disable", 10), ("unsubscribe", 77),
    ]  # fmt: skip
    cupti.fail.clear()
    cupti.record(10, name="k")
    assert len(capture_of(source)["tables"]["kernels"]["start_ns"]) == 1


@pytest.mark.parametrize(
    ("call", "error", "expected"),
    [
        ("get_timestamp", NoDriverError("CUDA driver is not found (libcuda.so.1: ...)"), errors.DriverNotFoundError),
        ("get_timestamp", RuntimeError("Failed to open libcupti"), errors.CuptiNotFoundError),
        ("subscribe", CuptiError(39), errors.SubscriberConflictError),
        ("subscribe", CuptiError(35), errors.PermissionDeniedError),
        ("subscribe", CuptiError(15), errors.DriverNotFoundError),
        ("activity_register_callbacks", CuptiError(7), errors.CuptiCallError),
    ],
)
def test_what_goes_wrong_is_named(cupti, call, error, expected):
    cupti.fail[call] = error
    source = CuptiPythonSource()
    with pytest.raises(expected) as caught:
        source.start(TraceOptions())
    assert type(caught.value) is expected
    assert str(error) in caught.value.cause
    with pytest.raises(errors.SessionActiveError):
        source.stop(synchronize=False, timeout_ms=0)


def test_probe_states_kind_cause_and_remedy_and_starts_nothing(cupti):
    assert CuptiPythonSource().probe()["available"]
    cupti.fail["get_timestamp"] = NoDriverError("CUDA driver is not found")
    found = CuptiPythonSource().probe()
    assert (found["available"], found["error"]) == (False, "driver-not-found")
    assert found["cause"]
    assert found["remedy"]
    assert cupti.enabled == []


def test_every_option_has_its_kinds_and_every_kind_its_columns(cupti):
    assert set(KINDS_OF_OPTION) == {*KINDS, *KINDS_ON_REQUEST}
    assert {kind for kinds in KINDS_OF_OPTION.values() for kind in kinds} == set(FIELDS) == set(RECORD_CLASSES)


def test_sharing_leaves_the_one_subscription_to_the_other_client(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions(share_subscription=True))
    source.stop(synchronize=False, timeout_ms=0)
    assert not {"subscribe", "unsubscribe"} & {call[0] for call in cupti.calls}


def test_a_record_of_unknown_shape_is_an_error_after_the_callback_not_in_it(cupti):
    cupti.pending.append(Record(cupti, kind=10))
    source = CuptiPythonSource()
    source.start(TraceOptions())
    with pytest.raises(errors.CuptiUnusableError, match="unknown shape"):
        source.stop(synchronize=False, timeout_ms=0)
    assert cupti.enabled == []


def test_abort_leaves_nothing_enabled_and_late_buffers_are_ignored(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions())
    source.abort()
    assert cupti.enabled == []
    cupti.record(10, name="late")
    cupti.activity_flush_all(1)
    assert len(capture_of(source)["tables"]["kernels"]["start_ns"]) == 0
    source.abort()


def test_a_source_records_one_session_at_a_time(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions())
    with pytest.raises(errors.SessionActiveError):
        source.start(TraceOptions())
    source.abort()


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.delitem(sys.modules, "cupti.cupti", raising=False)
    with pytest.raises(errors.CuptiNotFoundError, match="cupti-python") as caught:
        open_source("cupti-python")
    assert "pip install" in caught.value.remedy


def test_it_is_chosen_by_itself_only_where_the_extension_cannot_be_loaded(cupti, monkeypatch):
    broken = ImportError("no _native here")
    monkeypatch.setattr(native, "extension_error", lambda: broken)
    assert isinstance(open_source("auto"), CuptiPythonSource)
    monkeypatch.setitem(sys.modules, "cupti", None)
    with pytest.raises(errors.CuptiUnusableError, match="no _native here"):  # what should be there is named
        open_source("auto")


def test_it_is_not_chosen_where_the_extension_is_there(cupti, monkeypatch):
    monkeypatch.setattr(native, "extension_error", lambda: None)
    extension = SimpleNamespace(push_annotation=None, pop_annotation=None, annotation_calls=lambda: None)
    monkeypatch.setattr(collector, "_native", extension, raising=False)
    assert isinstance(open_source("auto"), native.NativeSource)


def test_annotation_columns_have_the_schemas_types(cupti):
    source = CuptiPythonSource()
    source.start(TraceOptions())
    source.push_annotation("a")
    source.pop_annotation()
    annotations = source.stop(synchronize=False, timeout_ms=0)["tables"]["annotations"]
    assert {name: column.dtype for name, column in annotations.items()} == {
        name: np.dtype(code) for name, code in SCHEMA["annotations"].items()
    }
    assert all(column.flags.c_contiguous for column in annotations.values())


# --- the real package


@pytest.fixture(scope="module")
def real():
    return pytest.importorskip("cupti.cupti", reason="cupti-python is not installed")


def test_the_real_packages_records_have_every_attribute_that_is_read(real):
    for kind, name in RECORD_CLASSES.items():
        newest = sorted(
            (one for one in dir(real) if re.fullmatch(name.rstrip("0123456789") + r"\d*", one)),
            key=lambda one: int(re.sub(r"\D", "", one) or 0),
        )[-1]
        (later,) = (set(map(FIELDS[kind].get, record.later)) for record in RECORDS if record.kind == kind)
        read = {path.partition(".")[0] for path in set(FIELDS[kind].values()) - later}
        missing = read - set(dir(getattr(real, newest)))
        assert not missing, f"{newest} has no {missing}"


def test_the_real_packages_functions_take_what_the_stand_ins_take(real):
    for name, parameters in FUNCTIONS.items():
        documented = re.match(rf"{name}\(([^)]*)\)", getattr(real, name).__doc__ or "")
        assert documented, name
        names = [part.split(":")[0].split("=")[0].split()[-1] for part in documented[1].split(",") if part.strip()]
        assert names == parameters
        assert list(inspect.signature(getattr(FakeCupti, name)).parameters)[1:] == parameters
    assert issubclass(real.cuptiError, Exception)
    assert real.cuptiError(39).status == 39


def test_the_real_package_without_a_driver_says_so(real):
    try:
        real.get_timestamp()
    except Exception as error:
        source = CuptiPythonSource()
        found = source.probe()
        assert (found["available"], found["error"]) == (False, "driver-not-found")
        with pytest.raises(errors.DriverNotFoundError, match=re.escape(str(error))):
            source.start(TraceOptions())
    else:
        pytest.skip("there is a driver here: tests/gpu records with the real package")
