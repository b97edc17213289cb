"""tfprof's own trace files: the graph view as lanes of ops over time, the other views as a flame graph of totals.

The format is Chrome's in tfprof's form: compact, keys in alphabetical order, a newline at the end. Unlike
``collector.timeline`` it shows only the displayed nodes of the view.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Protocol

from collector.profiler.execution import is_canonical, is_on_accelerator, pairs_of
from collector.profiler.model import Node
from collector.profiler.stats import Stats
from collector.profiler.views.tree import Answer

Event = dict[str, Any]

_CLOSEST_MICROS = 100
"""Points of a memory counter closer than this are left out."""


class TraceFile:
    """Events in tfprof's order: names and regions first, then flows and counters."""

    def __init__(self) -> None:
        self._first: list[Event] = []
        self._then: list[Event] = []

    def process(self, name: str, pid: int) -> None:
        """Names a process."""
        self._first.append({"args": {"name": name}, "name": "process_name", "ph": "M", "pid": pid})

    def region(self, name: str, start: int, duration: int, pid: int, tid: int, /, **args: str) -> None:
        """A box from ``start`` for ``duration`` microseconds."""
        event = {"args": dict(sorted(args.items())), "cat": "Op", "dur": duration, "name": name, "ph": "X"}
        self._first.append({**event, "pid": pid, "tid": tid, "ts": start})

    def flow(self, phase: str, name: str, at: int, pid: int, tid: int, id_: int) -> None:
        """One end of an arrow."""
        event = {"cat": "DataFlow", "id": id_, "name": name, "ph": phase, "pid": pid, "tid": tid, "ts": at}
        self._then.append(event)

    def counter(self, name: str, at: int, pid: int, args: dict[str, Any]) -> None:
        """Values at a time."""
        values = dict(sorted(args.items()))
        self._then.append({"args": values, "cat": "Memory", "name": name, "ph": "C", "pid": pid, "tid": 0, "ts": at})

    def text(self) -> str:
        """The file."""
        events = [*self._first, *self._then]
        return json.dumps({"traceEvents": events}, separators=(",", ":"), ensure_ascii=False) + "\n"


class Flame(Protocol):
    """A displayed node of the scope or the code view."""

    name: str
    total: Stats
    shown: Any


def flame(root: Flame) -> str:
    """Children side by side below their parent, as wide as their total time; the depth is the process."""
    trace = TraceFile()
    named: set[int] = set()
    pending: list[tuple[Flame, int, int]] = [(root, 0, 0)]
    while pending:
        node, start, depth = pending.pop()
        if depth not in named:
            named.add(depth)
            trace.process(f"Scope:{depth}", depth)
        trace.region(node.name, start, node.total.exec_micros, depth, 0, name=node.name, op=node.name)
        children: list[tuple[Flame, int, int]] = []
        for child in node.shown:
            if child.total.exec_micros > 0:
                children.append((child, start, depth + 1))
                start += child.total.exec_micros
        pending.extend(reversed(children))
    return trace.text()


@dataclass(slots=True)
class _Box:
    """One execution on one device."""

    node: Node
    start: int
    duration: int
    pid: int
    lane: int = 0
    consumers: list[_Box] = field(default_factory=list)


@dataclass(slots=True)
class _DeviceMemory:
    in_use: dict[int, int] = field(default_factory=dict)
    """Time -> bytes held by the allocator."""
    allocations: dict[str, dict[int, int]] = field(default_factory=dict)
    """Node -> time -> bytes held from then on."""


