"""Parts of a recording while CUPTI holds back the buffers of work that has not ended."""

from __future__ import annotations

import threading
import time

import pytest

import collector
from collector.analysis.no_launches import no_launches
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

LONG_NS = 10**13
"""Kernels of this duration run until the clock is moved on."""
ONE_HELD = (
    "work had not ended when this part of a recording did: CUPTI still held 1 buffer with calls and activities that "
    "are missing here. The recording gets them; a step with synchronize waits for its work"
)


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


@pytest.fixture
def recorder(gpu, tmp_path):
    """A recorder whose journals begin with a kernel that has ended."""
    with collector.record(folder=tmp_path / "dumps", strict=True) as running:
        gpu.launch("before")
        gpu.synchronize()
        running.dump()
        yield running


class Worker:
    """Another thread, which launches kernels when it is told to, and stays."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu, self._asked, self._done = gpu, threading.Semaphore(0), threading.Semaphore(0)
        self._kernel: tuple[str, int] | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def launch(self, name: str, duration_ns: int) -> None:
        self._kernel = name, duration_ns
        self._asked.release()
        assert self._done.acquire(timeout=60)

    def end(self) -> None:
        self._kernel = None
        self._asked.release()
        self._thread.join()

    def _work(self) -> None:
        while self._asked.acquire() and self._kernel is not None:
            name, duration_ns = self._kernel
            self._gpu.launch(name, stream=9, duration_ns=duration_ns)
            self._done.release()


@pytest.fixture
def worker(gpu):
    another = Worker(gpu)
    yield another
    another.end()


def dumped(recorder) -> Recording:
    dump = recorder.dump()
    assert dump is not None
    return Recording.load(dump.journal)


def test_work_that_outlasts_a_trace_is_stated(gpu, recorder):
    with collector.trace(strict=True, synchronize=False) as step:
        gpu.launch("outlasting", duration_ns=LONG_NS)
    assert (step.ledger.buffers_held, step.ledger.losses()) == (1, [ONE_HELD])
    assert not step.ledger.complete
    assert no_launches(step.recording) == ""
    gpu.synchronize()
    found = dumped(recorder)
    assert found.kernels.names() == ["before", "outlasting"]
    assert found.ledger.losses() == []


def test_launches_of_a_trace_whose_kernels_have_not_ended_are_cut(gpu, recorder):
    with collector.trace(strict=True, synchronize=False) as step:
        for _ in range(5_000):  # more than one buffer
            gpu.launch("outlasting", duration_ns=LONG_NS)
    assert step.ledger.launches_seen == step.ledger.launches_cut > 0
    assert step.ledger.losses() == [ONE_HELD]
    gpu.advance(5_000 * LONG_NS)
    assert dumped(recorder).ledger.launches_seen == 5_001


def test_a_trace_that_waits_for_its_work_is_complete(gpu, recorder):
    with collector.trace(strict=True) as step:
        gpu.launch("inside", duration_ns=50_000_000)
    assert step.kernels.names() == ["inside"]
    assert (step.ledger.buffers_held, step.ledger.losses()) == (0, [])


@pytest.mark.medium
def test_a_dump_counts_the_buffers_of_running_work(gpu, recorder, worker):
    gpu.launch("running", duration_ns=LONG_NS)
    worker.launch("running too", LONG_NS)
    first = dumped(recorder)
    assert first.ledger.buffers_held == 2
    assert "CUPTI still held 2 buffers" in first.ledger.losses()[0]
    gpu.synchronize()
    second = dumped(recorder)
    assert second.ledger.losses() == []
    assert set(second.kernels.names()) == {"before", "running", "running too"}


def test_calls_of_another_thread_in_a_held_buffer_count(gpu, recorder, worker):
    worker.launch("runs before and after", LONG_NS)
    with collector.trace(strict=True, synchronize=False) as step:
        gpu.launch("inside", duration_ns=1_000)
        worker.launch("also inside", 1_000)
        gpu.advance(1_000_000)
    assert "inside" in step.kernels.names()
    assert step.ledger.buffers_held == 1


def test_a_held_buffer_without_records_of_a_trace_does_not_count(gpu, recorder, worker):
    worker.launch("runs before and after", LONG_NS)
    with collector.trace(strict=True, synchronize=False) as step:
        gpu.launch("inside", duration_ns=1_000)
        gpu.advance(1_000_000)
    assert step.kernels.names() == ["inside"]
    assert (step.ledger.buffers_held, step.ledger.losses()) == (0, [])


def test_without_calls_any_held_buffer_may_have_records_of_a_trace(gpu, tmp_path):
    """The place of a kernel in its buffer is not written on the simulator before the kernel has ended."""
    with collector.record(folder=tmp_path, kinds=("kernels",), strict=True):
        gpu.launch("runs before and after", stream=8, duration_ns=LONG_NS)
        gpu.launch("before", count=2)  # whose records are in the buffer at once
        with collector.trace(strict=True, synchronize=False) as step:
            gpu.launch("inside", stream=9, duration_ns=LONG_NS)
    assert step.ledger.buffers_held == 1


@pytest.mark.medium
def test_an_empty_buffer_of_each_thread_does_not_count(gpu, recorder, worker):
    """On an H100 a forced flush had the next buffer of a thread when it returned the last one."""
    gpu.inject("early_request")
    worker.launch("early", 1_000)
    gpu.launch("early", duration_ns=1_000)
    gpu.synchronize()
    dumped(recorder)
    assert gpu.statistics().buffers_outstanding >= 2
    began = time.monotonic()
    with collector.trace(strict=True, synchronize=False) as step:
        pass
    assert step.ledger.buffers_held == 0
    with collector.trace(strict=True) as step:
        gpu.launch("inside", duration_ns=1_000)
    assert (step.kernels.names(), step.ledger.losses()) == (["inside"], [])
    for _ in range(10):
        assert dumped(recorder).ledger.losses() == []
    assert time.monotonic() - began < 3  # a dump that waited for the empty ones would take half a second


@pytest.mark.medium
def test_a_recording_that_ends_states_no_held_buffers(gpu, tmp_path):
    recorder = collector.record(folder=tmp_path, strict=True)
    gpu.launch("running", duration_ns=LONG_NS)
    assert dumped(recorder).ledger.buffers_held == 1
    ring = recorder._ring.path
    copy = tmp_path / "copy.journal"
    gpu.synchronize()
    copy.mkdir()
    recorder._source.cut()
    for segment in ring.iterdir():
        (copy / segment.name).write_bytes(segment.read_bytes())
    recorder.stop()
    found = Recording.load(copy)
    assert found.kernels.names() == ["running"]
    assert found.ledger.buffers_held == 0


NO_LIMIT_MS = 10 * 60 * 1000


def test_a_step_does_not_wait_for_the_buffers_that_its_own_flushes_fill(gpu, recorder):
    """On an H100 each flush filled a buffer, with its own overhead: a step waited until the running kernel ended."""
    with collector.trace(strict=True, synchronize=False, timeout_ms=NO_LIMIT_MS) as step:
        gpu.launch("outlasting", duration_ns=LONG_NS)
    assert (len(step.kernels), step.ledger.buffers_held) == (0, 1)


@pytest.mark.medium
def test_a_dump_does_not_wait_for_the_buffers_that_its_own_flushes_fill(gpu, recorder):
    gpu.launch("running", duration_ns=LONG_NS)
    before = gpu.statistics().buffers_requested
    assert dumped(recorder).ledger.buffers_held == 1
    # A flush for each millisecond of the half second for which a dump waits; until the time limit it would be 5,000.
    assert gpu.statistics().buffers_requested - before < 1_000
