"""Whether protobuf would parse the bytes of a StepStats or RunMetadata, determined without parsing them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.runtime.extension import convert_extension

_VARINT, _FIXED32, _FIXED64, _TEXT, _BYTES, _MESSAGE = range(1, 7)
_KINDS = {
    FieldDescriptor.TYPE_FIXED32: _FIXED32,
    FieldDescriptor.TYPE_SFIXED32: _FIXED32,
    FieldDescriptor.TYPE_FLOAT: _FIXED32,
    FieldDescriptor.TYPE_FIXED64: _FIXED64,
    FieldDescriptor.TYPE_SFIXED64: _FIXED64,
    FieldDescriptor.TYPE_DOUBLE: _FIXED64,
    FieldDescriptor.TYPE_STRING: _TEXT,
    FieldDescriptor.TYPE_BYTES: _BYTES,
    FieldDescriptor.TYPE_MESSAGE: _MESSAGE,
}
"""Type of a field -> its wire type; all other types are varints."""


class MessageSize(NamedTuple):
    """The number of devices and nodes in a message."""

    num_devices: int
    num_nodes: int


def size_if_whole(data: bytes, is_run_metadata: bool) -> MessageSize | None:
    """The sizes if protobuf can parse the bytes; None if it may refuse them."""
    places, schema = _schema()
    root = places[(RunMetadata if is_run_metadata else StepStats).DESCRIPTOR]
    counts = convert_extension.count_whole(data, schema, root)
    if counts is None:
        return None
    return MessageSize(counts[places[DeviceStepStats.DESCRIPTOR]], counts[places[NodeExecStats.DESCRIPTOR]])


@cache
def _schema() -> tuple[dict[Any, int], list[list[tuple[int, int, int]]]]:
    """The index of each descriptor's schema, and the fields of each; see the extension's ``count_whole``."""
    found: list[Any] = [RunMetadata.DESCRIPTOR]
    for message in found:  # the list grows during the loop
        inside = (each.message_type for each in message.fields if each.message_type is not None)
        found += [each for each in dict.fromkeys(inside) if each not in found]
    places = {message: place for place, message in enumerate(found)}
    schema = [
        [
            (
                each.number,
                _KINDS.get(each.type, _VARINT),
                places[each.message_type] if each.message_type is not None else 0,
            )
            for each in message.fields
        ]
        for message in found
    ]
    return places, schema
