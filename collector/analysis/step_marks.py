"""Steps that annotations mark, as PyTorch's profiler and NVTX ranges do, and the rows of each of these steps."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.answer import Window
from collector.checked_arguments import regular_expression
from collector.recording.distinct import distinct_values, grouped_rows
from collector.recording.row_index import numbers_in
from collector.recording.schema import ACTIVITY_TABLES, Tables
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

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


class MarkedSteps:
    """The steps of a recording: the parts between the ends of its marks, or the whole recording if it has none.

    A device may run the work of a step after the step, when the host is ahead of it. So work belongs to the step in
    which it was launched (`launched_in`), and a time to the step in which it passed (`ran_in`).
    """

    windows: list[Window]
    marks: frozenset[str]
    """The paths of the marks; empty: the recording is one step."""
    devices: set[int]
    """The devices that have activities in the recording; in a step some of them may have none."""

    def __init__(self, recording: Recording) -> None:
        """Find the steps."""
        self.recording = recording
        working = [getattr(recording, name).device_id for name in ACTIVITY_TABLES]
        working.append(recording.graph_launches.device_id[whole_graph_rows(recording)])
        self.devices = {device for column in working for device in distinct_values(column).tolist()}
        paths, index = annotation_paths(recording)
        rows = step_rows(recording, paths, index, mark_pattern(MARK))
        self.marks = frozenset(paths[place] for place in index[rows].tolist())
        annotations, clock = recording.all_annotations, recording.clock
        if self.marks:
            self._starts, self._ends = annotations.start_ns[rows], annotations.end_ns[rows]
        else:
            self._starts, self._ends = np.array([clock.cupti_start_ns]), np.array([clock.cupti_stop_ns])
        self.windows = [
            Window("step", *bounds) for bounds in zip(self._starts.tolist(), self._ends.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.windows)

    def launched_in(self, table: str) -> Numbers:
        """For each row of a table of activities the index of the step in which it was launched; -1: of no step.

        An activity whose launch is unknown belongs to the step in which it began. A recording without marks is one step
        with all of its rows.
        """
        rows = getattr(self.recording, table)
        if not self.marks:
            return np.zeros(len(rows), np.int64)
        launches = self.recording.launch_rows(rows.correlation_id)
        return _places_of(self.recording, launches, rows.start_ns, self._starts, self._ends)

    def ran_in(self, step: int) -> Recording:
        """All that overlaps a step, whenever it was launched: the same as `collector.analysis.between`."""
        if not self.marks:
            return self.recording
        clock = self.recording.clock.windowed(int(self._starts[step]), int(self._ends[step]))
        return self.recording.part_of_rows({name: rows.of_step(step) for name, rows in self._ran.items()}, clock)

    @cached_property
    def _ran(self) -> dict[str, _RowsByStep]:
        """The rows of all steps, grouped once; all rows of tables without times belong to every step."""
        tables = {item.name: getattr(self.recording, item.name) for item in fields(Tables)}
        rows_of = {}
        for name, table in tables.items():
            if "start_ns" not in table.columns:
                continue
            begins = table.start_ns
            ends = table.columns.get("end_ns", begins)
            # A row without length between two steps that touch each other is in both, see `Recording.between`.
            is_moment = begins == ends
            first = np.where(
                is_moment,
                np.searchsorted(self._ends, begins, side="left"),
                np.searchsorted(self._ends, begins, side="right"),
            )
            last = np.where(
                is_moment,
                np.searchsorted(self._starts, ends, side="right"),
                np.searchsorted(self._starts, ends, side="left"),
            )
            rows_of[name] = _RowsByStep.of(first, last - 1, len(self))
        return rows_of


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
