"""A plain implementation of TensorFlow's Timeline: attributes of messages read and written, a dict per event, json.

The reference arm of timeline.py if TensorFlow is not installed. It produces TensorFlow's text, which timeline.py
checks. It works in TensorFlow's order (lanes written into the message, tensors tracked by lists of uses, then ops and
arrows, then memory), and no part of it was optimised.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any


class Tensor:
    """One output and every use of it."""

    def __init__(self, name: str, number: int, time: int, pid: int, allocator: str, num_bytes: int) -> None:
        self.name, self.number, self.time, self.pid = name, number, time, pid
        self.allocator, self.num_bytes = allocator, num_bytes
        self.refs: list[int] = []
        self.unrefs: list[int] = []


class PlainTimeline:
    """Like TensorFlow's class, for one call."""

    def __init__(self, step_stats: Any) -> None:
        self.step_stats = step_stats
        self.metadata: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.pids: dict[str, tuple[int, int]] = {}
        self.tensors: dict[str, Tensor] = {}
        self.producers: dict[str, tuple[int, int, int]] = {}
        self.next_pid = 0
        self.next_flow = 0

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The trace as text."""
        self.new_process("Allocators")
        for device in self.step_stats.dev_stats:
            self.pids[device.device] = (
                self.new_process(device.device + " Compute"),
                self.new_process(device.device + " Tensors"),
            )
        self.assign_lanes()
        self.track_tensors(show_memory)
        self.show_ops(show_dataflow)
        if show_memory:
            self.show_allocators()
        return json.dumps({"traceEvents": self.metadata + self.events}, indent=4, separators=(",", ": "))

    def new_process(self, name: str) -> int:
        """A pid, and the event with its name."""
        pid = self.next_pid
        self.next_pid += 1
        self.metadata.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})
        return pid

    def event(self, phase: str, category: str, name: str, pid: int, tid: int, time: int) -> dict[str, Any]:
        """A new event."""
        event = {"ph": phase, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": time}
        self.events.append(event)
        return event

    def assign_lanes(self) -> None:
        """Write the first free lane of each op into the message."""
        for device in self.step_stats.dev_stats:
            lanes = [0]
            for node in device.node_stats:
                lane = 0
                while lane < len(lanes) and lanes[lane] >= node.all_start_micros:
                    lane += 1
                if lane == len(lanes):
                    lanes.append(0)
                lanes[lane] = node.all_start_micros + node.all_end_rel_micros
                node.thread_id = lane

    def track_tensors(self, show_memory: bool) -> None:
        """Every output."""
        for device in self.step_stats.dev_stats:
            compute_pid, tensors_pid = self.pids[device.device]
            for node in device.node_stats:
                lane = node.thread_id
                start = node.all_start_micros
                end = start + node.all_end_rel_micros
                for index, output in enumerate(node.output):
                    name = f"{node.node_name}:{index}" if index else node.node_name
                    allocation = output.tensor_description.allocation_description
                    tensor = Tensor(
                        name,
                        len(self.tensors),
                        start,
                        tensors_pid,
                        allocation.allocator_name,
                        allocation.requested_bytes,
                    )
                    self.tensors[name] = tensor
                    tensor.refs.append(start)
                    tensor.unrefs.append(end)
                    self.producers[name] = (end, compute_pid, lane)
                    if show_memory:
                        self.event("N", "Tensor", name, tensors_pid, lane, start)["id"] = tensor.number
                        shown = self.event("O", "Tensor", name, tensors_pid, lane, end - 1)
                        shown["id"] = tensor.number
                        text = str(output.tensor_description).replace('"', "")
                        shown["args"] = {"snapshot": {"tensor_description": text}}

    def show_ops(self, show_dataflow: bool) -> None:
        """Every op, and the arrows to it."""
        for device in self.step_stats.dev_stats:
            pid = self.pids[device.device][0]
            of_tracer = "/stream:" in device.device or "/memcpy" in device.device
            for node in device.node_stats:
                lane = node.thread_id
                start = node.all_start_micros
                end = start + node.all_end_rel_micros
                inputs = self.show_op(node, pid, of_tracer)
                if of_tracer or node.node_name == "RecvTensor":
                    continue
                for name in inputs:
                    if name not in self.tensors and name.rfind("/_") > 0:
                        name = name[: name.rfind("/_")]
                    if name not in self.tensors:
                        continue
                    self.tensors[name].refs.append(start)
                    self.tensors[name].unrefs.append(end - 1)
                    time, from_pid, from_lane = self.producers[name]
                    if show_dataflow and (from_pid != pid or from_lane != lane):
                        self.event("s", "DataFlow", name, from_pid, from_lane, time)["id"] = self.next_flow
                        self.event("t", "DataFlow", name, pid, lane, start)["id"] = self.next_flow
                        self.next_flow += 1

    def show_op(self, node: Any, pid: int, of_tracer: bool) -> list[str]:
        """One op; returns its inputs."""
        name, op, inputs = node.node_name, "unknown", []
        if of_tracer:
            label = node.timeline_label
            first, last = label.find("@@"), label.find("#")
            if first >= 0 and first + 2 < last:
                name = label[first + 2 : last]
            name, op = [*name.split(":"), "unknown"][:2]
        elif name == "RecvTensor":
            op = name
        else:
            found = re.match(r"(.*) = (.*)\((.*)\)", node.timeline_label)
            if found is not None:
                op = found.group(2)
                inputs = found.group(3).split(", ") if found.group(3) else []
        args = {"name": name, "op": op}
        for index, value in enumerate(inputs):
            args[f"input{index}"] = value
        event = self.event("X", "Op", op, pid, node.thread_id, node.all_start_micros)
        event["dur"] = node.all_end_rel_micros
        event["args"] = args
        return inputs

    def show_allocators(self) -> None:
        """Ends of tensors, and the memory held by each allocator."""
        changes: dict[str, list[tuple[int, int, str]]] = {}
        for name, tensor in self.tensors.items():
            last = max(tensor.unrefs)
            self.event("D", "Tensor", name, tensor.pid, 0, last)["id"] = tensor.number
            of_allocator = changes.setdefault(tensor.allocator, [])
            of_allocator.append((tensor.time, tensor.num_bytes, name))
            of_allocator.append((last, -tensor.num_bytes, name))
        for allocator, of_allocator in changes.items():
            total, most = 0, 0
            alive: set[str] = set()
            at_most: set[str] = set()
            for time, num_bytes, name in sorted(of_allocator):
                total += num_bytes
                alive.discard(name) if num_bytes < 0 else alive.add(name)
                if total > most:
                    most, at_most = total, copy.deepcopy(alive)
                self.event("C", "Memory", allocator, 0, 0, time)["args"] = {allocator: total}
            del at_most
