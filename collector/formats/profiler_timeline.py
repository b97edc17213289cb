"""StepStats out of a Chrome trace of another profiler: PyTorch's (Kineto), or anything with timed events.

GPU work goes to the devices that our own recordings use (``/gpu:D/stream:S``, ``/gpu:D/stream:all``,
``/gpu:D/memcpy``); what the host did goes to ``/cpu:0``, and further processes to devices of their own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.formats import xprof_trace
from collector.formats.chrome_events import NO_BASE, ChromeEvents, nanoseconds, possible_base, process_names, text
from collector.formats.step import StepSource
from collector.protos.run_metadata_pb2 import RunMetadata
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.recording.kernel_names import short_name
from collector.recording.possible_times import is_wall_time

if TYPE_CHECKING:
    from collector.formats.event_columns import EventColumns
    from collector.recording.recording import Recording

_GPU_WORK = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}
"""Category (in lower case) -> what it is."""
_GPU_ROWS = {"gpu_user_annotation": "annotations", "cuda_sync": "sync"}
"""Categories on GPU rows that are no work of the GPU -> the device that holds them, beside the streams."""
_MEMORIES = re.compile(r"\(([A-Za-z ]+?)(?: -> ([A-Za-z ]+))?\)")
_COPY_KIND = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH|HtoA|AtoH|AtoA|AtoD|DtoA)\b")
_COLLECTIVE = {
    "Collective name": "collective",
    "Process Group Name": "group",
    "Seq": "seq",
    "In msg nelems": "elements",
    "dtype": "dtype",
}
"""PyTorch's argument of a collective's kernel -> its key in a label."""
_DIGITS = re.compile(r"[0-9]{1,9}")
_WORD = re.compile(r"[\w,.]{1,100}", re.ASCII)
"""Values that a detail of a label may have."""
_OPS = frozenset({"cpu_op", "operator", "user_annotation"})
"""Categories (in lower case) of host rows that name an op. Functions of Python are none: their rows are its stack."""


@dataclass
class _Span:
    """One timed event, with its time checked."""

    event: dict[str, Any]
    start_ns: int
    duration_ns: int

    @property
    def arguments(self) -> dict[str, Any]:
        found = self.event.get("args")
        return found if isinstance(found, dict) else {}

    @property
    def category(self) -> str:
        """In lower case, as early traces have capitals."""
        return str(self.event.get("cat", "")).lower()

    @property
    def row(self) -> tuple[str, str]:
        """Process and thread, which some files write as numbers, some as text, and some as both."""
        return str(self.event.get("pid")), str(self.event.get("tid"))


@dataclass
class _Launch:
    """The call that caused GPU work."""

    start_ns: int
    thread_id: int
    op: str
    """Name of the innermost op that was open on the calling thread; empty where none was."""


@dataclass
class _Builder:
    step: StepStats = field(default_factory=StepStats)
    devices: dict[str, DeviceStepStats] = field(default_factory=dict)

    def add(self, device: str, name: str, label: str, span: _Span, launch: _Launch | None = None) -> NodeExecStats:
        if device not in self.devices:
            self.devices[device] = self.step.dev_stats.add(device=device)
        start_us, end_us = span.start_ns // 1000, (span.start_ns + span.duration_ns) // 1000
        length_us = max(end_us - start_us, 1)
        node = self.devices[device].node_stats.add(
            node_name=name,
            timeline_label=label,
            all_start_micros=start_us,
            all_start_nanos=span.start_ns,
            op_end_rel_micros=length_us,
            op_end_rel_nanos=span.duration_ns,
            all_end_rel_micros=length_us,
            all_end_rel_nanos=span.duration_ns,
            correlation_id=_correlation(span),
        )
        if launch is not None:
            node.scheduled_micros, node.scheduled_nanos = launch.start_ns // 1000, launch.start_ns
            node.thread_id = launch.thread_id
        return node


class ProfilerTrace(StepSource):
    """The step in a profiler's trace; what cannot be read is counted in ``found.skipped``."""

    def __init__(self, found: ChromeEvents) -> None:
        """Read the times of all events; columns and messages are made of them when they are asked for."""
        self._spans = list(_spans(found, _base_ns(found)))
        if found.is_cut and self._spans and not is_wall_time(min(span.start_ns for span in self._spans)):
            found.skipped[NO_BASE] += 1
        self._metadata = [event for event in found.events if event.get("ph") == "M"]

    @property
    def is_empty(self) -> bool:
        """Whether nothing in the trace is an event with a time."""
        return not self._spans

    def run_metadata(self) -> RunMetadata:
        """See `StepSource`."""
        launches, ops = _launches(self._spans), _ops_by_external_id(self._spans)
        built = _Builder()
        host_names = _HostNames(process_names(self._metadata))
        for span in self._spans:
            if span.category in _GPU_WORK:
                _add_work(built, _work_of(span, launches, ops))
            elif span.category in _GPU_ROWS:
                device = f"/gpu:{_device(span)}/{_GPU_ROWS[span.category]}"
                built.add(device, text(span.event.get("name", "")), "", span)
            else:
                device = host_names.device(span.event.get("pid"))
                node = built.add(device, text(span.event.get("name", "")), "", span)
                node.thread_id = _row(span.event.get("tid"))
        _name_threads(self._metadata, host_names, built)
        return RunMetadata(step_stats=built.step)

    def recording(self) -> Recording:
        """See `StepSource`. Rows of the host that name no op, and those of steps and modules, have no columns."""
        from collector.formats.event_columns import EventColumns

        columns = EventColumns()
        launches, ops = _launches(self._spans), _ops_by_external_id(self._spans)
        for span in self._spans:
            name, category = text(span.event.get("name", "")), span.category
            if category in _GPU_WORK:
                _add_columns(columns, _work_of(span, launches, ops))
            elif category == "cuda_sync":
                stream = {"stream_id": _stream(span), "correlation_id": _correlation(span)}
                columns.add("synchronizations", name, span.start_ns, span.duration_ns, "", **stream)
            elif category in _OPS or "runtime" in category or "driver" in category:
                table = "annotations" if category in _OPS else "api_calls"
                given = {"thread_id": _row(span.event.get("tid"))}
                if table == "api_calls":
                    given["correlation_id"] = _correlation(span)
                columns.add(table, name, span.start_ns, span.duration_ns, "", **given)
            else:
                columns.without_columns += 1
        for event in self._metadata:
            arguments = event.get("args")
            if event.get("name") == "thread_name" and isinstance(arguments, dict):
                columns.name_thread(_row(event.get("tid")), text(arguments.get("name", "")))
        return columns.recording({}, {"source": "profiler"})


