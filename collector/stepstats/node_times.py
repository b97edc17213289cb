"""When the nodes of a step ran, whoever wrote them."""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.protos.step_stats_pb2 import NodeExecStats, StepStats

FAR_NS = 50 * 24 * 3600 * 10**9
"""A node this far (50 days) from the middle one is not of the same step: its time is damaged."""


_EARLIEST_WALL_NS = 10**18
"""September 2001: before any GPU could be traced."""


def is_wall_time(time_ns: int) -> bool:
    """Whether a time can be one since the epoch, rather than one since a moment that only its recorder knew."""
    return time_ns >= _EARLIEST_WALL_NS


def node_times(node: NodeExecStats) -> tuple[int, int] | None:
    """Start since the epoch and duration of a node, in ns; None for one that says no time that can be.

    Nanoseconds are taken where they are given, microseconds (all that TensorFlow's GPU tracer fills) elsewhere.
    """
    start_ns = node.all_start_nanos or node.all_start_micros * 1000
    duration_ns = node.all_end_rel_nanos or (node.all_end_rel_micros or node.op_end_rel_micros) * 1000
    if node.all_start_nanos and not node.all_end_rel_nanos and node.all_end_rel_micros <= 1:
        duration_ns = 0  # rounded up to the microsecond that TensorFlow shows at least
    return (start_ns, duration_ns) if 0 < start_ns < 1 << 63 and duration_ns >= 0 else None


def step_bounds(step: StepStats) -> tuple[int, int] | None:
    """First start and last end in a step, in ns since the epoch, without nodes of damaged time; None without any."""
    times = [times for device in step.dev_stats for node in device.node_stats if (times := node_times(node))]
    times = [each for each in times if each[1] < FAR_NS]
    if not times:
        return None
    middle = median_low(start for start, _ in times)
    near = [(start, start + duration) for start, duration in times if is_near(start, duration, middle)]
    return min(near)[0], max(end for _, end in near)


def is_near(start_ns: int, duration_ns: int, middle_ns: int) -> bool:
    """Whether a node can belong to a step around `middle_ns`."""
    return abs(start_ns - middle_ns) < FAR_NS and duration_ns < FAR_NS
