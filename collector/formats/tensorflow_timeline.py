"""StepStats from the Chrome trace that TensorFlow's Timeline wrote of them.

The trace lacks real thread ids, the memory figures of labels, and times below a microsecond. Converting the result
again gives the same trace.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf import text_format

from collector.formats.chrome_dialects import COMPUTE
from collector.formats.chrome_events import NO_TIME, text
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.protos.tensor_pb2 import TensorDescription
from collector.stepstats.proto_text import parse_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    from collector.formats.chrome_events import ChromeEvents

_INT64_LIMIT = 1 << 63
_TENSORS = " Tensors"
_UNQUOTED = re.compile(r"^(\s*(?:allocator_name|name): )(.*)$", re.MULTILINE)
_SLOT = re.compile(r"(.*):([0-9]{1,3})", re.DOTALL)


class _Placed(NamedTuple):
    """A node and its position in the trace."""

    node: NodeExecStats
    lane: Any
    start_us: int
    end_us: int


_Nodes = dict[tuple[str, str], list[_Placed]]
"""Device and node name -> the nodes of that name, in the order of the file."""


class _Event(NamedTuple):
    """An event of a kind that TensorFlow draws; times are in us, None if they are not integers."""

    row: int
    phase: str
    name: str
    pid: Any
    tid: Any
    start_us: int | None
    duration_us: int | None
    """0 if the event has no duration."""
    arguments: dict[str, Any]


def to_step_stats(found: ChromeEvents) -> StepStats:
    """The step in a TensorFlow timeline; unreadable events are counted in `ChromeEvents.skipped`."""
    step = StepStats()
    names = found.process_names
    devices: dict[Any, DeviceStepStats] = {}
    for pid, name in names.items():
        if name.endswith(COMPUTE):
            devices[pid] = step.dev_stats.add(device=name.removesuffix(COMPUTE))
    nodes: _Nodes = defaultdict(list)
    for event in _events(found, "X"):
        pid, start_us, duration_us = event.pid, event.start_us, event.duration_us
        if not (_is_int64(start_us) and _is_int64(duration_us) and isinstance(pid, (int, str))):
            found.skipped["events without a possible time or process"] += 1
            continue
        if pid not in devices:
            devices[pid] = step.dev_stats.add(device=names.get(pid, text(f"process {pid}")))
        device = devices[pid]
        node = _node(event, device.device)
        node.all_start_micros, node.op_end_rel_micros, node.all_end_rel_micros = start_us, duration_us, duration_us
        device.node_stats.append(node)
        placed = _Placed(device.node_stats[-1], event.tid, start_us, start_us + duration_us)
        nodes[device.device, node.node_name].append(placed)
    _restore_tensors(found, names, nodes)
    return step


def _events(found: ChromeEvents, phases: str) -> Iterator[_Event]:
    """The events of these phases, in file order."""
    rows = found.rows(phases)
    names, index = found.names(rows)
    columns = (
        rows.tolist(),
        index.tolist(),
        found.track_numbers(rows).tolist(),
        *found.whole_micros(rows),
        (found.durations_ns(rows) == NO_TIME).tolist(),
        found.arguments_of(rows),
    )
    for row, name, track, start_us, duration_us, is_instant, arguments in zip(*columns, strict=True):
        pid, tid = found.tracks[track]
        lasted_us = 0 if is_instant else duration_us
        yield _Event(row, found.phase_of(row), names[name], pid, tid, start_us, lasted_us, arguments)


def is_tracer_device(device: str) -> bool:
    """Whether a device holds the records of a GPU tracer, whose node names are ``name:op``."""
    return "/stream:" in device or "/memcpy" in device


def _node(event: _Event, device: str) -> NodeExecStats:
    arguments = event.arguments
    op = text(arguments.get("op", event.name))
    name = text(arguments.get("name", op))
    if is_tracer_device(device):
        label = text(arguments.get("kernel", ""))
        return NodeExecStats(node_name=name if op == "unknown" else f"{name}:{op}", timeline_label=label)
    if op == "unknown" or name == op == "RecvTensor":
        return NodeExecStats(node_name=name)
    inputs: list[str] = []
    while f"input{len(inputs)}" in arguments:
        inputs.append(text(arguments[f"input{len(inputs)}"]))
    return NodeExecStats(node_name=name, timeline_label=f"{name} = {op}({', '.join(inputs)})")


def _is_int64(value: int | None) -> TypeGuard[int]:
    return value is not None and -_INT64_LIMIT <= value < _INT64_LIMIT


def _restore_tensors(found: ChromeEvents, names: dict[Any, str], nodes: _Nodes) -> None:
    """Restore the outputs of producers from the drawn tensors or, if there are none, from the starts of arrows."""
    if not _restore_from_objects(found, names, nodes):
        _restore_from_arrows(found, names, nodes)


def _restore_from_objects(found: ChromeEvents, names: dict[Any, str], nodes: _Nodes) -> bool:
    """Restore outputs from objects, which begin at their producer; False if the trace has no objects."""
    # Loops run many nodes of one name; position and number of outputs so far identify the node.
    waiting: dict[tuple[str, str, str, int], deque[NodeExecStats]] = defaultdict(deque)
    for (device, name), all_placed in nodes.items():
        for placed in all_placed:
            waiting[device, name, _place(placed.lane, placed.start_us), 0].append(placed.node)
    found_any = False
    for drawn, snapshot in pairwise(_events(found, "NO")):
        if (drawn.phase, snapshot.phase, snapshot.row) != ("N", "O", drawn.row + 1):
            continue
        found_any = True
        device = _process(drawn, names).removesuffix(_TENSORS)
        producer, slot = _producer(drawn.name, device, nodes)
        place = _place(drawn.tid, drawn.start_us)
        ready = waiting.get((device, producer, place, slot))
        if ready:
            node = ready.popleft()
            node.output.add(slot=slot, tensor_description=_description(snapshot))
            waiting[device, producer, place, slot + 1].append(node)
    return found_any


def _restore_from_arrows(found: ChromeEvents, names: dict[Any, str], nodes: _Nodes) -> None:
    """Restore outputs from arrows: an arrow starts at the end of its producer and names one of its outputs."""
    ending: dict[tuple[str, str, str], list[NodeExecStats]] = defaultdict(list)
    for (device, name), all_placed in nodes.items():
        for placed in all_placed:
            ending[device, name, _place(placed.lane, placed.end_us)].append(placed.node)
    restored: set[tuple[str, str, str, int]] = set()
    for event in _events(found, "s"):
        device = _process(event, names).removesuffix(COMPUTE)
        producer, slot = _producer(event.name, device, nodes)
        place = _place(event.tid, event.start_us)
        if (device, producer, place, slot) in restored:
            continue
        restored.add((device, producer, place, slot))
        for node in ending.get((device, producer, place), ()):
            while len(node.output) <= slot:
                node.output.add(slot=len(node.output))


def _process(event: _Event, names: dict[Any, str]) -> str:
    return names.get(event.pid, "") if isinstance(event.pid, (int, str)) else ""


def _place(lane: Any, time: Any) -> str:
    """The position of an event on a device; lanes and times may be any JSON value."""
    return f"{lane!r} {time!r}"


def _producer(tensor: str, device: str, nodes: _Nodes) -> tuple[str, int]:
    """Node name and output number of a tensor's name."""
    numbered = _SLOT.fullmatch(tensor)
    if numbered is None or (device, tensor) in nodes:
        return tensor, 0
    return numbered[1], int(numbered[2])


def _description(event: _Event) -> TensorDescription:
    """The tensor's description; TensorFlow writes it as proto text without its quotes."""
    snapshot = event.arguments.get("snapshot")
    written = text(snapshot.get("tensor_description", "")) if isinstance(snapshot, dict) else ""
    try:
        return parse_text(_UNQUOTED.sub(r'\1"\2"', written), TensorDescription())
    except text_format.ParseError:
        return TensorDescription()
