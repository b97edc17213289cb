"""Durations of steps, outliers among them, and the ops that explain these: ``collector.analysis.steps([...])``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import annotation_paths, launch_paths
from collector.analysis.answer import Column, Window
from collector.analysis.asked import Part, Question, steps_in
from collector.analysis.evidence import Evidence
from collector.analysis.named_question import named_question
from collector.analysis.process_rows import processes_of_calls
from collector.analysis.ranks import run_and_rank
from collector.analysis.step_marks import (
    MARK,
    cut_steps,
    mark_pattern,
    path_within,
    places_launched_in,
    step_rows,
    unmarked,
)
from collector.analysis.whole_graphs import graph_labels
from collector.checked_arguments import switch
from collector.recording.distinct import distinct_codes, grouped_rows
from collector.recording.kernel_names import short_name
from collector.recording.kind_names import copy_kind_name
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

FAR = 3.5
"""A modified z-score with a larger absolute value marks an outlier (Iglewicz and Hoaglin 1993)."""
IDLE = "(idle)"
"""The name, among the ops that may explain an outlier, of the time in which nothing ran on any device."""
_FEWEST = 3
"""The fewest steps in the medians that have scores, because two steps are equally far from their median."""

QUESTION = Question(
    "steps",
    "Each step against the others of its run and rank: z is 0.6745 times the distance of its duration from the median, "
    "divided by the median of these distances (if that is 0: the distance divided by 1.2533 times their mean). The "
    "first step, which warms up, is left out of both medians. A step beyond 3.5 is an outlier; the op that differs "
    "most from its own median explains it.",
    (
        Column("step", "number", "Index of its recording among those that were asked, from 0."),
        Column("name", "text", "Annotation that marks the step; empty: the step is the whole recording."),
        Column("window_ns", "ns", "Duration of the step."),
        Column("busy_ns", "ns", "Time of the step in which anything ran on any device, whenever it was launched."),
        Column("activities", "count", "Number of kernels, copies, memsets and whole graphs launched in it."),
        Column(
            "z",
            "ratio",
            "Modified z-score of the duration: 0 for the median; unknown for any other if the durations in the medians "
            "are all equal, and where there is no verdict.",
        ),
        Column(
            "verdict",
            "text",
            "usual, outlier, or first, which is not judged; empty: fewer than three steps count in the medians.",
        ),
        Column(
            "op",
            "text",
            "Annotation that explains an outlier; a kernel, copy or whole graph outside of annotations; or (idle).",
        ),
        Column(
            "op_excess_ns",
            "ns",
            "GPU time of the op minus the median of its GPU times in the steps that count in the medians.",
        ),
        Column("op_z", "ratio", "Modified z-score of the GPU time of the op."),
    ),
    summed=("window_ns", "busy_ns", "activities"),
    counts_graphs=True,
)


@named_question(QUESTION, by_alone={"step": ""})
def steps(steps: Asked, *, first_apart: bool = True, mark: str = MARK) -> Answer:
    """Durations of steps, the outliers among them, and the op that explains each outlier.

    A recording whose steps are marked by annotations, as PyTorch's profiler and NVTX ranges do, counts as these steps,
    each with the activities launched in it; any other recording is one step. The steps of several ranks, which run at
    the same time, and of the runs of a dataset are compared within each of them.

    Args:
        steps: loaded steps, recordings or ended sessions, in the order in which they ran.
        first_apart: leave the first step of each run and rank, and the first marked one of a recording, out of the
            medians.
        mark: regular expression for the whole name of an annotation that marks a step.

    Raises:
        ValueError: the mark is not a regular expression.
    """
    pattern, first_apart = mark_pattern(mark), switch("first_apart", first_apart)
    groups = [run_and_rank(step) for step in steps_in(steps)]
    return QUESTION.ask_together(steps, lambda recordings: _part(recordings, groups, pattern, first_apart=first_apart))


def modified_z(values: Floats, among: Floats) -> Floats:
    """The modified z-score of each value: its distance from the median, relative to the median distance.

    Args:
        values: values of any shape.
        among: the values that determine the median and the distances, along the first axis.

    Returns:
        0 for the median itself. NaN for any other value if all values of ``among`` are equal: the distance then has
        nothing to be compared with.

    Source: Iglewicz and Hoaglin, *How to Detect and Handle Outliers* (1993).
    """
    middle = np.median(among, axis=0)
    away = np.abs(among - middle)
    scale = np.median(away, axis=0) / 0.6745
    scale = np.where(scale > 0, scale, 1.2533 * np.mean(away, axis=0))
    distance = values - middle
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Floats = np.where(distance == 0, 0.0, np.where(scale > 0, distance / scale, np.nan))
    return z


class _Step(NamedTuple):
    """One step: a marked part of a recording, or all of it."""

    recording: int
    name: str
    window: Window
    busy_ns: int
    gpu_ns: Callable[[], Mapping[str, int]]
    """Op -> sum of the durations of its activities; it is needed where another step is an outlier."""
    work: Activities
    """The activities that were launched in the step."""
    is_first: bool


def _part(
    recordings: Sequence[Recording], groups: Sequence[tuple[str, int]], mark: re.Pattern[str], *, first_apart: bool
) -> Part:
    grouped: dict[tuple[str, int], list[_Step]] = defaultdict(list)
    for number, (recording, group) in enumerate(zip(recordings, groups, strict=True)):
        grouped[group] += _steps_of(recording, number, mark, is_first=not grouped[group])
    compared = [pair for own in grouped.values() for pair in zip(own, _rows(own, first_apart=first_apart), strict=True)]
    compared.sort(key=lambda pair: pair[0].recording)
    found, rows = [step for step, _ in compared], [row for _, row in compared]
    evidence = Evidence(len(found), lambda place: found[place].work.rows_by_table())
    processes = max((int(processes_of_calls(recording).max(initial=0)) + 1 for recording in recordings), default=1)
    is_marked = any(step.name for step in found)
    notes = [_SEVERAL_PROCESSES.format(processes)] if processes > 1 and is_marked else []
    notes += unmarked(mark, is_marked=is_marked)
    notes += cut_steps((recordings[step.recording], step.window) for step in found)
    return Part(rows, [step.window for step in found], evidence, notes=notes)


_SEVERAL_PROCESSES = (
    "The steps are those of one thread with marks. Activities that other processes launched in the time of a step "
    "count in it as well: the recording has {} processes."
)


def _rows(found: list[_Step], *, first_apart: bool) -> list[tuple[Any, ...]]:
    """The rows of steps that are compared with each other."""
    durations = np.array([step.window.length_ns for step in found], np.float64)
    is_apart = np.array([first_apart and step.is_first for step in found], bool)
    is_known = len(found) - is_apart.sum() >= _FEWEST
    z = modified_z(durations, durations[~is_apart]) if is_known else np.full(len(found), np.nan)
    is_outlier = ~is_apart & (np.abs(z) > FAR)
    explained = _explanations(found, is_apart, is_outlier, z)
    return [
        (
            step.recording,
            step.name,
            step.window.length_ns,
            step.busy_ns,
            len(step.work),
            z[place],
            _verdict(is_known=is_known, is_apart=bool(is_apart[place]), is_outlier=bool(is_outlier[place])),
            *explained.get(place, ("", 0, np.nan)),
        )
        for place, step in enumerate(found)
    ]


def _verdict(*, is_known: bool, is_apart: bool, is_outlier: bool) -> str:
    if is_apart:
        return "first"
    return "" if not is_known else "outlier" if is_outlier else "usual"


def _steps_of(recording: Recording, number: int, mark: re.Pattern[str], *, is_first: bool) -> list[_Step]:
    """The steps in the recording of this number; ``is_first``: it is the first one of its run and rank."""
    work = Activities.with_graphs(recording)
    paths, index = annotation_paths(recording)
    marks = step_rows(recording, paths, index, mark)
    ops = cache(lambda: _ops(recording, work, {paths[index[row]] for row in marks.tolist()}))
    annotations = recording.all_annotations
    if len(marks):
        starts, ends = annotations.start_ns[marks], annotations.end_ns[marks]
        names = [recording.strings[name_id] for name_id in annotations.name_id[marks].tolist()]
        windows = [Window("step", *bounds) for bounds in zip(starts.tolist(), ends.tolist(), strict=True)]
        place = places_launched_in(recording, work, starts, ends)
    else:
        names = [""]
        windows = [Window("step", recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns)]
        place = np.zeros(len(work), np.int64)
    busy = work.union().covered(*np.array([[window.start_ns, window.end_ns] for window in windows], np.int64).T)
    launched, bounds = grouped_rows(place + 1, len(windows) + 1)
    steps = []
    for at, (name, window, busy_ns) in enumerate(zip(names, windows, busy.tolist(), strict=True)):
        chosen = launched[bounds[at + 1] : bounds[at + 2]]
        own = work if len(chosen) == len(work) else work.at(chosen)
        gpu_ns = partial(_gpu_times, ops, chosen, own, window.length_ns - busy_ns)
        is_apart = at == 0 and (is_first or bool(len(marks)))
        steps.append(_Step(number, name, window, busy_ns, gpu_ns, own, is_apart))
    return steps


def _gpu_times(
    ops: Callable[[], tuple[list[str], Numbers]], chosen: Numbers, own: Activities, idle_ns: int
) -> dict[str, int]:
    """Op -> the sum of the durations of its activities among those of a step."""
    names, index = ops()
    spent = np.zeros(len(names), np.int64)
    np.add.at(spent, index[chosen], own.end_ns - own.start_ns)
    return {**{names[op]: int(spent[op]) for op in np.flatnonzero(spent).tolist()}, IDLE: idle_ns}


def _ops(recording: Recording, work: Activities, marks: set[str]) -> tuple[list[str], Numbers]:
    """The names of ops without the mark of the step, so that all steps share them, and the op of each activity.

    An activity without an annotation inside its step has the name of its kernel or graph or the kind of its copy as its
    op.
    """
    paths, path_of = launch_paths(recording, work.correlation_id, work.captured_external_id)
    names: dict[str, int] = {}
    op = np.array([names.setdefault(path_within(path, marks), len(names)) for path in paths], np.int64)[path_of]
    none = names[""]
    kernels, copies, memsets, graphs = LAUNCHED_TABLES
    labels = graph_labels(recording)
    called: tuple[tuple[str, npt.NDArray[Any], Callable[[int], str]], ...] = (
        (kernels, recording.kernels.name_id, lambda name_id: short_name(recording.strings[name_id])),
        (copies, recording.memcpys.copy_kind, lambda kind: f"MEMCPY{copy_kind_name(kind)}"),
        (memsets, np.zeros(len(recording.memsets), np.int64), lambda _: "MEMSET"),
        (graphs, recording.graph_launches.graph_id, labels.__getitem__),
    )
    for table, ids, name_of in called:
        own = np.flatnonzero((op == none) & (work.table == LAUNCHED_TABLES.index(table)))
        distinct, index_of = distinct_codes(ids[work.row[own]])
        op[own] = np.array([names.setdefault(name_of(each), len(names)) for each in distinct.tolist()], np.int64)[
            index_of
        ]
    return list(names), op


def _explanations(
    found: list[_Step], is_apart: npt.NDArray[np.bool_], is_outlier: npt.NDArray[np.bool_], z: Floats
) -> dict[int, tuple[str, int, float]]:
    """For each outlier the op with the largest excess, of the ops beyond `FAR` in the same direction."""
    if not is_outlier.any():
        return {}
    gpu_ns = [step.gpu_ns() for step in found]
    ops = sorted({op for own in gpu_ns for op in own}, key=lambda op: (op == IDLE, op))  # of equal ones an op counts
    places = {op: place for place, op in enumerate(ops)}
    spent = np.zeros((len(found), len(ops)))
    for row, own in enumerate(gpu_ns):
        for op, spent_ns in own.items():
            spent[row, places[op]] = spent_ns
    usual = spent[~is_apart]
    op_z = modified_z(spent, usual)
    excess = spent - np.median(usual, axis=0)
    explained = {}
    for step_place in np.flatnonzero(is_outlier).tolist():
        towards = np.sign(z[step_place]) * excess[step_place]
        is_far = np.abs(op_z[step_place]) > FAR
        if (towards[is_far] > 0).any():
            op_place = int(np.argmax(np.where(is_far, towards, -1)))
            explained[step_place] = (ops[op_place], int(excess[step_place, op_place]), op_z[step_place, op_place])
    return explained
