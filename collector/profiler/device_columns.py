"""StepStats as columns, without a Python object per record: a step can have millions.

Devices that are not requested are skipped without reading; of the others, only the requested fields are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collector.profiler.node_fields import Fields, Ints, distinct_texts, message_numbers, read_fields, submessages
from collector.protos import NodeExecStats
from collector.stepstats.typed_columns import field_of
from collector.stepstats.wire import is_run_metadata

log = logging.getLogger("collector.profiler")

_NAME, _LABEL = 1, 8
_START_MICROS, _DURATION_MICROS = 2, 4
_SCHEDULED_MICROS, _THREAD_ID = 9, 10
_ACTIVITY, _CORRELATION_ID = NodeExecStats.ACTIVITY_FIELD_NUMBER, NodeExecStats.CORRELATION_ID_FIELD_NUMBER
_START_NANOS, _DURATION_NANOS, _SCHEDULED_NANOS = 13, 15, 17
_LATEST_MICROS, _LONGEST_MICROS = 9 * 10**15, 10**12
"""The year 287,396, and 11 days: limits with which no sum of a step's times exceeds 64 bits."""


class DeviceColumns:
    """The records of one device, in the file's order.

    The columns that every view needs (names, start and duration in microseconds) are read at once, the others at their
    first use.

    Raises:
        InvalidFileError: ``body`` is not a serialized DeviceStepStats.
    """

    def __init__(self, device: str, body: memoryview) -> None:
        self.device = device
        self._data = body
        self._front = read_fields(body, (_START_MICROS, _DURATION_MICROS), (_NAME, _ACTIVITY))
        self._drop_impossible(self._front, {_START_MICROS: _LATEST_MICROS, _DURATION_MICROS: _LONGEST_MICROS})

    def __len__(self) -> int:
        return self._front.count

    @cached_property
    def _rest(self) -> Fields:
        numbers = (_SCHEDULED_MICROS, _THREAD_ID, _START_NANOS, _DURATION_NANOS, _SCHEDULED_NANOS)
        fields = read_fields(self._data, numbers, (_LABEL,))
        limits = dict.fromkeys((_START_NANOS, _SCHEDULED_NANOS), 1000 * _LATEST_MICROS)
        self._drop_impossible(
            fields, {**limits, _SCHEDULED_MICROS: _LATEST_MICROS, _DURATION_NANOS: 1000 * _LONGEST_MICROS}
        )
        return fields

    @property
    def start_micros(self) -> Ints:
        """Start in microseconds since the epoch."""
        return self._front.numbers[_START_MICROS]

    @property
    def duration_micros(self) -> Ints:
        """Duration in microseconds."""
        return self._front.numbers[_DURATION_MICROS]

    @cached_property
    def thread_id(self) -> Ints:
        """The thread that ran it, or that launched it."""
        return self._rest.numbers[_THREAD_ID] & 0xFFFFFFFF

    @cached_property
    def start_ns(self) -> Ints:
        """Start in nanoseconds since the epoch; from the microseconds if the file has no nanoseconds."""
        return _nanos(self._rest.numbers[_START_NANOS], self.start_micros)

    @cached_property
    def duration_ns(self) -> Ints:
        """Duration in nanoseconds; one of 0 is at least a microsecond only where the file has no nanoseconds."""
        nanos = self._rest.numbers[_DURATION_NANOS]
        return np.where(self._rest.numbers[_START_NANOS] != 0, nanos, _nanos(nanos, self.duration_micros))

    @cached_property
    def end_ns(self) -> Ints:
        """End in nanoseconds since the epoch."""
        return self.start_ns + self.duration_ns

    @cached_property
    def scheduled_ns(self) -> Ints:
        """Start of the launching call, in nanoseconds since the epoch; 0 if unknown."""
        return _nanos(self._rest.numbers[_SCHEDULED_NANOS], self._rest.numbers[_SCHEDULED_MICROS])

    @cached_property
    def names(self) -> tuple[list[str], Ints]:
        """Distinct node names, and each record's index into them."""
        return distinct_texts(self._data, *self._front.texts[_NAME])

    def labels_at(self, rows: Ints) -> tuple[list[str], Ints]:
        """Distinct timeline labels of some records, and for each of these records its index into them."""
        begins, ends = self._rest.texts[_LABEL]
        return distinct_texts(self._data, begins[rows], ends[rows])

    @cached_property
    def is_typed(self) -> NDArray[np.bool_]:
        """Whether each record has columns of an activity; the others have only labels."""
        begins, ends = self._front.texts[_ACTIVITY]
        return ends > begins

    @cached_property
    def activity_threads(self) -> Ints:
        """The id of the thread that called or launched each activity; 0: not known, or the record has no columns."""
        return np.where(self.is_typed, self.thread_id, 0)

    @cached_property
    def correlation_id(self) -> Ints:
        """The correlation id of the call that is the record or launched it; 0: there is none."""
        return read_fields(self._data, (_CORRELATION_ID,), ()).numbers[_CORRELATION_ID]

    def activity_columns(self, columns: Sequence[str], rows: Ints) -> dict[str, Ints]:
        """Columns of the activities of some records, as in a recording; 0 for records without an activity.

        ``kind`` is their ``Activity.Kind``.

        Raises:
            InvalidFileError: an activity is damaged.
        """
        begins, ends = self._front.texts[_ACTIVITY]
        fields = {column: field_of(column) for column in columns}
        numbers = message_numbers(self._data, begins[rows], ends[rows], list(fields.values()))
        return {column: numbers[field] for column, field in fields.items()}

    def _drop_impossible(self, fields: Fields, limits: Mapping[int, int]) -> None:
        """Replaces impossible times, which damaged steps contain, by 0."""
        for number, latest in limits.items():
            values = fields.numbers[number]
            impossible = (values < 0) | (values > latest)
            if impossible.any():
                log.warning("%s: %d impossible times are read as 0", self.device, np.count_nonzero(impossible))
                values[impossible] = 0


def _nanos(nanos: Ints, micros: Ints) -> Ints:
    return np.where(nanos != 0, nanos, micros * 1000)


def read_devices(data: memoryview, wanted: Callable[[str], bool]) -> list[DeviceColumns]:
    """The wanted devices of a serialized StepStats.

    Args:
        data: the message's bytes.
        wanted: called with each device's name.

    Raises:
        InvalidFileError: these bytes are not StepStats.
    """
    devices = []
    for number, body in submessages(data):
        if number != 1:
            continue
        name = next((bytes(text).decode("utf-8", "replace") for number, text in submessages(body) if number == 1), "")
        if wanted(name):
            devices.append(DeviceColumns(name, body))
    return devices


def step_stats_of(data: memoryview) -> memoryview:
    """The StepStats inside a serialized RunMetadata, or ``data`` itself if it is one."""
    if not is_run_metadata(data):
        return data
    return next((body for number, body in submessages(data) if number == 1), memoryview(b""))
