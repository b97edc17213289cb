"""Parts of a recording state the losses of which there are no records, but counts alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collector
from collector import _native
from collector.recording.ledger import Ledger
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator

Lose = Callable[[SimulatedGpu, NvtxCopy], int]
"""Causes a loss; returns the count that states it."""


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


@pytest.fixture(scope="module")
def nvtx():
    return NvtxCopy(_native.capture_library())


def drop_records(gpu: SimulatedGpu, _: NvtxCopy) -> int:
    gpu.inject("dropped_record", count=5)
    for _ in range(5):
        gpu.memcpy("HtoD", 4096)
    gpu.synchronize()
    return 5


def lose_graph_changes(gpu: SimulatedGpu, _: NvtxCopy) -> int:
    gpu.inject("error", count=-1, target="cuptiGetGraphNodeId")
    with gpu.capture():
        gpu.launch("captured")
    gpu.clear_faults()
    return 1


def leave_ranges_out(_: SimulatedGpu, nvtx: NvtxCopy) -> int:
    """A thread can have 4096 open."""
    for _ in range(4100):
        nvtx.RangePushA(b"r")
    for _ in range(4100):
        nvtx.RangePop()
    return 4


def suspend_a_range(_: SimulatedGpu, nvtx: NvtxCopy) -> int:
    async def request() -> None:
        with collector.annotate("request"):
            nvtx.RangePushA(b"decode")
            await asyncio.sleep(0)
            nvtx.RangePop()

    async def requests() -> None:
        await asyncio.gather(request(), asyncio.sleep(0))

    asyncio.run(requests())
    return 1


def use_up_the_categories(_: SimulatedGpu, nvtx: NvtxCopy) -> int:
    """A process can name 4096: it is to be none in which other tests name any."""
    for number in range(4097):
        nvtx.NameCategoryA(number + 1, b"named")
    nvtx.RangePushEx(attributes(b"a range", category=5000))
    nvtx.RangePop()
    return 1


def cut_a_path(_: SimulatedGpu, nvtx: NvtxCopy) -> int:
    for _ in range(6):
        nvtx.RangePushA(b"r" * 1000)
    for _ in range(6):
        nvtx.RangePop()
    return 2


LOSSES: dict[str, Lose] = {
    "records_dropped": drop_records,
    "graph_changes_lost": lose_graph_changes,
    "nvtx_ranges_lost": leave_ranges_out,
    "nvtx_ranges_suspended": suspend_a_range,
    "names_cut": cut_a_path,
}


def count_of(ledger: Ledger, name: str) -> int:
    return ledger.source_counters.get(name, 0) + getattr(ledger, name, 0)


def dumped(recorder: collector.Recorder) -> Ledger:
    dump = recorder.dump()
    assert dump is not None
    return Recording.load(dump.journal).ledger


def assert_stated(gpu: SimulatedGpu, nvtx: NvtxCopy, folder: Path, name: str, lose: Lose) -> None:
    """A loss is stated by the part that has it and by the whole, and by no other part."""
    with collector.record(folder=folder, strict=True) as recorder:
        gpu.launch("before")
        gpu.synchronize()
        assert dumped(recorder).losses() == []
        with collector.trace(strict=True) as step:
            count = lose(gpu, nvtx)
        found = count_of(step.ledger, name)
        assert found >= count
        assert not step.ledger.complete
        whole = dumped(recorder)
        assert count_of(whole, name) == found
        assert whole.losses() == step.ledger.losses()
        assert not whole.complete
        for _ in range(2):
            with collector.trace(strict=True) as later:
                gpu.launch("later")
            assert count_of(later.ledger, name) == 0
            assert later.ledger.losses() == []
            recorder.dump()


@pytest.mark.medium
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_stated_by_the_part_that_has_it_and_by_the_whole(gpu, nvtx, tmp_path, name):
    assert_stated(gpu, nvtx, tmp_path / "dumps", name, LOSSES[name])


@pytest.mark.medium
def test_ranges_that_lack_a_text_are_stated_by_the_part_that_has_them_and_by_the_whole(root, tmp_path):
    program = f"""
from pathlib import Path
from collector import _native
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes
from tests.tracing.test_losses_of_parts import assert_stated, use_up_the_categories
with SimulatedGpu() as gpu:
    nvtx = NvtxCopy(_native.capture_library())
    assert_stated(gpu, nvtx, Path({str(tmp_path)!r}), "ranges_without_name", use_up_the_categories)
"""
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)


def test_what_could_not_be_read_before_a_dump_is_no_loss_of_a_later_part(gpu, tmp_path):
    """The dump begins a new segment of the journal."""
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        gpu.inject("unknown_kind")
        gpu.launch("before")
        gpu.synchronize()
        assert dumped(recorder).records_unknown_kind == 1
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert step.ledger.losses() == []
        assert step.ledger.source_counters["buffers_from_earlier_sessions"] == 0
        assert dumped(recorder).records_unknown_kind == 1


@pytest.mark.medium
@settings(max_examples=10, deadline=None)
@given(drops=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
def test_each_part_states_what_was_dropped_in_it(tmp_path_factory, drops):
    """CUPTI counts a record when it would deliver it, so that a part may have what was dropped just before."""

    def drop(count: int) -> None:
        gpu.inject("dropped_record", count=count)
        for _ in range(count):
            gpu.memcpy("HtoD", 4096)
        gpu.synchronize()

    folder, total = tmp_path_factory.mktemp("dumps"), 0
    with SimulatedGpu() as gpu, collector.record(folder=folder, strict=True) as recorder:
        for before, inside, is_dumped in drops:
            drop(before)
            if is_dumped:
                assert dumped(recorder).records_dropped == total + before
            with collector.trace(strict=True) as step:
                drop(inside)
            total += before + inside
            assert inside <= step.ledger.records_dropped <= inside + (0 if is_dumped else before)
        assert dumped(recorder).records_dropped == total


@pytest.mark.slow
def test_the_journal_of_a_killed_program_states_what_was_dropped_without_other_records(tmp_path):
    program = """
import sys, time
import collector
from collector.testing import SimulatedGpu
with SimulatedGpu() as gpu, collector.trace(journal=sys.argv[1], stream=True, kinds=["memcpys"]):
    gpu.inject("dropped_record", count=5)
    for _ in range(5):
        gpu.memcpy("HtoD", 4096)
    gpu.synchronize()
    print("dropped", flush=True)
    time.sleep(600)
"""
    journal = tmp_path / "step.journal"
    with subprocess.Popen([sys.executable, "-c", program, journal], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "dropped\n"
        while Recording.load(journal).ledger.records_dropped != 5:  # the test's time limit ends the wait
            time.sleep(0.1)
        os.kill(child.pid, signal.SIGKILL)
