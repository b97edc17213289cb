"""The memory of rows: one measurement in a separate process, named by the argument; bytes, as JSON."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import collector
from collector import _native
from collector.recording.capture_tables import row_order
from collector.testing import SimulatedGpu

CUDA = 13000
FIELDS = {
    "kernel": {"kind": (0, "u4"), "start": (16, "u8"), "end": (24, "u8"), "stream": (48, "u4")},
    "runtime_api": {"kind": (0, "u4"), "start": (8, "u8"), "end": (16, "u8")},
}
KINDS = {"kernel": 10, "runtime_api": 5}


def memory(which: str = "VmRSS") -> int:
    """``VmRSS`` or ``VmHWM``, its peak, of this process; bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))


def forget_peak() -> int:
    """Reset the peak; returns the memory in use now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def records(kinds: Sequence[str], count: int, streams: int) -> bytes:
    """``count`` records of each kind in turn. Later records have earlier times, which is the worst case for sorting."""
    strides = _native.decode_buffer(b"", CUDA)["strides"]
    layout = np.dtype(
        [
            (
                kind,
                {
                    "names": list(FIELDS[kind]),
                    "formats": [code for _, code in FIELDS[kind].values()],
                    "offsets": [offset for offset, _ in FIELDS[kind].values()],
                    "itemsize": strides[kind],
                },
            )
            for kind in kinds
        ]
    )
    data = np.zeros(count, layout)
    for kind in kinds:
        data[kind]["kind"] = KINDS[kind]
        data[kind]["start"] = data[kind]["end"] = np.arange(count, 0, -1)
        if "stream" in FIELDS[kind]:
            data[kind]["stream"] = np.arange(count) % streams
    return data.tobytes()


def many_streams() -> dict[str, int]:
    """One kernel on each of 2,000 streams."""
    data = records(["kernel"], 2_000, streams=2_000)
    _native.decode_buffer(data, CUDA)
    before = forget_peak()
    rows = len(_native.decode_buffer(data, CUDA)["tables"]["kernels"]["start_ns"])
    return {"rows": rows, "peak": memory("VmHWM") - before}


def new_streams() -> dict[str, int]:
    """Eight sessions, each with 300 new streams."""
    after = []
    with SimulatedGpu() as gpu:
        for session in range(8):
            with collector.trace() as step:
                for stream in range(300):
                    gpu.launch("k", stream=1 + 300 * session + stream)
            assert len(step.kernels) == 300
            after.append(forget_peak())
    return {"first": after[1], "last": after[-1]}


def hand_over() -> dict[str, int]:
    """Half a million kernels and as many calls, in one buffer."""
    data = records(["kernel", "runtime_api"], 500_000, streams=1)
    _native.decode_buffer(data[: len(data) // 1000], CUDA)
    before = forget_peak()
    tables = _native.decode_buffer(data, CUDA)["tables"]
    columns = sum(values.nbytes for table in tables.values() for values in table.values())
    return {"peak": memory("VmHWM") - before, "copy_of_the_buffer": len(data), "columns": columns}


def order() -> dict[str, int]:
    """The tables that would still have to be sorted."""
    tables = _native.decode_buffer(records(["kernel", "runtime_api"], 50_000, streams=13), CUDA)["tables"]
    return {
        name: int(row_order(name, table) is not None)
        for name, table in tables.items()
        if len(next(iter(table.values())))
    }


def large_step() -> dict[str, int]:
    """The memory after a large step has been released, with a second one, and after that has been released."""

    def trace(kernels: int) -> collector.Session:
        with collector.trace() as step:
            for _ in range(kernels // 25_000):
                gpu.launch("k", count=25_000)
                gpu.wait_until_idle()
        assert len(step.kernels) == kernels, step.ledger
        return step

    with SimulatedGpu() as gpu:
        trace(500_000)  # the buffers that are kept, and all that is made once
        before = forget_peak()
        step = trace(500_000)
        with_it = forget_peak()
        del step
        return {"before": before, "with_it": with_it, "after": forget_peak()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
