"""Long runs: `trace(stream=True)` and the flight recorder keep every record, and no more memory than they say.

Kernels that count have a number: where no number is missing, nothing was lost.
"""

import ctypes
import itertools
import threading
import time

import numpy as np
from cuda_program import numbers_of
from timed_programs import STICKY_SECONDS

import collector
from collector.recording.recording import Recording

MOST_GROWTH_BYTES = 64 << 20
"""Of memory while three quarters of a million launches are recorded: in memory they take about 130 bytes each."""

STREAMED = """
import os, resource
import collector
from cuda_program import CudaProgram

def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

cuda = CudaProgram()
stream = cuda.stream()
cuda.launch_empty(1, stream)
cuda.synchronize()
sizes = []
with collector.trace(strict=True, stream=True, journal={journal!r}) as step:
    for _ in range(20):
        cuda.launch_empty({launches} // 20, stream)
        cuda.synchronize()
        sizes.append(resident_bytes())
print(max(sizes) - sizes[4])
"""


def test_a_million_streamed_launches_are_in_the_journal_and_not_in_memory(run_program, million, show, tmp_path):
    journal = tmp_path / "run.journal"
    grown = int(run_program(STREAMED.format(journal=str(journal), launches=million)))
    show(f"{grown / 2**20:.1f} MiB more after the last three quarters of {million:,} streamed launches")
    recording = collector.load(journal).recording
    assert recording.ledger.launches_seen == recording.ledger.kernels == million
    assert recording.ledger.complete, recording.ledger.losses()
    assert len(np.unique(recording.kernels.correlation_id)) == million
    assert grown < MOST_GROWTH_BYTES


def test_a_streamed_step_has_the_names_and_shapes_of_its_kernels(cuda, tmp_path):
    stream = cuda.stream()
    with collector.trace(strict=True, stream=True, journal=tmp_path / "run.journal") as step:
        for number in range(1, 201):
            with collector.annotate(f"step{number % 7}"):
                cuda.launch("empty_kernel", stream=stream, grid=(number, 1, 1))
    kernels = step.recording.kernels
    assert kernels.grid_x.tolist() == list(range(1, 201))
    assert kernels.annotations() == [f"step{number % 7}" for number in range(1, 201)]
    assert step.ledger.complete, step.ledger.losses()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.journal"]


def assert_no_gap(recording, end):
    """The kernels are the latest ones, up to number ``end`` - 1, and each has its launch."""
    numbers = numbers_of(recording.kernels)
    assert numbers == list(range(numbers[0], end))
    assert recording.ledger.losses() == []
    assert recording.ledger.launches_seen == recording.ledger.launches_matched


SPIN_NS = 4_000_000_000


def test_parts_of_a_recording_in_which_work_runs_are_not_complete(cuda, tmp_path, show):
    """CUPTI holds the buffer of the call and the kernel, which is counted; no part waits until the kernel ends."""
    stream = cuda.stream()
    with collector.record(folder=tmp_path, strict=True) as recorder:
        for _ in range(3):
            with collector.trace(strict=True) as step:
                cuda.launch_empty(5, stream)
            assert (len(step.kernels), step.ledger.losses()) == (5, [])
        began = time.monotonic()
        with collector.trace(strict=True, synchronize=False) as step:
            cuda.launch("spin", ctypes.c_longlong(SPIN_NS), stream=stream)
        stepped = time.monotonic()
        running = Recording.load(recorder.dump().journal)
        show(f"while a kernel runs: a step {stepped - began:.2f} s, a dump {time.monotonic() - stepped:.2f} s")
        cuda.synchronize()
        with collector.trace(synchronize=False) as later:
            pass
        ended = Recording.load(recorder.dump().journal)
    parts = {"the step": step.ledger, "the dump": running.ledger, "the next step": later.ledger}
    show("; ".join(f"{name}: {ledger.launches_seen} launches, {ledger.losses()}" for name, ledger in parts.items()))
    assert [ledger.buffers_held for ledger in parts.values()] == [1, 1, 0]
    assert not step.ledger.complete
    assert not running.ledger.complete
    assert "spin" not in [*step.kernels.names(), *running.kernels.names()]
    assert ended.ledger.losses() == []
    assert (len(ended.kernels), ended.kernels.names()[-1]) == (16, "spin")


