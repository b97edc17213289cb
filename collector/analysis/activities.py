"""What the GPUs of a recording did, kernels, copies and memsets together, as arrays: what most questions begin with."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Window
from collector.recording.intervals import Union
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
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
        tables = [getattr(recording, name) for name in ACTIVITY_TABLES]
        is_communication = np.array([bool(COMMUNICATION.search(text)) for text in recording.strings] or [False], bool)
        kernel_class = np.where(is_communication, WorkClass.COMMUNICATION, WorkClass.COMPUTE).astype(np.int8)
        places = np.arange(len(tables), dtype=np.int8)
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables])
            for name in ("start_ns", "end_ns", "device_id", "stream_id", "correlation_id")
        } | {
            "work_class": np.concatenate(
                [
                    kernel_class[recording.kernels.name_id],
                    np.full(len(recording.memcpys), WorkClass.COPY, np.int8),
                    np.full(len(recording.memsets), WorkClass.MEMSET, np.int8),
                ]
            ),
            "table": np.repeat(places, [len(table) for table in tables]),
            "row": np.concatenate([np.arange(len(table), dtype=np.int64) for table in tables]),
        }
        order = np.lexsort((columns["start_ns"], columns["device_id"]))
        return cls(**{name: values[order] for name, values in columns.items()})

    def __len__(self) -> int:
        return len(self.start_ns)

    def _slice(self, rows: Any) -> Activities:
        return Activities(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def where(self, mask: npt.NDArray[np.bool_]) -> Activities:
        """Those for which ``mask`` is true."""
        return self._slice(mask)

    def at(self, places: Numbers) -> Activities:
        """Those at these places, in their order."""
        return self._slice(places)

    def by_device(self) -> dict[int, Activities]:
        """Device -> what it did."""
        devices, first = np.unique(self.device_id, return_index=True)
        bounds = [*first.tolist(), len(self)]
        return {
            device: self._slice(slice(bounds[place], bounds[place + 1]))
            for place, device in enumerate(devices.tolist())
        }

    def launch_rows(self, recording: Recording) -> Numbers:
        """The row in ``api_calls`` of the call that caused each; -1 where none was recorded."""
        return recording.launch_rows(self.correlation_id)

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


def by_device(recording: Recording, window: str) -> list[tuple[int, Activities, Window]]:
    """Each device that did something, what it did, and the window of that name.

    Raises:
        ValueError: there is no such window, also where no device did anything.
    """
    work = Activities.of(recording)
    _window_of(recording, work, window)
    return [(device, own, _window_of(recording, own, window)) for device, own in work.by_device().items()]


def _window_of(recording: Recording, work: Activities, name: str) -> Window:
    """The window of that name of what a device did.

    Args:
        recording: that it is part of.
        work: what the device did.
        name: ``step`` or ``span``; see `Window.name`.

    Raises:
        ValueError: another name.
    """
    if name == "step":
        return Window(name, recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns)
    if name == "span":
        return Window(name, int(work.start_ns.min()), int(work.end_ns.max())) if len(work) else Window(name, 0, 0)
    raise ValueError(f"window {name!r}: neither 'step' nor 'span'")
