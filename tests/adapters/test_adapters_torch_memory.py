"""The memory of PyTorch's allocator as counters, from a made-up snapshot of the structure that PyTorch documents."""

from __future__ import annotations

import json
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import collector
from collector import adapters
from collector.adapters.torch_memory import ALLOCATED, RESERVED, memory_series
from collector.recording.counter_rows import counters_over_time
from collector.testing import SimulatedGpu


def entry(action: str, time_us: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": 1, "size": size, "stream": 0, "time_us": time_us, "frames": []}


def block(size: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"size": (size + 511) // 512 * 512, "requested_size": size, "address": 1, "state": state, "frames": []}


def segment(device: int, total_size: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"device": device, "address": 1, "total_size": total_size, "stream": 0, "blocks": list(blocks)}


SNAPSHOT = {
    "segments": [segment(0, 2 << 20, block(100), block(50, "active_awaiting_free"), block(700, "inactive"))],
    "device_traces": [
        [
            entry("segment_alloc", 20, 2 << 20),
            entry("alloc", 20, 100),
            entry("alloc", 30, 50),
            entry("snapshot", 35, 0),
            entry("free_requested", 40, 50),
            entry("alloc", 40, 700),
            entry("free_completed", 45, 50),
            entry("oom", 50, 1 << 40),
            entry("free_requested", 60, 700),
            entry("segment_alloc", 70, 4 << 20),
            entry("segment_free", 80, 4 << 20),
        ],
        [],
    ],
}


def values(series: Any) -> dict[tuple[int, str], list[tuple[int, int]]]:
    return {
        (each.device, each.name): list(zip((at // 1000 for at in each.times), each.values, strict=True))
        for each in series
    }


def test_counters_of_the_worked_example() -> None:
    assert values(memory_series(SNAPSHOT, 10_000, 1000)) == {
        (0, ALLOCATED): [(10, 0), (20, 100), (30, 150), (40, 800), (60, 100)],
        (0, RESERVED): [(10, 0), (20, 2 << 20), (70, 6 << 20), (80, 2 << 20)],
    }


def test_counters_of_a_history_that_was_cut_begin_with_its_first_entry() -> None:
    cut = {**SNAPSHOT, "device_traces": [SNAPSHOT["device_traces"][0][4:], []]}
    assert values(memory_series(cut, 10_000, 7)) == {
        (0, ALLOCATED): [(40, 800), (60, 100)],
        (0, RESERVED): [(70, 6 << 20), (80, 2 << 20)],
    }


def test_memory_that_was_there_before_and_expandable_segments_count() -> None:
    entries = [entry("segment_map", 20, 30), entry("segment_unmap", 30, 10)]
    snapshot = {"segments": [segment(1, 120, block(7))], "device_traces": [[], entries]}
    assert values(memory_series(snapshot, 10_000, 1000)) == {
        (1, ALLOCATED): [(10, 7)],
        (1, RESERVED): [(10, 100), (20, 130), (30, 120)],
    }


class Memory(ModuleType):
    """A stand-in for ``torch.cuda.memory``, whose tensor of 512 bytes exists from each snapshot's request on."""

    def __init__(self) -> None:
        super().__init__("torch.cuda.memory")
        self.enabled: list[Any] = []
        self.max_entries: list[int] = []
        self.entries: list[dict[str, Any]] = []
        self.held: list[int] = []

    def _record_memory_history(self, enabled: str | None, **options: Any) -> None:
        self.enabled.append(enabled)
        self.max_entries.append(options.get("max_entries", 0))

    def allocate(self, size: int) -> None:
        self.held.append(size)
        self.entries.append(entry("alloc", time.time_ns() // 1000, size))

    def _snapshot(self) -> dict[str, Any]:
        return {"segments": [segment(0, 1 << 20, *map(block, self.held))], "device_traces": [list(self.entries)]}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    found = Memory()
    torch, cuda = ModuleType("torch"), ModuleType("torch.cuda")
    torch.cuda, cuda.memory = cuda, found  # type: ignore[attr-defined]
    cuda.is_initialized = lambda: True  # type: ignore[attr-defined]
    for module in (torch, cuda, found):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return found


def counted(step: collector.Session) -> dict[tuple[int, str, str], list[int]]:
    return {key: held.tolist() for key, _, held in counters_over_time(step.recording)}


@pytest.mark.simulator
def test_traces_have_the_counters_until_the_hooks_are_removed(memory: Memory, tmp_path: Any) -> None:
    with SimulatedGpu(real_time=True) as gpu:
        with adapters.record_torch_memory():
            memory.allocate(100)
            with collector.trace(tmp_path / "step.json", strict=True) as step:
                gpu.launch("gemm")
                memory.allocate(1000)
                gpu.launch("gemm")
        with collector.trace(strict=True) as after:
            gpu.launch("gemm")
    assert memory.enabled == ["all", None]
    assert counted(step) == {(0, ALLOCATED, "bytes"): [100, 1100], (0, RESERVED, "bytes"): [1 << 20]}
    assert counted(after) == {}
    shown = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    assert {event["name"] for event in shown if event["ph"] == "C"} >= {ALLOCATED, RESERVED}


@pytest.mark.simulator
def test_a_program_and_a_library_that_ask_for_the_counters_get_them_once(memory: Memory) -> None:
    def trace() -> dict[tuple[int, str, str], list[int]]:
        with collector.trace(strict=True) as step:
            gpu.launch("gemm")
            memory.allocate(1000)
            gpu.launch("gemm")
        return counted(step)

    with SimulatedGpu(real_time=True) as gpu:
        of_program, of_library = adapters.record_torch_memory(), adapters.record_torch_memory(max_entries=1000)
        both = trace()
        of_program.remove()
        one = trace()
        of_library.remove()
        none = trace()
    assert both == {(0, ALLOCATED, "bytes"): [0, 1000], (0, RESERVED, "bytes"): [1 << 20]}
    assert one == {(0, ALLOCATED, "bytes"): [1000, 2000], (0, RESERVED, "bytes"): [1 << 20]}
    assert none == {}
    assert memory.enabled == ["all", None]


@pytest.mark.simulator
def test_a_call_that_asks_for_more_entries_begins_the_history_anew(memory: Memory) -> None:
    with SimulatedGpu(real_time=True) as gpu, adapters.record_torch_memory(max_entries=2):
        for size in (1, 2, 3):
            memory.allocate(size)
        with adapters.record_torch_memory(max_entries=10):
            memory.entries.clear()
            with collector.trace(strict=True) as step:
                gpu.launch("gemm")
                memory.allocate(1000)
                gpu.launch("gemm")
    assert (memory.enabled, memory.max_entries) == (["all", None, "all", None], [2, 0, 10, 0])
    assert counted(step) == {(0, ALLOCATED, "bytes"): [6, 1006], (0, RESERVED, "bytes"): [1 << 20]}


@pytest.mark.simulator
def test_a_streamed_trace_has_the_counters(memory: Memory, tmp_path: Any) -> None:
    with SimulatedGpu(real_time=True) as gpu, adapters.record_torch_memory():
        memory.allocate(100)
        with collector.trace(journal=tmp_path / "step", stream=True, strict=True) as step:
            gpu.launch("gemm")
            memory.allocate(1000)
            gpu.launch("gemm")
    assert counted(step) == {(0, ALLOCATED, "bytes"): [100, 1100], (0, RESERVED, "bytes"): [1 << 20]}


@pytest.mark.simulator
def test_a_program_that_does_not_use_cuda_has_no_counters(memory: Memory) -> None:
    sys.modules["torch.cuda"].is_initialized = lambda: False  # type: ignore[attr-defined]
    with SimulatedGpu() as gpu, adapters.record_torch_memory(), collector.trace(strict=True) as step:
        gpu.launch("gemm")
    assert counted(step) == {}
    assert step.ledger.losses() == []


@pytest.mark.simulator
def test_a_snapshot_that_cannot_be_read_is_a_loss_of_the_trace_and_no_error(memory: Memory) -> None:
    memory._snapshot = lambda: SimpleNamespace()  # type: ignore[assignment,method-assign,return-value]
    with SimulatedGpu() as gpu, adapters.record_torch_memory(), collector.trace() as step:
        gpu.launch("gemm")
    assert len(step.recording.kernels) == 1
    assert "TypeError" in step.recording.environment["counter_trouble"]
    (loss,) = step.ledger.losses()
    assert "memory of GPUs" in loss
