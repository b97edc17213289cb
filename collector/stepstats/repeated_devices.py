"""The devices that repeat work of ``/gpu:D/stream:all``: its streams and its copies, restored where a file was cut."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from collector.protos.activity_pb2 import Activity
from collector.stepstats.labels import stream_device, unit_of

if TYPE_CHECKING:
    from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats

_ALL_STREAMS = "/stream:all"
_GPU_WORK = (Activity.KERNEL, Activity.MEMCPY, Activity.MEMSET)


def restore_parts(step_stats: StepStats) -> None:
    """Give the devices that repeat parts of a ``stream:all`` all nodes that it has of them.

    The nodes of a recording state their stream in their columns. Devices of other programs stay as they are.
    """
    known = {device.device: device for device in step_stats.dev_stats}
    for device in list(step_stats.dev_stats):
        if not device.device.endswith(_ALL_STREAMS):
            continue
        nodes = device.node_stats
        if not all(node.HasField("activity") and node.activity.kind in _GPU_WORK for node in nodes):
            continue
        for name, part in _parts(unit_of(device.device), list(nodes), known).items():
            found = known.get(name) or step_stats.dev_stats.add(device=name)
            if len(found.node_stats) < len(part):
                del found.node_stats[:]
                found.node_stats.extend(part)
                for node in found.node_stats:
                    node.ClearField("activity")


def _parts(unit: str, nodes: list[NodeExecStats], known: dict[str, DeviceStepStats]) -> dict[str, list[NodeExecStats]]:
    """The nodes of each device that repeats a part of a GPU's work, in the order of a recording's devices."""
    streams: dict[tuple[int, int], list[NodeExecStats]] = defaultdict(list)
    for node in nodes:
        streams[node.activity.stream_id, node.activity.context_id].append(node)
    first: dict[int, int] = {}
    for stream, context in sorted(streams):
        first.setdefault(stream, context)
    parts = {}
    for stream, context in sorted(streams):
        own = stream_device(unit, stream, context)  # of a context that is not the first of the whole recording
        is_first = first[stream] == context and own not in known
        parts[stream_device(unit, stream) if is_first else own] = streams[stream, context]
    copies = [node for node in nodes if node.activity.kind != Activity.KERNEL]
    return {**parts, f"{unit}/memcpy": copies} if copies else parts
