"""Memory allocated and freed, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

import json

import pytest
from reference.in_python import use_python

import collector
from collector.errors import CollectorError
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

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
        (1, 32 << 20, 4096),  # a release shows the use before it
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

    from collector.testing.simulator.simulator_library import library_path

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


@pytest.fixture
def step(tmp_path):
    """A step that allocates on two devices, and frees also what was there before."""
    with SimulatedGpu(devices=2, cuda="13.0") as gpu:
        before = gpu.malloc(100)
        gpu.launch("sgemm")
        with collector.trace(tmp_path / "step.json", kinds=WITH_MEMORY, strict=True) as step:
            first = gpu.malloc(1000)
            gpu.malloc(5000, stream=7)
            gpu.malloc(64, kind="pinned")
            gpu.malloc(77, device=1)
            gpu.launch("sgemm")
            gpu.free(first)
            gpu.free(before)
            gpu.synchronize()
    return step


def test_a_call_s_node_has_the_memory_that_it_took_or_gave_back(step) -> None:
    host = step.step_stats.dev_stats[0]
    assert host.device == "/cpu:0"
    rows = [
        (node.node_name, used.allocator_name, [record.alloc_bytes for record in used.allocation_records])
        for node in host.node_stats
        for used in node.memory
    ]
    assert rows == [
        ("cudaMalloc", "gpu:0", [1000]),
        ("cudaMallocAsync", "gpu:0", [5000]),
        ("cudaMalloc", "gpu:1", [77]),
        ("cudaFree", "gpu:0", [-1000]),
        ("cudaFree", "gpu:0", [-100]),
    ]
    (used,) = host.node_stats[0].memory
    assert (used.total_bytes, used.peak_bytes, used.live_bytes) == (1000, 1000, 1000)
    operations = step.recording.memory_operations
    assert used.allocation_records[0].alloc_micros * 1000 <= operations.start_ns[0] + step.recording.clock.offset_ns


def test_without_the_extension_the_bytes_are_the_same(step, monkeypatch) -> None:
    from collector.stepstats.from_recording import serialized

    native = serialized(step.recording)
    use_python(monkeypatch)
    assert serialized(step.recording) == native


def test_the_trace_counts_each_device_s_memory(step) -> None:
    events = json.loads(step.options.path.read_text())["traceEvents"]
    levels: dict[str, list[int]] = {}
    for event in events:
        if event["ph"] == "C" and event["name"].startswith("memory "):
            levels.setdefault(event["name"], []).append(event["args"]["bytes"])
    assert levels == {"memory gpu:0": [1000, 6000, 5000, 4900], "memory gpu:1": [77]}


def test_a_release_without_a_size_gives_back_the_allocated_bytes(step) -> None:
    from collector.recording.recording import Recording
    from collector.stepstats.from_recording import step_stats

    capture = step.recording.to_capture()
    columns = capture["tables"]["memory_operations"]
    columns["num_bytes"] = columns["num_bytes"] * (columns["operation"] == 1)
    nodes = step_stats(Recording.from_capture(capture)).dev_stats[0].node_stats
    memory = [used for node in nodes for used in node.memory]
    freed = [record.alloc_bytes for used in memory for record in used.allocation_records if not used.total_bytes]
    assert freed == [-1000]  # of the other nothing is known
