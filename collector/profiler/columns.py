"""StepStats as columns, without a Python object per record: a step can have millions.

The wire format is read with numpy: one short Python loop finds where each node begins, then all nodes are decoded
together, field by field. Devices that nobody asks for are skipped, not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.errors import InvalidFileError
from collector.timeline.wire import is_run_metadata

Ints = NDArray[np.int64]

_NODE_STATS_TAG = 0x12
_NUMBERS = {
    2: "start_micros",
    4: "duration_micros",
    9: "scheduled_micros",
    10: "thread_id",
    13: "start_nanos",
    15: "duration_nanos",
    17: "scheduled_nanos",
}
"""Field of NodeExecStats -> our column."""
_NAME, _LABEL, _DURATION_MICROS = 1, 8, 4


class DeviceColumns:
    """The records of one device, in the file's order.

    What every view needs (names, start and duration in microseconds) stands at the front of each record and is read
    alone; the rest is read when it is first asked for.
    """

    def __init__(self, device: str, body: memoryview) -> None:
        self.device = device
        self._data = body.tobytes()
        self._bounds = _node_bounds(self._data)

    def __len__(self) -> int:
        return len(self._bounds[0])

    @cached_property
    def _front(self) -> _Decoded:
        return _decode(self._data, *self._bounds, last=_DURATION_MICROS)

    @cached_property
    def _whole(self) -> _Decoded:
        return _decode(self._data, *self._bounds)

    @property
    def start_micros(self) -> Ints:
        """Start in microseconds since the epoch."""
        return self._front.numbers["start_micros"]

    @property
    def duration_micros(self) -> Ints:
        """Duration in microseconds."""
        return self._front.numbers["duration_micros"]

    @property
    def thread_id(self) -> Ints:
        """The thread that ran it, or that launched it."""
        return self._whole.numbers["thread_id"]

    @cached_property
    def start_ns(self) -> Ints:
        """Start in nanoseconds since the epoch; from the microseconds where a writer left the nanoseconds out."""
        return self._nanos("start")

    @cached_property
    def duration_ns(self) -> Ints:
        """Duration in nanoseconds."""
        return self._nanos("duration")

    @cached_property
    def end_ns(self) -> Ints:
        """End in nanoseconds since the epoch."""
        return self.start_ns + self.duration_ns

    @cached_property
    def scheduled_ns(self) -> Ints:
        """When the launching call began, in nanoseconds since the epoch; 0 where not known."""
        return self._nanos("scheduled")

    def _nanos(self, what: str) -> Ints:
        numbers = self._whole.numbers
        return np.where(numbers[f"{what}_nanos"] != 0, numbers[f"{what}_nanos"], numbers[f"{what}_micros"] * 1000)

    @cached_property
    def names(self) -> tuple[list[str], Ints]:
        """Distinct node names, and each record's index into them."""
        return self._distinct(self._front.texts[_NAME])

    @cached_property
    def labels(self) -> tuple[list[str], Ints]:
        """Distinct timeline labels, and each record's index into them."""
        return self._distinct(self._whole.texts[_LABEL])

    def labels_at(self, rows: Ints) -> list[str]:
        """The timeline labels of a few records."""
        begins, ends = self._whole.texts[_LABEL]
        slices = zip(begins[rows].tolist(), ends[rows].tolist(), strict=True)
        return [self._data[begin:end].decode("utf-8", "replace") for begin, end in slices]

    def _distinct(self, slices: tuple[Ints, Ints]) -> tuple[list[str], Ints]:
        data, ids = self._data, _Ids()
        index = [ids[data[begin:end]] for begin, end in zip(slices[0].tolist(), slices[1].tolist(), strict=True)]
        return [text.decode("utf-8", "replace") for text in ids], np.array(index, np.int64)


class _Ids(dict[bytes, int]):
    """Numbers texts in order of first use."""

    def __missing__(self, text: bytes) -> int:
        self[text] = len(self)
        return len(self) - 1


class _Decoded(NamedTuple):
    numbers: dict[str, Ints]
    texts: dict[int, tuple[Ints, Ints]]
    """Field -> where its text begins and ends in each record."""


def read_devices(data: memoryview, wanted: Callable[[str], bool]) -> list[DeviceColumns]:
    """The wanted devices of a serialized StepStats.

    Args:
        data: the message's bytes.
        wanted: asked with each device's name.

    Raises:
        InvalidFileError: these bytes are no StepStats.
    """
    devices = []
    for number, body in _submessages(data):
        if number != 1:
            continue
        name = next((bytes(text).decode("utf-8", "replace") for number, text in _submessages(body) if number == 1), "")
        if wanted(name):
            devices.append(DeviceColumns(name, body))
    return devices


