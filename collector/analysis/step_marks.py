"""Steps that annotations mark, as PyTorch's profiler and NVTX ranges do, and the rows of each of these steps."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.answer import Window
from collector.checked_arguments import regular_expression
from collector.recording.distinct import distinct_values, grouped_rows
from collector.recording.row_index import numbers_in
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES, Tables
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Set

    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]
    _Part = Callable[[], Recording]

MARK = r"(profiler_?|train(ing)?_?)?(step|iteration|iter|batch)[ _#:=-]*[0-9]*"
"""The whole name of an annotation that marks a step: ``ProfilerStep#3``, ``step 12``, ``iteration_7``."""


def mark_pattern(mark: str) -> re.Pattern[str]:
    """Compile the pattern of marks.

    Raises:
        ValueError: the mark is not a regular expression.
        TypeError: the mark is not text.
    """
    return regular_expression("mark", mark, re.IGNORECASE)


def unmarked(mark: re.Pattern[str], *, is_marked: bool) -> tuple[str, ...]:
    """A note where the pattern that was given divides no recording; empty for the pattern that is the default."""
    if is_marked or mark.pattern == MARK:
        return ()
    return (
        f"No recording is divided: fewer than two annotations have a whole name that mark={mark.pattern!r} matches.",
    )


def mark_rows(recording: Recording, paths: list[str], index: Numbers, mark: re.Pattern[str]) -> Numbers:
    """Rows in `Recording.all_annotations` of the annotations that mark steps, in order of time.

    If several threads have marks, the thread with the most marks counts; of nested marks the outer mark counts. A
    single mark divides nothing.
    """
    table = recording.all_annotations
    is_mark = np.array([bool(mark.fullmatch(path.rpartition("/")[2])) for path in paths] or [False], bool)
    rows = np.flatnonzero(is_mark[index] & (table.end_ns > table.start_ns)) if len(index) else np.zeros(0, np.int64)
    if len(rows) < 2:
        return rows[:0]
    threads, counts = np.unique(table.thread_id[rows], return_counts=True)
    rows = rows[table.thread_id[rows] == threads[np.argmax(counts)]]
    rows = rows[np.lexsort((-table.end_ns[rows], table.start_ns[rows]))]
    reached = np.maximum.accumulate(table.end_ns[rows])
    is_outer = np.concatenate([[True], table.start_ns[rows][1:] >= reached[:-1]])
    outer: Numbers = rows[is_outer]
    return outer if len(outer) > 1 else outer[:0]


def step_rows(recording: Recording, paths: list[str], index: Numbers, mark: re.Pattern[str]) -> Numbers:
    """The rows of `mark_rows` that overlap the window of the recording, if there are several.

    A part of a recording also has the marks of earlier steps that launched its work.
    """
    rows, table, clock = mark_rows(recording, paths, index, mark), recording.all_annotations, recording.clock
    rows = rows[(table.start_ns[rows] < clock.cupti_stop_ns) & (table.end_ns[rows] > clock.cupti_start_ns)]
    return rows if len(rows) > 1 else rows[:0]


CUT_STEPS = "{:,} step[|s] reach[es|] beyond the recording, or the part of it: only what happened inside counts."


def cut_steps(steps: Iterable[tuple[Recording, Window]]) -> tuple[str, ...]:
    """A note with the number of steps that reach beyond the windows of their recordings; empty: none does."""
    number = sum(
        step.start_ns < recording.clock.cupti_start_ns or step.end_ns > recording.clock.cupti_stop_ns
        for recording, step in steps
    )
    return (counted(CUT_STEPS, number),) if number else ()


def places_launched_in(recording: Recording, work: Activities, starts: Numbers, ends: Numbers) -> Numbers:
    """For each activity the index of the step in which it was launched; -1: of no step.

    An activity whose launch is unknown belongs to the step in which it began.

    Args:
        recording: the recording of the activities.
        work: the activities.
        starts: starts of the steps, ascending.
        ends: ends of the steps, which do not overlap.
    """
    return _places_of(recording, work.launch_rows(), work.start_ns, starts, ends)


