"""The times of a step's nodes, from any writer."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

from collector.recording.possible_times import FAR_NS, is_near, is_possible

if TYPE_CHECKING:
    from collector.protos.step_stats_pb2 import NodeExecStats, StepStats


def node_times(node: NodeExecStats) -> tuple[int, int] | None:
    """Start since the epoch and duration of a node, in ns; None for a node without a possible time.

    Nanoseconds are used if present, otherwise microseconds (the only times that TensorFlow's GPU tracer fills).
    """
    start_ns = node.all_start_nanos or node.all_start_micros * 1000
    duration_ns = node.all_end_rel_nanos or (node.all_end_rel_micros or node.op_end_rel_micros) * 1000
    if node.all_start_nanos and not node.all_end_rel_nanos and node.all_end_rel_micros <= 1:
        duration_ns = 0  # rounded up to one microsecond, the shortest duration that TensorFlow shows
    return (start_ns, duration_ns) if start_ns < 1 << 63 and is_possible(start_ns, start_ns + duration_ns) else None


def step_bounds(step: StepStats) -> tuple[int, int] | None:
    """First start and last end of a step in ns since the epoch, ignoring damaged times; None if there are none."""
    times = [times for device in step.dev_stats for node in device.node_stats if (times := node_times(node))]
    times = [each for each in times if each[1] <= FAR_NS]
    if not times:
        return None
    middle = median_low(start for start, _ in times)
    near = [(start, start + duration) for start, duration in times if is_near(start, duration, middle)]
    return min(near)[0], max(end for _, end in near)
