"""Writes seed files for fuzz_converter: small steps of every kind, for every converter.

    python fuzz/converter_seeds.py FOLDER

In addition to the steps built here it uses the small steps of TensorFlow's goldens, if they are in the folder beside
the repository or in the folder that COLLECTOR_SHARED names.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np

from collector.protos import (
    AllocationDescription,
    AllocationRecord,
    AllocatorMemoryUsed,
    DeviceStepStats,
    NodeExecStats,
    NodeOutput,
    RunMetadata,
    StepStats,
    TensorDescription,
)
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.stepstats.from_recording import serialized
from collector.stepstats.wire import is_run_metadata

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 6000
"""The maximum size of a golden step: larger ones slow the fuzzer down more than they help."""
RUN_METADATA, ARROWS, COUNTERS, LABEL_OR_PRETTY, REMARKS = (1 << bit for bit in range(5))
HEADERS = [
    bytes([converter, flags, filters, 1, 5, 20, 9, 40])
    for converter, flags, filters in (
        (0, ARROWS | LABEL_OR_PRETTY, 0),
        (0, ARROWS | COUNTERS, 0),
        (1, COUNTERS, 0),
        (2, ARROWS | COUNTERS | LABEL_OR_PRETTY | REMARKS, 0),
        (2, ARROWS | COUNTERS, 0b0111111),
        (3, ARROWS | COUNTERS, 0),
        (3, ARROWS | REMARKS, 0b1100000),
        (4, ARROWS, 0),
        (5, 0, 0),
        (6, ARROWS | COUNTERS, 0),
    )
]
"""The meaning of the first eight bytes in fuzz_converter.cpp."""


def built() -> list[StepStats]:
    """A host with threads, memory and calls; streams whose activities overlap; a device listed twice."""
    start = 1_700_000_000_000_000
    host = DeviceStepStats(device="/job:w/replica:0/task:1/device:CPU:0", thread_names={7: "main", 9: "worker 9"})
    tensor = TensorDescription(
        dtype=1, allocation_description=AllocationDescription(requested_bytes=256, allocator_name="GPU_0_bfc")
    )
    for number, label in enumerate(("a = MatMul(b, c:1)", "b = Const()", "c:1 = Send(a/_3)")):
        record = AllocationRecord(alloc_micros=start + number, alloc_bytes=64 - 32 * number)
        host.node_stats.append(
            NodeExecStats(
                node_name="abc"[number],
                timeline_label=label,
                all_start_micros=start + 3 * number,
                all_end_rel_micros=10,
                thread_id=7 + 2 * (number % 2),
                memory=[AllocatorMemoryUsed(allocator_name="cpu", allocation_records=[record])],
                output=[NodeOutput(tensor_description=tensor)] * 2,
            )
        )
    calls = DeviceStepStats(
        device="/cpu:0",
        node_stats=[
            NodeExecStats(
                node_name="cudaLaunchKernel",
                all_start_nanos=start * 1000 + 40 * number,
                all_end_rel_nanos=30,
                thread_id=7,
                correlation_id=number,
            )
            for number in range(1, 5)
        ],
    )
    kernels = [
        NodeExecStats(
            node_name="layer/conv:sgemm",
            timeline_label="void sgemm<float>(int) regs:64 shm:1024 grid:8,1,1 block:256,1,1 correlation:3",
            all_start_nanos=start * 1000 + 900 * number,
            all_end_rel_nanos=1000,
            scheduled_nanos=start * 1000 + 40 * number,
            thread_id=7,
            correlation_id=number % 4,
        )
        for number in range(1, 6)
    ]
    copies = [
        NodeExecStats(
            node_name=name,
            timeline_label=f"{name} 4096 bytes (Pageable to Device)",
            all_start_micros=start + 2 * number,
            all_end_rel_micros=7,
        )
        for number, name in enumerate(("MEMCPYHtoD", "x:MemcpyD2H", "MEMSET"))
    ]
    streams = [DeviceStepStats(device=f"/gpu:0/stream:{name}", node_stats=kernels) for name in ("all", "7", "9", "7")]
    step = StepStats(dev_stats=[host, calls, *streams, DeviceStepStats(device="/gpu:0/memcpy", node_stats=copies)])
    return [StepStats(), step, StepStats(dev_stats=[host]), StepStats(dev_stats=[calls, streams[1]])]


def recorded(rows: int) -> bytes:
    """A recorded step with this many rows in every table: launches with work on two streams, and all columns filled."""
    start = 1_700_000_000_000_000_000
    capture = empty_capture()
    at = np.arange(rows)
    values = {
        "start_ns": start + 100 * at,
        "end_ns": start + 100 * at + 90,
        "correlation_id": at + 1,
        "external_id": at + 1,
        "external_kind": np.full(rows, 5),
        "stream_id": 7 + at % 2,
        "name_id": at % 2,
        "details_id": 0 * at,
    }
    for table, columns in SCHEMA.items():
        capture["tables"][table] = {
            name: (values.get(name, (place + at) % 12)).astype(dtype)
            for place, (name, dtype) in enumerate(columns.items())
        }
    capture["strings"] = ["_Z3addIfEvPT_i", "layer1/conv", *(f"text {number}" for number in range(2, 12))]
    capture["clock"] |= {"cupti_start_ns": start, "cupti_stop_ns": start + 10**6, "wall_start_ns": start}
    return serialized(Recording.from_capture(capture))


def goldens() -> list[bytes]:
    """The small steps among TensorFlow's goldens, if they are available."""
    shared = Path(os.environ.get("COLLECTOR_SHARED") or ROOT.parent / "shared")
    found = []
    for path in sorted((shared / "data" / "tf" / "inputs").glob("*/*.step_stats.pb*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        if len(data) <= MOST_BYTES:
            found.append(data)
    return found


def seeds() -> list[bytes]:
    """Inputs of fuzz_converter."""
    messages = [(step.SerializeToString(deterministic=True), False) for step in built()]
    messages.append((RunMetadata(step_stats=built()[1]).SerializeToString(deterministic=True), True))
    messages += [(recorded(rows), True) for rows in (1, 3)]
    messages += [(data, is_run_metadata(data)) for data in goldens()]
    return [
        bytes([header[0], header[1] | whole * RUN_METADATA, *header[2:]]) + data
        for data, whole in messages
        for header in HEADERS
    ]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed{number:04}").write_bytes(seed)
