"""The readable part of StepStats bytes that protobuf refuses: truncated, or with text that is not UTF-8.

The unit is a node, which is either kept completely, or left out and counted. A node that is read under ``stream:all``
is also restored where it is repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from collector.protos.run_metadata_pb2 import RunMetadata
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.stepstats import varint
from collector.stepstats.repeated_devices import restore_parts

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_WIRE_TYPES = {
    **dict.fromkeys((FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE), BYTES),
    **dict.fromkeys(
        (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64), FIXED64
    ),
    **dict.fromkeys((FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32), FIXED32),
}
"""Type of a field -> its wire type; all other types are varints."""


def _wire_types(message: type[Message]) -> dict[int, int]:
    """Number -> wire type of the fields of a message without packed numbers."""
    return {field.number: _WIRE_TYPES.get(field.type, VARINT) for field in message.DESCRIPTOR.fields}


_SESSION_METADATA = 5
"""A field of TensorFlow's RunMetadata that ours does not have."""
_FIELDS = {
    "RunMetadata": {_SESSION_METADATA: BYTES, **_wire_types(RunMetadata)},
    "StepStats": _wire_types(StepStats),
    "DeviceStepStats": _wire_types(DeviceStepStats),
    "NodeExecStats": _wire_types(NodeExecStats),
}
"""Message -> number -> wire type of its fields."""
NODES_CHECKED = 64
"""The number of a file's nodes that `foreign` checks: other messages are recognised by their first nodes."""

MENDED_TEXTS = "texts that are not UTF-8 (mended)"
"""The reason for them in `Salvaged.skipped`."""
UNKNOWN_BYTES = "bytes of unknown fields"
"""The reason in `Salvaged.skipped` for fields that another program may have written."""

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


class WireError(ValueError):
    """Bytes that are not a protobuf message; `position` counts from the start of the file."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


class Field(NamedTuple):
    """One field of a message on the wire."""

    number: int
    wire_type: int
    start: int
    """The start of its payload, from the start of the file."""
    payload: memoryview
    whole: bool
    """False: the file ends inside the payload."""


def fields(data: memoryview, start: int = 0) -> Iterator[Field]:
    """The fields of a message that starts at byte `start` of the file. Raises `WireError` at the first bad field."""
    at = 0
    while at < len(data):
        tag_at = at
        tag, at = _varint(data, at, start)
        number, wire_type = tag >> 3, tag & 7
        begin = at
        if wire_type == VARINT:
            _, at = _varint(data, at, start)
        elif wire_type == BYTES:
            length, begin = _varint(data, at, start)
            at = begin + length
        elif wire_type in (FIXED64, FIXED32):
            at += 8 if wire_type == FIXED64 else 4
        else:
            raise WireError(start + tag_at, f"wire type {wire_type} is invalid here")
        if not 0 < number < 1 << 29:
            raise WireError(start + tag_at, f"field number {number} is invalid in protobuf")
        yield Field(number, wire_type, start + begin, data[begin:at], at <= len(data))


def _varint(data: memoryview, at: int, start: int) -> tuple[int, int]:
    try:
        return varint.decode(data, at)
    except varint.VarintError as error:
        raise WireError(start + error.position, str(error)) from None


def foreign(data: bytes, is_run_metadata: bool) -> WireError | None:
    """The reason why these bytes are another message, even if protobuf can parse them; None if they may be ours.

    protobuf skips unknown fields, so a graph or an XSpace can be parsed as a step with strange devices. Here, a known
    field with another wire type, or a message without any known field, is an error.
    """
    nodes_left = NODES_CHECKED

    def check(message: memoryview, start: int, what: str) -> list[Field]:
        known = _FIELDS[what]
        found = []
        recognised = len(message) == 0
        for item in fields(message, start):
            expected = known.get(item.number)
            recognised |= expected is not None
            if expected is not None and item.wire_type != expected:
                raise WireError(item.start, f"field {item.number} of a {what} has another wire type")
            found.append(item)
            if len(found) > NODES_CHECKED:
                break
        if not recognised:
            raise WireError(start, f"no field that a {what} has")
        return found

    try:
        view = memoryview(data)
        steps = [Field(1, BYTES, 0, view, True)]
        if is_run_metadata:
            steps = check(view, 0, "RunMetadata")
        for step in steps:
            if step.number != 1:
                continue
            for device in check(step.payload, step.start, "StepStats"):
                for node in check(device.payload, device.start, "DeviceStepStats"):
                    if node.number == 2 and nodes_left:
                        nodes_left -= 1
                        check(node.payload, node.start, "NodeExecStats")
    except WireError as error:
        return error
    return None


def fields_of_first(data: bytes) -> list[Field]:
    """The first fields of the message in field 1 at the start of the bytes, which identify other containers."""
    try:
        first = next(fields(memoryview(data)), None)
        return list(islice(fields(first.payload), NODES_CHECKED)) if first and first.number == 1 else []
    except WireError:
        return []


@dataclass
class Salvaged:
    """The readable part of a broken file."""

    run_metadata: RunMetadata = field(default_factory=RunMetadata)
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason -> number of parts that were left out or repaired."""
    error: WireError | None = None
    """The first error in the wire format, if there was one."""


