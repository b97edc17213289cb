"""The arguments of a slice from the columns of its activity, by the keys that viewers show.

native/draw/typed_arguments.cpp implements the same for drawn traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from collector.protos import Activity
from collector.recording.capture import ASYNC_NOT_KNOWN, NO_OBJECT
from collector.recording.cupti_enums import GRAPH_DEGREES, LAUNCH_TYPES, NVTX_RANGE_KINDS
from collector.recording.kind_names import kind_name, kind_without_name
from collector.recording.schema import ACTIVITY_KINDS
from collector.stepstats.shown_tables import SIDE_TABLES, TABLE_ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

Argument: TypeAlias = "tuple[str, int | str]"

UNNAMED = "unnamed"
"""The argument of a slice whose row has no name, so that the slice has another one."""
_EVENT, _STREAM_WAITS_FOR_EVENT, _STREAM, _CONTEXT = 1, 2, 3, 4
"""``CUpti_ActivitySynchronizationType``."""
_OF_PROCESS, _OF_THREAD, _OF_DEVICE, _OF_CONTEXT, _OF_STREAM = 1, 2, 3, 4, 5
"""``CUpti_ActivityObjectKind``."""
_TABLES = {number: table for table, number in ACTIVITY_KINDS.items()}


def arguments_of(columns: Activity, texts: Sequence[str] = ()) -> list[Argument]:
    """Keys and values in display order; three numbers form one text, such as ``8,1,1``.

    ``texts`` are the strings of the recording.
    """
    if columns.kind == Activity.ANNOTATION:
        return [*_of_range(columns, texts), *_of_op(columns, texts)]
    if columns.kind == Activity.NVTX_RANGE:
        return [*_of_nvtx_range(columns), *_of_range(columns, texts)]
    make = {
        Activity.KERNEL: _of_kernel,
        Activity.MEMCPY: _of_copy,
        Activity.MEMSET: _of_memset,
        Activity.API_CALL: _of_call,
        Activity.SYNCHRONIZATION: _of_wait,
        Activity.OVERHEAD: _of_overhead,
    }.get(columns.kind)
    return [*(make(columns) if make else []), *_described(_TABLES.get(columns.kind, ""), columns, texts)]


def _of_kernel(columns: Activity) -> list[Argument]:
    arguments: list[Argument] = []
    if columns.grid_x or columns.block_x or columns.registers_per_thread:  # else a file of another program states none
        arguments = [
            ("registers", columns.registers_per_thread),
            ("shared_bytes", columns.static_shared_bytes + columns.dynamic_shared_bytes),
            ("grid", f"{columns.grid_x},{columns.grid_y},{columns.grid_z}"),
            ("block", f"{columns.block_x},{columns.block_y},{columns.block_z}"),
        ]
    arguments += _given(columns, "static_shared_bytes", "dynamic_shared_bytes", "local_bytes_per_thread")
    if columns.cluster_x * columns.cluster_y * columns.cluster_z > 1:  # a cluster of one block is the normal case
        arguments.append(("cluster", f"{columns.cluster_x},{columns.cluster_y},{columns.cluster_z}"))
    if columns.launch_type:
        arguments.append(("launch_type", kind_name(LAUNCH_TYPES, columns.launch_type)))
    return [*arguments, *_given(columns, "priority"), *_of_graph(columns)]


def _of_copy(columns: Activity) -> list[Argument]:
    return [
        *_of_async(columns),
        *_end(columns, "from", "src"),
        *_end(columns, "to", "dst"),
        *_of_graph(columns),
    ]


def _end(columns: Activity, name: str, side: str) -> list[Argument]:
    """Device and context of one end of a copy, where they are stated: contexts count from 1."""
    numbers = {place: getattr(columns, f"{side}_{place}_id") for place in ("device", "context")}
    return [(f"{name}_{place}", number) for place, number in numbers.items()] if any(numbers.values()) else []


def _of_async(columns: Activity) -> list[Argument]:
    return [] if columns.is_async == ASYNC_NOT_KNOWN else [("is_async", columns.is_async)]


def _of_memset(columns: Activity) -> list[Argument]:
    return [("value", columns.value), *_of_async(columns), *_of_graph(columns)]


def _of_graph(columns: Activity) -> list[Argument]:
    return [*_given(columns, graph="graph_id", graph_node="graph_node_id"), *_degree(columns)]


def _degree(columns: Activity) -> list[Argument]:
    degree = kind_name(GRAPH_DEGREES, columns.graph_degree)
    return [("graph_degree", degree)] if degree else []


def _of_nvtx_range(columns: Activity) -> list[Argument]:
    ends_elsewhere = columns.end_thread_id != columns.thread_id
    return [
        ("kind", kind_name(NVTX_RANGE_KINDS, columns.range_kind)),
        ("thread", columns.thread_id),
        *([("end_thread", columns.end_thread_id)] if ends_elsewhere else []),
    ]


def _of_range(columns: Activity, texts: Sequence[str]) -> list[Argument]:
    """Domain, category, payload and colour of a range, as the program gave them."""
    return [
        *_text("domain", columns.domain_name_id, texts),
        *_text("category", columns.category_name_id, texts),
        *_text("payload", columns.payload_text_id, texts),
        *([("color", hex(columns.color))] if columns.color else []),
    ]


def _of_op(columns: Activity, texts: Sequence[str]) -> list[Argument]:
    """Sequence number and shapes of an op of PyTorch's autograd."""
    number = [("seq", columns.op_sequence - 1)] if 0 < columns.op_sequence < 1 << 63 else []
    return [*number, *_text("shapes", columns.shapes_text_id, texts)]