class GraphTrace:
    """The trace of one step of the graph view.

    Args:
        step: the number of the step.
        answer: the answer of the graph view for this step.
    """

    def __init__(self, step: int, answer: Answer) -> None:
        self._step = step
        self._answer = answer
        self._trace = TraceFile()
        self._next_pid = 0
        self._pids: dict[str, int] = {}
        self._boxes: dict[str, dict[int, _Box]] = {}
        """Device -> start -> box: of boxes with the same start, the first displayed one is kept."""
        self._memory: dict[str, _DeviceMemory] = {}
        self.peaks: list[tuple[str, int]] = []
        """(device, highest allocator bytes) of each accelerator."""

    def render(self) -> str:
        """The file for the displayed nodes."""
        for node in self._answer.placed():
            self._place(node)
        self._connect()
        self._write_boxes(self._lanes())
        for device, memory in sorted(self._memory.items()):
            if "cpu" not in device:
                self._write_memory(device, memory)
        return self._trace.text()

    def _place(self, node: Node) -> None:
        if not self._is_traced(node):
            return
        self._note_memory(node)
        for device, times in node.executions[self._step].op_times().items():
            pid = self._pids.get(device)
            if pid is None:
                pid = self._pids[device] = self._pid()
                kind = "execution" if "stream" in device else "scheduling"
                self._trace.process(f"Op {kind} threads: {device}", pid)
            boxes = self._boxes.setdefault(device, {})
            for start, duration in times:
                boxes.setdefault(start, _Box(node, start, duration, pid))

    def _is_traced(self, node: Node) -> bool:
        execution = node.executions.get(self._step)
        return execution is not None and execution.start_micros > 0 and bool(node.device)

    def _pid(self) -> int:
        self._next_pid += 1
        return self._next_pid - 1

    def _connect(self) -> None:
        """Arrows only between devices that run ops, to keep the file small."""
        accounted = self._answer.accounted_nodes()
        for device, boxes in sorted(self._boxes.items()):
            if not is_canonical(device):
                continue
            for _, box in sorted(boxes.items()):
                for name in box.node.producers():
                    if name in accounted and self._is_traced(accounted[name]):
                        self._connect_one(accounted[name], device, box)

    def _connect_one(self, source: Node, device: str, box: _Box) -> None:
        for other, times in sorted(source.executions[self._step].cpu.items()):
            if other == device or not is_canonical(other) or other not in self._boxes:
                continue
            for start, _ in pairs_of(times):
                if start in self._boxes[other]:
                    self._boxes[other][start].consumers.append(box)

    def _lanes(self) -> dict[int, dict[int, list[_Box]]]:
        """Pid -> lane -> boxes. A box takes the first lane that is free at its start; boxes may touch."""
        placed: dict[int, dict[int, list[_Box]]] = {}
        for _, boxes in sorted(self._boxes.items()):
            ends: list[int] = []
            for _, box in sorted(boxes.items()):
                box.lane = next((lane for lane, end in enumerate(ends) if end <= box.start), len(ends))
                end = box.start + box.duration
                if box.lane == len(ends):
                    ends.append(end)
                else:
                    ends[box.lane] = end
                placed.setdefault(box.pid, {}).setdefault(box.lane, []).append(box)
        return placed

    def _write_boxes(self, placed: dict[int, dict[int, list[_Box]]]) -> None:
        flow = 0
        for _, lanes in sorted(placed.items()):
            for _, boxes in sorted(lanes.items()):
                for box in boxes:
                    name = box.node.name
                    self._trace.region(name, box.start, box.duration, box.pid, box.lane, name=name)
                    for consumer in box.consumers:
                        flow += 1
                        end = box.start + box.duration
                        self._trace.flow("s", f"{name}_flow", end, box.pid, box.lane, flow)
                        self._trace.flow("t", f"{name}_flow", consumer.start, consumer.pid, consumer.lane, flow)

    def _note_memory(self, node: Node) -> None:
        memory = self._memory.setdefault(node.device, _DeviceMemory())
        execution = node.executions[self._step]
        changes: dict[int, int] = {}
        for at, num_bytes in execution.allocations:
            changes[at] = changes.get(at, 0) + num_bytes
        persistent = max(
            (sum(run.accelerator_persistent for run in each.memory) for each in node.executions.values()), default=0
        )
        changes[0] = changes.get(0, 0) + persistent
        held = 0
        points = memory.allocations.setdefault(node.name, {})
        for at, change in sorted(changes.items()):
            held += change
            points[at] = held
        memory.in_use.update((run.at_micros, run.in_use) for run in execution.memory if run.at_micros > 0)

    def _write_memory(self, device: str, memory: _DeviceMemory) -> None:
        pid, details = self._pid(), self._pid()
        self._trace.process(f"mem usage on:{device}", pid)
        self._trace.process(f"mem usage on:{device} allocations", details)
        last = 0
        for at, in_use in sorted(memory.in_use.items()):
            if at - last < _CLOSEST_MICROS:
                continue
            last = at
            self._trace.counter("Allocated Bytes", at, pid, {"Allocator Bytes in Use": in_use})
            self._trace.counter("Top Allocations", at, details, _top_allocations(memory, at, in_use))
        if is_on_accelerator(device):
            self.peaks.append((device, max(memory.in_use.values(), default=0)))


def _top_allocations(memory: _DeviceMemory, at: int, in_use: int) -> dict[str, str]:
    """The ten nodes with most memory at a time, as far as they fit into the allocator's total."""
    holders: dict[int, list[str]] = {}
    for name, points in sorted(memory.allocations.items()):
        times = sorted(points)
        held = points[times[max(bisect_left(times, at) - 1, 0)]]
        if held > 0:
            holders.setdefault(held, []).append(name)
    top = {f"Top Allocation {rank:02d}": "N/A" for rank in range(1, 10)}
    rank = 0
    for held, names in sorted(holders.items(), reverse=True):
        for name in names:
            if in_use < held or rank >= 10:
                break
            top[f"Top Allocation {rank:02d}"] = f"{held / 1e6:g} MB from {name}"
            rank += 1
            in_use -= held
    top["Not Displayed"] = f"{in_use / 1e6:.2f} MB"
    return top
