"""Fields of many nodes at once, from the wire bytes of their device: natively, or with numpy where nothing is built.

Both take in what protobuf would take in, groups excepted, and reject the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.runtime import backend
from collector.stepstats import varint

Ints = NDArray[np.int64]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_NODE_STATS_TAG = 0x12
_HIGHEST_TAG = 0xFFFFFFFF


@dataclass(frozen=True)
class Fields:
    """What was asked for, by field number; 0 and empty where a node does not have it."""

    count: int
    """Nodes."""
    numbers: dict[int, Ints]
    texts: dict[int, tuple[Ints, Ints]]
    """Where each node's text begins and ends."""


def read_fields(device: memoryview, numbers: Sequence[int], texts: Sequence[int]) -> Fields:
    """Fields of all nodes of a serialized DeviceStepStats.

    Args:
        device: the message.
        numbers: fields that are integers; unsigned ones of 64 bits wrap around.
        texts: fields that are texts or messages.

    Raises:
        InvalidFileError: these bytes are no such message.
    """
    native = backend.native()
    if native is None:
        return read_fields_with_numpy(device, numbers, texts)
    try:
        return Fields(*native.node_columns(device, list(numbers), list(texts)))
    except native.WireError as error:
        raise InvalidFileError(f"not a whole step: {error.args[0]}") from error


def distinct_texts(data: memoryview, begins: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """The distinct texts of spans of ``data`` in order of first use, and for each span the place of its text in them.

    Raises:
        IndexError: a span is not within the data.
    """
    native = backend.native()
    if native is None:
        return distinct_texts_with_python(data, begins, ends)
    texts, index = native.distinct_texts(data, begins, ends)
    return texts, index


def submessages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, content) of the length-delimited fields of any message; others are passed over.

    Raises:
        InvalidFileError: it is no message.
    """
    position = 0
    while position < len(data):
        tag, begin, position = _field(data, position)
        if tag & 7 == _BYTES:
            yield tag >> 3, data[begin:position]


def read_fields_with_numpy(device: memoryview, numbers: Sequence[int], texts: Sequence[int]) -> Fields:
    """What ``read_fields`` answers without the extension.

    One short Python loop finds where each node begins. Then all nodes are decoded together: in each round every node
    that is not at its end reads its next field.
    """
    at, ends = _node_bounds(device)
    count = len(at)
    fields = Fields(
        count,
        {number: np.zeros(count, np.int64) for number in numbers},
        {number: (np.zeros(count, np.int64), np.zeros(count, np.int64)) for number in texts},
    )
    padded = np.frombuffer(bytes(device) + bytes(2 * varint.LONGEST), np.uint8)
    rows = np.arange(count)
    while True:
        unfinished = at < ends
        if not unfinished.all():
            rows, at, ends = rows[unfinished], at[unfinished], ends[unfinished]
        if not len(rows):
            return fields
        tags, at = _varints(padded, at, ends)
        if ((tags < 8) | (tags > _HIGHEST_TAG)).any():
            raise InvalidFileError("not a whole step: a field number that cannot be")
        if (tags == tags[0]).all():
            at = _take(int(tags[0]), padded, rows, at, ends, fields)
            continue
        following = at.copy()
        for tag in np.unique(tags).tolist():
            chosen = np.flatnonzero(tags == tag)
            following[chosen] = _take(tag, padded, rows[chosen], at[chosen], ends[chosen], fields)
        at = following


def distinct_texts_with_python(data: memoryview, begins: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """What ``distinct_texts`` answers without the extension."""
    if ((begins < 0) | (ends < begins) | (ends > len(data))).any():
        raise IndexError("a text beyond the end of the bytes")
    ids = _Ids()
    index = [ids[data[begin:end].tobytes()] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    return [text.decode("utf-8", "replace") for text in ids], np.array(index, np.int64)


class _Ids(dict[bytes, int]):
    """Numbers texts in order of first use."""

    def __missing__(self, text: bytes) -> int:
        self[text] = len(self)
        return len(self) - 1


def _field(data: memoryview, position: int) -> tuple[int, int, int]:
    """The tag of the field at ``position``, where its value begins (a text: behind its length), and where it ends."""
    tag, position = _varint(data, position)
    kind = tag & 7
    if not 8 <= tag <= _HIGHEST_TAG:
        raise InvalidFileError("not a whole step: a field number that cannot be")
    if kind == _VARINT:
        return tag, position, _varint(data, position)[1]
    if kind == _BYTES:
        length, position = _varint(data, position)
    elif kind in _WIDTHS:
        length = _WIDTHS[kind]
    else:
        raise InvalidFileError("not a step: a wire type that no step has")
    if length > len(data) - position:
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    return tag, position, position + length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    try:
        return varint.decode(data, position)
    except varint.VarintError as error:
        raise InvalidFileError(f"not a whole step: {error}") from None


def _node_bounds(device: memoryview) -> tuple[Ints, Ints]:
    """Where each NodeExecStats begins and ends."""
    begins: list[int] = []
    ends: list[int] = []
    position, end = 0, len(device)
    data = bytes(device)
    while position < end:
        if data[position] == _NODE_STATS_TAG and position + 1 < end and data[position + 1] < 0x80:
            begin = position + 2
            position = begin + data[position + 1]
        else:
            tag, begin, position = _field(device, position)
            if tag != _NODE_STATS_TAG:
                continue
        begins.append(begin)
        ends.append(position)
    if position != end:
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _take(tag: int, data: NDArray[np.uint8], rows: Ints, at: Ints, ends: Ints, fields: Fields) -> Ints:
    """Stores one field of some rows, and answers where each row's next one begins."""
    number, kind = tag >> 3, tag & 7
    if kind == _VARINT:
        values, at = _varints(data, at, ends)
        if number in fields.numbers:
            fields.numbers[number][rows] = values
        return at
    if kind == _BYTES:
        lengths, at = _varints(data, at, ends)
    elif kind in _WIDTHS:
        lengths = np.full(len(rows), _WIDTHS[kind])
    else:
        raise InvalidFileError("not a step: a wire type that no step has")
    if ((lengths < 0) | (lengths > ends - at)).any():
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    if kind == _BYTES and number in fields.texts:
        begins, until = fields.texts[number]
        begins[rows], until[rows] = at, at + lengths
    return at + lengths


def _varints(data: NDArray[np.uint8], at: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The numbers that begin at ``at``, and where they end. Negative ones have ten bytes and wrap as in C."""
    byte = data[at]
    values = (byte & 0x7F).astype(np.int64)
    at = at + 1
    going = byte >= 0x80
    for shift in range(7, 7 * varint.LONGEST, 7):
        if not going.any():
            break
        if going.all():
            byte = data[at]
            values |= (byte & 0x7F).astype(np.int64) << shift
            at += 1
            going = byte >= 0x80
        else:
            some = np.flatnonzero(going)
            byte = data[at[some]]
            values[some] |= (byte & 0x7F).astype(np.int64) << shift
            at[some] += 1
            going[some] = byte >= 0x80
    if going.any():
        raise InvalidFileError("not a whole step: a number longer than 10 bytes")
    if (at > ends).any():
        raise InvalidFileError("not a whole step: a number cut off by the end of its message")
    return values, at
