"""The cost of a session apart from recording: annotations, and StepStats of a large step.

Claims: while nothing is traced, an annotation costs about as much as ``contextlib.nullcontext``; converting a step to
StepStats, including names, labels and order, takes as long as only making the protobuf messages one by one.

All figures are processor time, with arms alternating in random order. No GPU is needed: annotations go to the simulated
CUPTI, and the step is generated.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import collector
from collector import bench
from collector.bench.benchmark_report import Report, joined
from collector.protos import NodeExecStats, StepStats
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.stepstats.from_recording import step_stats
from collector.testing import SimulatedGpu

START_NS = 1_700_000_000_000_000_000
NAMES = 100
STREAMS = 4
BLOCKS = 1_000


def annotated() -> None:
    """Blocks with a name."""
    for _ in range(BLOCKS):
        with collector.annotate("layer1/conv"):
            pass


def empty_blocks() -> None:
    """The same blocks without a name."""
    for _ in range(BLOCKS):
        with contextlib.nullcontext("layer1/conv"):
            pass


def made_up_step(kernels: int) -> Recording:
    """A step with that many kernels on a few streams, each with its launch."""
    random = np.random.default_rng(1)
    start = START_NS + np.arange(kernels) * 2_000
    number = np.arange(1, kernels + 1)
    rows = {
        "kernels": {
            "start_ns": start + 1_000,
            "end_ns": start + 2_500,
            "context_id": np.ones(kernels),
            "stream_id": random.integers(7, 7 + STREAMS, kernels),
            "correlation_id": number,
            "name_id": random.integers(0, NAMES, kernels),
            **{f"{part}_{axis}": np.ones(kernels) for part in ("grid", "block") for axis in "xyz"},
        },
        "api_calls": {
            "start_ns": start,
            "end_ns": start + 800,
            "thread_id": np.full(kernels, 11),
            "correlation_id": number,
            "name_id": np.full(kernels, NAMES),
        },
    }
    capture = empty_capture()
    for table, columns in rows.items():
        capture["tables"][table] = {
            column: np.asarray(columns.get(column, np.zeros(kernels)), np.dtype(dtype))
            for column, dtype in SCHEMA[table].items()
        }
    names = [f"_ZN2at6native29vectorized_elementwise_kernelILi{number}EEEvi" for number in range(NAMES)]
    capture["strings"] = [*names, "cudaLaunchKernel_v7000"]
    capture["clock"] = {
        "cupti_start_ns": START_NS,
        "cupti_stop_ns": int(start[-1]) + 10_000,
        "wall_start_ns": START_NS,
        "wall_stop_ns": int(start[-1]) + 10_000,
        "uncertainty_ns": 0,
    }
    return Recording.from_capture(capture)


def fields_of(steps: StepStats) -> list[list[dict[str, Any]]]:
    """The contents of each node of each device, as keyword arguments."""
    names = [field.name for field in NodeExecStats.DESCRIPTOR.fields if field.message_type is None]
    return [
        [{name: value for name in names if (value := getattr(node, name))} for node in device.node_stats]
        for device in steps.dev_stats
    ]


def node_by_node(devices: list[list[dict[str, Any]]]) -> StepStats:
    """StepStats made one message at a time, from prepared values."""
    steps = StepStats()
    for nodes in devices:
        add = steps.dev_stats.add().node_stats.add
        for fields in nodes:
            add(**fields)
    return steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=20, help="for each comparison")
    parser.add_argument("--json", type=Path, help="also write the report here, with every sample")
    options = parser.parse_args()

    def compare(name: str, arms: dict[str, Callable[[], Any]], **more: Any) -> Report:
        return bench.compare(
            arms, name=name, gpu=bench.Host(), clock="cpu", max_seconds=options.seconds, seed=1, **more
        )

    off = compare(f"{BLOCKS} blocks, nothing traced", {"nullcontext": empty_blocks, "annotate": annotated})
    with SimulatedGpu():
        # Each call has its own session, so that a session's data does not grow; both arms open one.
        def traced(blocks: Callable[[], None]) -> Callable[[], None]:
            def call() -> None:
                with collector.trace():
                    blocks()

            return call

        on = compare(
            f"a session of {BLOCKS} blocks", {"nullcontext": traced(empty_blocks), "annotate": traced(annotated)}
        )
    recording = made_up_step(options.kernels)
    devices = fields_of(step_stats(recording))
    step = compare(
        "StepStats",
        {"message by message": lambda: node_by_node(devices), "step_stats": lambda: step_stats(recording)},
        parameters={"kernels": options.kernels},
        precision=0.02,
        min_rounds=6,
    )
    report = joined([off, on, step])
    print(report)
    if options.json:
        report.save(options.json)


if __name__ == "__main__":
    main()
