"""The lines of an XSpace node by node, as the extension's ``StepEvents`` makes them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from collector.protos import Activity
from collector.protos.xplane_pb2 import XEvent, XLine, XStat
from collector.stepstats.node_times import node_times
from reference.plain_activities import gpu_activity
from reference.shared_activities import activities_of_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.protos import NodeExecStats, StepStats


def known_activities(step: StepStats, place: int) -> Sequence[Activity]:
    """The activities of the nodes of a device; those of streams and copies may be under ``stream:all``."""
    device = step.dev_stats[place]
    unit, _, row = device.device.rpartition("/")
    for other in step.dev_stats:
        if other.device == f"{unit}/stream:all" != device.device:
            found = activities_of_parts(other).get(row, [])
            if len(found) == len(device.node_stats):
                return found
    return [node.activity for node in device.node_stats]


def unnamed_copies(step: StepStats, place: int) -> set[int]:
    """The nodes of a device that have no columns and the name of a kernel, and are under ``memcpy`` of the same GPU."""
    device = step.dev_stats[place]
    unit, _, row = device.device.rpartition("/")
    left = Counter(
        identity(node)
        for at, other in enumerate(step.dev_stats)
        if other.device == f"{unit}/memcpy"
        for node in nodes_named_as_kernels(step, at).values()
    )
    copies = set()
    if row == "memcpy" or (row.startswith("stream:") and row != "stream:all"):
        for index, node in nodes_named_as_kernels(step, place).items():
            if left[identity(node)]:
                left[identity(node)] -= 1
                copies.add(index)
    return copies


def nodes_named_as_kernels(step: StepStats, place: int) -> dict[int, NodeExecStats]:
    """The nodes of a device without columns, by index, whose names and labels are those of kernels."""
    activities = known_activities(step, place)
    return {
        index: node
        for index, node in enumerate(step.dev_stats[place].node_stats)
        if not activities[index].ByteSize() and gpu_activity(node).category == "kernel"
    }


def identity(node: NodeExecStats) -> tuple[object, ...]:
    """The texts and times of a node."""
    times = node.all_start_micros, node.all_end_rel_micros, node.all_start_nanos, node.all_end_rel_nanos
    return node.node_name, node.timeline_label, *times


def plain_lines(
    step: StepStats,
    place: int,
    details: Mapping[tuple[int, int, int], bytes],
    *,
    describe: Callable[[bytes, bytes, bool], tuple[int, bytes]],
    stat_number: Callable[[str], int],
    origin_ns: int,
    shift_ns: int,
    by_thread: bool,
    by_process: bool,
    processes: Mapping[int, int],
    first_correlation: int | None,
    correlation_stat: str,
    causes: Sequence[tuple[int, int]],
    flows: Mapping[int, int],
    event_stats: Mapping[int, bytes],
    only: Sequence[int] | None,
) -> tuple[list[tuple[int, int, int, XLine]], int, int]:
    """See ``StepEvents.lines``; ``details`` has the further stats by start, duration and thread."""
    device, times = step.dev_stats[place], node_times(step)[place]
    activities = known_activities(step, place)
    copies = unnamed_copies(step, place)
    wanted = range(len(times)) if only is None else only
    timed = sorted((at for at in wanted if times[at] is not None), key=lambda at: (times[at][0], -times[at][1]))
    lines: dict[tuple[int, int], list[Any]] = {}

    def line_of(thread: int, other: int) -> list[Any]:
        return lines.setdefault((thread, other), [other or processes.get(thread, 0), XLine()])

    for at in timed:
        node, (start_ns, duration_ns), activity = device.node_stats[at], times[at], activities[at]
        name, stats = describe(node.SerializeToString(), activity.SerializeToString(), at in copies)
        event = XEvent(
            metadata_id=name,
            offset_ps=(start_ns + shift_ns - origin_ns) * 1000,
            duration_ps=max(duration_ns * 1000, 1),
        )
        event.MergeFromString(stats)
        if causes:
            step_at = max(bisect_right([start for start, _ in causes], start_ns) - 1, 0)
            event.stats.append(XStat(metadata_id=stat_number("_c"), int64_value=causes[step_at][1]))
        if node.correlation_id and first_correlation is not None:
            number = first_correlation + node.correlation_id
            event.stats.append(XStat(metadata_id=stat_number(correlation_stat), uint64_value=number))
        if at in flows:
            event.stats.append(XStat(metadata_id=stat_number("flow"), uint64_value=flows[at]))
        thread = node.thread_id if by_thread else 0
        if activity.kind == Activity.ANNOTATION:
            event.MergeFromString(details.get((start_ns, duration_ns, node.thread_id), b""))
        line = line_of(thread, 0)
        if activity.kind == Activity.API_CALL:
            event.MergeFromString(event_stats.get(node.correlation_id, b""))
            if by_process and activity.process_id:
                if line[0] not in (0, activity.process_id):
                    line = line_of(thread, activity.process_id)
                line[0] = activity.process_id
        line[1].events.append(event)
    made = [(thread, other, process, events) for (thread, other), (process, events) in lines.items()]
    return made, len(timed), len(wanted) - len(timed)