def _base_ns(found: ChromeEvents) -> int:
    stated = found.metadata.get("baseTimeNanoseconds")
    return possible_base(stated, found.skipped) if type(stated) is int else 0


def _spans(found: ChromeEvents, base_ns: int) -> Iterator[_Span]:
    """Complete events, and pairs of begin and end, in file order of their ends."""
    open_events: dict[tuple[Any, Any], list[_Span]] = {}
    for event in found.events:
        phase = event.get("ph")
        if phase not in ("X", "B", "E"):
            continue
        start = nanoseconds(event.get("ts"))
        if start is None:
            found.skipped["events without a possible time"] += 1
        elif phase == "B":
            begun = _Span(event, start + base_ns, 0)
            open_events.setdefault(begun.row, []).append(begun)
        elif phase == "E":
            row = _Span(event, 0, 0).row
            if open_events.get(row):
                span = open_events[row].pop()
                span.duration_ns = max(start + base_ns - span.start_ns, 0)
                yield span
            else:
                found.skipped["ends without a beginning"] += 1
        else:
            duration = nanoseconds(event.get("dur"))
            if duration is None:
                found.skipped["durations missing or impossible (taken as 0)"] += 1
            elif duration < 0:
                found.skipped["negative durations (taken as 0)"] += 1
            yield _Span(event, start + base_ns, max(duration or 0, 0))
    unfinished = sum(map(len, open_events.values()))
    if unfinished:
        found.skipped["beginnings without an end"] += unfinished


