"""Memory allocated and freed, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

import pytest

import collector
from collector.errors import CollectorError
from collector.options import KINDS
from collector.testing import SimulatedGpu

WITH_MEMORY = (*KINDS, "memory_operations")
NO_STREAM = 0xFFFFFFFF
VERSIONS = ["12.0", "12.4", "12.6", "12.8", "13.0", "13.2", "13.5"]


def columns(table, *names):
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


@pytest.mark.parametrize("cuda", VERSIONS)
def test_what_is_allocated_and_freed_is_recorded(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda, devices=2) as gpu, collector.trace(kinds=WITH_MEMORY, strict=True) as step:
        with collector.annotate("model"):
            weights = gpu.malloc(1000, device=1)
        pinned = gpu.malloc(64, kind="pinned")
        managed = gpu.malloc(256, kind="managed")
        scratch = gpu.malloc(4096, stream=9)
        gpu.free(scratch, stream=9)
        gpu.free(pinned)
        assert gpu.misuse() == {}
    operations = step.recording.memory_operations
    assert columns(operations, "operation", "memory_kind", "address", "num_bytes", "device_id", "stream_id") == [
        (1, 3, weights, 1000, 1, NO_STREAM),
        (1, 2, pinned, 64, 0, NO_STREAM),
        (1, 5, managed, 256, 0, NO_STREAM),
        (1, 3, scratch, 4096, 0, 9),
        (2, 3, scratch, 4096, 0, 9),
        (2, 2, pinned, 64, 0, NO_STREAM),
    ]
    assert operations.is_async.tolist() == [0, 0, 0, 1, 1, 0]
    assert columns(operations, "pool_type", "pool_bytes", "pool_used_bytes")[2:5] == [
        (0, 0, 0),
        (1, 32 << 20, 4096),
        (1, 0, 0),
    ]
    assert step.recording.annotations_of(operations) == ["model", "", "", "", "", ""]
    assert operations.names() == [""] * 6
    assert step.ledger.memory_operations == 6
    assert step.ledger.complete


def test_each_is_found_with_the_call_that_made_it() -> None:
    with SimulatedGpu() as gpu, collector.trace(kinds=WITH_MEMORY, strict=True) as step:
        gpu.free(gpu.malloc(8))
        gpu.free(gpu.malloc(8, stream=7), stream=7)
        gpu.free(gpu.malloc(8, kind="managed", launch="runtime"), launch="driver")
        gpu.free(gpu.malloc(8, kind="pinned", launch="driver"))
    recording = step.recording
    calls = recording.api_calls[recording.launch_rows(recording.memory_operations.correlation_id)]
    assert [name.partition("_v")[0] for name in calls.names()] == [
        "cudaMalloc",
        "cudaFree",
        "cudaMallocAsync",
        "cudaFreeAsync",
        "cudaMallocManaged",
        "cuMemFree",
        "cuMemHostAlloc",
        "cudaFreeHost",
    ]
    assert (recording.memory_operations.start_ns >= calls.start_ns).all()
    assert (recording.memory_operations.start_ns <= calls.end_ns).all()


def test_it_is_recorded_only_when_asked_for() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.malloc(8)
        assert 49 not in gpu.statistics().records
    assert len(step.recording.memory_operations) == 0
    assert len(step.recording.api_calls) == 2


def test_memory_of_pools_and_of_the_host_counts_where_it_belongs() -> None:
    from collector.testing.plugin.driver import load_driver

    with SimulatedGpu() as gpu:
        driver = load_driver()
        pinned = gpu.malloc(1 << 20, kind="pinned")
        pooled = gpu.malloc(100, stream=7)
        managed = gpu.malloc(10, kind="managed")
        assert driver.used_bytes() == {0: 110}
        for address in (pinned, pooled, managed):
            gpu.free(address)
        assert driver.used_bytes() == {0: 0}
        with pytest.raises(CollectorError, match="nothing is allocated"):
            gpu.free(pinned)


def test_only_device_memory_comes_from_pools() -> None:
    with SimulatedGpu() as gpu, pytest.raises(CollectorError, match="pinned memory is not allocated in the order"):
        gpu.malloc(8, kind="pinned", stream=7)


def test_a_program_s_driver_calls_are_recorded_too() -> None:
    import ctypes

    from collector.testing.simulator_library import library_path

    with SimulatedGpu() as gpu, collector.trace(kinds=WITH_MEMORY, strict=True) as step:
        driver, context, address = ctypes.CDLL(str(library_path())), ctypes.c_void_p(), ctypes.c_uint64()
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxPushCurrent_v2(context) == 0
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
        assert driver.cuMemFree_v2(address) == 0
        assert driver.cuMemFree_v2(address) == 1
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        assert gpu.misuse() == {}
    assert columns(step.recording.memory_operations, "operation", "address", "num_bytes") == [
        (1, address.value, 4096),
        (2, address.value, 4096),
    ]
