"""The kernels, copies and memsets of a recording together, as arrays. Most questions begin with them.

Questions about busy and idle time also have the launches of CUDA graphs that were recorded as a whole.
"""

from __future__ import annotations

import enum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Window
from collector.analysis.shared_values import is_sharing, shared
from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.distinct import distinct_codes
from collector.recording.intervals import Union
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES
from collector.runtime.extension import convert_extension
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]

REPETITIONS = "{:,} activit[y equals another|ies equal others] in every column: times count once, numbers and sums each"
"""The loss of `repetitions`."""


def communicates(kernel: str) -> bool:
    """Whether a kernel of this name moves data between GPUs or waits for other ranks, by NCCL or RCCL."""
    name = kernel.lower()  # in a tenth of the time of a regular expression
    return "nccl" in name or "rccl" in name


class WorkClass(enum.IntEnum):
    """The class of an activity."""

    COMPUTE = 0
    """A kernel of any library but NCCL and RCCL."""
    COMMUNICATION = 1
    """A kernel of NCCL or RCCL."""
    COPY = 2
    MEMSET = 3
    GRAPH = 4
    """A launch of a CUDA graph that was recorded as a whole: its kernels, copies and memsets are not known."""


class Activities:
    """Kernels, copies and memsets in order of their devices, and of their starts on each.

    Columns are arrays of the same length. Each is gathered from the tables of the recording at its first use, because
    most questions read a few columns of one device at a time.
    """

    def __init__(
        self,
        recording: Recording,
        places: Numbers,
        *,
        is_whole: bool = False,
        tables: tuple[str, ...] = ACTIVITY_TABLES,
    ) -> None:
        """Select activities by their places, the row numbers in the concatenation of all tables of activities.

        Args:
            recording: the recording of the activities.
            places: their places.
            is_whole: whether ``places`` are all places in ascending order.
            tables: names of these tables, the first ones of `LAUNCHED_TABLES`.
        """
        self._recording, self._places, self._is_whole, self._names = recording, places, is_whole, tables

    @classmethod
    def of(cls, recording: Recording) -> Activities:
        """The kernels, copies and memsets of a recording, without those that are set apart as invalid, early or late.

        Questions about the work itself use them.
        """
        return _activities(recording)

    @classmethod
    def with_graphs(cls, recording: Recording) -> Activities:
        """Like `of`, with the launches of CUDA graphs that were recorded as a whole.

        Questions about the times in which a device was busy use them.
        """
        return _activities_and_graphs(recording) if len(whole_graph_rows(recording)) else _activities(recording)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def start_ns(self) -> Numbers:
        """Start of each activity."""
        return self.column("start_ns")

    @cached_property
    def end_ns(self) -> Numbers:
        """End of each activity."""
        return self.column("end_ns")

    @cached_property
    def device_id(self) -> Numbers:
        """CUDA device ordinal of each activity."""
        return self.column("device_id")

    @cached_property
    def stream_id(self) -> Numbers:
        """CUPTI's stream id of each activity."""
        return self.column("stream_id")

    @cached_property
    def correlation_id(self) -> Numbers:
        """Correlation id of the call that launched each activity."""
        return self.column("correlation_id")

    @cached_property
    def work_class(self) -> npt.NDArray[np.uint8]:
        """`WorkClass` of each activity."""
        return self.of_rows(work_classes(self._recording))

    @cached_property
    def table(self) -> npt.NDArray[np.int8]:
        """The table of each activity, as an index of `collector.recording.schema.LAUNCHED_TABLES`."""
        if (only := self._only_table) is not None:
            return np.full(len(self), only, np.int8)
        table = np.zeros(len(self), np.int8)
        for first in self._firsts[1:]:
            table += self._places >= first
        return table

    @property
    def row(self) -> Numbers:
        """The row of each activity in its table."""
        if self._only_table is not None:
            return self._places  # no rows stand before those of the table
        return self._places - self._firsts[self.table]

    @property
    def _only_table(self) -> int | None:
        """The only table of the recording that has rows; None: there are several, or none."""
        filled = [number for number, table in enumerate(self._tables) if len(table)]
        return filled[0] if len(filled) == 1 else None

    @property
    def _firsts(self) -> Numbers:
        """The place of the first row of each table."""
        return np.cumsum([0, *(len(table) for table in self._tables)])[:-1]

    @property
    def _tables(self) -> list[Table]:
        return [getattr(self._recording, name) for name in self._names]

    def where(self, mask: npt.NDArray[np.bool_]) -> Activities:
        """The activities for which ``mask`` is true."""
        return self if mask.all() else self._selected(self._places[mask])

    def at(self, indices: Numbers) -> Activities:
        """The activities at these indices, in the order of the indices."""
        return self._selected(self._places[indices])

    def _selected(self, places: Numbers) -> Activities:
        return Activities(self._recording, places, tables=self._names)

    def by_device(self) -> Iterator[tuple[int, Activities]]:
        """Each device with its activities."""
        devices = self.device_id
        bounds = [*(np.flatnonzero(devices[1:] != devices[:-1]) + 1).tolist(), len(self)]
        if len(bounds) == 1 and len(self):
            yield int(devices[0]), self
        elif len(self):
            for begin, end in pairwise([0, *bounds]):
                yield int(devices[begin]), self._selected(self._places[begin:end])

    def in_order_of_time(self) -> Activities:
        """The same activities in order of their starts, across devices."""
        if (self.start_ns[1:] >= self.start_ns[:-1]).all():
            return self
        return self.at(np.argsort(self.start_ns, kind="stable"))

    def column(self, name: str) -> npt.NDArray[Any]:
        """The values of a column that all tables of activities have."""
        return self.of_rows([getattr(table, name) for table in self._tables])

    def of_rows(self, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values of these activities, taken from values for each row of each table of `LAUNCHED_TABLES`."""
        values = values[: len(self._names)]
        filled = [table for table, part in enumerate(values) if len(part)]
        if len(filled) == 1:  # then places are rows of this table
            return values[filled[0]] if self._is_whole else values[filled[0]][self._places]
        if self._is_whole:
            return np.concatenate(values)
        chosen = np.empty(len(self), np.result_type(*values))
        rows = self.row
        for table in filled:
            own = self.table == table
            chosen[own] = values[table][rows[own]]
        return chosen

    @cached_property
    def captured_external_id(self) -> Numbers | None:
        """The id of the annotation around each activity's capture in a CUDA graph; None: no activity has one."""
        columns = [
            table.columns.get("captured_external_id", np.zeros(len(table), np.uint64))  # whole graphs are not nodes
            for table in self._tables
        ]
        return self.of_rows(columns) if any(column.any() for column in columns) else None

    def annotation_ids(self) -> Numbers:
        """For each activity the ``strings`` index of the path of its launch and capture; -1: it has none."""
        return self._recording.annotation_ids(self.correlation_id, self.captured_external_id)

    def launch_rows(self) -> Numbers:
        """The row in ``api_calls`` of the call that launched each activity; -1: the call was not recorded."""
        if is_sharing():
            return self.of_rows(_launch_rows(self._recording))
        return self._recording.launch_rows(self.correlation_id)

    def union(self, *classes: WorkClass, window: Window | None = None) -> Union:
        """The time in which at least one activity of these classes, or of all, ran, cut to a window."""
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
        """Table -> the rows of these activities in it, ascending."""
        found = {name: np.sort(self.row[self.table == place]) for place, name in enumerate(self._names)}
        return {name: rows for name, rows in found.items() if len(rows)}


@shared
def whole_graph_rows(recording: Recording) -> Numbers:
    """The rows in ``graph_launches`` of CUDA graphs that were recorded as a whole."""
    return np.flatnonzero(recording.graph_launches.graph_degree == DEGREE_WHOLE_GRAPH)


@shared
def _activities(recording: Recording) -> Activities:
    order = _order(recording, ACTIVITY_TABLES)
    return Activities(recording, order, is_whole=bool((order[1:] > order[:-1]).all()))


@shared
def _activities_and_graphs(recording: Recording) -> Activities:
    order = _order(recording, LAUNCHED_TABLES)
    graphs = len(recording.graph_launches)
    is_chosen = np.ones(len(order), bool)
    is_chosen[len(order) - graphs :] = False
    is_chosen[len(order) - graphs + whole_graph_rows(recording)] = True
    is_whole = bool(is_chosen.all() and (order[1:] > order[:-1]).all())
    return Activities(recording, order[is_chosen[order]], is_whole=is_whole, tables=LAUNCHED_TABLES)


def _order(recording: Recording, names: Sequence[str]) -> Numbers:
    tables = [getattr(recording, name) for name in names]
    return convert_extension.order_by_device_and_start([(table.device_id, table.start_ns) for table in tables])


@shared
def _launch_rows(recording: Recording) -> list[Numbers]:
    """The launching call of each row of `LAUNCHED_TABLES`: one table of all ids serves every question."""
    return [recording.launch_rows(getattr(recording, name).correlation_id) for name in LAUNCHED_TABLES]


@shared
def work_classes(recording: Recording) -> list[npt.NDArray[np.uint8]]:
    """The `WorkClass` of each row of `LAUNCHED_TABLES`; every launch of a graph counts as recorded as a whole."""
    name_ids, names = distinct_codes(recording.kernels.name_id)  # a recording may have many texts and few kernels
    is_communication = np.array([communicates(recording.strings[name_id]) for name_id in name_ids.tolist()], bool)
    kernel_class = np.where(is_communication, WorkClass.COMMUNICATION, WorkClass.COMPUTE).astype(np.uint8)
    return [
        kernel_class[names],
        np.full(len(recording.memcpys), WorkClass.COPY, np.uint8),
        np.full(len(recording.memsets), WorkClass.MEMSET, np.uint8),
        np.full(len(recording.graph_launches), WorkClass.GRAPH, np.uint8),
    ]


@shared
def repetitions(recording: Recording) -> tuple[str, ...]:
    """A sentence with the number of activities that equal another one in every column; empty: there are none."""
    number = sum(len(repeated_rows(getattr(recording, name))) for name in ACTIVITY_TABLES)
    return (counted(REPETITIONS, number),) if number else ()  # questions that share it add losses of their own


def repeated_rows(table: Table) -> Numbers:
    """The rows of a table of activities that equal the row before them in every column."""
    places = np.flatnonzero(table.start_ns[1:] == table.start_ns[:-1])  # rows are in order
    for values in table.columns.values():
        places = places[values[places] == values[places + 1]]
    return places + 1


def by_device(recording: Recording, window: str) -> Iterator[tuple[int, Activities, Window]]:
    """Each device with activities or launches of whole graphs: its id, its activities, and its window of that name.

    The activities of one device can be freed when the next device is taken.

    Raises:
        ValueError: there is no such window. It is raised for a recording without activities as well.
    """
    step = step_window(recording, window)
    return (
        (device, own, step or Window(window, int(own.start_ns.min()), int(own.end_ns.max())))
        for device, own in Activities.with_graphs(recording).by_device()
    )


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