def _launches(spans: list[_Span]) -> dict[int, _Launch]:
    """Correlation id -> the call that has it, of several (a runtime call and the driver call in it) the first."""
    calls: dict[int, _Span] = {}
    rows: dict[tuple[str, str], tuple[list[_Span], list[_Span]]] = {}
    for span in spans:
        is_op = span.category in _OPS
        if is_op or (_is_call(span) and calls.setdefault(_correlation(span), span) is span):
            ops_and_calls = rows.setdefault(span.row, ([], []))
            ops_and_calls[0 if is_op else 1].append(span)
    launches = {}
    for ops, calls_of_row in rows.values():
        for call, op in _innermost(ops, calls_of_row):
            name = "" if op is None else text(op.event.get("name", ""))
            launches[_correlation(call)] = _Launch(call.start_ns, _row(call.event.get("tid")), name)
    return launches


def _is_call(span: _Span) -> bool:
    return ("runtime" in span.category or "driver" in span.category) and _correlation(span) != 0


def _innermost(ops: list[_Span], calls: list[_Span]) -> Iterator[tuple[_Span, _Span | None]]:
    """Each call of a thread with the op that began last of those open when the call began."""
    # Of ops that begin at once the shorter is inside; of equal ones that which the file has later.
    waiting = deque(sorted(ops, key=lambda op: (op.start_ns, -op.duration_ns)))
    opened: list[_Span] = []
    for call in sorted(calls, key=lambda call: call.start_ns):
        while waiting and waiting[0].start_ns <= call.start_ns:
            opened.append(waiting.popleft())
        while opened and opened[-1].start_ns + opened[-1].duration_ns <= call.start_ns:
            opened.pop()
        yield call, opened[-1] if opened else None


def _ops_by_external_id(spans: list[_Span]) -> dict[int, str]:
    """External id -> the op that has it: all that is known of work whose call is not in the trace."""
    ops = {}
    for span in spans:
        if span.category in _OPS:
            external = _integer(span.arguments.get("External id"))
            if external is not None:
                ops[external] = text(span.event.get("name", ""))
    return ops


def _correlation(span: _Span) -> int:
    """The number that a launch and what it caused share; 0 where there is none."""
    return _integer(span.arguments.get("correlation")) or 0


@dataclass
class _Work:
    """A kernel, copy or memset, and what launched it."""

    span: _Span
    kind: str
    full_name: str
    launch: _Launch | None
    op: str
    """The op that it was launched under; ``""``: not known."""

    @property
    def copy_kind(self) -> str:
        """``HtoD``; ``unknown`` where the name does not say."""
        found = _COPY_KIND.search(self.full_name)
        return found[1] if found else "unknown"


def _work_of(span: _Span, launches: dict[int, _Launch], ops: dict[int, str]) -> _Work:
    launch = launches.get(_correlation(span))
    # Before PyTorch 2.1 the external id of an activity is its correlation id, so the call is asked first.
    named = ops.get(_integer(span.arguments.get("External id")) or -1, "") if launch is None else launch.op
    op = text(span.arguments.get(xprof_trace.OP, named))
    return _Work(span, _GPU_WORK[span.category], text(span.event.get("name", "")), launch, op)


def _add_work(built: _Builder, work: _Work) -> None:
    arguments = work.span.arguments
    op = work.op.replace("::", ".").replace(":", ".")
    if work.kind == "kernel":
        name, label = short_name(work.full_name), work.full_name + _shape(arguments)
    else:
        name = "MEMSET" if work.kind == "memset" else f"MEMCPY{work.copy_kind}"
        num_bytes = _integer(arguments.get("bytes"))
        label = name + ("" if num_bytes is None else f" {num_bytes} bytes") + _memories(work.full_name)
    gpu = f"/gpu:{_device(work.span)}"
    node_name = f"{op or name}:{name}"
    built.add(f"{gpu}/stream:all", node_name, label, work.span, work.launch)
    built.add(f"{gpu}/stream:{_stream(work.span)}", node_name, label, work.span, work.launch)
    if work.kind != "kernel":
        built.add(f"{gpu}/memcpy", node_name, label, work.span, work.launch)


