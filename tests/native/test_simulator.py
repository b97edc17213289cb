"""The simulated libcupti and libcuda, through their C interface: layouts, ids, order, buffers, as CUPTI has them."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    EVERY_KIND,
    EXTERNAL_CORRELATION,
    INVALID_KIND,
    INVALID_PARAMETER,
    KERNEL,
    MAX_LIMIT_REACHED,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    MULTIPLE_SUBSCRIBERS,
    NOT_COMPATIBLE,
    OVERHEAD,
    QUEUE_EMPTY,
    RUNTIME,
    SUCCESS,
    SYNCHRONIZATION,
    CuptiClient,
)

from collector.testing import SimulatedGpu

VERSIONS = ["12.0", "12.4", "12.8", "13.0", "13.1", "13.3", "13.5"]

API_VERSIONS = {
    "12.0": 18,
    "12.1": 18,
    "12.2": 20,
    "12.3": 21,
    "12.4": 22,
    "12.5": 23,
    "12.6": 24,
    "12.8": 26,
    "12.9": 28,
}
API_VERSIONS |= {"13.0": 130001, "13.1": 130101, "13.2": 130202, "13.3": 130301, "13.4": 130401, "13.5": 130500}

STRIDES = {
    "12.0": {CONCURRENT_KERNEL: 208, MEMCPY: 88, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 40, SYNCHRONIZATION: 40},
    "12.4": {CONCURRENT_KERNEL: 208, MEMCPY: 88, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 40},
    "12.8": {CONCURRENT_KERNEL: 208, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.0": {CONCURRENT_KERNEL: 216, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.1": {CONCURRENT_KERNEL: 224, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.3": {CONCURRENT_KERNEL: 232, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.5": {CONCURRENT_KERNEL: 248, MEMCPY: 112, MEMCPY2: 96, MEMSET: 104, OVERHEAD: 56, SYNCHRONIZATION: 56},
}
"""Bytes per record, from the measured ABI; API records are 40 and external correlations 24 in every version."""

HOST_THREAD = ctypes.CDLL(None).pthread_self
HOST_THREAD.restype = ctypes.c_uint64


@pytest.mark.parametrize("cuda", API_VERSIONS)
def test_version_number_is_that_of_the_newest_patch(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda):
        version = ctypes.c_uint32()
        client = CuptiClient()
        client.check("cuptiGetVersion", ctypes.byref(version))
        assert version.value == API_VERSIONS[cuda]
        assert client("collector_simulator_version") == API_VERSIONS[cuda]


def test_older_patch_release_can_be_asked_for() -> None:
    with SimulatedGpu(cuda="13.0", api_version=130000):
        assert CuptiClient()("collector_simulator_version") == 130000


@pytest.mark.parametrize(
    ("symbol", "since"),
    [
        ("cuptiActivityEnable", "12.0"),
        ("cuptiGetErrorMessage", "12.2"),
        ("cuptiActivityEnableRuntimeApi", "12.5"),
        ("cuptiActivityEnableAllSyncRecords", "12.8"),
        ("cuptiSubscribe_v2", "13.0"),
        ("cuptiActivityGetStructSize", "13.2"),
        ("cuInit", "12.0"),
    ],
)
def test_functions_appear_with_their_version(symbol: str, since: str) -> None:
    order = list(API_VERSIONS)
    for cuda in order:
        with SimulatedGpu(cuda=cuda):
            present = CuptiClient()("collector_simulator_has", symbol.encode())
            assert bool(present) == (order.index(cuda) >= order.index(since)), cuda


def test_unknown_function_is_absent() -> None:
    with SimulatedGpu():
        assert CuptiClient()("collector_simulator_has", b"cuptiActivityEnable_v9") == 0


def test_absent_function_does_nothing_but_be_counted() -> None:
    with SimulatedGpu(cuda="12.0") as gpu:
        assert CuptiClient()("cuptiActivityEnableAllSyncRecords", 0) != SUCCESS
        assert gpu.misuse() == {"absent_function": 1}


@pytest.mark.parametrize("cuda", VERSIONS)
def test_record_layouts(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda, devices=2) as gpu:
        client = CuptiClient().open()
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(1))
        gpu.launch("k", launch="runtime")
        gpu.memcpy("HtoD", 64, launch="driver")
        gpu.memset(64)
        gpu.memcpy_peer(0, 1, 64)
        gpu.overhead(65536)
        gpu.synchronize()
        client.flush()
        seen = {record.kind: len(record.data) for record in client.records()}
        expected = STRIDES[cuda] | {RUNTIME: 40, DRIVER: 40, EXTERNAL_CORRELATION: 24}
        assert seen == expected
        assert not gpu.misuse()


@pytest.mark.parametrize("cuda", ["13.2", "13.4"])
def test_struct_sizes_can_be_asked_for(cuda: str) -> None:
    sizes = {"13.2": (224, 96), "13.4": (248, 112)}[cuda]
    with SimulatedGpu(cuda=cuda):
        client = CuptiClient()
        size = ctypes.c_size_t()
        for kind, expected in zip((CONCURRENT_KERNEL, MEMCPY), sizes, strict=True):
            client.check("cuptiActivityGetStructSize", kind, 0, ctypes.byref(size))
            assert size.value == expected
        assert client("cuptiActivityGetStructSize", 77, 0, ctypes.byref(size)) == INVALID_KIND


ABSENT_BYTES = [
    ("12.0", MEMCPY, 84, 1),
    ("12.8", MEMCPY, 84, 1),
    ("12.0", MEMSET, 84, 1),
    ("13.0", CONCURRENT_KERNEL, 209, 7),
    ("13.3", CONCURRENT_KERNEL, 228, 4),
]
PRESENT_BYTES = [
    ("13.0", MEMCPY, 84, 1, 0),
    ("12.8", MEMCPY, 88, 8, 1),
    ("13.0", CONCURRENT_KERNEL, 208, 1, 0),
    ("13.1", CONCURRENT_KERNEL, 216, 4, 0),
    ("13.3", CONCURRENT_KERNEL, 224, 4, 1),
    ("13.5", CONCURRENT_KERNEL, 232, 4, 0),
    ("13.5", CONCURRENT_KERNEL, 240, 8, 0),
    ("13.5", MEMSET, 88, 4, 0),
]


@pytest.mark.parametrize(("cuda", "kind", "offset", "length"), ABSENT_BYTES)
def test_bytes_without_a_field_are_noise(cuda: str, kind: int, offset: int, length: int) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient().open()
        gpu.launch("k")
        gpu.memcpy("HtoD", 64)
        gpu.memset(64)
        gpu.synchronize()
        client.flush()
        (record,) = client.records(kind)
        assert record.data[offset : offset + length] == b"\xa5" * length


@pytest.mark.parametrize(("cuda", "kind", "offset", "length", "value"), PRESENT_BYTES)
def test_newer_fields_hold_their_value(cuda: str, kind: int, offset: int, length: int, value: int) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient().open()
        gpu.launch("k")
        gpu.memcpy("HtoD", 64)
        gpu.memset(64)
        gpu.synchronize()
        client.flush()
        (record,) = client.records(kind)
        assert int.from_bytes(record.data[offset : offset + length], "little") == value


def test_launch_leaves_a_call_of_each_api_and_a_kernel_under_one_id() -> None:
    with SimulatedGpu(start_ns=1_000_000) as gpu:
        client = CuptiClient().open()
        client.check("cuptiSetThreadIdType", 1)
        correlation = gpu.launch(
            "_Z5sgemmPf",
            stream=9,
            duration_ns=12_345,
            grid=(3, 4, 5),
            block=(32, 2, 1),
            registers_per_thread=40,
            static_shared_bytes=16,
            dynamic_shared_bytes=1024,
        )
        gpu.synchronize()
        client.flush()
        (runtime,) = [call for call in client.records(RUNTIME) if call.correlation == correlation]
        (driver,) = [call for call in client.records(DRIVER) if call.correlation == correlation]
        (kernel,) = client.records(CONCURRENT_KERNEL)
        assert (runtime.cbid, driver.cbid) == (211, 307)
        assert 1_000_000 <= runtime.start < driver.start < driver.end < runtime.end <= kernel.start
        assert runtime.process == driver.process == os.getpid()
        assert runtime.thread == driver.thread == threading.get_native_id()
        assert kernel.text == "_Z5sgemmPf"
        assert kernel.end - kernel.start == 12_345
        assert kernel.completed == kernel.end
        assert (kernel.device, kernel.context, kernel.stream) == (0, 1, 9)
        assert (kernel.grid, kernel.block, kernel.cluster) == ((3, 4, 5), (32, 2, 1), (1, 1, 1))
        assert (kernel.registers, kernel.static_shared, kernel.dynamic_shared) == (40, 16, 1024)
        assert kernel.correlation == correlation


def test_thread_ids_are_cut_posix_ones_by_default() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.launch("k")
        client.flush()
        (call,) = client.records(RUNTIME)
        assert call.thread == HOST_THREAD() & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("launch", "calls"), [("both", [DRIVER, RUNTIME]), ("runtime", [RUNTIME]), ("driver", [DRIVER]), ("none", [])]
)
def test_calls_are_made_through_the_api_asked_for(launch: str, calls: list[int]) -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME, DRIVER)
        gpu.launch("k", launch=launch)  # type: ignore[arg-type]
        client.flush()
        assert [record.kind for record in client.records()] == calls


def test_only_enabled_kinds_are_recorded() -> None:
    for kind in (CONCURRENT_KERNEL, MEMCPY, MEMSET):
        with SimulatedGpu() as gpu:
            client = CuptiClient().open(kind)
            gpu.launch("k")
            gpu.memcpy("DtoH", 8)
            gpu.memset(8)
            gpu.synchronize()
            client.flush()
            assert [record.kind for record in client.records()] == [kind]


def test_copies_and_fills_carry_their_facts() -> None:
    with SimulatedGpu(devices=2) as gpu:
        client = CuptiClient().open()
        gpu.memcpy("DtoH", 4096, device=1, stream=3, duration_ns=700, dst="pinned")
        gpu.memset(512, value=171, stream=4, asynchronous=False)
        gpu.synchronize()
        client.flush()
        (copy,) = client.records(MEMCPY)
        assert (copy.copy_kind, copy.src_kind, copy.dst_kind, copy.flags) == (2, 3, 2, 1)
        assert (copy.bytes, copy.device, copy.context, copy.stream) == (4096, 1, 2, 3)
        assert copy.end - copy.start == 700
        (fill,) = client.records(MEMSET)
        assert (fill.value, fill.bytes, fill.stream, fill.flags, fill.memory_kind) == (171, 512, 4, 0, 3)
        blocking = [call for call in client.records(RUNTIME) if call.correlation == fill.correlation]
        assert blocking[0].end == fill.end


def test_peer_copy_needs_both_copy_kinds() -> None:
    for kinds, recorded in (((MEMCPY2,), 0), ((MEMCPY,), 0), ((MEMCPY, MEMCPY2), 1)):
        with SimulatedGpu(devices=2) as gpu:
            client = CuptiClient().open(*kinds)
            gpu.memcpy_peer(0, 1, 1 << 20)
            gpu.synchronize()
            client.flush()
            assert len(client.records(MEMCPY2)) == recorded
            for copy in client.records(MEMCPY2):
                assert (copy.copy_kind, copy.src_device, copy.dst_device) == (10, 0, 1)
                assert (copy.src_context, copy.dst_context, copy.bytes) == (1, 2, 1 << 20)


def test_a_stream_runs_in_order_and_streams_run_side_by_side() -> None:
    with SimulatedGpu(gap_ns=100) as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("a", stream=1, duration_ns=1_000_000)
        gpu.launch("b", stream=1, duration_ns=1_000_000)
        gpu.launch("c", stream=2, duration_ns=10)
        gpu.synchronize()
        client.flush()
        by_name = {record.text: record for record in client.records()}
        assert by_name["b"].start == by_name["a"].end + 100
        assert by_name["c"].end < by_name["a"].end
        assert [record.text for record in client.records()] == ["c", "a", "b"]


def test_contexts_of_one_device_have_streams_of_their_own() -> None:
    with SimulatedGpu(devices=2) as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        other = gpu.create_context(device=1)
        gpu.launch("a", device=1, stream=7, duration_ns=1_000_000)
        gpu.launch("b", device=1, stream=7, duration_ns=10, context=other)
        gpu.synchronize()
        client.flush()
        assert [(record.text, record.context) for record in client.records()] == [("b", other), ("a", 2)]


def test_events_order_streams() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL, SYNCHRONIZATION)
        gpu.launch("a", stream=1, duration_ns=1_000_000)
        event = gpu.record_event(stream=1)
        gpu.wait_event(event, stream=2)
        gpu.launch("b", stream=2, duration_ns=10)
        gpu.synchronize_event(event)
        gpu.synchronize()
        client.flush()
        first, second = client.records(CONCURRENT_KERNEL)
        assert second.start >= first.end
        wait, synchronized = client.records(SYNCHRONIZATION)[:2]
        assert (wait.type, wait.stream, wait.event) == (2, 2, event)
        assert (synchronized.type, synchronized.event, synchronized.end) == (1, event, first.end)


def test_synchronization_records() -> None:
    none = 0xFFFFFFFF
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(SYNCHRONIZATION, RUNTIME)
        gpu.launch("k", stream=3, duration_ns=50_000)
        gpu.synchronize(stream=3)
        gpu.synchronize()
        client.flush()
        stream, context = client.records(SYNCHRONIZATION)
        assert (stream.type, stream.context, stream.stream, stream.event) == (3, 1, 3, none)
        assert (context.type, context.context, context.stream, context.event) == (4, 1, none, none)
        assert stream.end - stream.start > 50_000 - 4_000
        call = next(call for call in client.records(RUNTIME) if call.correlation == stream.correlation)
        assert (call.cbid, call.start, call.end) == (131, stream.start, stream.end)


def test_graph_nodes_share_the_launch() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open()
        nodes = [("a", 100), ("b", 200), ("c", 300)]
        correlations = [gpu.launch_graph(nodes, graph_id=5), gpu.launch_graph(nodes, graph_id=5)]
        gpu.synchronize()
        client.flush()
        kernels = client.records(CONCURRENT_KERNEL)
        assert [kernel.correlation for kernel in kernels] == [c for c in correlations for _ in nodes]
        assert {kernel.graph for kernel in kernels} == {5}
        assert len({kernel.graph_node for kernel in kernels}) == 3
        assert [kernel.text for kernel in kernels] == ["a", "b", "c"] * 2
        launches = [call for call in client.records(RUNTIME) if call.correlation in correlations]
        assert [call.cbid for call in launches] == [311, 311]


def test_external_ids_precede_the_call_they_were_pushed_for() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME, DRIVER, EXTERNAL_CORRELATION)
        push, pop = "cuptiActivityPushExternalCorrelationId", "cuptiActivityPopExternalCorrelationId"
        client.check(push, 5, ctypes.c_uint64(1 << 40))
        client.check(push, 5, ctypes.c_uint64(2))
        client.check(push, 3, ctypes.c_uint64(30))
        gpu.launch("inner")
        last = ctypes.c_uint64()
        client.check(pop, 5, ctypes.byref(last))
        assert last.value == 2
        client.check(pop, 3, None)
        gpu.launch("outer")
        client.check(pop, 5, ctypes.byref(last))
        assert last.value == 1 << 40
        gpu.launch("none")
        client.flush()
        seen = [
            (r.external_kind, r.external_id, r.correlation) if r.kind == EXTERNAL_CORRELATION else r.kind
            for r in client.records()
        ]
        call = [DRIVER, RUNTIME]
        assert seen == [(3, 30, 1), (5, 2, 1), *call, (5, 1 << 40, 2), *call, *call]


def test_popping_an_empty_stack_is_an_error_and_stacks_belong_to_threads() -> None:
    with SimulatedGpu():
        client = CuptiClient()
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(1))
        results: list[int] = []
        other = threading.Thread(
            target=lambda: results.append(client("cuptiActivityPopExternalCorrelationId", 5, None))
        )
        other.start()
        other.join()
        assert results == [QUEUE_EMPTY]
        assert client("cuptiActivityPopExternalCorrelationId", 4, None) == QUEUE_EMPTY
        assert client("cuptiActivityPopExternalCorrelationId", 9, None) == INVALID_PARAMETER
        client.check("cuptiActivityPopExternalCorrelationId", 5, None)


def test_external_ids_need_an_api_kind() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL, EXTERNAL_CORRELATION)
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(1))
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        assert [record.kind for record in client.records()] == [CONCURRENT_KERNEL]


def test_api_filters_last_until_the_kind_is_enabled_again() -> None:
    get_device = 17
    with SimulatedGpu(cuda="12.5") as gpu:
        client = CuptiClient().open(RUNTIME)
        client.check("cuptiActivityEnableRuntimeApi", get_device, 0)
        gpu.api_call("cudaGetDevice_v3020")
        gpu.api_call("cudaMalloc_v3020")
        client.check("cuptiActivityEnable", RUNTIME)
        gpu.api_call("cudaGetDevice_v3020")
        client.flush()
        assert [record.cbid for record in client.records()] == [20, get_device]


def test_kernel_names_are_handed_out_by_address() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        for name in ("a", "b", "a"):
            gpu.launch(name)
        gpu.synchronize()
        client.flush()
        first, second, third = (record.name for record in client.records())
        assert first == third != second


def test_reloaded_module_reuses_the_name_s_address() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("old_kernel")
        gpu.synchronize()
        client.flush()
        gpu.reload_module("old_kernel", "its_successor")
        gpu.launch("its_successor")
        gpu.launch("old_kernel")
        gpu.synchronize()
        client.flush()
        first, second, third = client.records()
        assert first.name == second.name
        assert second.text == "its_successor"
        assert third.name != first.name


def test_latency_timestamps_on_demand() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("k")
        gpu.synchronize()
        client.check("cuptiActivityEnableLatencyTimestamps", 1)
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        without, with_them = client.records()
        assert (without.queued, without.submitted) == (0, 0)
        assert 0 < with_them.queued < with_them.submitted < with_them.start


def test_kernel_and_concurrent_kernel_exclude_each_other() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        assert client("cuptiActivityEnable", KERNEL) == NOT_COMPATIBLE
        client.check("cuptiActivityDisable", CONCURRENT_KERNEL)
        client.check("cuptiActivityEnable", KERNEL)
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        assert [record.kind for record in client.records()] == [KERNEL]
        assert gpu.misuse() == {"serialising_kernel_kind": 1}


def test_unknown_kind_cannot_be_enabled() -> None:
    with SimulatedGpu():
        assert CuptiClient()("cuptiActivityEnable", 60) == INVALID_KIND


# -- Time -------------------------------------------------------------------------------------------------------------


def test_clock_moves_with_the_work_only() -> None:
    with SimulatedGpu(start_ns=5_000, api_call_ns=1_000) as gpu:
        client = CuptiClient()
        assert client.timestamp() == 5_000
        gpu.launch("k", duration_ns=100_000)
        assert client.timestamp() == 6_000
        gpu.advance(50)
        assert gpu.now_ns == client.timestamp() == 6_050
        gpu.synchronize()
        assert client.timestamp() > 100_000


def test_clock_can_follow_real_time() -> None:
    with SimulatedGpu(start_ns=5_000, real_time=True) as gpu:
        before = gpu.now_ns
        while gpu.now_ns == before:
            pass
        assert gpu.now_ns > before


def test_same_program_same_times() -> None:
    def times() -> list[tuple[int, int]]:
        with SimulatedGpu(start_ns=1_000) as gpu:
            client = CuptiClient().open(CONCURRENT_KERNEL, MEMCPY, RUNTIME)
            for stream in range(3):
                gpu.launch("k", stream=stream)
                gpu.memcpy("HtoD", 1 << 20, stream=stream)
            gpu.synchronize()
            client.flush()
            return sorted((record.start, record.end) for record in client.records())

    assert times() == times()


# -- Buffers ----------------------------------------------------------------------------------------------------------


def test_flush_returns_finished_work_only_and_forced_all_of_it_once() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("short", stream=1, duration_ns=10)
        gpu.launch("long", stream=2, duration_ns=10**9)
        gpu.advance(100_000)
        client.flush()
        assert [record.text for record in client.records()] == ["short"]
        client.flush(forced=True)
        unfinished = client.records()[1]
        assert (unfinished.text, unfinished.end) == ("long", 0)
        assert unfinished.start > 0
        gpu.synchronize()
        client.flush(forced=True)
        assert len(client.records()) == 2


@pytest.mark.parametrize("deliver", ["worker", "caller"])
def test_full_buffers_come_back_without_a_flush(deliver: str) -> None:
    with SimulatedGpu(deliver=deliver) as gpu:  # type: ignore[arg-type]
        client = CuptiClient(buffer_bytes=1024).open(RUNTIME)
        for _ in range(100):
            gpu.launch("k")
        gpu.wait_until_idle()
        assert len(client.delivered) == 3
        assert all(len(data) == 1000 for data in client.delivered)
        statistics = gpu.statistics()
        assert (statistics.buffers_requested, statistics.buffers_outstanding) == (4, 1)
        client.flush()
        assert len(client.records()) == 100
        assert gpu.statistics().buffers_outstanding == 0


def test_client_can_limit_the_records_per_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(max_records=10).open(RUNTIME)
        for _ in range(25):
            gpu.launch("k")
        client.flush()
        assert [len(data) // 40 for data in client.delivered] == [10, 10, 5]


def test_flush_period_returns_buffers_from_the_simulator_s_thread() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        client.check("cuptiActivityFlushPeriod", 1)
        gpu.launch("k")
        arrived = threading.Event()
        for _ in range(2000):
            if client.delivered:
                break
            arrived.wait(0.005)
        assert len(client.records()) == 1


def test_finished_kernels_are_written_without_being_asked_for() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=216).open(CONCURRENT_KERNEL)
        gpu.launch("a")
        gpu.launch("b")
        gpu.synchronize()
        for _ in range(2000):
            if client.delivered:
                break
            threading.Event().wait(0.005)
        assert [record.text for record in client.records()] == ["a"]


@pytest.mark.parametrize(("cuda", "per_thread"), [("12.2", None), ("12.3", 0), ("12.9", 0), ("13.0", 1)])
def test_buffers_per_thread_by_version(cuda: str, per_thread: int | None) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient()
        if per_thread is None:
            value, size = ctypes.c_uint8(), ctypes.c_size_t(1)
            assert client("cuptiActivityGetAttribute", 9, ctypes.byref(size), ctypes.byref(value)) == INVALID_PARAMETER
        else:
            assert client.get_attribute(9, ctypes.c_uint8) == per_thread
        client.open(RUNTIME)
        threads = [threading.Thread(target=gpu.launch, args=("k",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.flush()
        assert len(client.delivered) == (3 if per_thread else 1)
        assert len(client.records()) == 3


def test_attributes_keep_what_is_set() -> None:
    with SimulatedGpu(cuda="12.4") as gpu:
        client = CuptiClient()
        assert client.get_attribute(2, ctypes.c_size_t) == 250
        client.set_attribute(2, ctypes.c_size_t(8))
        assert client.get_attribute(2, ctypes.c_size_t) == 8
        wrong = ctypes.c_size_t(8)
        assert client("cuptiActivitySetAttribute", 5, ctypes.byref(wrong), ctypes.byref(wrong)) == INVALID_PARAMETER
        assert not gpu.misuse()


def test_cupti_zeroes_buffers_unless_the_client_does() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.dirty = True
        client.open(RUNTIME)
        gpu.launch("k")
        client.flush()
        assert not gpu.misuse()


def test_declined_buffers_drop_records() -> None:
    with SimulatedGpu(cuda="12.9") as gpu:
        client = CuptiClient()
        client.decline = True
        client.open(RUNTIME, DRIVER)
        gpu.launch("k")
        assert client.dropped() == 2
        assert client.dropped() == 0
        client.decline = False
        gpu.launch("k")
        client.flush()
        assert len(client.records()) == 2
        assert gpu.statistics().buffers_declined == 2
        assert not gpu.misuse()


def test_unfinished_walk_tells_cut_from_unknown() -> None:
    with SimulatedGpu(cuda="12.4"):
        client = CuptiClient()
        kernel = (10).to_bytes(4, "little") + bytes(204)
        unknown = (200).to_bytes(4, "little") + bytes(36)
        assert client.walk(kernel + kernel)[1] == MAX_LIMIT_REACHED
        assert len(client.walk(kernel + kernel[:-8])[0]) == 1
        assert client.walk(kernel + unknown)[1] == INVALID_KIND
        assert client.walk(bytes(64)) == ([], INVALID_KIND)
        assert client.walk(b"") == ([], MAX_LIMIT_REACHED)


def test_bulk_launches_are_all_recorded() -> None:
    count = 200_000
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=4 << 20).open(CONCURRENT_KERNEL, RUNTIME)
        gpu.launch("k", count=count, duration_ns=100)
        client.flush()
        statistics = gpu.statistics()
        assert statistics.launches == count
        assert statistics.records == {CONCURRENT_KERNEL: count, RUNTIME: count}
        assert sum(len(data) for data in client.delivered) == count * (216 + 40) == statistics.bytes_completed
        assert statistics.complete_latency.count == statistics.buffers_completed == len(client.delivered)
        assert statistics.complete_latency.p50_ns <= statistics.complete_latency.max_ns
        last = client.walk(client.delivered[-1])[0]
        assert {kind for kind, _ in last} == {CONCURRENT_KERNEL, RUNTIME}


def test_threads_launch_side_by_side() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=8192).open(CONCURRENT_KERNEL, RUNTIME)

        def program(stream: int) -> None:
            for _ in range(200):
                gpu.launch(f"k{stream}", stream=stream)

        threads = [threading.Thread(target=program, args=(stream,)) for stream in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gpu.synchronize()
        client.flush()
        kernels = client.records(CONCURRENT_KERNEL)
        calls = {call.correlation for call in client.records(RUNTIME)}
        assert len(kernels) == len({kernel.correlation for kernel in kernels}) == 800
        assert {kernel.correlation for kernel in kernels} <= calls


# -- Replay -----------------------------------------------------------------------------------------------------------


def test_replay_emits_exactly_what_it_is_given() -> None:
    with SimulatedGpu(devices=4, start_ns=500) as gpu:
        client = CuptiClient().open()
        replayed = gpu.replay(
            kernels=[
                {
                    "name": "k",
                    "start_ns": 2_000,
                    "end_ns": 2_001,
                    "device": 3,
                    "stream": 21,
                    "grid": (1, 2, 3),
                    "block": (4, 5, 6),
                    "correlation": 77,
                    "graph_id": 4,
                    "graph_node_id": 1 << 33,
                    "launch_start_ns": 1_000,
                    "launch_end_ns": 1_500,
                },
                {"name": "zero", "start_ns": 3_000, "end_ns": 3_000, "correlation": 77},
            ],
            memcpys=[
                {"kind": "HtoD", "num_bytes": 1 << 35, "start_ns": 10, "end_ns": 20, "src": "pinned", "launch": "none"}
            ],
            memsets=[{"num_bytes": 9, "value": 1, "start_ns": 30, "end_ns": 20, "launch": "driver"}],
        )
        client.flush()
        assert replayed == 4
        first, second = client.records(CONCURRENT_KERNEL)
        assert (first.start, first.end, first.device, first.context, first.stream) == (2_000, 2_001, 3, 4, 21)
        assert (first.grid, first.block, first.text) == ((1, 2, 3), (4, 5, 6), "k")
        assert (first.correlation, first.graph, first.graph_node) == (77, 4, 1 << 33)
        assert (second.start, second.end) == (3_000, 3_000)
        (copy,) = client.records(MEMCPY)
        assert (copy.start, copy.end, copy.bytes, copy.src_kind) == (10, 20, 1 << 35, 2)
        (fill,) = client.records(MEMSET)
        assert (fill.start, fill.end, fill.bytes, fill.value) == (30, 20, 9, 1)
        (launch,) = client.records(RUNTIME)
        assert (launch.correlation, launch.start, launch.end) == (77, 1_000, 1_500)
        assert [call.correlation for call in client.records(DRIVER)] == [fill.correlation, 77]
        assert gpu.now_ns == 3_000
        assert gpu.launch("later") > 77


# -- The subscription -------------------------------------------------------------------------------------------------

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class SubscriberParams(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("subscriber_name", ctypes.c_char_p),
        ("old_subscriber_name", ctypes.c_char_p),
        ("old_subscriber_size", ctypes.c_size_t),
        ("allow_multiple_subscribers", ctypes.c_uint64),
    )


def test_subscriber_sees_calls_enter_and_leave() -> None:
    seen: list[tuple[int, int, int]] = []

    @CALLBACK
    def callback(userdata: int, domain: int, cbid: int, data: int) -> None:
        seen.append((domain, cbid, ctypes.c_uint32.from_address(data).value))

    with SimulatedGpu() as gpu:
        client = CuptiClient()
        handle = ctypes.c_void_p()
        client.check("cuptiSubscribe", ctypes.byref(handle), callback, None)
        client.check("cuptiEnableDomain", 1, handle, 2)
        client.check("cuptiEnableCallback", 1, handle, 1, 307)
        gpu.launch("k")
        assert seen == [(2, 211, 0), (1, 307, 0), (1, 307, 1), (2, 211, 1)]
        client.check("cuptiEnableDomain", 0, handle, 2)
        client.check("cuptiUnsubscribe", handle)
        gpu.launch("k")
        assert len(seen) == 4
        assert client("cuptiUnsubscribe", handle) == INVALID_PARAMETER


def test_one_subscriber_at_a_time_and_v2_names_the_holder() -> None:
    with SimulatedGpu(cuda="13.0"):
        client = CuptiClient()
        handle = ctypes.c_void_p()
        none = CALLBACK()
        holder = ctypes.create_string_buffer(64)
        params = SubscriberParams(32, b"first", ctypes.cast(holder, ctypes.c_char_p), 64)
        client.check("cuptiSubscribe_v2", ctypes.byref(handle), none, None, ctypes.byref(params))
        assert client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), none, None) == MULTIPLE_SUBSCRIBERS
        params.subscriber_name = b"second"
        again = client("cuptiSubscribe_v2", ctypes.byref(ctypes.c_void_p()), none, None, ctypes.byref(params))
        assert again == MULTIPLE_SUBSCRIBERS
        assert holder.value == b"first"
        params.struct_size = 40
        wrong = client("cuptiSubscribe_v2", ctypes.byref(handle), none, None, ctypes.byref(params))
        assert wrong == INVALID_PARAMETER


def test_result_texts_are_those_of_the_version() -> None:
    with SimulatedGpu(cuda="12.4"):
        client = CuptiClient()
        text = ctypes.c_char_p()
        client.check("cuptiGetResultString", 39, ctypes.byref(text))
        assert text.value == b"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
        assert client("cuptiGetResultString", 43, ctypes.byref(text)) == INVALID_PARAMETER
        assert client("cuptiGetLastError") == INVALID_PARAMETER
        assert client("cuptiGetLastError") == SUCCESS


@pytest.mark.parametrize(
    ("domain", "cbid", "name"),
    [(2, 211, b"cudaLaunchKernel_v7000"), (1, 307, b"cuLaunchKernel"), (2, 41, b"cudaMemcpyAsync_v3020")],
)
def test_callback_names(domain: int, cbid: int, name: bytes) -> None:
    with SimulatedGpu():
        client = CuptiClient()
        text = ctypes.c_char_p()
        client.check("cuptiGetCallbackName", domain, cbid, ctypes.byref(text))
        assert text.value == name
        assert client("cuptiGetCallbackName", domain, 1023, ctypes.byref(text)) == INVALID_PARAMETER


# -- The driver -------------------------------------------------------------------------------------------------------


def test_driver_knows_its_devices_and_contexts() -> None:
    with SimulatedGpu(devices=2, cuda="12.4", driver="12.8", name="Test GPU") as gpu:
        client = CuptiClient()
        number = ctypes.c_int()
        client.check("cuInit", 0)
        client.check("cuDriverGetVersion", ctypes.byref(number))
        assert number.value == 12080
        client.check("cuDeviceGetCount", ctypes.byref(number))
        assert number.value == 2
        client.check("cuDeviceGet", ctypes.byref(number), 1)
        assert client("cuDeviceGet", ctypes.byref(number), 2) == 101
        name = ctypes.create_string_buffer(64)
        client.check("cuDeviceGetName", name, 64, 1)
        assert name.value == b"Test GPU"
        flags, active = ctypes.c_uint(), ctypes.c_int()
        client.check("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert active.value == 0
        gpu.launch("k", device=1, duration_ns=10**6)
        client.check("cuDevicePrimaryCtxGetState", 1, ctypes.byref(flags), ctypes.byref(active))
        assert active.value == 1
        context, current = ctypes.c_void_p(), ctypes.c_void_p()
        client.check("cuCtxGetCurrent", ctypes.byref(current))
        assert current.value is None
        assert client("cuCtxSynchronize") == 201
        client.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 1)
        client.check("cuCtxPushCurrent_v2", context)
        client.check("cuCtxGetDevice", ctypes.byref(number))
        assert number.value == 1
        before = gpu.now_ns
        client.check("cuCtxSynchronize")
        assert gpu.now_ns > before + 900_000
        client.check("cuCtxPopCurrent_v2", ctypes.byref(current))
        assert current.value == context.value
        assert client("cuCtxPopCurrent_v2", ctypes.byref(current)) == 201
        client.check("cuDevicePrimaryCtxRelease_v2", 1)


def test_no_device() -> None:
    with SimulatedGpu(devices=0):
        assert CuptiClient()("cuInit", 0) == 100


def test_a_second_simulator_starts_afresh() -> None:
    with SimulatedGpu() as gpu:
        CuptiClient().open()
        gpu.launch("k")
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        assert gpu.launch("k") == 1
        client.flush()
        assert gpu.statistics().records == {}
        assert client.delivered == []


def test_everything_enabled_costs_no_misuse() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(*EVERY_KIND, own_zeroes=True)
        gpu.launch("k")
        gpu.synchronize()
        client.flush(forced=True)
        assert client.records()
        assert gpu.misuse() == {}
