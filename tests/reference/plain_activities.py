"""Parses device names, node names and labels: the readable twin of native/stepstats/devices.cpp and activity.cpp."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from collector.protos import Activity as RecordedActivity
from collector.recording.kernel_names import demangle
from collector.recording.kind_names import copy_kind_name, memory_kind_name
from collector.recording.schema import ACTIVITY_KINDS
from collector.stepstats.activity_arguments import arguments_of
from collector.stepstats.labels import parse_op_label
from collector.stepstats.shown_tables import SIDE_TABLES
from collector.timeline.tensorflow_rules import is_tracer_device

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_COPY_KINDS = {"H2D": "HtoD", "D2H": "DtoH", "D2D": "DtoD", "P2P": "PtoP", "H2H": "HtoH", "": "unknown"}
_DETAIL = re.compile(r"([a-z_]+):([0-9A-Za-z_,.\-]+)", re.ASCII)
_BYTES = re.compile(r"[0-9]+\Z")
_API = re.compile(r"cu(?:[A-Z]|da[A-Z])")
_NUMBER = re.compile(r"-?[0-9]+")
_MAX_DETAILS = 16
_MAX_DIGITS = 19


class ProcessKind(IntEnum):
    """The kinds of processes in a trace, in the order in which viewers should show them."""

    GPU = 0
    OTHER = 1
    HOST = 2


class Kind(IntEnum):
    """The kinds of devices, in the order of their rows within a process."""

    STREAM = 0
    ALL_STREAMS = 1
    OTHER = 2
    COPIES = 3


@dataclass(frozen=True)
class DeviceName:
    """The parts of a device's name: the processor, its stream, and its task."""

    process_kind: ProcessKind
    kind: Kind
    on_gpu: bool
    """Whether it is the work of a GPU, as opposed to the host's."""
    prefix: str
    """``/job:worker/replica:0/task:3``, or empty."""
    unit: str
    """The processor with its prefix: ``/job:worker/replica:0/task:3/gpu:0``."""
    process: str
    """For display: ``GPU 0``; with a prefix ``worker 3 GPU 0``."""
    track: str
    """For display: ``stream 7``, ``copies``, ``ops``."""


def parse_device_name(device: str) -> DeviceName:
    """Parses the names of this project and those of all versions of TensorFlow's tracers."""
    for key in ("/device:gpu:", "/gpu:", "/device:cpu:", "/cpu:"):
        found = re.search(re.escape(key) + "([0-9]*)", device, re.IGNORECASE | re.ASCII)
        if found:
            number = int64(found[1])
            return _of_processor(device, found.start(), found.end(), "GPU" if "gpu" in key else "CPU", number)
    if is_tracer_device(device):  # a GPU without a number
        end = min(at for at in (device.find("/stream:"), device.find("/memcpy")) if at >= 0)
        return _of_processor(device, end, end, "GPU", None)
    return _of_no_processor(device)


def _of_processor(device: str, start: int, end: int, processor: str, number: int | None) -> DeviceName:
    prefix, unit, rest = device[:start], device[:end], device[end:]
    for separator in ("/stream:", "/stream#"):
        _, separated, stream = rest.partition(separator)
        if separated:
            all_streams = separator == "/stream:" and stream == "all"
            kind = Kind.ALL_STREAMS if all_streams else Kind.STREAM
            track = "all streams" if all_streams else f"stream {stream or '(no number)'}"
            break
    else:
        kind = Kind.COPIES if "/memcpy" in rest else Kind.OTHER
        track = "copies" if kind == Kind.COPIES else rest[1:] if rest.startswith("/") and len(rest) > 1 else "ops"
    on_gpu = kind != Kind.OTHER or "/sync" in rest or "stream" in rest or rest == "/graphs"
    process_kind = ProcessKind.GPU if processor == "GPU" else ProcessKind.HOST
    return DeviceName(process_kind, kind, on_gpu, prefix, unit, _process_name(prefix, processor, number), track)


def _of_no_processor(device: str) -> DeviceName:
    """Threads of a host, a process of the machine, or another kind of row."""
    before, host, _ = device.partition("/host:")
    process_kind, prefix, track = ProcessKind.HOST, "", "ops"
    if host:
        prefix, process, track = before, _process_name(before, "host", None), "host threads"
    elif device.startswith("/process:"):
        process = "process " + device.removeprefix("/process:")
    else:
        process_kind = ProcessKind.OTHER
        process, slash, rest = (device[1:], "", "") if device.startswith("/") else device.partition("/")
        track = rest if slash else track
    return DeviceName(process_kind, Kind.OTHER, False, prefix, device, process or "(no name)", track)