def step_stats_of(data: memoryview) -> memoryview:
    """The StepStats inside a serialized RunMetadata, or ``data`` itself if it is one."""
    if not is_run_metadata(data):
        return data
    return next((body for number, body in _submessages(data) if number == 1), memoryview(b""))


def _submessages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(number, content) of the length-delimited fields; others are passed over."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(data, position)
        elif kind == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise InvalidFileError("the step ends in the middle of a message")
            yield tag >> 3, data[position : position + length]
            position += length
        elif kind in (1, 5):
            position += 8 if kind == 1 else 4
        else:
            raise InvalidFileError("not a step: it is no protobuf message")


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InvalidFileError("the step ends in the middle of a number")


def _node_bounds(data: bytes) -> tuple[Ints, Ints]:
    """Where each NodeExecStats begins and ends."""
    begins: list[int] = []
    ends: list[int] = []
    position, end = 0, len(data)
    view = memoryview(data)
    while position < end:
        if data[position] != _NODE_STATS_TAG:
            tag, position = _varint(view, position)
            length, position = _varint(view, position)
            if tag & 7 != 2:
                raise InvalidFileError("not a step: a device holds what no device holds")
            position += length
            continue
        length = data[position + 1]
        if length < 0x80:
            position += 2
        else:
            length, position = _varint(view, position + 1)
        begins.append(position)
        position += length
        ends.append(position)
    if position != end:
        raise InvalidFileError("the step ends in the middle of a record")
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _decode(data: bytes, begins: Ints, ends: Ints, last: int = 1 << 29) -> _Decoded:
    """All nodes side by side: in each round every node that is not at its end reads its next field.

    Nodes are left at the first field beyond ``last``: every writer known puts fields in order of their numbers.
    """
    count = len(begins)
    decoded = _Decoded(
        {name: np.zeros(count, np.int64) for number, name in _NUMBERS.items() if number <= last},
        {
            number: (np.zeros(count, np.int64), np.zeros(count, np.int64))
            for number in (_NAME, _LABEL)
            if number <= last
        },
    )
    padded = np.frombuffer(data + bytes(16), np.uint8)
    rows = np.arange(count)
    at = begins.copy()
    while True:
        unfinished = at < ends[rows]
        if not unfinished.all():
            rows, at = rows[unfinished], at[unfinished]
        if not len(rows):
            return decoded
        tags, at = _varints(padded, at)
        if last < 1 << 29:
            within = tags >> 3 <= last
            if not within.all():
                rows, at, tags = rows[within], at[within], tags[within]
                if not len(rows):
                    return decoded
        values, at = _varints(padded, at)
        if (tags == tags[0]).all():
            _take(int(tags[0]), rows, values, at, slice(None), decoded)
            continue
        for tag in np.unique(tags).tolist():
            chosen = np.flatnonzero(tags == tag)
            _take(tag, rows[chosen], values[chosen], at, chosen, decoded)


def _take(tag: int, rows: Ints, values: Ints, at: Ints, chosen: slice | Ints, decoded: _Decoded) -> None:
    """Stores one field of some rows and moves them on to their next."""
    number, kind = tag >> 3, tag & 7
    if kind == 0:
        if _NUMBERS.get(number) in decoded.numbers:
            decoded.numbers[_NUMBERS[number]][rows] = values
        return
    if kind != 2:
        raise InvalidFileError("not a step: a record holds what no record holds")
    if number in decoded.texts:
        decoded.texts[number][0][rows] = at[chosen]
        decoded.texts[number][1][rows] = at[chosen] + values
    at[chosen] += values


def _varints(data: NDArray[np.uint8], at: Ints) -> tuple[Ints, Ints]:
    """The numbers that begin at ``at``, and where they end. Negative ones have ten bytes and wrap as in C."""
    byte = data[at]
    values = (byte & 0x7F).astype(np.int64)
    at = at + 1
    going = byte >= 0x80
    shift = 7
    while going.any() and shift < 70:
        if going.all():
            byte = data[at]
            if shift < 64:
                values |= (byte & 0x7F).astype(np.int64) << shift
            at += 1
            going = byte >= 0x80
        else:
            some = np.flatnonzero(going)
            byte = data[at[some]]
            if shift < 64:
                values[some] |= (byte & 0x7F).astype(np.int64) << shift
            at[some] += 1
            going[some] = byte >= 0x80
        shift += 7
    return values, at