def _text(key: str, number: int, texts: Sequence[str]) -> list[Argument]:
    return [(key, texts[number])] if number < len(texts) and texts[number] else []


def _of_call(columns: Activity) -> list[Argument]:
    return _given(columns, "return_value")


def _of_wait(columns: Activity) -> list[Argument]:
    arguments: list[Argument] = []
    if columns.sync_type in (_EVENT, _STREAM_WAITS_FOR_EVENT):
        arguments.append(("waited_for", f"event {columns.event_id}"))
    elif columns.sync_type == _STREAM:
        arguments.append(("waited_for", f"stream {columns.stream_id}"))
    elif columns.sync_type == _CONTEXT:
        arguments.append(("waited_for", f"context {columns.context_id}"))
    if columns.event_id != NO_OBJECT:
        arguments.append(("event", columns.event_id))
    arguments += _given(columns, event_sync="event_sync_id")
    if columns.stream_id != NO_OBJECT:
        arguments.append(("stream", columns.stream_id))
    return [*arguments, ("context", columns.context_id), *_given(columns, "return_value")]


def _of_overhead(columns: Activity) -> list[Argument]:
    kind = columns.object_kind
    arguments: list[tuple[str, int, bool]] = [
        ("process", columns.process_id, kind in (_OF_PROCESS, _OF_THREAD)),
        ("thread", columns.thread_id, kind == _OF_THREAD),
        ("device", columns.device_id, kind >= _OF_DEVICE),
        ("context", columns.context_id, kind >= _OF_CONTEXT),
        ("stream", columns.stream_id, kind >= _OF_STREAM),
    ]
    return [(key, value) for key, value, is_there in arguments if is_there]


def _described(table: str, columns: Activity, texts: Sequence[str]) -> list[Argument]:
    """What the description of the kind states: `collector.stepstats.shown_tables`."""
    found: list[Argument] = []
    for key, column, form, is_always, kinds in TABLE_ARGUMENTS.get(table, ()):
        value = getattr(columns, column)
        if form == "Text":
            found += _text(key, value, texts)
        elif form == "Kind":
            name = kinds.get(value, kind_without_name(value))
            found += [(key, name)] if name else []
        elif value or is_always:
            found.append((key, hex(value) if form == "Hexadecimal" else value))
    side = SIDE_TABLES.get(table)
    if side is not None and side.texts and getattr(columns, side.name) not in side.texts:
        # The slice has the name of any kind, because a newer CUPTI added this one.
        found.append((side.name, getattr(columns, side.name)))
    return found


def _given(columns: Activity, *same: str, **keys: str) -> list[Argument]:
    """The columns that are not 0. Their keys are the columns' names, unless keywords give others."""
    named = {**dict(zip(same, same, strict=True)), **keys}
    return [(key, getattr(columns, column)) for key, column in named.items() if getattr(columns, column)]
