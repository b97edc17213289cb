"""The simulated CUPTI's buffers: the times at which they are requested, filled and completed."""

from __future__ import annotations

import ctypes
import threading

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    INVALID_KIND,
    INVALID_PARAMETER,
    MAX_LIMIT_REACHED,
    RUNTIME,
    CuptiClient,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def test_flush_keeps_a_buffer_with_an_unfinished_record_and_forced_returns_it_once() -> None:
    """The place of a kernel's record is taken at its launch; a buffer comes back when all its records are complete."""
    with SimulatedGpu() as gpu:
        client = CuptiClient().open(CONCURRENT_KERNEL, RUNTIME)
        gpu.launch("short", stream=1, duration_ns=10)
        gpu.advance(100_000)
        client.flush()
        assert [record.text for record in client.records(CONCURRENT_KERNEL)] == ["short"]
        gpu.launch("second", stream=1, duration_ns=10)
        gpu.launch("long", stream=2, duration_ns=10**9)
        gpu.advance(100_000)
        client.flush()
        assert len(client.records()) == 2
        client.flush(forced=True)
        assert len(client.records(RUNTIME)) == 3
        assert [record.text for record in client.records(CONCURRENT_KERNEL)[1:]] == ["second", "long"]
        unfinished = client.records(CONCURRENT_KERNEL)[2]
        assert (unfinished.start, unfinished.end) == (0, 0)  # although it has begun: as on an H100 with 13.0.85
        gpu.synchronize()
        client.flush(forced=True)
        assert len(client.records(CONCURRENT_KERNEL)) == 3


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


def test_an_unfinished_walk_distinguishes_cut_and_unknown() -> None:
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
