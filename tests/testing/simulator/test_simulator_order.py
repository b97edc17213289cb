"""Streams, events, waits and external correlation ids: the order of the simulated CUPTI's records."""

from __future__ import annotations

import ctypes
import threading

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    EXTERNAL_CORRELATION,
    INVALID_PARAMETER,
    QUEUE_EMPTY,
    RUNTIME,
    SYNCHRONIZATION,
    CuptiClient,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


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


@pytest.mark.parametrize(("all_records", "recorded"), [(1, 3), (0, 1)])
def test_polling_is_recorded_unless_only_completed_waits_are_wanted(all_records: int, recorded: int) -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(SYNCHRONIZATION)
        client.check("cuptiActivityEnableAllSyncRecords", all_records)
        gpu.launch("k", stream=7, duration_ns=20_000)
        answers = [gpu.query(stream=7), gpu.query(stream=7)]
        gpu.advance(100_000)
        answers.append(gpu.query(stream=7))
        client.flush()
        assert answers == [False, False, True]
        assert len(client.records()) == recorded


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


@pytest.mark.parametrize(("api_version", "recorded"), [(130000, 1), (130001, 2)])
def test_13_0_48_forgets_device_wide_waits(api_version: int, recorded: int) -> None:
    with SimulatedGpu(cuda="13.0", api_version=api_version) as gpu:
        client = CuptiClient().open(SYNCHRONIZATION)
        gpu.synchronize(stream=7)
        gpu.synchronize()
        client.flush()
        assert len(client.records()) == recorded
