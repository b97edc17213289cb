"""What answers about a step cost: processor time and memory, in Python, beyond having the recording.

Goal: busy time with compute, communication and copies apart, of ten million kernels on eight devices, in 2.5 CPU
seconds and little memory beside them (a byte a kernel). The peers answer a part of it: plain numpy the busy time,
compute, communication and their overlap on each device, and DuckDB's SQL, where it is installed (``pip install
duckdb``), the busy time alone. The other questions stand beside it.

One process, each question three times, medians; memory is the peak while it is answered over what the process had.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _cpu_time import cpu_seconds

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
ISLANDS = """
WITH reached AS (
  SELECT *, max(end_ns) OVER (
    PARTITION BY device_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM kernels
), numbered AS (
  SELECT *, sum(CASE WHEN start_ns <= reached THEN 0 ELSE 1 END) OVER (
    PARTITION BY device_id ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS island FROM reached
), islands AS (
  SELECT device_id, max(end_ns) - min(start_ns) AS length FROM numbered GROUP BY device_id, island
)
SELECT sum(length)::BIGINT FROM islands GROUP BY device_id ORDER BY device_id
"""
"""The busy time of each device in SQL."""


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


def numpy_overlap(step: Recording) -> list[tuple[int, int, int, int]]:
    """Busy, compute, communication and overlap of each device, as plain numpy finds them."""

    def union(starts: Any, ends: Any) -> tuple[Any, Any]:
        order = np.argsort(starts, kind="stable")
        starts, reached = starts[order], np.maximum.accumulate(ends[order])
        is_first = np.concatenate([[True], starts[1:] > reached[:-1]])
        return starts[is_first], reached[np.concatenate([is_first[1:], [True]])]

    def covered_until(starts: Any, ends: Any, times: Any) -> Any:
        lengths = np.concatenate([[0], np.cumsum(ends - starts)])
        begun = np.searchsorted(starts, times, side="right")
        return lengths[begun] - np.maximum(np.concatenate([[0], ends])[begun] - times, 0)

    kernels, found = step.kernels, []
    is_communication = kernels.name_id == len(NAMES) - 1
    for device in range(DEVICES):
        own = kernels.device_id == device
        busy = union(kernels.start_ns[own], kernels.end_ns[own])
        compute, communication = (
            union(kernels.start_ns[chosen], kernels.end_ns[chosen])
            for chosen in (own & ~is_communication, own & is_communication)
        )
        overlap = covered_until(*compute, communication[1]) - covered_until(*compute, communication[0])
        lengths = (int((ends - starts).sum()) for starts, ends in (busy, compute, communication))
        found.append((*lengths, int(overlap.sum())))
    return found


def duckdb_busy(step: Recording) -> list[int]:
    """Busy time of each device, as DuckDB finds it on one thread."""
    import duckdb

    kernels = step.kernels
    columns = {name: getattr(kernels, name) for name in ("device_id", "start_ns", "end_ns")}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("kernels", columns)
        return [row[0] for row in connection.execute(ISLANDS).fetchall()]


def peak_mib(work: Callable[[], object]) -> float:
    """The most memory that the process had during a call, over what it had before; Linux counts it anew when asked."""

    def memory_kib(name: str) -> int:
        return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0])

    Path("/proc/self/clear_refs").write_text("5")
    before = memory_kib("VmRSS")
    work()
    return (memory_kib("VmHWM") - before) / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=10_000_000, help="how many (10,000,000)")
    parser.add_argument("--quick", action="store_true", help="1,000,000 kernels")
    parser.add_argument("--question", action="append", choices=[*QUESTIONS], help="only this one, besides devices")
    arguments = parser.parse_args()
    kernels = 1_000_000 if arguments.quick else arguments.kernels
    step = recording(kernels)
    print(f"{kernels:,} kernels on {DEVICES} devices, as many launch calls\n")
    print("| question | CPU s | ns a kernel | by devices | peak, MiB |")
    print("| --- | --- | --- | --- | --- |")

    def of_devices() -> object:
        return QUESTIONS["devices"].ask(step)

    ours = cpu_seconds(of_devices)

    def line(name: str, work: Callable[[], object], spent: float | None = None) -> None:
        peak = peak_mib(work)
        spent = cpu_seconds(work) if spent is None else spent
        print(f"| {name} | {spent:.2f} | {spent / kernels * 1e9:.0f} | {spent / ours:.1f} | {peak:,.0f} |", flush=True)

    line("devices", of_devices, ours)
    for name, question in QUESTIONS.items():
        if question.of_ranks or name == "devices" or name not in (arguments.question or QUESTIONS):
            continue
        for by in question.by or ("",):
            options = {"by": by} if by else {}
            line(f"{name} by {by}" if by else name, lambda: question.ask(step, **options))  # noqa: B023
    answer = QUESTIONS["devices"].ask(step)
    columns = ("busy_ns", "compute_ns", "communication_ns", "overlap_ns")
    if numpy_overlap(step) != list(zip(*(answer[column].tolist() for column in columns), strict=True)):
        raise SystemExit("numpy has other figures")
    line("numpy: busy, compute, communication, overlap", lambda: numpy_overlap(step))
    if importlib.util.find_spec("duckdb") is None:
        print("\nDuckDB is not installed and not compared.")
        return
    if duckdb_busy(step) != answer["busy_ns"].tolist():
        raise SystemExit("DuckDB has other figures")
    line("DuckDB: busy", lambda: duckdb_busy(step))


if __name__ == "__main__":
    main()
