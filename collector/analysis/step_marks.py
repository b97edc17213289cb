"""Steps that annotations mark, as PyTorch's profiler and NVTX ranges do, and the rows of each of these steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.answer import Window
from collector.checked_arguments import regular_expression
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
    which it was launched (`launched_in`), and a time of a device to the step in which it passed.
    """

    starts: Numbers
    """The begins of the steps, ns, in order."""
    ends: Numbers
    """Their ends, ns; steps do not overlap."""
    windows: list[Window]
    marks: frozenset[str]
    """The paths of the marks; empty: the recording is one step."""

    def __init__(self, recording: Recording) -> None:
        """Find the steps."""
        self.recording = recording
        paths, index = annotation_paths(recording)
        rows = step_rows(recording, paths, index, mark_pattern(MARK))
        self.marks = frozenset(paths[place] for place in index[rows].tolist())
        annotations, clock = recording.all_annotations, recording.clock
        if self.marks:
            self.starts, self.ends = annotations.start_ns[rows], annotations.end_ns[rows]
        else:
            self.starts, self.ends = np.array([clock.cupti_start_ns]), np.array([clock.cupti_stop_ns])
        self.windows = [
            Window("step", *bounds) for bounds in zip(self.starts.tolist(), self.ends.tolist(), strict=True)
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
        return _places_of(self.recording, launches, rows.start_ns, self.starts, self.ends)
