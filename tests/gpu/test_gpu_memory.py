"""Allocations and frees of a known program, compared with their records."""

import pytest

import collector
from collector.options import KINDS

WITH_MEMORY = (*KINDS, "memory_operations")
ALLOCATION, RELEASE = 1, 2
PINNED, DEVICE = 2, 3  # CUPTI's memory kinds
NO_STREAM = 0xFFFFFFFF
LOCAL_POOL = 1
MEGABYTE = 1 << 20


def rows(table, *columns):
    return list(zip(*(getattr(table, column).tolist() for column in columns), strict=True))


def test_each_allocation_is_recorded_with_its_address_and_its_end(cuda):
    with collector.trace(strict=True, kinds=WITH_MEMORY) as step:
        with collector.annotate("weights"):
            first = cuda.allocate(3 * MEGABYTE)
        second = cuda.allocate(5 * MEGABYTE)
        cuda.free(first)
        cuda.free(second)
    operations = step.recording.memory_operations
    assert rows(operations, "operation", "memory_kind", "address") == [
        (ALLOCATION, DEVICE, first),
        (ALLOCATION, DEVICE, second),
        (RELEASE, DEVICE, first),
        (RELEASE, DEVICE, second),
    ]
    allocated = operations.num_bytes[:2].tolist()
    assert all(asked <= size < asked + 2 * MEGABYTE for asked, size in zip((3 << 20, 5 << 20), allocated, strict=True))
    assert set(operations.device_id.tolist()) == {0}
    assert operations.is_async.tolist() == [0] * 4
    assert step.recording.annotations_of(operations) == ["weights", "", "", ""]
    calls = step.recording.api_calls[step.recording.launch_rows(operations.correlation_id)]
    assert [name.partition("_")[0] for name in calls.names()] == ["cuMemAlloc"] * 2 + ["cuMemFree"] * 2
    assert step.ledger.complete, step.ledger.losses()


def test_pinned_memory_is_distinguished_from_device_memory(cuda):
    with collector.trace(strict=True, kinds=WITH_MEMORY) as step, cuda.pinned(MEGABYTE):
        pass
    operations = step.recording.memory_operations
    assert rows(operations, "operation", "memory_kind") == [(ALLOCATION, PINNED), (RELEASE, PINNED)]
    assert step.ledger.complete, step.ledger.losses()


def test_memory_of_a_pool_comes_in_the_order_of_its_stream(cuda):
    stream = cuda.stream()
    with collector.trace(strict=True, kinds=WITH_MEMORY) as step:
        address = cuda.allocate_in_order(MEGABYTE, stream)
        cuda.launch_empty(1, stream)
        cuda.free_in_order(address, stream)
    operations = step.recording.memory_operations
    assert rows(operations, "operation", "address", "is_async") == [(ALLOCATION, address, 1), (RELEASE, address, 1)]
    assert operations.stream_id.tolist() == step.kernels.stream_id.tolist() * 2
    assert operations.pool_type.tolist() == [LOCAL_POOL] * 2
    assert operations.pool_used_bytes[0] >= MEGABYTE
    assert operations.pool_bytes[0] >= operations.pool_used_bytes[0]


def test_it_is_not_recorded_unless_asked_for(cuda):
    with collector.trace(strict=True) as step:
        cuda.free(cuda.allocate(MEGABYTE))
    assert len(step.recording.memory_operations) == 0


@pytest.mark.parametrize("count", [1, 1000])
def test_no_allocation_is_lost(cuda, count):
    with collector.trace(strict=True, kinds=WITH_MEMORY) as step:
        for _ in range(count):
            cuda.free(cuda.allocate(4096))
    operations = step.recording.memory_operations
    assert operations.operation.tolist() == [ALLOCATION, RELEASE] * count
    assert (operations.stream_id == NO_STREAM).all()
    assert step.ledger.complete, step.ledger.losses()
