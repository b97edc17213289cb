"""What a session costs around the recording itself: annotations, and StepStats of a large step.

Claims: while nothing is traced an annotation costs about what ``contextlib.nullcontext`` costs; a step becomes
StepStats, names and labels and order included, in the time that making the protobuf messages alone takes one by one.

Each figure is processor time, the best of several rounds, annotations by turns. No GPU is needed: annotations go to the
simulated CUPTI, the step is made up.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import resource
import time
import timeit
from typing import Any

import numpy as np

import collector
from collector.protos import NodeExecStats, StepStats
from collector.recording import Recording
from collector.schema import SCHEMA
from collector.sources import empty_capture
from collector.stepstats import step_stats
from collector.testing import SimulatedGpu

START_NS = 1_700_000_000_000_000_000
NAMES = 100
STREAMS = 4


def annotated() -> None:
    """A block under a name."""
    with collector.annotate("layer1/conv"):
        pass


def empty_block() -> None:
    """The same, under nothing."""
    with contextlib.nullcontext("layer1/conv"):
        pass


def best_ns(functions: dict[str, Any], calls: int, rounds: int) -> dict[str, float]:
    """The least ns per call of each function, by turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            best[name] = min(best[name], timeit.timeit(function, number=calls, timer=time.process_time) / calls * 1e9)
    return best


def made_up_step(kernels: int) -> Recording:
    """That many kernels on a few streams, each with its launch."""
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
    """What each node of each device holds, as keyword arguments."""
    names = [field.name for field in NodeExecStats.DESCRIPTOR.fields if field.message_type is None]
    return [
        [{name: value for name in names if (value := getattr(node, name))} for node in device.node_stats]
        for device in steps.dev_stats
    ]


def node_by_node(devices: list[list[dict[str, Any]]]) -> StepStats:
    """StepStats made one message at a time, of values that are all at hand."""
    steps = StepStats()
    for nodes in devices:
        add = steps.dev_stats.add().node_stats.add
        for fields in nodes:
            add(**fields)
    return steps


def seconds(function: Any, rounds: int) -> float:
    """The least processor seconds of some calls."""
    gc.collect()
    return min(timeit.repeat(function, number=1, repeat=rounds, timer=time.process_time))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    off = best_ns({"annotate": annotated, "nullcontext": empty_block}, 100_000, 5 * arguments.rounds)
    with SimulatedGpu(), collector.trace():
        on = best_ns({"annotate": annotated}, 10_000, arguments.rounds)

    recording = made_up_step(arguments.kernels)
    steps = step_stats(recording)
    nodes = sum(len(device.node_stats) for device in steps.dev_stats)
    ours = seconds(lambda: step_stats(recording), arguments.rounds)
    devices = fields_of(steps)
    del steps
    plain = seconds(lambda: node_by_node(devices), arguments.rounds)
    figures = {
        "annotate_off_ns": off["annotate"],
        "nullcontext_ns": off["nullcontext"],
        "annotate_off_to_nullcontext": off["annotate"] / off["nullcontext"],
        "annotate_on_ns": on["annotate"],
        "kernels": arguments.kernels,
        "nodes": nodes,
        "step_stats_s": ours,
        "node_by_node_s": plain,
        "node_by_node_to_step_stats": plain / ours,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:,.2f}" if isinstance(value, float) else f"{name:28} {value:,}")


if __name__ == "__main__":
    main()
