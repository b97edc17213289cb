"""The figures of counts.json, computed from activities: totals per device, stream, kind and name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from recorded_traces import KERNEL, MEMCPY, MEMSET, Activity, Trace

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint intervals covering the same time; empty and reversed ones cover none."""
    merged: list[list[int]] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [(start, end) for start, end in merged]


def length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def overlap(left: list[Interval], right: list[Interval]) -> int:
    """Time in both of two unions."""
    return length(left) + length(right) - length(union([*left, *right]))


def spans(activities: list[Activity]) -> list[Interval]:
    return [(activity.start_ns, activity.end_ns) for activity in activities]


def total(activities: Iterable[Activity]) -> int:
    return sum(activity.end_ns - activity.start_ns for activity in activities)


def busy(activities: list[Activity]) -> dict[str, int] | None:
    if not activities:
        return None
    merged = union(spans(activities))
    first = min(activity.start_ns for activity in activities)
    last = max(activity.end_ns for activity in activities)
    return {
        "busy_intervals": len(merged),
        "busy_ns": length(merged),
        "first_ns": first,
        "idle_ns": last - first - length(merged),
        "last_ns": last,
        "span_ns": last - first,
    }


def is_communication(name: str) -> bool:
    return "nccl" in name.lower() or "rccl" in name.lower()


def per_device(trace: Trace) -> dict[str, Any]:
    figures = {}
    for device in sorted({activity.device for activity in trace.activities}):
        here = [activity for activity in trace.activities if activity.device == device]
        kernels = [activity for activity in here if activity.kind == KERNEL]
        communication = [kernel for kernel in kernels if is_communication(kernel.name)]
        comm = union(spans(communication))
        comp = union(spans([kernel for kernel in kernels if not is_communication(kernel.name)]))
        figures[device] = {
            "all_gpu_work": busy(here),
            "comm_busy_ns": length(comm),
            "comm_comp_overlap_ns": overlap(comm, comp),
            "comm_kernels": len(communication),
            "comp_busy_ns": length(comp),
            "kernel": busy(kernels),
            "kernel_sum_ns": total(kernels),
            "kernels": len(kernels),
        }
    return figures


def per_stream(trace: Trace) -> dict[tuple[str, str], dict[str, int]]:
    """Counts and sums by (device, stream), for the kinds that occur there."""
    streams: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for activity in trace.activities:
        row = streams[activity.device, activity.stream]
        row[f"{activity.kind}_count"] = row.get(f"{activity.kind}_count", 0) + 1
        row[f"{activity.kind}_ns"] = row.get(f"{activity.kind}_ns", 0) + activity.end_ns - activity.start_ns
    return dict(streams)


def memcpy_by_kind(trace: Trace) -> dict[str, dict[str, int]]:
    kinds: dict[str, list[Activity]] = defaultdict(list)
    for copy in trace.of(MEMCPY):
        kinds[copy.copy_kind].append(copy)
    return {
        kind: {
            "bytes": sum(copy.num_bytes or 0 for copy in copies),
            "count": len(copies),
            "total_ns": total(copies),
            "without_bytes": sum(copy.num_bytes is None for copy in copies),
        }
        for kind, copies in kinds.items()
    }


def top_kernels(trace: Trace, count: int = 10) -> list[dict[str, Any]]:
    names: dict[str, list[int]] = defaultdict(list)
    for kernel in trace.of(KERNEL):
        names[kernel.name].append(kernel.end_ns - kernel.start_ns)
    rows = [
        {"count": len(times), "max_ns": max(times), "min_ns": min(times), "name": name, "total_ns": sum(times)}
        for name, times in names.items()
    ]
    return sorted(rows, key=lambda row: (-row["total_ns"], row["name"]))[:count]


def same_stream_overlaps(trace: Trace) -> int:
    """The number of kernels that start before an earlier kernel of their stream has ended."""
    streams: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    for kernel in trace.of(KERNEL):
        streams[kernel.device, kernel.stream].append((kernel.start_ns, kernel.end_ns))
    overlaps = 0
    for intervals in streams.values():
        latest = None
        for start, end in sorted(intervals):
            overlaps += latest is not None and start < latest
            latest = end if latest is None else max(latest, end)
    return overlaps


def launches(trace: Trace) -> dict[str, Any]:
    """Delays between a launching call's start and its kernels' starts."""
    correlated = [kernel for kernel in trace.of(KERNEL) if kernel.correlation is not None]
    counts: dict[Any, int] = defaultdict(int)
    for kernel in correlated:
        counts[kernel.correlation] += 1
    delays = sorted(
        kernel.start_ns - trace.calls[kernel.correlation][0]
        for kernel in correlated
        if kernel.correlation in trace.calls
    )
    return {
        "delay_max_ns": delays[-1] if delays else None,
        "delay_median_ns": delays[(len(delays) - 1) // 2] if delays else None,
        "delay_min_ns": delays[0] if delays else None,
        "distinct_kernel_correlations": len(counts),
        "kernels_matched_to_call": len(delays),
        "kernels_with_correlation": len(correlated),
        "max_kernels_per_correlation": max(counts.values(), default=0),
        "negative_delays": sum(delay < 0 for delay in delays),
    }


def figures(trace: Trace) -> dict[str, Any]:
    """All entries of counts.json under `gpu`."""
    kernels, memcpys, memsets = trace.of(KERNEL), trace.of(MEMCPY), trace.of(MEMSET)
    return {
        "devices": sorted({activity.device for activity in trace.activities}),
        "distinct_kernel_names": len({kernel.name for kernel in kernels}),
        "kernel_count": len(kernels),
        "kernel_sum_ns": total(kernels),
        "launch": launches(trace),
        "memcpy_by_kind": memcpy_by_kind(trace),
        "memcpy_count": len(memcpys),
        "memset": {"bytes": sum(m.num_bytes or 0 for m in memsets), "count": len(memsets), "total_ns": total(memsets)},
        "memset_count": len(memsets),
        "negative_duration_kernels": sum(kernel.end_ns < kernel.start_ns for kernel in kernels),
        "per_device": per_device(trace),
        "per_stream": [
            {"device": device, "stream": stream} | row for (device, stream), row in sorted(per_stream(trace).items())
        ],
        "same_stream_overlapping_kernels": same_stream_overlaps(trace),
        "top10_kernels": top_kernels(trace),
        "zero_duration_kernels": sum(kernel.end_ns == kernel.start_ns for kernel in kernels),
    }
