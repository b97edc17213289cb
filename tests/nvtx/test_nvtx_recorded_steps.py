"""A step inside a recording has the ranges, marks and names that a trace of its own has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import collector
from collector.recording.cupti_enums import NVTX_RANGE_KINDS
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator


def rows(recording: Recording) -> list[tuple[Any, ...]]:
    """Of each range and mark its kind, texts, colour, threads, and whether it ends with the step."""
    table = recording.nvtx_ranges
    columns = ("name_id", "domain_name_id", "category_name_id", "payload_text_id")
    texts = zip(*(table.texts(column) for column in columns), strict=True)
    return [
        (NVTX_RANGE_KINDS[row.range_kind], *text, row.color, row.thread_id, row.end_thread_id, row.end_ns >= stop_ns)
        for stop_ns in [recording.clock.cupti_stop_ns]
        for row, text in zip(table, texts, strict=True)
    ]


def open_ranges(nvtx: NvtxCopy, other: Executor) -> Callable[[], None]:
    """Opens ranges in two threads and two domains, of which one ends; returns a function that ends the others."""
    domain = nvtx.DomainCreateA(b"loading")
    nvtx.DomainNameCategoryA(domain, 7, b"files")
    said = {"color_type": 1, "color": 0xFF00FF00, "category": 7, "payload_type": 1, "payload": 42}
    first = nvtx.RangeStartA(b"first")
    ended = nvtx.RangeStartA(b"ended")
    second = nvtx.DomainRangeStartEx(domain, attributes(b"second", **said))
    third = other.submit(nvtx.RangeStartA, b"third").result()
    other.submit(nvtx.RangeEnd, ended).result()
    nvtx.MarkA(b"mark")

    def end() -> None:
        nvtx.RangeEnd(first)
        other.submit(nvtx.DomainRangeEnd, domain, second).result()
        nvtx.RangeEnd(third)

    return end


OPEN = {"first": True, "ended": False, "second": True, "third": True, "mark": False}


def opened(recording: Recording) -> dict[str, bool]:
    """The names of ranges and marks, and whether each ends with the recording."""
    return {name: is_open for _, name, *_, is_open in rows(recording)}


@pytest.mark.parametrize("synchronize", [True, False])
def test_a_range_that_is_open_where_a_step_of_a_recording_ends_ends_there(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, synchronize: bool
) -> None:
    def traced() -> tuple[list[tuple[Any, ...]], Callable[[], None]]:
        with collector.trace(strict=True, synchronize=synchronize) as step:
            gpu.launch("kernel")
            gpu.synchronize()
            end = open_ranges(nvtx, other)
            gpu.advance(1000)
        assert step.ledger.losses() == []
        return rows(step.recording), end

    with ThreadPoolExecutor(1) as other:
        plain, end = traced()
        end()
        assert {name: is_open for _, name, *_, is_open in plain} == OPEN
        with collector.record(folder=tmp_path / "dumps", strict=True):
            for _ in range(3):  # those of the steps before are open, or end inside of this one
                found, end_later = traced()
                assert found == plain
                end()
                end = end_later


def test_a_dump_has_the_ranges_that_are_open(gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path) -> None:
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder, ThreadPoolExecutor(1) as other:
        end = open_ranges(nvtx, other)
        for is_open in (True, True, False):  # each dump begins a new segment
            if not is_open:
                end()
            gpu.advance(1000)
            gpu.launch("kernel")
            gpu.synchronize()
            dump = recorder.dump()
            assert dump is not None
            found = Recording.load(dump.journal)
            assert len(found.nvtx_ranges) == len(OPEN)
            assert opened(found) == {name: is_open and each for name, each in OPEN.items()}
            assert found.ledger.losses() == []


@pytest.mark.medium
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_range_that_began_before_the_first_segment_of_a_ring_begins_with_it(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, has_ended: bool
) -> None:
    with collector.record(folder=tmp_path / "dumps", strict=True, keep="64KiB") as recorder:
        left = nvtx.RangeStartA(b"epoch")
        for number in range(40):
            for _ in range(200):
                gpu.launch(f"kernel {number}")
            gpu.synchronize()
            with collector.trace(strict=True) as step:  # brings the journal up to date
                pass
            assert len(step.recording.nvtx_ranges) == 0
        if has_ended:
            nvtx.RangeEnd(left)
            gpu.advance(1000)
        dump = recorder.dump()
    assert dump is not None
    found = Recording.load(dump.journal)
    assert found.ledger.rows_forgotten > 0
    assert found.ledger.losses() == []
    (row,) = found.nvtx_ranges
    assert (row.name, row.start_ns) == ("epoch", found.clock.cupti_start_ns)
    assert (row.end_ns < found.clock.cupti_stop_ns) == has_ended
    first_call_ns = int(found.api_calls.start_ns.min())
    assert 0 <= first_call_ns - row.start_ns < 1_000_000  # what the ring has forgotten lasted longer


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_journal_of_a_killed_program_has_its_open_ranges(tmp_path: Path, stream: bool) -> None:
    program = """
import sys, time
import collector
from collector import _native
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy
nvtx = NvtxCopy(_native.capture_library())
with SimulatedGpu() as gpu, collector.trace(journal=sys.argv[1], stream=sys.argv[2] == "True"):
    gpu.launch("kernel")
    gpu.synchronize()
    nvtx.RangeStartA(b"open")
    nvtx.RangeEnd(nvtx.RangeStartA(b"ended"))
    print("begun", flush=True)
    time.sleep(600)
"""
    journal = tmp_path / "step.journal"
    command = [sys.executable, "-c", program, journal, str(stream)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        while len(Recording.load(journal).nvtx_ranges) != 2:  # the test's time limit ends the wait
            time.sleep(0.1)
        os.kill(child.pid, signal.SIGKILL)
    assert sorted(Recording.load(journal).nvtx_ranges.names()) == ["ended", "open"]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_step_of_a_recording_has_the_labels_and_streams_of_its_own_work(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, is_named: bool
) -> None:
    """Streams of three contexts have one number, and the lowest of them works before the step alone."""
    contexts = [gpu.create_context(), gpu.create_context()]
    names = {61: b"named", 62: b"other"}
    with collector.record(folder=tmp_path / "dumps", strict=True):
        for stream, name in names.items():
            nvtx.NameCudaStreamA(stream, name if is_named else b"")
        gpu.launch("before", stream=61)
        gpu.synchronize()
        with collector.trace(strict=True) as step:
            for context in contexts:
                gpu.launch("kernel", stream=61, context=context)
            gpu.launch("kernel", stream=62)
        with collector.trace(strict=True) as unnamed:
            gpu.launch("kernel", stream=61, context=contexts[0])
    for stream in names:
        nvtx.NameCudaStreamA(stream, b"")
    streams = [f"/gpu:0/stream:61.{context}" for context in contexts]
    found = [device.device for device in step.step_stats.dev_stats if "stream:6" in device.device]
    assert found == [*streams, "/gpu:0/stream:62"]
    labels = [each.recording.environment.get("device_labels") for each in (step, unnamed)]
    assert labels == [{"/gpu:0/stream:62": "other"} if is_named else None, None]
