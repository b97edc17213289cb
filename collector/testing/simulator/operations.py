"""Operations by name: converts a caller's arguments into the numbers of the simulator's Activity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Literal, get_args

from collector.errors import CollectorError
from collector.testing.simulator.simulator_library import Activity

CopyKind = Literal["Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
"""Direction of a copy, in CUPTI's order."""

MemoryKind = Literal["unknown", "pageable", "pinned", "device", "array", "managed", "device_static", "managed_static"]
"""Kind of memory at an end of a copy, in CUPTI's order."""

Launch = Literal["both", "runtime", "driver", "none"]
"""The API through which an operation is called; with ``"both"``, the runtime's call contains a driver call."""

JitOperation = Literal["load", "store", "compile"]
"""What the driver does with a module's code, in CUPTI's order."""

Shape = tuple[int, int, int]

COPY_KINDS: dict[str, int] = {name: value for value, name in enumerate(get_args(CopyKind))}
MEMORY_KINDS: dict[str, int] = {name: value for value, name in enumerate(get_args(MemoryKind))}
LAUNCHES: dict[str, int] = {"none": 0, "runtime": 1, "driver": 2, "both": 3}
JIT_OPERATIONS: dict[str, int] = {name: value for value, name in enumerate(get_args(JitOperation), start=1)}
_MEMORY_BY_LETTER = {"H": "pageable", "D": "device", "A": "array", "P": "device"}
KERNEL, MEMCPY, MEMSET, PEER_MEMCPY = range(4)
NO_PEER_ACCESS = 8
"""Bit beside the way to launch of a peer copy: the devices cannot reach each other's memory."""


def number_of(names: Mapping[str, int], name: str, what: str) -> int:
    """The value of `name` in one of the tables here, or a CollectorError that lists the valid names."""
    try:
        return names[name]
    except KeyError:
        raise CollectorError(f"{name!r} is not a {what}", f"One of: {', '.join(names)}") from None


def memory_kinds(copy_kind: str, src: str | None, dst: str | None) -> tuple[int, int]:
    """The kinds of memory read and written; by default they follow from the direction's letters."""
    number_of(COPY_KINDS, copy_kind, "copy kind")
    if copy_kind == "Unknown":
        ends = ("unknown", "unknown")
    else:
        ends = (_MEMORY_BY_LETTER[copy_kind[0]], _MEMORY_BY_LETTER[copy_kind[-1]])
    return (
        number_of(MEMORY_KINDS, src or ends[0], "memory kind"),
        number_of(MEMORY_KINDS, dst or ends[1], "memory kind"),
    )


_COMMON_KEYS = {
    "start_ns",
    "end_ns",
    "launch_start_ns",
    "launch_end_ns",
    "device",
    "context",
    "stream",
    "correlation",
    "graph_id",
    "graph_node_id",
    "launch",
}
_KERNEL_KEYS = {
    "name",
    "grid",
    "block",
    "cluster",
    "registers_per_thread",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "local_bytes_per_thread",
}
_MEMCPY_KEYS = {"kind", "num_bytes", "src", "dst", "asynchronous", "src_device", "dst_device"}
_MEMSET_KEYS = {"num_bytes", "value", "asynchronous"}
_KEYS = {KERNEL: _KERNEL_KEYS, MEMCPY: _MEMCPY_KEYS, MEMSET: _MEMSET_KEYS}
_SHAPES = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": (1, 1, 1)}
_OWN_NAMES = {"asynchronous": "is_async"}


def shape_of(what: str, given: Iterable[int]) -> Shape:
    """The three numbers of a launch shape.

    Raises:
        CollectorError: there are not three of them, or one is not a whole number of 32 bits.
    """
    try:
        x, y, z = (index(number) for number in given)
    except (TypeError, ValueError):
        raise CollectorError(f"{what} is {given!r}", "Give three numbers, such as (64, 1, 1)") from None
    if not -(2**31) <= min(x, y, z) <= max(x, y, z) < 2**31:  # as of the fields of CUPTI's records
        raise CollectorError(f"{what} is {given!r}", "Give numbers below 2**31")
    return x, y, z


def fill_replayed(activity: Activity, kind: int, row: Mapping[str, Any], launch: str) -> None:
    """Write one activity of :meth:`SimulatedGpu.replay` into its struct."""
    unknown = row.keys() - _COMMON_KEYS - _KEYS[kind]
    if unknown:
        raise CollectorError(f"an activity to replay holds unknown keys: {', '.join(sorted(unknown))}")
    activity.type = kind
    activity.stream = 7
    activity.launch = number_of(LAUNCHES, str(row.get("launch", launch)), "way to launch")
    if kind == KERNEL:
        activity.name = str(row.get("name", "")).encode()
        for key, default in _SHAPES.items():
            getattr(activity, key)[:] = shape_of(f"{key} of an activity to replay", row.get(key) or default)
    elif kind == MEMCPY:
        copy_kind = str(row.get("kind", "Unknown"))
        activity.copy_kind = number_of(COPY_KINDS, copy_kind, "copy kind")
        activity.src_kind, activity.dst_kind = memory_kinds(copy_kind, row.get("src"), row.get("dst"))
        activity.is_async = 1
        if copy_kind == "PtoP" and "dst_device" in row:
            activity.type = PEER_MEMCPY
    else:
        activity.memory_kind = MEMORY_KINDS["device"]
        activity.is_async = 1
    for key, value in row.items():
        if key not in ("name", "kind", "src", "dst", "launch", *_SHAPES) and value is not None:
            try:
                setattr(activity, _OWN_NAMES.get(key, key), value)
            except TypeError:
                raise CollectorError(f"{key} {value!r} of an activity to replay is not a whole number") from None
