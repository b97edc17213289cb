"""Every fault the simulator can inject."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    EXTERNAL_CORRELATION,
    INVALID_KIND,
    MAX_LIMIT_REACHED,
    MEMCPY,
    MULTIPLE_SUBSCRIBERS,
    OVERHEAD,
    RUNTIME,
    SUCCESS,
    CuptiClient,
    Record,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

FUTURE_KIND = 77


def kernels_under(fault: str, *, launches: int = 3, **arguments: int) -> tuple[SimulatedGpu, CuptiClient, list[Record]]:
    """Kernel records of a few launches, with the fault armed for the second one unless `after` says otherwise."""
    with SimulatedGpu(start_ns=10**12) as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.inject(fault, **({"after": 1} | arguments))
        for _ in range(launches):
            gpu.launch("k", duration_ns=1_000)
            gpu.synchronize()
            client.flush()
        records = client.records(CONCURRENT_KERNEL)
        struck = {row.name: row.struck for row in gpu.faults()}
        assert struck[fault] > 0
        for record in records:
            record.values["text"] = record.text if record.values["name"] else None
        client.records_dropped = client.dropped()  # type: ignore[attr-defined]
        assert gpu.misuse() == {}
        return gpu, client, records


def test_dropped_record() -> None:
    _, client, records = kernels_under("dropped_record")
    assert len(records) == 2
    assert client.records_dropped == 1  # type: ignore[attr-defined]


def test_lost_activity_record_is_counted_nowhere() -> None:
    _, client, records = kernels_under("lost_activity_record")
    assert len(records) == 2
    assert client.records_dropped == 0  # type: ignore[attr-defined]


def test_zero_timestamps() -> None:
    _, _, records = kernels_under("zero_timestamps")
    assert [(r.start == 0, r.end == 0) for r in records] == [(False, False), (True, True), (False, False)]


def test_zero_end() -> None:
    _, _, records = kernels_under("zero_end")
    assert [(r.start == 0, r.end == 0) for r in records] == [(False, False), (False, True), (False, False)]


def test_reversed_timestamps() -> None:
    _, _, records = kernels_under("reversed_timestamps")
    assert [r.start - r.end for r in records] == [-1_000, 1_000, -1_000]


@pytest.mark.parametrize("shift", [10**9, -(10**9)])
def test_shifted_timestamps(shift: int) -> None:
    _, _, records = kernels_under("shifted_timestamps", value=shift)
    between = [records[1].start - records[0].start, records[2].start - records[1].start]
    assert abs(between[0] - shift) < 100_000
    assert abs(between[1] + shift) < 100_000
    assert records[1].end - records[1].start == 1_000


def test_null_name() -> None:
    _, _, records = kernels_under("null_name")
    assert [record.values["text"] for record in records] == ["k", None, "k"]


def test_pool_exhausted() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.set_attribute(2, ctypes.c_size_t(2))
        client.open(CONCURRENT_KERNEL)
        gpu.inject("pool_exhausted", value=10)
        gpu.launch("k", count=25)
        client.flush()
        assert [record.start == 0 for record in client.records()] == [False] * 20 + [True] * 5


def test_lost_api_record() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("lost_api_record", after=1)
        ids = [gpu.launch("k") for _ in range(3)]
        client.flush()
        assert [record.correlation for record in client.records()] == [ids[0], ids[2]]


def test_failed_call() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("failed_call", after=1, value=700)
        for _ in range(3):
            gpu.launch("k")
        client.flush()
        assert [record.return_value for record in client.records()] == [0, 700, 0]


@pytest.mark.parametrize("launches", [1, 3])
def test_failed_kernel(launches: int) -> None:
    """As on an H100 with 13.0.85: kernels that had ended and been waited for lose their times, too."""
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(DRIVER, CONCURRENT_KERNEL, MEMCPY)
        gpu.launch("delivered", launch="driver")
        gpu.synchronize()
        client.flush()
        gpu.launch("ended", launch="driver", count=launches)
        gpu.memcpy("HtoD", 4096, launch="driver")
        gpu.synchronize(launch="driver")
        gpu.inject("failed_kernel", value=719)
        gpu.launch("failing", launch="driver")
        gpu.synchronize(launch="driver")
        gpu.launch("after", launch="driver")
        client.flush()
        assert [record.text for record in client.records(CONCURRENT_KERNEL)] == ["delivered"]
        client.flush(forced=True)
        kernels = client.records(CONCURRENT_KERNEL)
        assert [record.text for record in kernels] == ["delivered", *["ended"] * launches, "failing"]
        assert kernels[0].end > kernels[0].start > 0
        for record in (*kernels[1:], *client.records(MEMCPY)):
            assert (record.start, record.end) == (0, 0)
        assert [record.return_value for record in client.records(DRIVER)][-4:] == [0, 0, 719, 719]


def test_late_correlation() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME, CONCURRENT_KERNEL, EXTERNAL_CORRELATION)
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(9))
        gpu.inject("late_correlation")
        late, prompt = gpu.launch("a"), gpu.launch("b")
        gpu.synchronize()
        client.flush()
        by_id = {record.correlation: record for record in client.records(EXTERNAL_CORRELATION)}
        kernels = {record.correlation: record for record in client.records(CONCURRENT_KERNEL)}
        assert by_id[prompt].buffer == kernels[prompt].buffer == 0
        assert by_id[late].buffer == 1 > kernels[late].buffer
        assert by_id[late].external_id == 9


def test_wrong_graph_correlation() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.inject("wrong_graph_correlation", count=2)
        before = gpu.launch("k")
        graph = gpu.launch_graph(["a", "b", "c"])
        gpu.synchronize()
        client.flush()
        assert [record.correlation for record in client.records()] == [before, before, before, graph]


def test_half_full_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=800).open(RUNTIME)
        gpu.inject("half_full_buffer")
        for _ in range(30):
            gpu.launch("k")
        client.flush()
        assert [len(data) for data in client.delivered] == [400, 800]


def test_out_of_order_buffer() -> None:
    with SimulatedGpu(deliver="caller") as gpu:
        client = CuptiClient(buffer_bytes=80).open(RUNTIME)
        gpu.inject("out_of_order_buffer")
        ids = [gpu.launch("k") for _ in range(6)]
        client.flush()
        assert [record.correlation for record in client.records()] == [*ids[2:4], *ids[:2], *ids[4:]]


def test_kept_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=80).open(RUNTIME)
        gpu.inject("kept_buffer")
        ids = [gpu.launch("k") for _ in range(4)]
        client.flush(forced=True)
        assert [record.correlation for record in client.records()] == ids[2:]
        gpu.return_kept_buffers()
        assert [record.correlation for record in client.records()] == [*ids[2:], *ids[:2]]
        assert gpu.statistics().buffers_outstanding == 0


def test_withheld_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient(buffer_bytes=80).open(RUNTIME)
        gpu.inject("withheld_buffer")
        ids = [gpu.launch("k") for _ in range(4)]
        client.flush(forced=True)
        assert [record.correlation for record in client.records()] == ids[2:]
        assert gpu.statistics().buffers_outstanding == 1


def test_cut_buffer() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("cut_buffer")
        gpu.launch("k")
        gpu.launch("k")
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert len(client.delivered[0]) == 76
        assert (len(records), end) == (1, MAX_LIMIT_REACHED)


def test_slow_completion() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("slow_completion", value=30)
        gpu.launch("k")
        client.flush()
        assert client.delivered == []
        gpu.wait_until_idle()
        assert len(client.records()) == 1


def test_early_request() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(RUNTIME)
        gpu.inject("early_request")
        gpu.launch("k")
        client.flush()
        assert len(client.records()) == 1
        statistics = gpu.statistics()
        assert (statistics.buffers_requested, statistics.buffers_outstanding) == (2, 1)
        gpu.launch("k")  # in the buffer that is there
        assert gpu.statistics().buffers_requested == 2
        client.check("cuptiActivityDisable", RUNTIME)
        client.flush(forced=True)
        assert len(client.records()) == 2
        assert gpu.statistics().buffers_outstanding == 0


def test_overheads_of_a_flush() -> None:
    """They come with the next flush, in a buffer of their own, as on a GPU."""
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(OVERHEAD)
        client.flush()
        assert client.records() == []
        client.flush()
        flush, request = client.records()
        assert (flush.overhead_kind, request.overhead_kind) == (65536, 458752)
        assert flush.end - flush.start == request.end - request.start > 0
        assert request.start == flush.end
        assert gpu.statistics().buffers_requested == 1


def test_held_flush() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("k")
        gpu.synchronize()
        gpu.inject("held_flush")
        thread = threading.Thread(target=client.flush)
        thread.start()
        while not {row.name: row.struck for row in gpu.faults()}["held_flush"]:
            time.sleep(0.001)
        assert thread.is_alive()
        gpu.clear_faults()
        thread.join()
        assert len(client.records(CONCURRENT_KERNEL)) == 1


def test_unknown_kind_is_stepped_over() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.inject("unknown_kind")
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert [(kind, len(data)) for kind, data in records] == [(FUTURE_KIND, 64), (CONCURRENT_KERNEL, 216)]
        assert end == MAX_LIMIT_REACHED


def test_invalid_kind_ends_the_walk() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL)
        gpu.launch("k")
        gpu.inject("invalid_kind", after=1)
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        records, end = client.walk(client.delivered[0])
        assert (len(records), end) == (1, INVALID_KIND)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("cuptiActivityEnable", lambda client: client("cuptiActivityEnable", 10)),
        ("cuptiActivityDisable", lambda client: client("cuptiActivityDisable", 10)),
        ("cuptiActivityFlushAll", lambda client: client("cuptiActivityFlushAll", 0)),
        ("cuptiSubscribe", lambda client: client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None)),
        ("cuptiGetTimestamp", lambda client: client("cuptiGetTimestamp", ctypes.byref(ctypes.c_uint64()))),
        ("cuptiGetVersion", lambda client: client("cuptiGetVersion", ctypes.byref(ctypes.c_uint32()))),
        ("cuInit", lambda client: client("cuInit", 0)),
        ("cuDriverGetVersion", lambda client: client("cuDriverGetVersion", ctypes.byref(ctypes.c_int()))),
    ],
)
def test_error_from_a_chosen_call(function: str, call: Callable[[CuptiClient], int]) -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)
        gpu.inject("error", target=function, value=35, after=1, count=2)
        results = []
        for _ in range(4):
            results.append(call(client))
            if function == "cuptiSubscribe" and results[-1] == MULTIPLE_SUBSCRIBERS:
                results[-1] = SUCCESS
        assert results == [SUCCESS, 35, 35, SUCCESS]


def test_failed_call_does_nothing() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        gpu.inject("error", target="cuptiActivityEnable")
        client.check("cuptiActivityRegisterCallbacks", client._request, client._complete)
        assert client("cuptiActivityEnable", CONCURRENT_KERNEL) == 999
        gpu.launch("k")
        gpu.synchronize()
        client.flush()
        assert client.delivered == []
        logged = [(call.function, call.argument, call.result) for call in gpu.calls()]
        assert logged[1] == ("cuptiActivityEnable", CONCURRENT_KERNEL, 999)


def test_second_subscriber() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("second_subscriber", target="Nsight Systems")
        client = CuptiClient()
        for _ in range(3):
            assert client("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None) == MULTIPLE_SUBSCRIBERS
        gpu.clear_faults()
        client.check("cuptiSubscribe", ctypes.byref(ctypes.c_void_p()), None, None)


def test_stub_driver() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("stub_driver")
        client = CuptiClient()
        assert client("cuInit", 0) == 34
        assert client("cuDriverGetVersion", ctypes.byref(ctypes.c_int())) == 34


def test_other_driver_numbers() -> None:
    with SimulatedGpu() as gpu:
        client = CuptiClient()
        theirs, ours = ctypes.c_ulonglong(), ctypes.c_uint32()
        for difference in (0, 100):
            client.check("cuStreamGetId", ctypes.c_void_p(9), ctypes.byref(theirs))
            client.check("cuptiGetStreamIdEx", None, ctypes.c_void_p(9), ctypes.c_uint8(0), ctypes.byref(ours))
            assert (theirs.value - ours.value, ours.value) == (difference, 9)
            gpu.inject("other_driver_numbers")


def test_lost_when_disabled() -> None:
    for fault, count in (("", 2), ("lost_when_disabled", 1)):
        with SimulatedGpu() as gpu:
            if fault:
                gpu.inject(fault)
            client = CuptiClient().open(CONCURRENT_KERNEL)
            gpu.launch("finished")
            gpu.synchronize()
            client.flush()
            gpu.launch("running", duration_ns=10**9)
            client.check("cuptiActivityDisable", CONCURRENT_KERNEL)
            gpu.synchronize()
            client.flush()
            assert len(client.records()) == count


def test_faults_end_with_their_simulator() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("stub_driver")
    with SimulatedGpu():
        assert CuptiClient()("cuInit", 0) == SUCCESS


def test_every_fault_has_a_test() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    with SimulatedGpu() as gpu:
        assert [row.name for row in gpu.faults() if not any(row.name in test for test in tests)] == []
