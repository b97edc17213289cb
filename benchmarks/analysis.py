"""What answers about a step cost: processor time and memory, in Python, beyond having the recording.

Goal: busy time with compute, communication and copies apart, of ten million kernels on eight devices, in 2.5 CPU
seconds. Beside it stand the other questions, and what plain numpy takes to order the same starts once, which is the
least that any union of intervals needs.

One process, each question three times, medians; memory is the peak while all of them ran over the recording's own.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.questions import QUESTIONS
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable

START_NS = 1_700_000_000_000_000_000
STEP_NS = 4_000
DEVICES = 8
STREAMS = 4
NAMES = [f"kernel_{number}" for number in range(199)] + ["ncclDevKernel_AllReduce"]
REPEATS = 3


def recording(kernels: int) -> Recording:
    """A step of so many kernels, every tenth of them communication, with a launch call for each."""
    random = np.random.default_rng(3)
    capture: Any = empty_capture()
    numbers = np.arange(kernels)
    device = numbers % DEVICES
    starts = START_NS + numbers // DEVICES * STEP_NS + random.integers(0, STEP_NS, kernels)
    names = np.where(random.random(kernels) < 0.1, len(NAMES) - 1, numbers % (len(NAMES) - 1))
    filled = {
        "kernels": {
            "start_ns": starts,
            "end_ns": starts + random.integers(500, 2 * STEP_NS, kernels),
            "device_id": device,
            "stream_id": 7 + numbers // DEVICES % STREAMS,
            "correlation_id": 1 + numbers,
            "name_id": names,
        },
        "api_calls": {
            "start_ns": starts - 6_000,
            "end_ns": starts - 3_000,
            "name_id": np.full(kernels, len(NAMES)),
            "correlation_id": 1 + numbers,
            "thread_id": 100 + device,
        },
    }
    for table, columns in filled.items():
        capture["tables"][table] = {
            name: np.asarray(columns.get(name, np.zeros(kernels)), dtype) for name, dtype in SCHEMA[table].items()
        }
    capture["strings"] = [*NAMES, "cudaLaunchKernel_v7000"]
    last_ns = int(filled["kernels"]["end_ns"].max())
    capture["clock"] = {
        "cupti_start_ns": START_NS - 10_000,
        "cupti_stop_ns": last_ns,
        "wall_start_ns": START_NS - 10_000,
        "wall_stop_ns": last_ns,
        "uncertainty_ns": 0,
    }
    return Recording.from_capture(capture)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call, the median."""
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def peak_mib() -> float:
    """The most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=10_000_000, help="how many (10,000,000)")
    parser.add_argument("--quick", action="store_true", help="1,000,000 kernels")
    arguments = parser.parse_args()
    kernels = 1_000_000 if arguments.quick else arguments.kernels
    step = recording(kernels)
    before = peak_mib()
    starts = step.kernels.start_ns
    ordered = seconds(lambda: np.argsort(starts, kind="stable"))
    print(f"{kernels:,} kernels on {DEVICES} devices, as many launch calls; starts ordered once: {ordered:.2f} CPU s\n")
    print("| question | CPU s | ns a kernel | starts ordered once |")
    print("| --- | --- | --- | --- |")
    for name, question in QUESTIONS.items():
        spent = seconds(lambda: question.ask(step))  # noqa: B023
        print(f"| {name} | {spent:.2f} | {spent / kernels * 1e9:.0f} | {spent / ordered:.1f} |", flush=True)
    print(f"\npeak memory over the recording's: {peak_mib() - before:,.0f} MiB")


if __name__ == "__main__":
    main()
