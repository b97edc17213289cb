"""The activities of nodes that occur under several devices: they are written only under ``stream:all``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.protos import Activity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats


def activities_of_parts(all_streams: DeviceStepStats) -> dict[str, list[Activity]]:
    """The activities of the nodes of the GPU's other devices, in order, by the suffix of the device's name.

    The suffixes are ``stream:S``, for a further context ``stream:S.C``, and ``memcpy``.
    """
    typed: Sequence[NodeExecStats] = [node for node in all_streams.node_stats if node.HasField("activity")]
    contexts: dict[int, set[int]] = {}
    for node in typed:
        contexts.setdefault(node.activity.stream_id, set()).add(node.activity.context_id)
    parts: dict[str, list[Activity]] = {}
    for node in typed:
        activity = node.activity
        is_first = activity.context_id == min(contexts[activity.stream_id])
        stream = f"stream:{activity.stream_id}" + ("" if is_first else f".{activity.context_id}")
        parts.setdefault(stream, []).append(activity)
        if activity.kind != Activity.KERNEL:
            parts.setdefault("memcpy", []).append(activity)
    return parts
