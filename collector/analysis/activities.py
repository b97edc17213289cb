"""What the GPUs of a recording did, kernels, copies and memsets together, as arrays: what most questions begin with."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Window
from collector.recording.intervals import Union
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

_COMMUNICATION = re.compile(r"nccl|rccl", re.IGNORECASE)
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
    """Activities in order of their starts; all arrays are equally long."""

    start_ns: Numbers
    end_ns: Numbers
    device_id: Numbers
    context_id: Numbers
    stream_id: Numbers
    correlation_id: Numbers
    work_class: Numbers
    """`WorkClass` of each."""
    table: Numbers
    """Place in `collector.recording.schema.ACTIVITY_TABLES` of the table that it stands in."""
    row: Numbers
    """Its row there."""
    launch_row: Numbers
    """The row in ``api_calls`` of the call that caused it; -1: none was recorded."""

    @classmethod
    def of(cls, recording: Recording) -> Activities:
        """All that was kept of a recording."""
        tables = [getattr(recording, name) for name in ACTIVITY_TABLES]
        kernels = recording.kernels
        is_communication = np.array([bool(_COMMUNICATION.search(text)) for text in recording.strings], bool)
        classes = [
            np.where(is_communication[kernels.name_id], WorkClass.COMMUNICATION, WorkClass.COMPUTE)
            if len(recording.strings)
            else np.zeros(0, np.int64),
            np.full(len(recording.memcpys), WorkClass.COPY),
            np.full(len(recording.memsets), WorkClass.MEMSET),
        ]
        columns = {
            name: np.concatenate([getattr(table, name) for table in tables]).astype(np.int64)
            for name in ("start_ns", "end_ns", "device_id", "context_id", "stream_id", "correlation_id")
        }
        order = np.lexsort((columns["stream_id"], columns["end_ns"], columns["start_ns"]))
        return cls(
            **{name: values[order] for name, values in columns.items()},
            work_class=np.concatenate(classes).astype(np.int64)[order],
            table=np.repeat(np.arange(len(tables)), [len(table) for table in tables])[order],
            row=np.concatenate([np.arange(len(table)) for table in tables])[order],
            launch_row=recording.launch_rows(columns["correlation_id"][order]).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.start_ns)

    def where(self, mask: npt.NDArray[np.bool_]) -> Activities:
        """Those for which ``mask`` is true."""
        return Activities(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    @cached_property
    def devices(self) -> list[int]:
        """The devices that did something, in order."""
        return [int(device) for device in np.unique(self.device_id)]

    def on(self, device: int) -> Activities:
        """What one device did."""
        return self.where(self.device_id == device)

    def union(self, *classes: WorkClass, window: Window | None = None) -> Union:
        """When at least one activity ran, of these classes or of all, cut to a window."""
        chosen = np.isin(self.work_class, classes) if classes else np.ones(len(self), bool)
        starts, ends = self.start_ns[chosen], self.end_ns[chosen]
        if window is not None:
            starts, ends = (
                np.clip(starts, window.start_ns, window.end_ns),
                np.clip(ends, window.start_ns, window.end_ns),
            )
            starts, ends = starts[ends > starts], ends[ends > starts]
        return Union.of(starts, ends)

    def rows_by_table(self) -> dict[str, Numbers]:
        """Table -> its rows among these, in order."""
        found = {name: np.sort(self.row[self.table == place]) for place, name in enumerate(ACTIVITY_TABLES)}
        return {name: rows for name, rows in found.items() if len(rows)}


def window_of(recording: Recording, work: Activities, name: str) -> Window:
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
