"""Recorded steps as models, without a graph.

Annotation paths are the name scopes. A kernel or copy is a child of the op that launched it, ``<op>/<kernel>``; without
an annotation it is a node of its own. Its type is the op's, if the program gave one, else ``<kernel>``. Calls of the
CUDA API are children of the annotation around them. An annotation's own time excludes that of nested annotations and
calls: nothing counts twice. In the graph, an op consumes its inputs, the kernels that it launched and the calls that it
made, and those of the ops inside it that no other op consumes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collector.profiler.advised_devices import AdvisedDevice, devices_of_step_stats
from collector.profiler.device_columns import DeviceColumns, read_devices, step_stats_of
from collector.profiler.execution import Execution, Memory, Runs, grouped, is_accelerator_stream, runs_by
from collector.profiler.gpu_work import gpu_work
from collector.profiler.model import Frame, Model, Node
from collector.profiler.node_fields import Ints
from collector.profiler.op_details import in_labels, in_provenance, node_path, stack_of
from collector.protos import Activity, AnnotationDetails, Provenance
from collector.recording.cupti_enums import RUNTIME_DOMAIN
from collector.recording.intervals import Union
from collector.recording.ledger import Ledger
from collector.runtime.garbage import no_garbage_collection
from collector.stepstats.labels import is_api_name, is_runtime_api_name, op_and_kernel, unit_of

Mask = NDArray[np.bool_]

_FRAME = re.compile(r"(.+)\((\d{1,9})\): (.+)", re.DOTALL)
"""The name of a Python function in PyTorch's profiler, with its first line: ``model.py(12): forward``."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


@dataclass
class RecordedStep:
    """The records of one step, kept for advice."""

    host: list[DeviceColumns]
    accelerators: list[DeviceColumns]
    """The ``stream:all`` devices: each activity once."""
    device_names: tuple[str, ...]
    """Names of all devices in the step, including those that are not read."""
    ledger: Ledger
    """The tracer's counts, and the unreadable parts of the step's file; all 0 for intact steps of other programs."""
    op_details: dict[str, AnnotationDetails]
    """The details of ops, by their paths."""
    stacks: dict[str, list[Frame]]
    """Path of an op -> its stack in the program, if it was recorded; outermost frame first."""
    window: tuple[int, int] | None
    """Start and end of the step, in nanoseconds since the epoch; None if the file does not contain them."""
    data: memoryview = field(repr=False)
    """The serialized step."""

    @cached_property
    def streams(self) -> list[DeviceColumns]:
        """The devices of single streams, read at first use."""
        return read_devices(self.data, lambda device: "/stream:" in device and "/stream:all" not in device)

    @cached_property
    def graphs(self) -> list[DeviceColumns]:
        """The devices of CUDA graphs, read at first use."""
        return read_devices(self.data, lambda device: device.endswith("/graphs"))

    @property
    def advised_devices(self) -> list[AdvisedDevice]:
        """The devices that did anything."""
        return devices_of_step_stats(self.accelerators, self.graphs, self.host)


def read(data: bytes | memoryview, provenance: Provenance | None = None) -> RecordedStep:
    """A step from serialized StepStats or RunMetadata, and its provenance, if it has one.

    Raises:
        InvalidFileError: these bytes are neither.
    """
    stats = step_stats_of(memoryview(data))
    names: list[str] = []

    def is_wanted(device: str) -> bool:
        names.append(device)
        return is_accelerator_stream(device.lower()) or _is_host(device.lower())

    devices = read_devices(stats, is_wanted)
    combined = [device for device in devices if is_accelerator_stream(device.device.lower())]
    host = [device for device in devices if _is_host(device.device.lower())]
    details_by_path = in_provenance(provenance)
    for device in host:
        for details in in_labels(device, has_provenance=provenance is not None):
            details_by_path.setdefault(details.path, details)
    provenance = provenance or Provenance()
    stacks = {path: stack_of(details, provenance) for path, details in details_by_path.items() if details.stack}
    window = (provenance.window_start_nanos, provenance.window_end_nanos)
    return RecordedStep(
        host,
        combined,
        tuple(names),
        Ledger.of(provenance),
        details_by_path,
        stacks,
        window if any(window) else None,
        stats,
    )


