"""What was read of a file is freed with its step, and does not wait for the garbage collector."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

import collector
from collector.formats.loading import load
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def step():
    with SimulatedGpu() as gpu, collector.trace(kinds=(*KINDS, "memory_operations")) as traced:
        with collector.annotate("layer"):
            gpu.launch("sgemm")
            gpu.memcpy("HtoD", 4096)
            gpu.free(gpu.malloc(64))
        gpu.synchronize()
    return traced


@pytest.mark.medium
@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".pbtxt", ".json", ".json.gz", ".xplane.pb"])
def test_no_cycle_keeps_what_was_read_of_our_files(suffix, step, tmp_path):
    path = tmp_path / f"step{suffix}"
    step.save(path)
    assert kept_of(path) == set()


@pytest.mark.medium
def test_no_cycle_keeps_what_was_read_of_pytorchs_traces(tmp_path):
    arguments = {"device": 0, "stream": 7, "correlation": 1, "without a column": "x"}
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": arguments}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [kernel]}))
    recording = load(path).recording
    assert recording.arguments.of_row("kernels", 0) == {"without a column": "x"}
    assert kept_of(path) == set()


def kept_of(path: Path) -> set[str]:
    """The classes whose objects would wait for the garbage collector after a file was read."""
    assert load(path).recording.kernels  # imports, and fills caches
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        loaded = load(path)
        assert loaded.recording.kernels
        assert loaded.step_stats.dev_stats
        del loaded
        gc.collect()
        kept = {type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith("collector")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    return kept
