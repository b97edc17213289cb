"""Fields of many nodes at once, from the wire bytes of their device.

They accept and reject the same bytes as protobuf, except for groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.runtime.extension import convert_extension
from collector.stepstats import varint

Ints = NDArray[np.int64]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""
WIDTHS = {FIXED64: 8, FIXED32: 4}
"""Bytes of the values of fixed width, by wire type."""
HIGHEST_TAG = 0xFFFFFFFF
"""The largest tag that protobuf accepts."""


@dataclass(frozen=True)
class Fields:
    """The requested fields by number; 0 and empty for nodes without the field."""

    count: int
    """Number of nodes."""
    numbers: dict[int, Ints]
    texts: dict[int, tuple[Ints, Ints]]
    """Start and end of each node's text."""


def read_fields(device: memoryview, numbers: Sequence[int], texts: Sequence[int]) -> Fields:
    """Fields of all nodes of a serialized DeviceStepStats.

    Args:
        device: the message.
        numbers: integer fields; unsigned 64-bit values wrap around.
        texts: fields that are texts or messages.

    Raises:
        InvalidFileError: these bytes are not such a message.
    """
    try:
        return Fields(*convert_extension.node_columns(device, list(numbers), list(texts)))
    except convert_extension.WireError as error:
        raise InvalidFileError(f"not a whole step: {error.args[0]}") from error


def message_numbers(data: memoryview, begins: Ints, ends: Ints, numbers: Sequence[int]) -> dict[int, Ints]:
    """Integer fields of the messages in spans of ``data``, by number; 0 for messages without the field.

    Raises:
        IndexError: a span is not within the data.
        InvalidFileError: a span is not a message.
    """
    try:
        columns: dict[int, Ints] = convert_extension.message_numbers(data, begins, ends, list(numbers))
    except convert_extension.WireError as error:
        raise InvalidFileError(f"not a whole step: {error.args[0]}") from error
    return columns


def distinct_texts(data: memoryview, begins: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """The distinct texts of spans of ``data`` in order of first use, and for each span the index of its text.

    Raises:
        IndexError: a span is not within the data.
    """
    texts, index = convert_extension.distinct_texts(data, begins, ends)
    return texts, index


def submessages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, content) of the length-delimited fields of any message; other fields are skipped.

    Raises:
        InvalidFileError: ``data`` is not a message.
    """
    position = 0
    while position < len(data):
        tag, begin, position = read_field(data, position)
        if tag & 7 == BYTES:
            yield tag >> 3, data[begin:position]


def read_field(data: memoryview, position: int) -> tuple[int, int, int]:
    """The tag of the field at ``position``, the start of its value (after the length of a text), and its end."""
    tag, position = _varint(data, position)
    kind = tag & 7
    if not 8 <= tag <= HIGHEST_TAG:
        raise InvalidFileError("not a whole step: an invalid field number")
    if kind == VARINT:
        return tag, position, _varint(data, position)[1]
    if kind == BYTES:
        length, position = _varint(data, position)
    elif kind in WIDTHS:
        length = WIDTHS[kind]
    else:
        raise InvalidFileError("not a step: an unexpected wire type")
    if length > len(data) - position:
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    return tag, position, position + length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    try:
        return varint.decode(data, position)
    except varint.VarintError as error:
        raise InvalidFileError(f"not a whole step: {error}") from None