def _is_host(device: str) -> bool:
    return device.endswith(("/cpu:0", "/device:cpu:0"))


@no_garbage_collection()
def add_step(model: Model, step: int, recorded: RecordedStep) -> None:
    """Adds a recorded step to ``model``; the same step again adds to it."""
    model.steps.add(step)
    model.generation += 1
    places = _Places()
    ops = {path for device in recorded.host for path in _add_host(model, step, device, recorded, places)}
    for device in recorded.accelerators:
        _add_accelerator(model, step, device, recorded, places)
    for path, details in recorded.op_details.items():
        if path in model.nodes:
            describe(model.nodes[path], step, details)
    consumed = {name for details in recorded.op_details.values() for name in details.inputs}
    for path in sorted(ops - consumed):
        around = _around(path, ops)
        if around:
            _consume(model.nodes[around], path)


def describe(node: Node, step: int, details: AnnotationDetails) -> None:
    """Sets inputs, flops and bytes. Flops are of one run: the average over all runs so far, rounded."""
    for name in details.inputs:
        _consume(node, name)
    if details.flops:
        runs = max(sum(execution.run_count for execution in node.executions.values()), details.runs, 1)
        before = node.static_float_ops * (runs - details.runs)
        node.static_float_ops = (before + details.flops + runs // 2) // runs
    if details.num_bytes:
        _execution(node, step).memory.append(Memory(requested=details.num_bytes))


def _around(path: str, ops: set[str]) -> str:
    """The nearest op that encloses ``path``, or ``""``."""
    while path:
        path = path.rpartition("/")[0]
        if path in ops:
            return path
    return ""


def _consume(node: Node, name: str) -> None:
    if name != node.name:
        node.consume(name)


def _belongs(model: Model, node: Node, op: str, recorded: RecordedStep) -> None:
    """Makes ``op``, which launched or called ``node``, its parent in the graph and in the program."""
    if op in model.nodes:
        _consume(model.nodes[op], node.name)
    _place(model, node, op, recorded)


def _place(model: Model, node: Node, op: str, recorded: RecordedStep) -> None:
    if op in recorded.stacks and not node.stack:
        node.stack = recorded.stacks[op]
        model.has_traces = True


def _node(model: Model, name: str, op: str, device: str) -> Node:
    node = model.nodes.get(name)
    if node is None:
        node = model.add_node(name, op)
    if not node.device:
        node.device = node.host_device = device
        node.op_types.add(device)
    return node


def _execution(node: Node, step: int) -> Execution:
    return node.executions.setdefault(step, Execution())


def _groups(index: Ints) -> list[tuple[int, Ints]]:
    """(value, rows with it) for each value in ``index``, rows in order."""
    if not len(index):
        return []
    order, firsts = grouped(index)
    return list(zip(index[order[firsts]].tolist(), np.split(order, firsts[1:]), strict=True))


class _Places:
    """The call stack of each thread at each time, from the slices of its Python functions."""

    def __init__(self) -> None:
        self.stacks: list[tuple[Frame, ...]] = []
        self._known: dict[tuple[int, Frame], int] = {}
        """(Number of the stack around a function, -1 at the bottom; the function) -> number of its stack."""
        self._threads: dict[int, tuple[Ints, Ints]] = {}
        """Thread -> times in ns, and the number of the stack from each time on, -1 for none."""

    def add(self, thread: int, rows: Ints, starts: Ints, ends: Ints, frames: Mapping[int, Frame], index: Ints) -> None:
        """Adds a thread's Python functions: ``frames`` by the index of a row's name."""
        order = rows[np.lexsort((-ends[rows], starts[rows]))]
        if not len(order):
            return
        stack_of_row: dict[int, int] = {-1: -1}
        marks: list[int] = []
        inside: list[int] = []
        open_: list[int] = []
        for row, start, name_id in zip(order.tolist(), starts[order].tolist(), index[order].tolist(), strict=True):
            _close(open_, ends, start, marks, inside)
            stack_of_row[row] = self._number(stack_of_row[open_[-1] if open_ else -1], frames[name_id])
            open_.append(row)
            marks.append(start)
            inside.append(row)
        _close(open_, ends, None, marks, inside)
        self._threads[thread] = np.array(marks), np.array([stack_of_row[row] for row in inside])

    def _number(self, outer: int, frame: Frame) -> int:
        number = self._known.setdefault((outer, frame), len(self.stacks))
        if number == len(self.stacks):
            self.stacks.append((*(self.stacks[outer] if outer >= 0 else ()), frame))
        return number

    def at(self, thread_id: Ints, times: Ints) -> Ints:
        """The number of the stack of each thread at each time; -1 if unknown."""
        found = np.full(len(times), -1, np.int64)
        for thread, rows in _groups(thread_id) if self._threads else ():
            if thread in self._threads:
                marks, stacks = self._threads[thread]
                nearest = np.searchsorted(marks, times[rows], side="right") - 1
                found[rows] = np.where(nearest >= 0, stacks[nearest], -1)
        return found


def _site(model: Model, node: Node, stack: tuple[Frame, ...]) -> Node:
    """The node of the code view that represents ``node`` at one call stack."""
    site = model.call_sites.get((node.name, stack))
    if site is None:
        site = model.call_sites[node.name, stack] = Node(node.name, node.op)
        site.device, site.host_device, site.stack = node.device, node.host_device, list(stack)
        model.has_traces = True
    site.op_types.update(node.op_types)
    return site


def _add_accelerator(model: Model, step: int, device: DeviceColumns, recorded: RecordedStep, places: _Places) -> None:
    """Adds kernels, copies and memsets of one device. A duration of 0 counts as 1 us, as in tfprof."""
    stream = device.device.lower()
    placed_on = unit_of(stream)
    names, index = device.names
    micros = _whole_micros(index, np.where(device.duration_ns > 0, device.duration_ns, 1000))
    of_name: dict[int, Node] = {}
    all_runs = runs_by(index, device.start_micros, micros)
    moved = _moved_bytes(device, [(name_id, rows) for name_id, rows, _ in all_runs])
    for name_id, _, runs in all_runs:
        op, kernel = op_and_kernel(names[name_id])
        if kernel == op:
            node = _node(model, op, op, placed_on)
        else:
            type_ = recorded.op_details[op].op if op in recorded.op_details else ""
            node = _node(model, f"{op}/{kernel}", type_ or kernel, placed_on)
            node.op_types.add(kernel)
            _belongs(model, node, op, recorded)
        of_name[name_id] = node
        execution = _execution(node, step)
        execution.add_accelerator_runs(stream, runs)
        if name_id in moved:
            execution.memory.append(Memory(at_micros=runs.last_end, output=moved[name_id]))
    launched_at = places.at(device.thread_id, device.scheduled_ns) if places.stacks else index[:0]
    for name_id, stack, runs in _runs_at_places(index, launched_at, device.start_micros, micros):
        _execution(_site(model, of_name[name_id], places.stacks[stack]), step).add_accelerator_runs(stream, runs)


def _runs_at_places(key: Ints, stacks: Ints, starts: Ints, durations: Ints) -> Iterator[tuple[int, int, Runs]]:
    """(key, number of the stack, runs) for each pair of both, for rows with a stack."""
    known = np.flatnonzero(stacks >= 0)
    count = int(stacks.max(initial=0)) + 1
    for pair, _, runs in runs_by(key[known] * count + stacks[known], starts[known], durations[known]):
        yield *divmod(pair, count), runs


def _moved_bytes(device: DeviceColumns, groups: list[tuple[int, Ints]]) -> dict[int, int]:
    """Name -> bytes, for each name of copies or memsets; a name belongs to one kind."""
    firsts = np.array([rows[0] for _, rows in groups], np.int64)
    is_moving = gpu_work(device, firsts).is_copy_or_memset.tolist()
    moving = [group for group, moves in zip(groups, is_moving, strict=True) if moves]
    if not moving:
        return {}
    num_bytes = np.maximum(gpu_work(device, np.concatenate([rows for _, rows in moving])).num_bytes, 0)
    begins = np.cumsum([0, *(len(rows) for _, rows in moving[:-1])])
    return dict(zip((name_id for name_id, _ in moving), np.add.reduceat(num_bytes, begins).tolist(), strict=True))


def _add_host(model: Model, step: int, device: DeviceColumns, recorded: RecordedStep, places: _Places) -> set[str]:
    """Adds annotations and API calls with their own times, in which nothing that they enclose runs on the thread.

    Returns:
        The paths of the annotations.
    """
    placed_on = device.device.lower()
    names, index = _merged_names(*device.names)
    is_call, is_runtime = _calls(device, names, index)
    own, scopes, folded = (np.zeros(len(device), np.int64), np.full(len(device), -1, np.int64), is_call & False)
    frames = {
        name_id: Frame(found[1], int(found[2]), found[3], first_line=int(found[2]))
        for name_id, name in enumerate(names)
        if (found := _FRAME.fullmatch(name))
    }
    is_frame = np.isin(index, list(frames))
    for thread, rows in _groups(device.thread_id):
        places.add(thread, rows[is_frame[rows]], device.start_ns, device.end_ns, frames, index)
        _nest(rows, is_call, is_runtime, device.start_ns, device.end_ns, own, scopes, folded)
    where = np.where(is_call & (scopes >= 0), index[scopes], -1)
    calls: list[tuple[Node, str]] = []
    ops: set[str] = set()
    key_of, kept = index * (len(names) + 1) + where + 1, np.flatnonzero(~folded)
    micros = _whole_micros(key_of[kept], np.maximum(own[kept], 0))
    of_key: dict[int, Node] = {}
    for key, _, runs in runs_by(key_of[kept], device.start_micros[kept], micros):
        name_id, scope_id = divmod(key, len(names) + 1)
        name = node_path(names[name_id])
        if scope_id:
            scope = node_path(names[scope_id - 1])
            node = _node(model, f"{scope}/{name}", name, placed_on)
            calls.append((node, scope))
        else:
            type_ = recorded.op_details[name].op if name in recorded.op_details else ""
            node = _node(model, name, type_ or name.rstrip("/").rpartition("/")[2] or name, placed_on)
            _place(model, node, name, recorded)
            ops.add(name)
        of_key[key] = node
        _execution(node, step).add_host_runs(placed_on, runs)
    at = places.at(device.thread_id[kept], device.start_ns[kept]) if frames else kept[:0]
    for key, stack, runs in _runs_at_places(key_of[kept], at, device.start_micros[kept], micros):
        _execution(_site(model, of_key[key], places.stacks[stack]), step).add_host_runs(placed_on, runs)
    for node, scope in calls:
        _belongs(model, node, scope, recorded)
    return ops


def _calls(device: DeviceColumns, names: list[str], index: Ints) -> tuple[Mask, Mask]:
    """Whether each record is a call of CUDA's API, and whether it is one of the runtime API."""
    is_call = np.array([*map(is_api_name, names), False], bool)[index]
    is_runtime = np.array([*map(is_runtime_api_name, names), False], bool)[index]
    typed = np.flatnonzero(device.is_typed)
    if len(typed):
        columns = device.activity_columns(("kind", "domain"), typed)
        is_call[typed] = columns["kind"] == Activity.API_CALL
        is_runtime[typed] = columns["domain"] == RUNTIME_DOMAIN
    return is_call, is_runtime & is_call


def _merged_names(names: list[str], index: Ints) -> tuple[list[str], Ints]:
    """Names without object addresses, which differ between runs, and each record's index into them."""
    merged: dict[str, int] = {}
    places = [merged.setdefault(_ADDRESS.sub("", name), len(merged)) for name in names]
    return list(merged), np.array([*places, 0], np.int64)[index]


def _whole_micros(key: Ints, nanos: Ints) -> Ints:
    """Nanoseconds as microseconds whose sum for each key is the rounded sum of its nanoseconds."""
    order, firsts = grouped(key)
    if not len(order):
        return nanos
    reached = np.cumsum(nanos[order])
    before = np.repeat(reached[firsts] - nanos[order][firsts], np.diff([*firsts, len(order)]))
    rounded = (reached - before + 500) // 1000
    micros = np.diff(rounded, prepend=0)
    micros[firsts] = rounded[firsts]
    whole = np.empty_like(nanos)
    whole[order] = micros
    return whole


def _nest(
    rows: Ints,
    is_call: Mask,
    is_runtime: Mask,
    starts: Ints,
    ends: Ints,
    own: Ints,
    scopes: Ints,
    folded: Mask,
) -> None:
    """For the rows of one thread: fills in ``own`` times, the annotation around each call, and the folded calls.

    Folded calls are the driver calls that a runtime call makes: they are part of it. Each instant belongs to the range
    that began last, so that all own times add up to the time in which anything runs on the thread.
    """
    order = rows[np.lexsort((-ends[rows], starts[rows]))]
    spans, calls = order[~is_call[order]], order[is_call[order]]
    marks: list[int] = []
    inside: list[int] = []
    open_: list[int] = []
    for row, start in zip(spans.tolist(), starts[spans].tolist(), strict=True):
        _close(open_, ends, start, marks, inside)
        open_.append(row)
        marks.append(start)
        inside.append(row)
    _close(open_, ends, None, marks, inside)
    within = _around_calls(calls, starts, ends)
    folded[calls] = (within >= 0) & is_runtime[within] & ~is_runtime[calls]
    calls, within = calls[~folded[calls]], within[~folded[calls]]
    own[calls] = np.maximum(ends[calls] - starts[calls], 0)
    enclosed = within >= 0
    np.subtract.at(own, within[enclosed], own[calls[enclosed]])
    if not marks:
        return
    segments, holders = np.array(marks), np.array(inside)
    nearest = np.searchsorted(segments, starts[calls], side="right") - 1
    scopes[calls] = np.where(nearest >= 0, holders[nearest], -1)
    taken = Union.of(starts[calls], ends[calls]).covered(segments[:-1], segments[1:])
    held = holders[:-1] >= 0
    np.add.at(own, holders[:-1][held], (np.diff(segments) - taken)[held])


def _around_calls(calls: Ints, starts: Ints, ends: Ints) -> Ints:
    """For each of these calls, sorted by start, the outermost call around it; -1: none."""
    if not len(calls):
        return calls
    latest = np.maximum.accumulate(ends[calls])
    is_outer = np.concatenate([[True], starts[calls][1:] >= latest[:-1]])
    return np.where(is_outer, -1, calls[is_outer][np.cumsum(is_outer) - 1])


def _close(open_: list[int], ends: Ints, until: int | None, marks: list[int], inside: list[int]) -> None:
    """Ends the annotations that are over at ``until``; the enclosing one is then the innermost."""
    while open_ and (until is None or ends[open_[-1]] <= until):
        at = int(ends[open_.pop()])
        while open_ and ends[open_[-1]] <= at:  # it ended before a range that began inside it
            open_.pop()
        marks.append(at)
        inside.append(open_[-1] if open_ else -1)
