"""Times after another profiler has made CUPTI count ticks.

PyTorch's profiler registers a callback that reads the processor's counter, and CUPTI keeps it for the rest of the
process (kineto#917, pytorch#192021). The simulator's ticks follow the real time here, because the rate is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import collector
from collector.options import KINDS as DEFAULT_KINDS
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.recording.table import Table
from collector.testing import SimulatedGpu

pytestmark = [pytest.mark.simulator, pytest.mark.medium]

MS = 1_000_000
KINDS = (*DEFAULT_KINDS, "memory_operations")


@pytest.fixture(params=["12.0", "13.0"])
def gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedGpu]:
    """A simulated GPU whose clock also advances with real time."""
    with SimulatedGpu(cuda=request.param, real_time=True) as simulated:
        yield simulated
        assert simulated.misuse() == {}


def work(gpu: SimulatedGpu) -> None:
    """A kernel of 20 ms, a copy, a graph and a wait, in an annotation."""
    with collector.annotate("layer"):
        gpu.launch("spin", duration_ns=20 * MS)
        gpu.memcpy("HtoD", 4096, duration_ns=2 * MS)
    gpu.free(gpu.malloc(1 << 20))
    gpu.synchronize()


def tables_of(recording: Recording) -> dict[str, Table]:
    """The tables that have rows, by name."""
    return {name: table for name in SCHEMA if len(table := getattr(recording, name))}


def check(recording: Recording, begin_ns: int, end_ns: int) -> None:
    """Durations are those of the work, and every time lies in the wall time of the step."""
    assert recording.kernels.duration_ns.tolist() == pytest.approx([20 * MS], rel=2e-3)
    assert recording.memcpys.duration_ns.tolist() == pytest.approx([2 * MS], rel=2e-3)
    assert recording.ledger.complete, recording.ledger.losses()
    for name, table in tables_of(recording).items():
        for column in ("start_ns", "end_ns"):
            if hasattr(table, column):
                times = getattr(table, column)
                assert times.min() >= begin_ns - MS, (name, column)
                # The simulated work takes no real time: 22 ms more.
                assert times.max() <= end_ns + 30 * MS, (name, column)


def test_ticks_are_nanoseconds_in_every_table(gpu: SimulatedGpu) -> None:
    gpu.count_ticks()
    begin_ns = time.time_ns()
    with collector.trace(kinds=KINDS) as step:
        work(gpu)
    check(step.recording, begin_ns, time.time_ns())
    assert tables_of(step.recording).keys() >= {
        "kernels", "memcpys", "api_calls", "synchronizations", "memory_operations", "annotations",
    }  # fmt: skip


@pytest.mark.parametrize("per_us", [31, 1_900, 4_800])
def test_counters_of_other_rates(per_us: int) -> None:
    with SimulatedGpu(real_time=True) as gpu:
        gpu.count_ticks(per_us)
        begin_ns = time.time_ns()
        with collector.trace() as step:
            work(gpu)
        check(step.recording, begin_ns, time.time_ns())


def test_sessions_before_and_after_the_first_use_of_the_other_profiler(gpu: SimulatedGpu) -> None:
    for use in range(4):
        begin_ns = time.time_ns()
        with collector.trace() as step:
            work(gpu)
        check(step.recording, begin_ns - 30 * MS * use, time.time_ns() + 30 * MS * use)
        gpu.count_ticks(registrations=int(use == 0))


def test_first_kernels_in_cuptis_own_clock(gpu: SimulatedGpu) -> None:
    """pytorch#192021: after k registrations the first k kernels are not in ticks."""
    gpu.count_ticks(registrations=3)
    begin_ns = time.time_ns()
    with collector.trace() as step:
        for _ in range(5):
            gpu.launch("spin", duration_ns=MS)
        gpu.synchronize()
    durations = step.recording.kernels.duration_ns
    assert durations.tolist() == pytest.approx([MS] * 5, rel=2e-3)
    starts = step.recording.kernels.start_ns
    assert begin_ns - MS <= starts.min()
    assert starts.max() <= time.time_ns() + 30 * MS
    assert step.ledger.complete, step.ledger.losses()


def test_a_journal_holds_nanoseconds(gpu: SimulatedGpu, tmp_path: Path) -> None:
    gpu.count_ticks()
    begin_ns = time.time_ns()
    with collector.trace(journal=tmp_path / "j", stream=True) as step:
        work(gpu)
    check(step.recording, begin_ns, time.time_ns())


def test_the_other_profiler_is_used_in_the_step() -> None:
    """Its records are ticks from then on; the bounds of the step stay right, and every lost record is counted."""
    with SimulatedGpu(real_time=True) as gpu:
        with collector.trace() as step:
            time.sleep(0.01)  # the simulated work takes no real time, and the ticks begin at the real time
            gpu.launch("before", duration_ns=MS)
            gpu.synchronize()
            gpu.count_ticks()
            gpu.launch("after", duration_ns=MS)
            gpu.synchronize()
        clock = step.recording.clock
        assert 0 < clock.window_ns < 60_000 * MS
        kernels = step.recording.kernels
        assert len(kernels) + step.ledger.invalid_timestamps == 2
        assert kernels.duration_ns.tolist() == pytest.approx([MS] * len(kernels), rel=2e-3)