def test_steps_that_do_not_wait_set_nothing_apart_while_another_thread_launches(cuda, million, tmp_path, show):
    """A row is set apart if it ends after its part of the journal was written; no record may."""
    stream, numbers = cuda.stream(), range(million // 4)
    steps = []

    def launch():
        cuda.use()
        for begin in numbers[::500]:
            cuda.launch_numbered(numbers[begin : begin + 500], stream)

    with collector.record(folder=tmp_path, strict=True) as recorder:
        thread = threading.Thread(target=launch)
        thread.start()
        while thread.is_alive() or not steps:
            with collector.trace(strict=True, synchronize=False) as step:
                time.sleep(0.01)
            steps.append(step)
        thread.join()
        cuda.synchronize()
        whole = Recording.load(recorder.dump().journal)
    show(f"{len(steps)} steps beside {len(numbers):,} launches")
    for step in steps:
        assert (step.ledger.invalid_timestamps, step.ledger.early, step.ledger.late) == (0, 0, 0)
    assert whole.ledger.losses() == []
    assert len(whole.kernels) == len(numbers)


EARLY, MORE = 500, 60_000
RING = "512KiB"
"""Less than `MORE` launches take: at least 11 bytes each on an H100, and 13 on the simulator."""


def test_dumps_of_a_small_ring_have_the_latest_kernels_without_a_gap(cuda, tmp_path):
    stream, numbers = cuda.stream(), iter(range(EARLY + 2 * MORE))

    def launch(count):
        while batch := list(itertools.islice(numbers, min(count, 1000))):
            cuda.launch_numbered(batch, stream)
            cuda.synchronize()
            count -= len(batch)

    with collector.record(keep=RING, folder=tmp_path, strict=True) as recorder:
        launch(EARLY)
        early = Recording.load(recorder.dump().journal)
        launch(MORE)
        first = Recording.load(recorder.dump().journal)
        launch(MORE)
        second = Recording.load(recorder.dump().journal)
    assert numbers_of(early.kernels) == list(range(EARLY))
    assert_no_gap(first, EARLY + MORE)
    assert_no_gap(second, EARLY + 2 * MORE)
    for dump in (first, second):
        assert 0 < len(dump.kernels) < MORE
        assert dump.ledger.rows_forgotten > 0


FAILING = """
import json, sys, time
import collector
from cuda_program import CudaProgram
import ctypes

cuda = CudaProgram()
stream = cuda.stream()
recorder = collector.record(keep="30s", folder={folder!r}, strict=True)
with collector.annotate("before"):
    cuda.launch_empty(1000, stream)
cuda.synchronize()
{failure}
"""

EXCEPTION = "raise ValueError('on purpose')"

ILLEGAL_ADDRESS = """
time.sleep(1.5)  # CUPTI is asked for what it has twice a second
cuda.launch("write_to", ctypes.c_void_p(0x10), stream=stream)
try:
    cuda.synchronize()
except RuntimeError as error:
    print(error)
until = time.monotonic() + 20
while not recorder.dumps and time.monotonic() < until:
    time.sleep(0.1)
import os
os._exit(0)
"""


def dumped(folder):
    """The one dump in a folder, without the ring."""
    (journal,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    return Recording.load(journal)


def test_an_exception_that_is_not_caught_dumps_the_kernels_before_it(run_program, tmp_path):
    run_program(FAILING.format(folder=str(tmp_path), failure=EXCEPTION), status=1)
    recording = dumped(tmp_path)
    assert recording.kernels.annotations() == ["before"] * 1000
    assert recording.ledger.losses() == []


def test_an_illegal_address_dumps_the_kernels_before_it(run_program, show, tmp_path):
    run_program(FAILING.format(folder=str(tmp_path), failure=ILLEGAL_ADDRESS), seconds=STICKY_SECONDS)
    recording = dumped(tmp_path)
    kernels = recording.kernels
    show(f"after error 700: kernels {len(kernels)}, losses {recording.ledger.losses()}")
    assert kernels.annotations().count("before") == 1000
    assert set(kernels.names()) <= {"empty_kernel", "write_to"}
    assert 700 in recording.api_calls.return_value.tolist()
