"""What NVIDIA's libcupti 13.0 printed on a GPU about objects, memory, events and buffers, and the simulator does alike.

Graphs have tests of their own: test_simulator_graphs.py.
"""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from cupti_client import CONCURRENT_KERNEL, RUNTIME, SYNCHRONIZATION, CuptiClient, Record

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

CUDA_EVENT, STREAM, MEMORY2 = 36, 37, 49
NO_STREAM = 0xFFFFFFFF
ALLOCATION, RELEASE = 1, 2
STEP = 32 << 20


def at(record: Record, offset: int, code: str) -> int:
    return int(struct.unpack_from("<" + code, record.data, offset)[0])


def streams(client: CuptiClient) -> list[tuple[int, int, int]]:
    """Context, number and priority of each stream."""
    return [(at(each, 4, "I"), at(each, 8, "I"), at(each, 12, "i")) for each in client.records(STREAM)]


@pytest.mark.parametrize("context", ["the first", "a further"])
def test_a_context_brings_eight_streams_of_the_driver_one_of_them_urgent(context: str) -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(STREAM)
        used = 1 if context == "the first" else gpu.create_context()
        gpu.launch("kernel", stream=7, context=used)
        gpu.synchronize()
        client.flush()
        of_context = [each for each in streams(client) if each[0] == used]
    assert Counter(priority for _, _, priority in of_context) == {0: 7, -5: 1}
    assert len({number for _, number, _ in of_context}) == 8


def test_streams_of_the_driver_never_work() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(STREAM, CONCURRENT_KERNEL)
        gpu.launch("kernel", stream=7)
        gpu.synchronize()
        client.flush()
        known = streams(client)
        assert [kernel.stream for kernel in client.records(CONCURRENT_KERNEL)] == [7]
    assert len(known) == 8


def memory(client: CuptiClient) -> list[tuple[int, int, int, int]]:
    """Operation, stream, and the size and use of the pool."""
    return [
        (at(each, 4, "I"), at(each, 60, "I"), at(each, 104, "Q"), at(each, 112, "Q"))
        for each in client.records(MEMORY2)
    ]


def test_a_pool_grows_in_steps_of_32_mib_and_a_release_shows_the_use_before_it() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(MEMORY2)
        addresses = [gpu.malloc(size, stream=7) for size in (1, STEP - 1, 1, 3 * STEP)]
        for address in addresses:
            gpu.free(address, stream=7)
        client.flush(forced=True)
        found = memory(client)
    uses = [1, STEP, STEP + 1, 4 * STEP + 1]
    assert [row[2:] for row in found[:4]] == list(zip([STEP, STEP, 2 * STEP, 5 * STEP], uses, strict=True))
    assert [row[0] for row in found] == [ALLOCATION] * 4 + [RELEASE] * 4
    assert [row[2:] for row in found[4:]] == [
        (5 * STEP, 4 * STEP + 1),
        (5 * STEP, 4 * STEP),
        (5 * STEP, 3 * STEP + 1),
        (5 * STEP, 3 * STEP),
    ]


def test_a_wait_for_a_stream_trims_the_pool() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(MEMORY2)
        gpu.free(gpu.malloc(3 * STEP, stream=7), stream=7)
        gpu.synchronize(stream=9)
        gpu.malloc(1, stream=7)
        client.flush(forced=True)
        assert [row[2] for row in memory(client)] == [3 * STEP, 3 * STEP, STEP]


def test_memory_without_an_order_has_no_stream() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(MEMORY2)
        gpu.free(gpu.malloc(4096))
        client.flush(forced=True)
        assert [row[:2] for row in memory(client)] == [(ALLOCATION, NO_STREAM), (RELEASE, NO_STREAM)]


def test_event_records_have_sync_ids_and_waits_that_of_the_last_recording() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CUDA_EVENT, SYNCHRONIZATION)
        event = gpu.record_event(stream=7)
        gpu.wait_event(event, stream=9)
        assert gpu.record_event(stream=7, event=event) == event
        gpu.wait_event(event, stream=9)
        gpu.synchronize_event(event)
        client.flush(forced=True)
        recordings = [(at(each, 16, "I"), at(each, 48, "Q")) for each in client.records(CUDA_EVENT)]
        waits = [(at(each, 36, "I"), at(each, 40, "Q")) for each in client.records(SYNCHRONIZATION)]
        stamps = [at(each, 40, "Q") for each in client.records(CUDA_EVENT)]
    (_, first), (_, second) = recordings
    assert recordings == [(event, first), (event, second)]
    assert second > first > 0
    assert waits == [(event, first), (event, second), (event, second)]
    assert stamps == [0, 0]  # without cuptiActivityEnableCudaEventDeviceTimestamps


def test_events_are_recorded_only_with_synchronizations() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CUDA_EVENT)
        gpu.record_event(stream=7)
        client.flush(forced=True)
        assert client.records() == []


def test_the_first_buffer_is_asked_for_with_the_first_record() -> None:
    asked: list[None] = []
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.in_request = lambda: asked.append(None)
        client.open(CONCURRENT_KERNEL, RUNTIME)
        gpu.advance(1_000_000)
        client.flush(forced=True)
        assert asked == []
        gpu.launch("kernel")
        gpu.synchronize()
        assert len(asked) == 1
