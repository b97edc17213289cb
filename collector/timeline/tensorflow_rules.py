"""The rules of TensorFlow's timeline, as a readable specification.

The native writer produces the same text many times faster. This module runs if the extension cannot be loaded, and
tests compare the two. The following oddities are TensorFlow's and kept on purpose:

* a lane is free only if its last end is *strictly* before the next start, in the order of the message;
* there is one lane at the start that ended at time 0, so an op at time 0 never gets lane 0;
* an arrow starts at the *last* producer of a name and ends with phase ``t``;
* a tensor's lifetime is guessed from the labels of its consumers;
* a repeated tensor name takes a new object id without using it up, so that the next new tensor has the same id;
* each call on one converter appends: pids, flow ids, tensors and events continue from the previous call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from collector.stepstats.labels import parse_kernel_name, parse_op_label
from collector.timeline.lanes import Lanes
from collector.timeline.tensor_description import tensor_description_text

Event = dict[str, Any]

_LARGEST_INT64 = 2**63 - 1
_SMALLEST_INT64 = -(2**63)


class AllocationMaximum(NamedTuple):
    """The time at which an allocator held the most memory."""

    timestamp: int
    """µs, as in the trace; 0 if the allocator never held memory."""
    num_bytes: int
    tensors: set[str]
    """Names of the tensors alive at that time."""


@dataclass(slots=True)
class Op:
    """One node in the timeline: ``NodeExecStats`` with its lane and possibly other times."""

    node: Any
    start: int
    duration: int
    lane: int = 0

    @property
    def end(self) -> int:
        """The end of the op in µs; it may exceed 64 bits, as in TensorFlow."""
        return self.start + self.duration


@dataclass(slots=True)
class Tensor:
    """One output by name, and the time until which its consumers kept it."""

    name: str
    object_id: int
    pid: int
    allocator: str
    num_bytes: int
    create_time: int
    last_unref: int


class Producer(NamedTuple):
    """The slice at which the arrows of a tensor start."""

    time: int
    pid: int
    lane: int


class CompatibleConverter:
    """Collects the events of one or more calls, as one TensorFlow ``Timeline`` object does."""

    def __init__(self) -> None:
        self.metadata: list[Event] = []
        self.events: list[Event] = []
        self.maximums: dict[str, AllocationMaximum] = {}
        self._next_pid = 0
        self._next_flow_id = 0
        self._allocators_pid = 0
        self._compute_pids: dict[str, int] = {}
        self._tensor_pids: dict[str, int] = {}
        self._tensors: dict[str, Tensor] = {}
        self._producers: dict[str, Producer] = {}

    def add(self, step_stats: Any, *, show_dataflow: bool, show_memory: bool, op_time: str) -> None:
        """Appends the events of ``step_stats``, which is not changed.

        Raises:
            ValueError: ``op_time`` gives an op a duration beyond 64 bits.
        """
        devices = [
            (device.device, [Op(node, node.all_start_micros, node.all_end_rel_micros) for node in device.node_stats])
            for device in step_stats.dev_stats
        ]
        if op_time != "schedule":
            _apply_op_time(devices, start_at_kernel=op_time == "gpu")
        self._allocate_pids(name for name, _ in devices)
        for _, ops in devices:
            assign_lanes(ops)
        for name, ops in devices:
            self._add_tensors(name, ops, show_memory)
        for name, ops in devices:
            self._add_compute(name, ops, show_dataflow)
        if show_memory:
            self._add_memory()

    def text(self, pretty: bool) -> str:
        """The trace as JSON, indented by 4 or compact, without a final newline."""
        trace = {"traceEvents": self.metadata + self.events}
        if pretty:
            return json.dumps(trace, indent=4, separators=(",", ": "))
        return json.dumps(trace, separators=(",", ":"))

    def _allocate_pids(self, device_names: Iterable[str]) -> None:
        self._allocators_pid = self._new_pid("Allocators")
        for name in device_names:
            self._compute_pids[name] = self._new_pid(f"{name} Compute")
            self._tensor_pids[name] = self._new_pid(f"{name} Tensors")

    def _new_pid(self, name: str) -> int:
        pid = self._next_pid
        self._next_pid += 1
        self.metadata.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})
        return pid

    def _add_tensors(self, device: str, ops: Sequence[Op], show_memory: bool) -> None:
        compute_pid, tensors_pid = self._compute_pids[device], self._tensor_pids[device]
        for op in ops:
            for index, output in enumerate(op.node.output):
                name = f"{op.node.node_name}:{index}" if index else op.node.node_name
                description = output.tensor_description
                allocation = description.allocation_description
                object_id = len(self._tensors)
                self._tensors[name] = Tensor(
                    name=name,
                    object_id=object_id,
                    pid=tensors_pid,
                    allocator=allocation.allocator_name,
                    num_bytes=allocation.requested_bytes,
                    create_time=op.start,
                    last_unref=op.end,
                )
                self._producers[name] = Producer(op.end, compute_pid, op.lane)
                if show_memory:
                    self._add_event("N", "Tensor", name, tensors_pid, op.lane, op.start, id=object_id)
                    snapshot = {"tensor_description": tensor_description_text(description).replace('"', "")}
                    args = {"snapshot": snapshot}
                    self._add_event("O", "Tensor", name, tensors_pid, op.lane, op.end - 1, id=object_id, args=args)

    def _add_compute(self, device: str, ops: Sequence[Op], show_dataflow: bool) -> None:
        pid = self._compute_pids[device]
        from_tracer = is_tracer_device(device)
        for op in ops:
            name, kind, inputs = _name_op_inputs(op.node, from_tracer)
            args = {"name": name, "op": kind, **{f"input{i}": value for i, value in enumerate(inputs)}}
            self.events.append(
                {
                    "ph": "X",
                    "cat": "Op",
                    "name": kind,
                    "pid": pid,
                    "tid": op.lane,
                    "ts": op.start,
                    "dur": op.duration,
                    "args": args,
                }
            )
            for name in inputs:
                self._consume(name, op, pid, show_dataflow)

    def _consume(self, name: str, op: Op, pid: int, show_dataflow: bool) -> None:
        tensor = self._tensors.get(name)
        if tensor is None:
            # A tensor that is sent between devices has another name there: the producer's name, "/_" and a number.
            cut = name.rfind("/_")
            if cut > 0:
                name = name[:cut]
            tensor = self._tensors.get(name)
            if tensor is None:
                return
        tensor.last_unref = max(tensor.last_unref, op.end - 1)
        producer = self._producers[name]
        if show_dataflow and (producer.pid, producer.lane) != (pid, op.lane):
            flow_id = self._next_flow_id
            self._next_flow_id += 1
            self._add_event("s", "DataFlow", name, producer.pid, producer.lane, producer.time, id=flow_id)
            self._add_event("t", "DataFlow", name, pid, op.lane, op.start, id=flow_id)

    def _add_memory(self) -> None:
        changes: dict[str, list[tuple[int, int, str]]] = {}
        for tensor in self._tensors.values():
            self._add_event("D", "Tensor", tensor.name, tensor.pid, 0, tensor.last_unref, id=tensor.object_id)
            of_allocator = changes.setdefault(tensor.allocator, [])
            of_allocator.append((tensor.create_time, tensor.num_bytes, tensor.name))
            of_allocator.append((tensor.last_unref, -tensor.num_bytes, tensor.name))
        self.maximums = {}
        for allocator, of_allocator in changes.items():
            of_allocator.sort()
            total = 0
            peak, peak_index = 0, -1
            for index, (time, num_bytes, _) in enumerate(of_allocator):
                total += num_bytes
                if total > peak:
                    peak, peak_index = total, index
                self._add_event("C", "Memory", allocator, self._allocators_pid, 0, time, args={allocator: total})
            self.maximums[allocator] = _maximum(of_allocator, peak, peak_index)

    def _add_event(
        self, phase: str, category: str, name: str, pid: int, tid: int, ts: int, **more: int | Mapping[str, Any]
    ) -> None:
        self.events.append({"ph": phase, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, **more})


def is_tracer_device(device: str) -> bool:
    """Whether a device holds GPU work, as opposed to ops."""
    return "/stream:" in device or "/memcpy" in device


def assign_lanes(ops: Iterable[Op]) -> None:
    """Gives each op the first lane whose last op ended before this one starts."""
    lanes = Lanes([0])
    for op in ops:
        op.lane = lanes.place(op.start, op.end)


def _name_op_inputs(node: Any, from_tracer: bool) -> tuple[str, str, list[str]]:
    if from_tracer:
        return (*parse_kernel_name(node.timeline_label, node.node_name), [])
    if node.node_name == "RecvTensor":
        return node.node_name, "RecvTensor", []
    return (node.node_name, *parse_op_label(node.timeline_label))


def _apply_op_time(devices: Sequence[tuple[str, Sequence[Op]]], *, start_at_kernel: bool) -> None:
    """Extends ops over the kernels of the same name; if requested, they start at the first of these."""
    spans: dict[str, tuple[int, int]] = {}
    for device, ops in devices:
        if "/stream:all" in device:
            for op in ops:
                name, _ = parse_kernel_name(op.node.timeline_label, op.node.node_name)
                start, end = spans.get(name, (op.start, op.end))
                spans[name] = min(start, op.start), max(end, op.end)
    for device, ops in devices:
        if "/stream:all" in device or "/job" not in device:
            continue
        for op in ops:
            if op.node.node_name in spans:
                start, end = spans[op.node.node_name]
                end = max(end, op.end)
                if start_at_kernel:
                    op.start = start
                op.duration = end - op.start
                if not _SMALLEST_INT64 <= op.duration <= _LARGEST_INT64:
                    raise ValueError(f"Value out of range: {op.duration}")


def _maximum(changes: Sequence[tuple[int, int, str]], num_bytes: int, index: int) -> AllocationMaximum:
    if index < 0:
        return AllocationMaximum(0, 0, set())
    alive: set[str] = set()
    for _, change, name in changes[: index + 1]:
        if change < 0:
            alive.discard(name)
        else:
            alive.add(name)
    return AllocationMaximum(changes[index][0], num_bytes, alive)