def _add_columns(columns: EventColumns, work: _Work) -> None:
    from collector.formats.event_columns import copy_kind_number, memory_kind_number, shape_columns

    span, arguments = work.span, work.span.arguments
    given = {
        "device_id": _device(span),
        "stream_id": _stream(span),
        "context_id": _integer(arguments.get("context")) or 0,
        "correlation_id": _correlation(span),
    }
    if work.kind == "kernel":
        given |= shape_columns(arguments.get("grid"), arguments.get("block"))
        given["registers_per_thread"] = _integer(arguments.get("registers per thread")) or 0
        given["static_shared_bytes"] = _integer(arguments.get(xprof_trace.STATIC_SHARED)) or 0
        shared_bytes = _integer(arguments.get("shared memory")) or 0
        given["dynamic_shared_bytes"] = max(shared_bytes - given["static_shared_bytes"], 0)
    else:
        given["num_bytes"] = _integer(arguments.get("bytes")) or 0
        memories = _MEMORIES.search(work.full_name)
        source, target = (memories[1], memories[2]) if memories else ("", "")
        if work.kind == "memset":
            given["memory_kind"] = memory_kind_number(source)
        else:
            given["copy_kind"] = copy_kind_number(work.copy_kind)
            given |= {"src_kind": memory_kind_number(source), "dst_kind": memory_kind_number(target or "")}
    columns.add(f"{work.kind}s", work.full_name, span.start_ns, span.duration_ns, work.op, **given)


def _memories(full_name: str) -> str:
    """``Memcpy HtoD (Pageable -> Device)`` names kinds of memory as our own labels do: ``" (Pageable to Device)"``."""
    found = _MEMORIES.search(full_name)
    return f" ({found[1]}{f' to {found[2]}' if found[2] else ''})" if found else ""


def _shape(arguments: dict[str, Any]) -> str:
    """Launch shape as our own labels have it, ``" regs:18 shm:0 grid:1,1,1 block:128,1,1"``; which collective it is."""
    parts = []
    for key, word in (("registers per thread", "regs"), ("shared memory", "shm")):
        value = _integer(arguments.get(key))
        if value is not None:
            parts.append(f" {word}:{value}")
    for key in ("grid", "block"):
        value = arguments.get(key)
        if isinstance(value, list) and len(value) == 3 and all(type(size) is int for size in value):
            parts.append(f" {key}:{','.join(map(str, value))}")
    if "Collective name" in arguments:
        for key, word in _COLLECTIVE.items():
            value = arguments.get(key)
            if type(value) in (int, str) and _WORD.fullmatch(str(value)):
                parts.append(f" {word}:{value}")
    return "".join(parts)


def _device(span: _Span) -> int:
    device = _integer(span.arguments.get("device"))
    return _row(span.event.get("pid")) if device is None else device


def _stream(span: _Span) -> int:
    stream = _integer(span.arguments.get("stream"))
    return _row(span.event.get("tid")) if stream is None else stream


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value if type(value) is int and 0 <= value < 1 << 32 else None


def _row(value: Any) -> int:
    """A process or thread id as a number: itself, the digits in it (``"stream 7"``), or 0."""
    number = _integer(value)
    if number is None:
        digits = _DIGITS.search(str(value))
        number = int(digits[0]) if digits else 0
    return number


_PROFILERS_OWN = ("Spans", "Traces", "-1")
"""Process ids under which PyTorch's profiler says how long it ran itself."""


class _HostNames:
    """Device names for what is not GPU work: ``/cpu:0`` for the first process, its name or number for others."""

    def __init__(self, names: dict[Any, str]) -> None:
        self.names = names
        self.devices: dict[Any, str] = {}

    def device(self, pid: Any) -> str:
        key = pid if isinstance(pid, (int, str)) else str(pid)
        if key not in self.devices:
            # A profiler's own rows have a word or a negative number for a process id.
            ordinary = key >= 0 if isinstance(key, int) else key.isdecimal()
            if ordinary and "/cpu:0" not in self.devices.values():
                self.devices[key] = "/cpu:0"
            elif ordinary:
                self.devices[key] = f"/process:{key}"
            elif isinstance(key, int) or key in _PROFILERS_OWN:
                self.devices[key] = "/profiler"
            else:
                self.devices[key] = f"/{text(self.names.get(key, key))}"
        return self.devices[key]


def _name_threads(events: list[dict[str, Any]], host_names: _HostNames, built: _Builder) -> None:
    for event in events:
        arguments = event.get("args")
        if event.get("ph") != "M" or event.get("name") != "thread_name" or not isinstance(arguments, dict):
            continue
        pid = event.get("pid")
        known = host_names.devices.get(pid) if isinstance(pid, (int, str)) else None
        if known is not None:
            built.devices[known].thread_names[_row(event.get("tid"))] = text(arguments.get("name", ""))