def _process_name(prefix: str, processor: str, number: int | None) -> str:
    return " ".join(word for word in (_rank(prefix), processor, "" if number is None else str(number)) if word)


def _rank(prefix: str) -> str:
    """``worker 3`` for ``/job:worker/replica:0/task:3``; empty for the local task."""
    job, replica, task = (_value(prefix, key) for key in ("/job:", "/replica:", "/task:"))
    alone = replica in ("", "0")
    if not job or (job == "localhost" and alone and task in ("", "0")):
        return ""
    if not alone:
        return f"{job} {replica}/{task}"
    return f"{job} {task}" if task else job


def _value(text: str, key: str) -> str:
    return text.partition(key)[2].partition("/")[0]


@dataclass(slots=True)
class Activity:
    """The contents of one node."""

    name: str
    category: str
    full_name: str = ""
    is_unnamed: bool = False
    op: str = ""
    inputs: str = ""
    num_bytes: int = -1
    copy_kind: str = ""
    source: str = ""
    target: str = ""
    details: list[tuple[str, str]] = field(default_factory=list)


def span_ns(node: Any) -> tuple[int, int] | None:
    """Start and duration, in ns if the node has them; None if they are impossible."""
    start = node.all_start_nanos or node.all_start_micros * 1000
    rounded_up = node.all_start_nanos and node.all_end_rel_micros <= 1
    duration = node.all_end_rel_nanos or (0 if rounded_up else node.all_end_rel_micros * 1000)
    if not (INT64_MIN <= start <= INT64_MAX and INT64_MIN <= duration <= INT64_MAX):
        return None
    return (start, duration) if duration >= 0 else None


def scheduled_ns(node: Any) -> int:
    """The time when the host scheduled the node; 0: unknown."""
    time: int = node.scheduled_nanos or node.scheduled_micros * 1000
    return time if INT64_MIN <= time <= INT64_MAX else 0


def gpu_activity(node: Any, kernel_names: Sequence[str] = ()) -> Activity:
    """A node of a device with GPU work; the columns of kernels refer to ``kernel_names``."""
    label, name = node.timeline_label, node.node_name
    has_columns = node.activity.kind in (RecordedActivity.KERNEL, RecordedActivity.MEMCPY, RecordedActivity.MEMSET)
    kernel, separator, annotation = label.partition("@@")
    if separator and not has_columns:
        label, name = kernel, annotation.partition("#")[0] or name
    if has_columns:
        return _gpu_columns(node, *(_recorded_op(node) or _parsed_op(name)), kernel_names)
    short, op = _parsed_op(name)
    if short.startswith(("MEMCPY", "Memcpy")):
        kind = short[6:]
        activity = Activity(short, "memcpy", op=op, copy_kind=_COPY_KINDS.get(kind, kind))
    elif short.startswith(("MEMSET", "Memset")):
        activity = Activity(short, "memset", op=op)
    elif _is_waiting(short):
        return Activity(short, "sync", op=op)
    else:
        activity = Activity(short, "kernel", op=op)
    whole = _take_details(label, activity)
    if activity.category == "kernel":
        _take_whole_name(whole, activity)
    else:
        _read_bytes(label, activity)
    return activity


def _take_whole_name(whole: str, activity: Activity) -> None:
    activity.is_unnamed = not whole and activity.name == "unknown"
    activity.full_name = "" if whole == activity.name else whole


def _is_waiting(name: str) -> bool:
    return any(part in name for part in ("Synchronize", "WaitEvent", " Sync", "Wait Event"))


def _recorded_op(node: Any) -> tuple[str, str] | None:
    """Name and op where the writer of the node recorded the end of the op, or that there is none."""
    name = node.node_name.encode()
    if node.op_end:
        end = node.op_end
        return (name[end + 1 :].decode(), name[:end].decode()) if end < len(name) else None
    half = len(name) // 2
    return (name[:half].decode(), "") if name == name[:half] + b":" + name[:half] else None


def _parsed_op(name: str) -> tuple[str, str]:
    before, colon, after = name.rpartition(":")
    # A C++ name that was not shortened has scopes in its arguments, whose colons are not separators.
    if not colon or not after or (":" in before and set(after) & set("<>()")):
        return name, ""
    op = before.removesuffix(":")
    return after, "" if op == after else op


