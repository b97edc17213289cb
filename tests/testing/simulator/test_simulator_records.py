"""The simulated CUPTI's records of the simulated program's work."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    INVALID_KIND,
    KERNEL,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    NOT_COMPATIBLE,
    RUNTIME,
    CuptiClient,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

HOST_THREAD = ctypes.CDLL(None).pthread_self


HOST_THREAD.restype = ctypes.c_uint64


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
