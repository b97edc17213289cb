"""What the GPUs of a recording did, kernels, copies and memsets together, as arrays: what most questions begin with."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Window
from collector.analysis.shared_values import shared
from collector.recording.intervals import Union
from collector.recording.schema import ACTIVITY_TABLES
from collector.runtime.extension import convert_extension
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

COMMUNICATION = re.compile(r"nccl|rccl", re.IGNORECASE)
"""In the name of a kernel that moves data between GPUs or waits for other ranks, by NCCL or RCCL."""


class WorkClass(enum.IntEnum):
    """What an activity is for."""

    COMPUTE = 0
    """A kernel that is none of the next."""
    COMMUNICATION = 1
    """A kernel of NCCL or RCCL."""
    COPY = 2
    MEMSET = 3


@dataclass(frozen=True)
class Activities:
    """Kernels, copies and memsets in order of their devices, and of their starts on each; arrays are equally long."""

    start_ns: Numbers
    end_ns: Numbers
    device_id: Numbers
    stream_id: Numbers
    correlation_id: Numbers
    work_class: Numbers
    """`WorkClass` of each."""
    table: Numbers
    """Place in `collector.recording.schema.ACTIVITY_TABLES` of the table that it stands in."""
    row: Numbers
    """Its row there."""

    @classmethod
    def of(cls, recording: Recording) -> Activities:
        """All that was kept of a recording."""
        return _activities(recording)

    def __len__(self) -> int:
        return len(self.start_ns)

    def _slice(self, rows: Any) -> Activities:
        return Activities(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def where(self, mask: npt.NDArray[np.bool_]) -> Activities:
        """Those for which ``mask`` is true."""
        return self if mask.all() else self._slice(mask)

    def at(self, places: Numbers) -> Activities:
        """Those at these places, in their order."""
        return self._slice(places)

    def by_device(self) -> dict[int, Activities]:
        """Device -> what it did."""
        is_first = np.ones(len(self), bool)
        is_first[1:] = self.device_id[1:] != self.device_id[:-1]
        bounds = [*np.flatnonzero(is_first).tolist(), len(self)]
        if len(bounds) == 2 and len(self):
            return {int(self.device_id[0]): self}
        return {int(self.device_id[begin]): self._slice(slice(begin, end)) for begin, end in pairwise(bounds)}

    def in_order_of_time(self) -> Activities:
        """The same, in order of their starts on all devices together."""
        if (self.start_ns[1:] >= self.start_ns[:-1]).all():
            return self
        return self.at(np.argsort(self.start_ns, kind="stable"))

    def column(self, recording: Recording, name: str) -> npt.NDArray[Any]:
        """The values of a column that all tables of activities have."""
        tables = [getattr(recording, table) for table in ACTIVITY_TABLES]
        return self.of_rows(recording, [getattr(table, name) for table in tables])

    def of_rows(self, recording: Recording, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Of values for each row of each of the tables, those of these activities."""
        first = np.cumsum([0, *(len(getattr(recording, table)) for table in ACTIVITY_TABLES)])
        chosen: npt.NDArray[Any] = _joined(values)[first[self.table] + self.row]
        return chosen

    def launch_rows(self, recording: Recording) -> Numbers:
        """The row in ``api_calls`` of the call that caused each; -1 where none was recorded."""
        return _launch_rows(recording, self)

    def union(self, *classes: WorkClass, window: Window | None = None) -> Union:
        """When at least one activity ran, of these classes or of all, cut to a window."""
        starts, ends = self.start_ns, self.end_ns
        if classes:
            chosen = np.isin(np.arange(len(WorkClass)), classes)[self.work_class]
            starts, ends = starts[chosen], ends[chosen]
        if window is not None and len(starts) and (starts.min() < window.start_ns or ends.max() > window.end_ns):
            starts, ends = (
                np.clip(starts, window.start_ns, window.end_ns),
                np.clip(ends, window.start_ns, window.end_ns),
            )
            is_there = ends > starts
            starts, ends = starts[is_there], ends[is_there]
        return Union.of(starts, ends)

    def rows_by_table(self) -> dict[str, Numbers]:
        """Table -> its rows among these, in order."""
        found = {name: np.sort(self.row[self.table == place]) for place, name in enumerate(ACTIVITY_TABLES)}
        return {name: rows for name, rows in found.items() if len(rows)}


@shared
def _activities(recording: Recording) -> Activities:
    tables = [getattr(recording, name) for name in ACTIVITY_TABLES]
    order = convert_extension.order_by_device_and_start([(table.device_id, table.start_ns) for table in tables])
    places = np.arange(len(tables), dtype=np.int8)
    columns = {
        name: _joined([getattr(table, name) for table in tables])
        for name in ("start_ns", "end_ns", "device_id", "stream_id", "correlation_id")
    } | {
        "work_class": _joined(work_classes(recording)),
        "table": np.repeat(places, [len(table) for table in tables]),
        "row": _joined([np.arange(len(table), dtype=np.int64) for table in tables]),
    }
    is_ordered = (order[1:] > order[:-1]).all()
    return Activities(**(columns if is_ordered else {name: values[order] for name, values in columns.items()}))


@shared
def _launch_rows(recording: Recording, work: Activities) -> Numbers:
    return recording.launch_rows(work.correlation_id)


@shared
def work_classes(recording: Recording) -> list[npt.NDArray[np.uint8]]:
    """The `WorkClass` of each row of each table of activities."""
    is_communication = np.array([bool(COMMUNICATION.search(text)) for text in recording.strings] or [False], bool)
    kernel_class = np.where(is_communication, WorkClass.COMMUNICATION, WorkClass.COMPUTE).astype(np.uint8)
    return [
        kernel_class[recording.kernels.name_id],
        np.full(len(recording.memcpys), WorkClass.COPY, np.uint8),
        np.full(len(recording.memsets), WorkClass.MEMSET, np.uint8),
    ]


@shared
def repetitions(recording: Recording) -> list[str]:
    """A sentence with the number of activities that equal another one in every column; none where there is none."""
    number = 0
    for name in ACTIVITY_TABLES:
        table = getattr(recording, name)
        places = np.flatnonzero(table.start_ns[1:] == table.start_ns[:-1])  # rows are in order
        for values in table.columns.values():
            places = places[values[places] == values[places + 1]]
        number += len(places)
    text = "{:,} activit[y equals another|ies equal others] in every column: times count once, numbers and sums each"
    return [counted(text, number)] if number else []


def _joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate(parts)


def by_device(recording: Recording, window: str) -> list[tuple[int, Activities, Window]]:
    """Each device that did something, what it did, and the window of that name.

    Raises:
        ValueError: there is no such window, also where no device did anything.
    """
    step = step_window(recording, window)
    return [
        (device, own, step or Window(window, int(own.start_ns.min()), int(own.end_ns.max())))
        for device, own in Activities.of(recording).by_device().items()
    ]


def step_window(recording: Recording, name: str) -> Window | None:
    """The window of that name, ``step`` or ``span``; None: each device has its own. See `Window.name`.

    Raises:
        ValueError: another name.
    """
    if name == "step":
        return Window(name, recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns)
    if name == "span":
        return None
    raise ValueError(f"window {name!r}: neither 'step' nor 'span'")