def host_activity(node: Any) -> Activity:
    """A node on a host's device."""
    name, kind = node.node_name, node.activity.kind
    if kind in _HOST_CATEGORIES:
        category = "sync" if kind == RecordedActivity.API_CALL and _is_waiting(name) else _HOST_CATEGORIES[kind]
        return Activity(name, category, details=_details(node.activity))
    if kind != RecordedActivity.ANNOTATION and _API.match(name):
        return Activity(name, "sync" if _is_waiting(name) else "api")
    op, inputs = _recorded_label(node) or parse_op_label(node.timeline_label)
    return Activity(name, "op", op="" if op in ("unknown", name) else op, inputs=", ".join(inputs))


def _recorded_label(node: Any) -> tuple[str, list[str]] | None:
    """Op and inputs of a label in which the writer recorded the end of the op."""
    label, begin = node.timeline_label.encode(), len(node.node_name.encode()) + len(" = ")
    if not begin <= node.op_end < len(label) - 1:
        return None
    inputs = label[node.op_end + 1 : -1].decode()
    return label[begin : node.op_end].decode(), [inputs] if inputs else []


_HOST_CATEGORIES = {
    **{ACTIVITY_KINDS[table]: "other" for table in (*SIDE_TABLES, "other_ranges")},
    RecordedActivity.API_CALL: "api",
    RecordedActivity.SYNCHRONIZATION: "sync",
    RecordedActivity.OVERHEAD: "overhead",
}


def _gpu_columns(node: Any, name: str, op: str, kernel_names: Sequence[str]) -> Activity:
    """GPU work with columns."""
    columns = node.activity
    details = _details(columns)
    if columns.kind == RecordedActivity.KERNEL:
        whole = demangle(kernel_names[columns.name_id]) if columns.name_id < len(kernel_names) else ""
        sizes = (getattr(columns, f"{of}_{axis}") for of in ("grid", "block") for axis in "xyz")
        has_shape = columns.registers_per_thread or any(sizes)
        before, mark, after = node.timeline_label.rpartition(" regs:") if has_shape else ("", "", node.timeline_label)
        activity = Activity(name, "kernel", op=op, details=details)
        _take_whole_name(whole or (before if mark else after), activity)
        return activity
    num_bytes = columns.num_bytes if columns.num_bytes else -1
    if columns.kind == RecordedActivity.MEMSET:
        memory = memory_kind_name(columns.memory_kind)
        return Activity(name, "memset", op=op, num_bytes=num_bytes, target=memory, details=details)
    return Activity(
        name,
        "memcpy",
        op=op,
        num_bytes=num_bytes,
        copy_kind=copy_kind_name(columns.copy_kind),
        source=memory_kind_name(columns.src_kind),
        target=memory_kind_name(columns.dst_kind),
        details=details,
    )


def _details(columns: RecordedActivity) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in arguments_of(columns)]


def int64(text: str) -> int | None:
    """The whole text as a number, if it fits 64 bits."""
    if not _NUMBER.fullmatch(text) or len(text.lstrip("-0")) > _MAX_DIGITS:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _take_details(label: str, activity: Activity) -> str:
    """Splits ``key:value`` words off the end of a label and returns the rest, the whole name."""
    while len(activity.details) < _MAX_DETAILS:
        rest, _, word = label.rpartition(" ")
        detail = _DETAIL.fullmatch(word)
        if not detail:
            break
        activity.details.insert(0, (detail[1], detail[2]))
        label = rest
    return label


def _read_bytes(label: str, activity: Activity) -> None:
    """``4096 bytes (Pageable to Device)``, ``4096 bytes`` or ``(Pageable to Device)`` after a name."""
    end = label.find(" bytes")
    if end < 0:  # the size is unknown
        if not label.startswith(f"{activity.name} ("):
            return
        end = len(activity.name)
    else:
        digits = _BYTES.search(label[:end])
        num_bytes = int64(digits[0]) if digits else None
        if num_bytes is None:
            return
        activity.num_bytes = num_bytes
    opening, closing = label.find("(", end), label.find(")", end)
    if opening < 0 or closing < opening:
        return
    source, to, target = label[opening + 1 : closing].partition(" to ")
    activity.source, activity.target = (source, target) if to else ("", source)
