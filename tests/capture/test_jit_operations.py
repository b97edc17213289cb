"""Compilations of code by the driver, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector import analysis
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_JIT = (*KINDS, "jit_operations")


def program(gpu: SimulatedGpu) -> None:
    gpu.jit("load", 2_000, num_bytes=300)
    gpu.jit("compile", 5_000_000, device=1)
    gpu.jit("store", 1_000, device=1, num_bytes=4096)
    gpu.launch("kernel", device=1)


@pytest.mark.medium
@pytest.mark.parametrize("cuda", ["12.0", "12.3", "12.4", "13.0", "13.5"])
def test_they_have_their_call_and_their_times(cuda: str, tmp_path: Path) -> None:
    with SimulatedGpu(cuda=cuda, devices=2) as gpu:
        with collector.trace(kinds=KINDS_WITH_JIT, journal=tmp_path / "step.journal", strict=True) as step:
            program(gpu)
            gpu.advance(1_000_000)  # the kernels end: CUPTI keeps a buffer until then
            journal = journal_with(tmp_path / "step.journal", "jit_operations", 3, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    recording = step.recording
    table = recording.jit_operations
    assert table.jit_operation_type.tolist() == [1, 3, 2]
    assert table.duration_ns.tolist() == [2_000, 5_000_000, 1_000]
    assert table.device_id.tolist() == [0, 1, 1]
    assert table.cache_bytes.tolist() == [300, 0, 4096]
    calls = recording.api_calls[recording.launch_rows(table.correlation_id)]
    assert calls.names() == ["cuModuleLoadData"] * 3
    assert (calls.start_ns <= table.start_ns).all()
    assert (calls.end_ns >= table.end_ns).all()
    has_threads = tuple(map(int, cuda.split("."))) >= (12, 4)
    assert (table.thread_id == (calls.thread_id if has_threads else 0)).all()
    assert step.ledger.complete
    assert_equal(journal.jit_operations, table)
    assert_kept(recording, "jit_operations", tmp_path)


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu(devices=2) as gpu, collector.trace(strict=True) as step:
        program(gpu)
    assert len(step.recording.jit_operations) == 0
    assert step.ledger.complete


def test_they_are_a_track_an_answer_and_a_line_of_the_summary(tmp_path: Path) -> None:
    with SimulatedGpu(devices=2) as gpu, collector.trace(kinds=KINDS_WITH_JIT, strict=True) as step:
        program(gpu)
        gpu.overhead(1, 6_000_000)
    step.save(tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_bytes())["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    drawn = [event["name"] for event in events if event["ph"] == "X" and tracks[event["pid"], event["tid"]] == "jit"]
    assert drawn == ["JIT Cache Load", "JIT Compilation", "JIT Cache Store"]
    found = [(row["kind"], row["code"], row["count"], row["covered_ns"]) for row in analysis.code_loading(step)]
    assert found == [
        ("Driver Compiler", "", 1, 6_000_000),
        ("JIT Compilation", "PTX to cubin", 1, 5_000_000),
        ("JIT Cache Load", "PTX to cubin", 1, 2_000),
        ("JIT Cache Store", "PTX to cubin", 1, 1_000),
    ]
    summary = " ".join(step.summary().split())
    assert "Code was compiled or loaded during the step: Driver Compiler 6 ms (1 time), JIT Compilation 5 ms" in summary
