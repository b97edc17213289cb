"""Steps that annotations mark, as PyTorch's profiler and NVTX ranges do, and the rows of each of these steps."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import annotation_paths
from collector.recording.recording import Clock, Recording
from collector.recording.schema import ACTIVITY_TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Set

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

MARK = r"(profiler_?|train(ing)?_?)?(step|iteration|iter|batch)[ _#:=-]*[0-9]*"
"""The whole name of an annotation that marks a step: ``ProfilerStep#3``, ``step 12``, ``iteration_7``."""


def mark_pattern(mark: str) -> re.Pattern[str]:
    """The compiled pattern of marks.

    Raises:
        ValueError: it is no regular expression.
    """
    try:
        return re.compile(mark, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"the mark {mark!r} is no regular expression: {error}") from error


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


def split_at_marks(recording: Recording, mark: str = MARK) -> list[tuple[Recording, frozenset[str]]]:
    """The marked steps of a recording, each as a recording of its own with the paths of all marks.

    A step has the activities and graphs that were launched in it, and its clock has the window of the mark. A recording
    without marks is one step.
    """
    paths, index = annotation_paths(recording)
    rows = mark_rows(recording, paths, index, re.compile(mark, re.IGNORECASE))
    if not len(rows):
        return [(recording, frozenset())]
    marks = frozenset(paths[index[row]] for row in rows.tolist())
    annotations = recording.all_annotations
    starts, ends = annotations.start_ns[rows], annotations.end_ns[rows]
    work = Activities.of(recording)
    place = places_launched_in(recording, work, starts, ends)
    graphs = recording.graph_launches
    graph_place = _places_of(recording, recording.launch_rows(graphs.correlation_id), graphs.start_ns, starts, ends)
    steps = []
    for number, (start_ns, end_ns) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        masks = _masks(recording, work.where(place == number), start_ns, end_ns)
        part = recording.part({**masks, "graph_launches": graph_place == number})
        steps.append((windowed(part, start_ns, end_ns), marks))
    return steps


def windowed(recording: Recording, start_ns: int, end_ns: int) -> Recording:
    """The same rows as a step that began and ended at these times of CUPTI's clock."""
    clock = recording.clock
    wall_ns = clock.wall_start_ns - clock.cupti_start_ns
    own = Clock(start_ns, end_ns, start_ns + wall_ns, end_ns + wall_ns, clock.uncertainty_ns)
    counted = (recording.ledger, recording.counters, recording.environment)
    return Recording(recording.parts, recording.strings, own, *counted, recording.details, recording.arguments)


def _masks(recording: Recording, work: Activities, start_ns: int, end_ns: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Table -> whether each row belongs to a step: activities launched in it, and other rows that begin in it."""
    masks = {}
    launched = work.rows_by_table()
    for item in fields(Tables):
        table = getattr(recording, item.name)
        if item.name in ACTIVITY_TABLES:
            masks[item.name] = np.zeros(len(table), bool)
            masks[item.name][launched.get(item.name, [])] = True
        elif "start_ns" in table.columns:
            masks[item.name] = (table.start_ns >= start_ns) & (table.start_ns < end_ns)
        else:
            masks[item.name] = np.ones(len(table), bool)
    return masks
