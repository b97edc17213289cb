"""Fields of many nodes read with numpy: the readable twin of native/stepstats/node_columns.cpp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.profiler.node_fields import BYTES, HIGHEST_TAG, VARINT, WIDTHS, Fields, Ints, read_field
from collector.stepstats import varint

_NODE_STATS_TAG = 0x12


def read_fields(device: memoryview, numbers: Sequence[int], texts: Sequence[int]) -> Fields:
    """See `collector.profiler.node_fields.read_fields`.

    One short Python loop finds the start of each node. Then all nodes are decoded together: in each round, every node
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
        if ((tags < 8) | (tags > HIGHEST_TAG)).any():
            raise InvalidFileError("not a whole step: an invalid field number")
        if (tags == tags[0]).all():
            at = _take(int(tags[0]), padded, rows, at, ends, fields)
            continue
        following = at.copy()
        for tag in np.unique(tags).tolist():
            chosen = np.flatnonzero(tags == tag)
            following[chosen] = _take(tag, padded, rows[chosen], at[chosen], ends[chosen], fields)
        at = following


def distinct_texts(data: memoryview, begins: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """See `collector.profiler.node_fields.distinct_texts`."""
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


def _node_bounds(device: memoryview) -> tuple[Ints, Ints]:
    """The begin and end of each NodeExecStats."""
    begins: list[int] = []
    ends: list[int] = []
    position, end = 0, len(device)
    data = bytes(device)
    while position < end:
        if data[position] == _NODE_STATS_TAG and position + 1 < end and data[position + 1] < 0x80:
            begin = position + 2
            position = begin + data[position + 1]
        else:
            tag, begin, position = read_field(device, position)
            if tag != _NODE_STATS_TAG:
                continue
        begins.append(begin)
        ends.append(position)
    if position != end:
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _take(tag: int, data: NDArray[np.uint8], rows: Ints, at: Ints, ends: Ints, fields: Fields) -> Ints:
    """Stores one field of some rows, and returns the start of each row's next field."""
    number, kind = tag >> 3, tag & 7
    if kind == VARINT:
        values, at = _varints(data, at, ends)
        if number in fields.numbers:
            fields.numbers[number][rows] = values
        return at
    if kind == BYTES:
        lengths, at = _varints(data, at, ends)
    elif kind in WIDTHS:
        lengths = np.full(len(rows), WIDTHS[kind])
    else:
        raise InvalidFileError("not a step: an unexpected wire type")
    if ((lengths < 0) | (lengths > ends - at)).any():
        raise InvalidFileError("not a whole step: a field that reaches beyond the end of its message")
    if kind == BYTES and number in fields.texts:
        begins, until = fields.texts[number]
        begins[rows], until[rows] = at, at + lengths
    return at + lengths


def _varints(data: NDArray[np.uint8], at: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The numbers that begin at ``at``, and their ends. Negative numbers have ten bytes and wrap around as in C."""
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
