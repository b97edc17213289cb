"""The times of the nodes of a step of any writer, as the timeline uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collector.protos.step_stats_pb2 import StepStats

NodeTimes = list["tuple[int, int] | None"]
"""Start since the epoch and duration of each node of a device, in ns; None for a node without a possible time."""

UNTIMED_NODES = "nodes without a possible time"
"""The reason under which nodes that cannot be drawn are counted."""


def node_times(step: StepStats) -> list[NodeTimes]:
    """The times of all nodes, device by device.

    Nanoseconds are used if present, otherwise microseconds (the only times that TensorFlow's GPU tracer fills). A start
    may be 0 or negative, as some files count from any moment. A node has no possible time if it ends before it starts,
    or if its start is further from the median of the step, or its duration longer, than
    `collector.recording.possible_times.FAR_NS`. A node without times in a step of wall times has therefore none.
    """
    found = convert_extension.node_times(step.SerializeToString(), is_run_metadata=False)
    return [
        [
            (start_ns, duration_ns) if duration_ns >= 0 else None
            for start_ns, duration_ns in zip(starts.tolist(), durations.tolist(), strict=True)
        ]
        for starts, durations in found
    ]
