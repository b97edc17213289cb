"""Recorded GPU traces (V100, A100, H100, ...) through simulated CUPTI, subscriber, recording, StepStats and timeline.

Every figure that counts.json states of a recording has to come out again: 100 % of the records, exact to the ns.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from recorded_traces import COPY_KINDS, KERNEL, MEMCPY, MEMSET, Activity, Trace, read, read_proton
from trace_figures import figures

import collector
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from collector.timeline import Timeline

pytestmark = pytest.mark.simulator

MEMCPY_ROW = 1_000_000
"""Stream number standing for the `memcpy` row of TensorFlow timelines, which do not tell the copies' streams."""
LEAD_NS = 1_000_000
"""How long before its first record a replayed session starts."""
LARGE_BYTES = 500_000
EPOCH_NS = 10**18
"""Added to the times of recordings that count from 0, since CUPTI never gives 0 to a kernel that ran."""


def folder() -> Path | None:
    shared = Path(os.environ.get("COLLECTOR_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    traces = shared / "data" / "gpu_traces"
    return traces if (traces / "counts.json").is_file() else None


def counted() -> dict[str, Any]:
    traces = folder()
    counts: dict[str, Any] = {} if traces is None else json.loads((traces / "counts.json").read_text())
    return counts


COUNTS = {name: entry["gpu"] for name, entry in counted().items() if "gpu" in entry}
PROTON = {name: entry for name, entry in counted().items() if entry["format"] == "proton-hatchet"}
WITH_KERNELS = [name for name, gpu in COUNTS.items() if gpu["kernel_count"]]


@pytest.fixture(autouse=True)
def _needs_recordings(shared: Path) -> None:
    """Skips, saying so, where the recorded traces are not at hand."""


def comparable(gpu: dict[str, Any]) -> dict[str, Any]:
    """Figures with the rows of `per_stream` in one order."""
    return gpu | {"per_stream": sorted(gpu["per_stream"], key=lambda row: (row["device"], row["stream"]))}


def test_recordings_with_kernels_are_there() -> None:
    assert len(WITH_KERNELS) == 44


@pytest.fixture(scope="module")
def recording(request: pytest.FixtureRequest) -> tuple[str, Trace]:
    """Each recording in turn, read once for all tests of it."""
    traces = folder()
    assert traces is not None
    return request.param, read(traces / request.param)


def of_each(names: Iterable[str]) -> pytest.MarkDecorator:
    """A test of each of these recordings; the large ones take seconds each."""
    traces = folder()
    large = {name for name in names if traces is not None and (traces / name).stat().st_size > LARGE_BYTES}
    cases = [pytest.param(name, id=name, marks=[pytest.mark.slow] if name in large else []) for name in names]
    return pytest.mark.parametrize("recording", cases, indirect=True)


@of_each(COUNTS)
def test_reader_agrees_with_the_counts(recording: tuple[str, Trace]) -> None:
    name, trace = recording
    found = comparable(figures(trace))
    assert {key: found[key] for key in COUNTS[name]} == comparable(COUNTS[name])


@dataclass(frozen=True)
class Replayed:
    """A recording after its replay."""

    name: str
    trace: Trace
    """What was replayed, with the ids it was replayed under."""
    step: collector.Session
    shift_ns: int
    without_correlation: frozenset[int]
    """Ids made up for activities that had none."""
    without_bytes: bool


def renumbered(trace: Trace) -> tuple[Trace, frozenset[int]]:
    """One 32-bit correlation id for each (process, correlation id) of the file, and for each activity without one."""
    ids: dict[tuple[int, int], int] = {}

    def number(key: tuple[int, int]) -> int:
        return ids.setdefault(key, len(ids) + 1)

    calls = {(0, number(key)): times for key, times in trace.calls.items()}
    made_up: set[int] = set()
    activities = []
    for index, activity in enumerate(trace.activities):
        if activity.correlation is None:
            chosen = number((-1, index))
            made_up.add(chosen)
        else:
            chosen = number(activity.correlation)
        activities.append(replace(activity, correlation=(0, chosen)))
    return Trace(activities, calls), frozenset(made_up)


def stream_number(stream: str) -> int:
    return MEMCPY_ROW if stream == "memcpy" else int(stream)


def rows(trace: Trace, kind: str, shift_ns: int) -> Iterator[dict[str, Any]]:
    for activity in trace.of(kind):
        assert activity.correlation is not None
        row: dict[str, Any] = {
            "start_ns": activity.start_ns + shift_ns,
            "end_ns": activity.end_ns + shift_ns,
            "device": int(activity.device),
            "stream": stream_number(activity.stream),
            "context": activity.context,
            "correlation": activity.correlation[1],
            "launch": "none",
        }
        call = trace.calls.get(activity.correlation)
        if call is not None:
            row |= {"launch_start_ns": call[0] + shift_ns, "launch_end_ns": call[1] + shift_ns, "launch": "both"}
        if kind == KERNEL:
            row |= {"name": activity.name, "grid": activity.grid, "block": activity.block}
        else:
            row["num_bytes"] = activity.num_bytes
        if kind == MEMCPY:
            row["kind"] = activity.copy_kind
        yield row


@pytest.fixture(scope="module")
def done(recording: tuple[str, Trace]) -> Replayed:
    """Each recording in turn, replayed once for all tests of it."""
    name, as_read = recording
    trace, made_up = renumbered(as_read)
    used = [trace.calls[a.correlation] for a in trace.activities if a.correlation in trace.calls]
    first = min([activity.start_ns for activity in trace.activities] + [start for start, _ in used])
    shift = EPOCH_NS if first < LEAD_NS else 0
    devices = max(int(activity.device) for activity in trace.activities) + 1
    with SimulatedGpu(devices=devices, start_ns=first + shift - LEAD_NS) as gpu:
        with collector.trace(strict=True) as step:
            emitted = gpu.replay(
                kernels=rows(trace, KERNEL, shift),
                memcpys=rows(trace, MEMCPY, shift),
                memsets=rows(trace, MEMSET, shift),
            )
        assert emitted == len(trace.activities)
        assert gpu.misuse() == {}
    return Replayed(name, trace, step, shift, made_up, any(a.num_bytes is None for a in trace.of(MEMCPY)))


def activities_of(recording: Recording, tables: Any, done: Replayed) -> list[Activity]:
    """Rows of a recording's tables (`recording` itself, or its `invalid`) in the readers' terms."""

    def common(table: Any, row: int) -> dict[str, Any]:
        correlation = int(table.correlation_id[row])
        stream = int(table.stream_id[row])
        return {
            "start_ns": int(table.start_ns[row]) - done.shift_ns,
            "end_ns": int(table.end_ns[row]) - done.shift_ns,
            "device": str(table.device_id[row]),
            "stream": "memcpy" if stream == MEMCPY_ROW else str(stream),
            "correlation": None if correlation in done.without_correlation else (0, correlation),
        }

    kernels, memcpys, memsets = tables.kernels, tables.memcpys, tables.memsets
    return [
        *(
            Activity(
                kind=KERNEL,
                name=recording.strings[int(kernels.name_id[row])],
                grid=(int(kernels.grid_x[row]), int(kernels.grid_y[row]), int(kernels.grid_z[row])),
                block=(int(kernels.block_x[row]), int(kernels.block_y[row]), int(kernels.block_z[row])),
                **common(kernels, row),
            )
            for row in range(len(kernels))
        ),
        *(
            Activity(
                kind=MEMCPY,
                name="",
                num_bytes=int(memcpys.num_bytes[row]),
                copy_kind=COPY_KINDS[int(memcpys.copy_kind[row])],
                **common(memcpys, row),
            )
            for row in range(len(memcpys))
        ),
        *(
            Activity(kind=MEMSET, name="", num_bytes=int(memsets.num_bytes[row]), **common(memsets, row))
            for row in range(len(memsets))
        ),
    ]


def recorded(done: Replayed) -> Trace:
    """What was recorded, usable or not, with the runtime calls."""
    recording = done.step.recording
    calls = recording.api_calls
    return Trace(
        activities_of(recording, recording, done) + activities_of(recording, recording.invalid, done),
        {
            (0, int(calls.correlation_id[row])): (
                int(calls.start_ns[row]) - done.shift_ns,
                int(calls.end_ns[row]) - done.shift_ns,
            )
            for row in range(len(calls))
            if calls.domain[row] == 2
        },
    )


@of_each(WITH_KERNELS)
def test_recording_holds_every_record_exactly(done: Replayed) -> None:
    found, expected = comparable(figures(recorded(done))), comparable(COUNTS[done.name])
    if done.without_bytes:  # a CUPTI record always has a number of bytes
        for each in (found, expected):
            each["memcpy_by_kind"] = {
                kind: row | {"without_bytes": None} for kind, row in each["memcpy_by_kind"].items()
            }
    assert {key: found[key] for key in expected} == expected


@of_each(WITH_KERNELS)
def test_recording_keeps_apart_what_cannot_have_happened(done: Replayed) -> None:
    recording, ledger = done.step.recording, done.step.ledger
    reversed_times = [activity for activity in done.trace.activities if activity.end_ns < activity.start_ns]
    assert ledger.invalid_timestamps == len(recording.invalid) == len(reversed_times)
    assert (ledger.early, ledger.late) == (0, 0)
    assert ledger.kernels + ledger.memcpys + ledger.memsets + len(reversed_times) == len(done.trace.activities)
    assert (ledger.records_dropped, ledger.buffers_declined, ledger.buffers_outstanding) == (0, 0, 0)
    assert (ledger.records_unknown_kind, ledger.bytes_unparsed) == (0, 0)
    kernels = [kernel for kernel in done.trace.of(KERNEL) if kernel.end_ns >= kernel.start_ns]
    called = {activity.correlation for activity in done.trace.activities} & done.trace.calls.keys()
    if done.trace.calls:
        assert ledger.kernels_without_launch == sum(kernel.correlation not in called for kernel in kernels)
    assert ledger.launches_without_kernel == 0


@of_each(WITH_KERNELS)
def test_step_stats_hold_every_activity_exactly(done: Replayed) -> None:
    offset = done.step.recording.clock.offset_ns + done.shift_ns
    expected: Counter[tuple[str, int, int]] = Counter()
    names: Counter[tuple[str, str]] = Counter()
    for activity in done.trace.activities:
        if activity.end_ns < activity.start_ns:
            continue
        on_device = f"/gpu:{activity.device}"
        devices = [f"{on_device}/stream:all", f"{on_device}/stream:{stream_number(activity.stream)}"]
        if activity.kind != KERNEL:
            devices.append(f"{on_device}/memcpy")
        for device in devices:
            expected[device, activity.start_ns, activity.end_ns] += 1
            names[device, label_of(activity)] += 1
    found: Counter[tuple[str, int, int]] = Counter()
    labels: Counter[tuple[str, str]] = Counter()
    for device in done.step.step_stats.dev_stats:
        if not device.device.startswith("/gpu:"):
            continue
        for node in device.node_stats:
            start = node.all_start_nanos - offset
            merged = re.sub(r"(/stream:\d+)\.\d+$", r"\1", device.device)
            found[merged, start, start + node.op_end_rel_nanos] += 1
            labels[merged, re.sub(r" \([A-Z]\w+(?: to \w+)?\)| regs:.*", "", node.timeline_label)] += 1
    assert found == expected
    assert labels == names


def label_of(activity: Activity) -> str:
    """A node's label without the launch shape and the kinds of memory."""
    if activity.kind == KERNEL:
        return activity.name.replace("@@", "@ @")
    what = "MEMSET" if activity.kind == MEMSET else f"MEMCPY{activity.copy_kind}".replace("Unknown", "<unknown>")
    return f"{what} {activity.num_bytes} bytes" if activity.num_bytes else what


@of_each(WITH_KERNELS)
def test_timeline_shows_every_activity(done: Replayed) -> None:
    trace = json.loads(Timeline(done.step.step_stats).generate_chrome_trace_format())
    processes = {
        event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"
    }
    offset = done.step.recording.clock.offset_ns + done.shift_ns
    expected: Counter[tuple[str, int, int]] = Counter()
    for activity in done.trace.activities:
        if activity.end_ns >= activity.start_ns:
            duration = max((activity.end_ns - activity.start_ns) // 1000, 1)
            expected[f"/gpu:{activity.device}", (activity.start_ns + offset) // 1000, duration] += 1
    found: Counter[tuple[str, int, int]] = Counter()
    for event in trace["traceEvents"]:
        row = re.fullmatch(r"(/gpu:\d+)/stream:[\d.]+ Compute", processes.get(event["pid"], ""))
        if event["ph"] == "X" and row is not None:
            found[row[1], event["ts"], event["dur"]] += 1
    assert found == expected


@pytest.mark.parametrize("name", PROTON)
def test_launches_of_a_proton_tree(name: str) -> None:
    """Proton keeps sums only, so that the launches' own times are made up; their sums are not."""
    traces = folder()
    assert traces is not None
    summed = read_proton(traces / name)
    with SimulatedGpu(devices=2) as gpu, collector.trace(strict=True) as step:
        for row in summed:
            each, rest = divmod(row.total_ns, row.count)
            gpu.launch(row.name, device=int(row.device.split()[1]), duration_ns=each + rest)
            for _ in range(row.count - 1):
                gpu.launch(row.name, device=int(row.device.split()[1]), duration_ns=each)
    kernels = step.recording.kernels
    totals: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    for row in range(len(kernels)):
        key = f"CUDA {kernels.device_id[row]}", step.recording.strings[int(kernels.name_id[row])]
        totals[key] += int(kernels.end_ns[row] - kernels.start_ns[row])
        counts[key] += 1
    assert counts.total() == PROTON[name]["total_count"] == step.ledger.launches_matched
    assert totals.total() == PROTON[name]["total_time_ns"]
    top = [{"count": counts[key], "device": key[0], "name": key[1], "total_ns": total} for key, total in totals.items()]
    assert sorted(top, key=lambda row: row["name"]) == sorted(PROTON[name]["top10"], key=lambda row: row["name"])