def _places_of(recording: Recording, launches: Numbers, begins: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
    """See `places_launched_in`; of work with these launching calls, or -1, that began at these times."""
    launched_ns = np.where(launches >= 0, np.append(recording.api_calls.start_ns, 0)[launches], begins)
    place = np.searchsorted(starts, launched_ns, side="right") - 1
    found: Numbers = np.where((place >= 0) & (launched_ns < ends[np.maximum(place, 0)]), place, -1)
    return found


def path_within(path: str, marks: Set[str]) -> str:
    """The part of a path inside the mark of its step; outside of steps the whole path."""
    around = path
    while around:
        if around in marks:
            return path[len(around) + 1 :]
        around = around.rpartition("/")[0]
    return path


class MarkedStep:
    """A step of a recording: the part between the ends of a mark, or the whole recording.

    A device may run the work of a step after the step, when the host is ahead of it. So there are two cuts.
    """

    def __init__(self, window: Window, launched: _Part, ran: _Part, marks: Set[str], devices: Set[int]) -> None:
        """Take the window of the step, functions that make the cuts, and the marks and devices of the recording."""
        self.window = window
        self.marks = marks
        """The paths of all marks of the recording."""
        self.devices = devices
        """The devices that have activities in the recording; in this step some of them may have none."""
        self._launched, self._ran = launched, ran

    @cached_property
    def launched(self) -> Recording:
        """The activities and graphs that were launched in the step, whenever they ran, and other rows that began in it.

        An activity whose launch is unknown belongs to the step in which it began.
        """
        return self._launched()

    @cached_property
    def ran(self) -> Recording:
        """All that overlaps the step, whenever it was launched: the same as `collector.analysis.between`."""
        return self._ran()

    def release(self) -> None:
        """Forget the cuts, which are made again if they are asked for."""
        for cut in ("launched", "ran"):
            self.__dict__.pop(cut, None)


def split_at_marks(recording: Recording) -> list[MarkedStep]:
    """The steps of a recording that annotations mark; a recording without marks is one step."""
    clock = recording.clock
    working = [getattr(recording, name).device_id for name in ACTIVITY_TABLES]
    working.append(recording.graph_launches.device_id[whole_graph_rows(recording)])
    devices = {device for column in working for device in distinct_values(column).tolist()}
    paths, index = annotation_paths(recording)
    rows = step_rows(recording, paths, index, mark_pattern(MARK))
    if not len(rows):

        def whole() -> Recording:
            return recording

        return [
            MarkedStep(Window("step", clock.cupti_start_ns, clock.cupti_stop_ns), whole, whole, frozenset(), devices)
        ]
    marks = frozenset(paths[index[row]] for row in rows.tolist())
    annotations = recording.all_annotations
    cuts = _Cuts(recording, annotations.start_ns[rows], annotations.end_ns[rows])
    return [
        MarkedStep(
            Window("step", *bounds), partial(cuts.launched_in, number), partial(cuts.ran_in, number), marks, devices
        )
        for number, bounds in enumerate(zip(cuts.starts.tolist(), cuts.ends.tolist(), strict=True))
    ]


class _Cuts:
    """The rows of a recording by step, which are grouped once for all steps."""

    def __init__(self, recording: Recording, starts: Numbers, ends: Numbers) -> None:
        """Take starts of steps, ascending, and their ends; steps do not overlap."""
        self._recording, self.starts, self.ends = recording, starts, ends

    def launched_in(self, number: int) -> Recording:
        """See `MarkedStep.launched`."""
        return self._part(self._launched, number)

    def ran_in(self, number: int) -> Recording:
        """See `MarkedStep.ran`."""
        return self._part(self._ran, number)

    def _part(self, rows_of: Mapping[str, _RowsByStep], number: int) -> Recording:
        clock = self._recording.clock.windowed(int(self.starts[number]), int(self.ends[number]))
        return self._recording.part_of_rows({name: rows.of_step(number) for name, rows in rows_of.items()}, clock)

    @cached_property
    def _launched(self) -> dict[str, _RowsByStep]:
        places = {}
        for name, table in self._timed_tables().items():
            launches = (
                self._recording.launch_rows(table.correlation_id)
                if name in LAUNCHED_TABLES
                else np.full(len(table), -1, np.int64)
            )
            places[name] = _places_of(self._recording, launches, table.start_ns, self.starts, self.ends)
        return {name: _RowsByStep.of(place, place, len(self.starts)) for name, place in places.items()}

    @cached_property
    def _ran(self) -> dict[str, _RowsByStep]:
        rows_of = {}
        for name, table in self._timed_tables().items():
            begins = table.start_ns
            ends = table.columns.get("end_ns", begins)
            # A row without length between two steps that touch each other is in both, see `Recording.between`.
            is_moment = begins == ends
            first = np.where(
                is_moment,
                np.searchsorted(self.ends, begins, side="left"),
                np.searchsorted(self.ends, begins, side="right"),
            )
            last = np.where(
                is_moment,
                np.searchsorted(self.starts, ends, side="right"),
                np.searchsorted(self.starts, ends, side="left"),
            )
            rows_of[name] = _RowsByStep.of(first, last - 1, len(self.starts))
        return rows_of

    def _timed_tables(self) -> dict[str, Table]:
        """The tables whose rows have a time; all rows of the others belong to every step."""
        tables = {item.name: getattr(self._recording, item.name) for item in fields(Tables)}
        return {name: table for name, table in tables.items() if "start_ns" in table.columns}


class _RowsByStep(NamedTuple):
    """The rows of one table in order of their steps."""

    rows: Numbers
    bounds: Numbers
    """Where the rows of each step begin, and the end of the last."""

    @classmethod
    def of(cls, first: Numbers, last: Numbers, steps: int) -> _RowsByStep:
        """Each row belongs to its steps from ``first`` to ``last``; to none if ``last`` is less, or both are -1."""
        own = np.flatnonzero((first >= 0) & (last >= first))
        places = numbers_in(first[own], last[own] + 1)
        rows = np.repeat(own, last[own] + 1 - first[own])
        order, bounds = grouped_rows(places, steps)
        return cls(rows[order], bounds)

    def of_step(self, number: int) -> Numbers:
        """The rows of a step, ascending."""
        return self.rows[self.bounds[number] : self.bounds[number + 1]]
