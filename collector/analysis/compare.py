"""Changes from some steps to others: ``collector.analysis.compare(before, now)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import NO_ANNOTATION, launch_paths
from collector.analysis.answer import Answer, Column
from collector.analysis.asked import recordings_in
from collector.analysis.copies import KINDS as COPIES_BY
from collector.analysis.copies import names_of_kinds
from collector.analysis.device_times import exposed_in_windows
from collector.analysis.duration_groups import Keys
from collector.analysis.idle import CAUSE_NAMES, CAUSES, causes_in_windows, idle
from collector.analysis.kernels import KEYS as KERNELS_BY
from collector.analysis.kernels import keys_of_kernels
from collector.analysis.step_marks import MarkedSteps, cut_steps, path_within
from collector.analysis.units import values_of
from collector.analysis.whole_graphs import whole_graphs
from collector.checked_arguments import real_number
from collector.errors import MissingDependencyError
from collector.recording.device_models import models_in_words
from collector.recording.distinct import distinct_values
from collector.recording.first_rows import distinct_rows
from collector.recording.schema import ACTIVITY_TABLES
from collector.runtime.optional_packages import optional_package
from collector.statistics.changes import FALSE_DISCOVERIES, Change, changes, steps_suffice
from collector.statistics.step_differences import is_spread_assumed
from collector.statistics.verdicts import ASSUMED_RUN_SPREAD
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.analysis.answer import Window
    from collector.analysis.asked import Asked

    Numbers = npt.NDArray[np.int64]

LEAST_EFFECT = 0.01
"""The smallest change that is called slower or faster, as a share of the step before."""

_NAME = Column("name", "text", "Short name of the kernel.")


class _Figures(NamedTuple):
    """Numbers of activities and ns of steps by key; figures of the same step and key are added up."""

    keys: Sequence[tuple[Any, ...]]
    key: Numbers
    """The index of its key for each figure."""
    step: Numbers
    """The index of its step for each figure."""
    activities: Numbers
    ns: Numbers


@dataclass(frozen=True)
class _Family:
    """A way to divide a step by keys, whose figures add up to the whole."""

    whole: str
    """Name of the total to which the parts add up."""
    keys: tuple[Column, ...]
    of: Callable[[MarkedSteps], Iterable[_Figures]]
    """The figures of the steps of a recording: times of devices are those of the windows of the steps, durations those
    of the work that was launched in them."""
    has_counts: bool = True
    counts_graphs: bool = False
    """Whether a launch of a CUDA graph that was recorded as a whole counts as an activity."""


def _step(steps: MarkedSteps) -> Iterable[_Figures]:
    yield _of_table([("step",)], (steps.ends - steps.starts)[np.newaxis])


def _time(steps: MarkedSteps) -> Iterable[_Figures]:
    parts = ("compute", "exposed graphs", "exposed communication", "exposed copies", "exposed memsets")
    yield _of_table([(part,) for part in parts], exposed_in_windows(steps.recording, steps.starts, steps.ends))
    yield from (each._replace(keys=[(f"idle: {cause}",) for (cause,) in each.keys]) for each in _idle(steps))


def _idle(steps: MarkedSteps) -> Iterable[_Figures]:
    if steps.marks:
        times = causes_in_windows(steps.recording, steps.starts, steps.ends)
    else:
        totals = idle(steps.recording).totals
        times = np.array([[totals[f"{cause}_ns"]] for cause in CAUSES], np.int64)
    yield _of_table([(CAUSE_NAMES[cause],) for cause in CAUSES], times)


def _ops(steps: MarkedSteps) -> Iterable[_Figures]:
    recording = steps.recording
    work = Activities.of(recording)
    step = work.of_rows([steps.launched_in(table) for table in ACTIVITY_TABLES])
    paths, launched_under = launch_paths(recording, work.correlation_id, work.captured_external_id)
    within = [path_within(path, steps.marks) or NO_ANNOTATION for path in paths]
    yield _of_work(step, [Keys.of(launched_under, within.__getitem__)], work.end_ns - work.start_ns)


def _kernels(by: str) -> Callable[[MarkedSteps], Iterable[_Figures]]:
    def figures(steps: MarkedSteps) -> Iterable[_Figures]:
        recording = steps.recording
        yield _of_work(steps.launched_in("kernels"), keys_of_kernels(recording, by), recording.kernels.duration_ns)

    return figures


def _copies(steps: MarkedSteps) -> Iterable[_Figures]:
    for name, columns in COPIES_BY.items():
        table = getattr(steps.recording, name)
        kinds = [Keys.of(getattr(table, each)) for each in columns]
        found = _of_work(steps.launched_in(name), kinds, table.duration_ns)
        yield found._replace(keys=[names_of_kinds(own) for own in found.keys])


def _of_table(keys: Sequence[tuple[Any, ...]], times: Numbers) -> _Figures:
    """The figures of times in ns: a row for each key, a column for each step."""
    key, step = np.indices(times.shape).reshape(2, -1)
    return _Figures(keys, key, step, np.zeros(times.size, np.int64), times.reshape(-1))


def _of_work(step: Numbers, keys: Sequence[Keys], duration_ns: Numbers) -> _Figures:
    """The figures of activities, given the step of each, -1 for none, and its keys."""
    own = np.flatnonzero(step >= 0)
    first, key = distinct_rows([column.codes[own] for column in keys])
    named = [[column.values[code] for code in column.codes[own[first]].tolist()] for column in keys]
    one_of_each, figure = distinct_rows([key, step[own]])
    spent = np.zeros(len(one_of_each), np.int64)
    np.add.at(spent, figure, duration_ns[own])
    return _Figures(
        list(zip(*named, strict=True)),
        key[one_of_each],
        step[own][one_of_each],
        np.bincount(figure, minlength=len(one_of_each)),
        spent,
    )


_FAMILIES = {
    "step": _Family("the duration of the step", (Column("part", "text", "The whole step."),), _step, has_counts=False),
    "time": _Family(
        "the time of all devices",
        (Column("part", "text", "Class of activity, or cause of idle time."),),
        _time,
        has_counts=False,
        counts_graphs=True,
    ),
    "op": _Family(
        "the durations of all GPU work",
        (
            Column(
                "path",
                "text",
                "Innermost annotation of the launches; (no annotation) for launches outside of annotations.",
            ),
        ),
        _ops,
    ),
    "kernel": _Family("the durations of all kernels", (_NAME,), _kernels("name")),
    "shape": _Family("the durations of all kernels", KERNELS_BY["shape"], _kernels("shape")),
    "idle": _Family(
        "the idle time of all devices",
        (Column("cause", "text", "Cause of the idle time of a device."),),
        _idle,
        has_counts=False,
        counts_graphs=True,
    ),
    "copies": _Family(
        "the durations of all copies and memsets",
        (
            Column("kind", "text", "Direction, or memset."),
            Column("source", "text", "Kind of memory that was read; empty for a memset."),
            Column("target", "text", "Kind of memory that was written."),
        ),
        _copies,
    ),
}
"""Value of ``by`` -> the division that is compared."""

BY = tuple(_FAMILIES)

_COUNTS = (
    Column("count_before", "ratio", "Mean number in the steps before."),
    Column("count_now", "ratio", "Mean number in the steps now."),
)
_CHANGE = (
    Column("before_ns", "ns", "Mean time in the steps before."),
    Column("now_ns", "ns", "Mean time in the steps now."),
    Column("change_ns", "ns", "now_ns minus before_ns; the changes of all rows add up to the whole change."),
    Column("ratio", "ratio", "now_ns divided by before_ns; with several steps, the ratio of their geometric means."),
    Column("low", "ratio", "Lower end of the ratio's 95 % interval."),
    Column("high", "ratio", "Upper end of the ratio's 95 % interval."),
    Column(
        "verdict",
        "text",
        "slower, faster, no change shown, small, new, gone, or not enough steps; empty: not tested.",
    ),
)


@dataclass(frozen=True)
class _Side:
    """The steps of one side."""

    recordings: list[MarkedSteps]
    """The steps of each recording, which counts as a run of its own."""

    @classmethod
    def of(cls, given: Asked) -> _Side:
        return cls([MarkedSteps(recording) for recording in recordings_in(given)])

    @property
    def runs(self) -> list[int]:
        """The number of steps of each recording."""
        return [len(steps) for steps in self.recordings]

    @property
    def windows(self) -> list[Window]:
        return [window for steps in self.recordings for window in steps.windows]

    def divided(self, family: _Family) -> _Divided:
        """The figures of a family."""
        figures: list[_Figures] = []
        first = 0
        for steps in self.recordings:
            figures += [each._replace(step=each.step + first) for each in family.of(steps)]
            first += len(steps)
        return _Divided(figures, first)

    def mean_step_ns(self) -> float:
        """The mean duration of a step."""
        return sum(window.length_ns for window in self.windows) / len(self.windows)


@dataclass(frozen=True)
class _Divided:
    """The figures of all steps of a side."""

    figures: list[_Figures]
    steps: int

    def keys(self) -> set[tuple[Any, ...]]:
        """The keys that have a number or a time in a step."""
        return {
            each.keys[place]
            for each in self.figures
            for place in distinct_values(each.key[(each.activities != 0) | (each.ns != 0)]).tolist()
        }

    def counts(self, rows: Mapping[tuple[Any, ...], int]) -> Numbers:
        """The numbers of activities: a row for each key, a column for each step."""
        return self._table(rows, [each.activities for each in self.figures])

    def times(self, rows: Mapping[tuple[Any, ...], int]) -> Numbers:
        """The ns: a row for each key, a column for each step."""
        return self._table(rows, [each.ns for each in self.figures])

    def _table(self, rows: Mapping[tuple[Any, ...], int], values: Sequence[Numbers]) -> Numbers:
        found = np.zeros((len(rows), self.steps), np.int64)
        for each, own in zip(self.figures, values, strict=True):
            row = np.array([rows.get(key, -1) for key in each.keys], np.int64)[each.key]
            is_shown = row >= 0
            np.add.at(found, (row[is_shown], each.step[is_shown]), own[is_shown])
        return found


def compare(
    before: Asked,
    now: Asked,
    *,
    by: str = "op",
    false_discoveries: float = FALSE_DISCOVERIES,
    least_effect: float = LEAST_EFFECT,
) -> Answer:
    """Changes from some steps to others, the largest first; the parts add up to the whole change.

    A recording whose steps are marked by annotations counts as these steps, any other recording as one step. With
    enough steps on both sides (4 for one key, 8 for 200) each key has an interval and a verdict: see
    `collector.statistics.changes`.

    Args:
        before: a recording, a loaded step or an ended session, or several.
        now: the steps to compare with those before, of the same types.
        by: ``step`` (its duration), ``time`` (busy time by what ran, idle time by cause), ``op``, ``kernel``,
            ``shape`` (kernels by launch shape), ``idle`` (causes) or ``copies``.
        false_discoveries: the false discovery rate, between 0 and 1: the share of the changes called slower or faster
            that are not changes, on average.
        least_effect: a change of less than this share of a step before is called small.

    Raises:
        ValueError: steps cannot be compared by ``by``, one side has no steps, ``false_discoveries`` is not a share, or
            ``least_effect`` is below 0.
        TypeError: ``false_discoveries`` or ``least_effect`` is not a number.
    """
    (answer,) = comparisons(before, now, by=[by], false_discoveries=false_discoveries, least_effect=least_effect)
    return answer


def comparisons(
    before: Asked,
    now: Asked,
    *,
    by: Sequence[str] = BY,
    false_discoveries: float = FALSE_DISCOVERIES,
    least_effect: float = LEAST_EFFECT,
) -> list[Answer]:
    """Several comparisons of the same steps; see `compare`."""
    if unknown := [each for each in by if each not in BY]:
        raise ValueError(f"by={unknown[0]!r}: steps are compared by {', '.join(BY)}")
    if not 0 < real_number("false_discoveries", false_discoveries) < 1:
        raise ValueError(f"false_discoveries={false_discoveries!r}: the rate lies between 0 and 1")
    if not real_number("least_effect", least_effect) >= 0:
        raise ValueError(f"least_effect={least_effect!r}: a share from 0 on is needed")
    sides = _Side.of(before), _Side.of(now)
    if not all(side.recordings for side in sides):
        raise ValueError("there are no steps to compare")
    return [_comparison(sides, each, false_discoveries, least_effect) for each in by]


def _comparison(sides: tuple[_Side, _Side], by: str, false_discoveries: float, least_effect: float) -> Answer:
    family = _FAMILIES[by]
    divided = [side.divided(family) for side in sides]
    counts = [len(side.windows) for side in sides]
    step_ns = sides[0].mean_step_ns()
    keys = sorted(set().union(*(side.keys() for side in divided)))
    row_of = {key: row for row, key in enumerate(keys)}
    times = [side.times(row_of) for side in divided]
    means = [_apportioned(table) for table in times]
    found, notes = _changes(times, [side.runs for side in sides], least_effect * step_ns, false_discoveries)
    change = means[1] - means[0]
    order = sorted(range(len(keys)), key=lambda row: (-abs(change[row]), -means[0][row], keys[row]))
    averages = [side.counts(row_of).mean(axis=1) for side in divided] if family.has_counts else []
    columns = (*family.keys, *(_COUNTS if family.has_counts else ()), *_CHANGE)
    rows = [
        (
            *keys[row],
            *(average[row] for average in averages),
            means[0][row],
            means[1][row],
            change[row],
            *_ratio(found[row] if found else None, means[0][row], means[1][row]),
            found[row].verdict if found else "",
        )
        for row in order
    ]
    values = {column.name: values_of([row[place] for row in rows], column.unit) for place, column in enumerate(columns)}
    return Answer(
        question="compare",
        definition=f"Means of {counted('{} step[|s]', counts[0])} before and {counts[1]} now, by {by}; the "
        f"parts add up to {family.whole}.",
        columns=columns,
        values=values,
        totals={
            "before_steps": counts[0],
            "now_steps": counts[1],
            **{name: int(values[name].sum()) for name in ("before_ns", "now_ns", "change_ns")},
        },
        windows=(*sides[0].windows, *sides[1].windows),
        losses=tuple(_losses("before", sides[0]) + _losses("now", sides[1])),
        notes=(
            *notes,
            *_of_models(sides),
            *_of_steps("before", sides[0]),
            *_of_steps("now", sides[1]),
            *_of_graphs("before", sides[0], family),
            *_of_graphs("now", sides[1], family),
        ),
    )


def _changes(
    times: Sequence[npt.NDArray[np.int64]], runs: Sequence[Sequence[int]], least_ns: float, false_discoveries: float
) -> tuple[list[Change], list[str]]:
    """The change of each key, and notes about missing verdicts; without scipy there are no changes."""
    try:
        optional_package("scipy")
    except MissingDependencyError as error:
        return [], [f"There are no intervals and no verdicts: {error}"]
    found = changes(*times, least=least_ns, rate=false_discoveries, runs=(runs[0], runs[1]))
    untested = sum(each.verdict == "not enough steps" for each in found)
    if untested:
        needed = next(steps for steps in count(2) if steps_suffice(steps, steps, untested, false_discoveries))
        have = " and ".join(str(table.shape[1]) for table in times)
        text = counted("Not enough steps: {} key[|s] need[s|]", untested)
        return found, [f"{text} {needed} steps of each side for a verdict, and there are {have}."]
    if is_spread_assumed(*runs) and any(not math.isnan(each.p_value) for each in found):
        return found, [_ASSUMED]
    return found, []


_ASSUMED = (
    f"Each side is one recording, so the variation from run to run is unknown: a standard deviation of "
    f"{ASSUMED_RUN_SPREAD:.0%} is assumed. Compare several recordings of each side to have it measured."
)


def _apportioned(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The mean of each row in whole ns, apportioned so that the means add up to the mean of all sums, rounded down."""
    sums, steps = times.sum(axis=1), times.shape[1]
    means: npt.NDArray[np.int64] = sums // steps
    missing = int(sums.sum() // steps - means.sum())
    means[np.argsort(-(sums % steps), kind="stable")[:missing]] += 1
    return means


def _ratio(change: Change | None, before: int, now: int) -> tuple[float, float, float]:
    """The ratio with its interval; NaN where one is unknown."""
    if change is not None and change.ratio is not None:
        return change.ratio.estimate, change.ratio.low, change.ratio.high
    return (now / before if before else math.nan), math.nan, math.nan


def _losses(name: str, side: _Side) -> list[str]:
    return [
        f"{name}: {loss}" if len(side.recordings) == 1 else f"{name}, step {number}: {loss}"
        for number, steps in enumerate(side.recordings)
        for loss in steps.recording.ledger.losses()
    ]


def _of_models(sides: tuple[_Side, _Side]) -> list[str]:
    before, now = (models_in_words([steps.recording for steps in side.recordings]) for side in sides)
    return [f"The GPUs differ: {before} before, {now} now."] if before and now and before != now else []


def _of_steps(name: str, side: _Side) -> list[str]:
    windows = ((steps.recording, window) for steps in side.recordings for window in steps.windows)
    return [f"{name}: {note}" for note in cut_steps(windows)]


def _of_graphs(name: str, side: _Side, family: _Family) -> list[str]:
    note = whole_graphs([steps.recording for steps in side.recordings], are_counted=family.counts_graphs)
    return [f"{name}: {note}"] if note else []