def salvage(data: bytes, is_run_metadata: bool) -> Salvaged:
    """Keep every complete device and node of `data`; never raises."""
    saved = Salvaged()
    view = memoryview(data)
    if is_run_metadata:
        for item in _readable(view, 0, saved):
            if item.number == 1 and item.wire_type == BYTES:
                _salvage_step(item, saved)
            elif item.whole and not _merge(saved.run_metadata, encode_field(item)):
                saved.skipped["unreadable parts beside the step"] += 1
    else:
        _salvage_step(Field(1, BYTES, 0, view, True), saved)
    _drop_unknown_fields(saved)
    restore_parts(saved.run_metadata.step_stats)
    return saved


def _drop_unknown_fields(saved: Salvaged) -> None:
    """Remove known fields of another wire type, which are kept as unknown: `foreign` would refuse the result."""
    num_bytes = saved.run_metadata.ByteSize()
    saved.run_metadata.DiscardUnknownFields()
    dropped = num_bytes - saved.run_metadata.ByteSize()
    if dropped:
        saved.skipped[UNKNOWN_BYTES] += dropped


def _salvage_step(step: Field, saved: Salvaged) -> None:
    for item in _readable(step.payload, step.start, saved):
        if item.number == 1 and item.wire_type == BYTES:
            _salvage_device(item, saved.run_metadata.step_stats.dev_stats.add(), saved)


def _salvage_device(data: Field, device: DeviceStepStats, saved: Salvaged) -> None:
    for item in _readable(data.payload, data.start, saved):
        if item.wire_type != BYTES:
            saved.skipped["unknown fields"] += 1
        elif not item.whole:
            saved.skipped["nodes cut off" if item.number == 2 else "device names cut off"] += 1
        elif item.number == 1:
            device.device = _text(item.payload, saved)
        elif item.number == 2:
            node = _parse(NodeExecStats(), bytes(item.payload)) or _mend_node(item, saved)
            if node is None:
                saved.skipped["unreadable nodes"] += 1
            else:
                device.node_stats.append(node)
        elif item.number == 3 and not _merge(device, encode_field(item)):
            saved.skipped["unreadable thread names"] += 1


def _mend_node(data: Field, saved: Salvaged) -> NodeExecStats | None:
    """The node with its name and label converted to UTF-8, or None if that is not enough."""
    mended = bytearray()
    try:
        for item in fields(data.payload, data.start):
            if item.number in (1, 8) and item.wire_type == BYTES:
                item = item._replace(payload=memoryview(_text(item.payload, saved).encode()))
            mended += encode_field(item)
    except WireError as error:
        saved.error = saved.error or error
        return None
    return _parse(NodeExecStats(), bytes(mended))


def _readable(data: memoryview, start: int, saved: Salvaged) -> Iterator[Field]:
    """The fields up to the first bad one, which is stored as the error."""
    try:
        for item in fields(data, start):
            if not item.whole and saved.error is None:
                missing = item.start - start
                saved.error = WireError(start + len(data), f"the file ends inside field {item.number} at {missing}")
            yield item
    except WireError as error:
        saved.error = saved.error or error


def _text(payload: memoryview, saved: Salvaged) -> str:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError:
        saved.skipped[MENDED_TEXTS] += 1
        return str(payload, "utf-8", "replace")


def _parse(message: _AnyMessage, data: bytes) -> _AnyMessage | None:
    return message if _merge(message, data) else None


def _merge(message: Message, data: bytes) -> bool:
    try:
        message.MergeFromString(data)
    except DecodeError:
        return False
    return True


def encode_field(item: Field) -> bytes:
    """The field in wire format, with the length of its current payload."""
    length = varint.encode(len(item.payload)) if item.wire_type == BYTES else b""
    return varint.encode(item.number << 3 | item.wire_type) + length + bytes(item.payload)
