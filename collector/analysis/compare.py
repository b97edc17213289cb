"""Changes from some steps to others: ``collector.analysis.compare(before, now)``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.answer import Answer, Column
from collector.analysis.asked import recordings_in
from collector.analysis.busy_time import devices
from collector.analysis.copies import copies
from collector.analysis.idle import CAUSE_NAMES, idle
from collector.analysis.kernels import KEYS as KERNELS_BY
from collector.analysis.kernels import kernels
from collector.analysis.ops import ops
from collector.analysis.step_marks import cut_steps, path_within, split_at_marks
from collector.analysis.units import values_of
from collector.analysis.whole_graphs import whole_graphs
from collector.checked_arguments import real_number
from collector.errors import MissingDependencyError
from collector.recording.device_models import models_in_words
from collector.runtime.optional_packages import optional_package
from collector.statistics.changes import FALSE_DISCOVERIES, Change, changes, steps_suffice
from collector.statistics.step_differences import is_spread_assumed
from collector.statistics.verdicts import ASSUMED_RUN_SPREAD
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Window
    from collector.analysis.asked import Asked
    from collector.analysis.step_marks import MarkedStep
    from collector.recording.recording import Recording

LEAST_EFFECT = 0.01
"""The smallest change that is called slower or faster, as a share of the step before."""

_Figures: TypeAlias = "Iterator[tuple[tuple[Any, ...], int, int]]"
"""Key, number of activities, and ns."""

_NAME = Column("name", "text", "Short name of the kernel.")


@dataclass(frozen=True)
class _Family:
    """A way to divide a step by keys, whose figures add up to the whole."""

    whole: str
    """Name of the total to which the parts add up."""
    keys: tuple[Column, ...]
    of: Callable[[MarkedStep], _Figures]
    """The figures of a step: times of devices are those of its window, durations those of the work launched in it."""
    has_counts: bool = True
    counts_graphs: bool = False
    """Whether a launch of a CUDA graph that was recorded as a whole counts as an activity."""


def _step(step: MarkedStep) -> _Figures:
    yield ("step",), 0, step.window.length_ns


def _time(step: MarkedStep) -> _Figures:
    busy = {
        "compute": "compute_ns",
        "exposed graphs": "exposed_graph_ns",
        "exposed communication": "exposed_communication_ns",
        "exposed copies": "exposed_copy_ns",
        "exposed memsets": "exposed_memset_ns",
    }
    for row in devices(step.ran):
        yield from (((part,), 0, row[column]) for part, column in busy.items())
    yield from (((f"idle: {cause}",), 0, spent) for (cause,), _, spent in _idle(step))


def _idle(step: MarkedStep) -> _Figures:
    rows = list(idle(step.ran))
    for row in rows:
        yield from (((name,), 0, row[f"{cause}_ns"]) for cause, name in CAUSE_NAMES.items())
    for _ in step.devices - {row["device_id"] for row in rows}:  # no work of theirs ended the gap
        yield (CAUSE_NAMES["tail"],), 0, step.window.length_ns


def _ops(step: MarkedStep) -> _Figures:
    for row in ops(step.launched):
        yield (path_within(row["path"], step.marks) or NO_ANNOTATION,), row["self_activities"], row["self_ns"]


def _kernels(by: str) -> Callable[[MarkedStep], _Figures]:
    keys = [column.name for column in KERNELS_BY[by]]

    def figures(step: MarkedStep) -> _Figures:
        for row in kernels(step.launched, by=by):
            yield tuple(row[key] for key in keys), row["count"], row["total_ns"]

    return figures


def _copies(step: MarkedStep) -> _Figures:
    for row in copies(step.launched):
        yield (row["kind"], row["source"], row["target"]), row["count"], row["total_ns"]


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

    recordings: list[Recording]
    steps: list[MarkedStep]
    runs: list[int]
    """The number of steps of each recording, which counts as a run of its own."""

    @classmethod
    def of(cls, given: Asked) -> _Side:
        recordings = recordings_in(given)
        steps = [split_at_marks(recording) for recording in recordings]
        return cls(recordings, [step for own in steps for step in own], [len(own) for own in steps])

    @property
    def windows(self) -> list[Window]:
        return [step.window for step in self.steps]

    def divided(self, families: Sequence[_Family]) -> list[_Divided]:
        """The figures of each family; the cuts of a step are kept only until it is divided, as there may be many."""
        figures: list[list[dict[tuple[Any, ...], tuple[int, int]]]] = [[] for _ in families]
        for step in self.steps:
            for family, found in zip(families, figures, strict=True):
                found.append(_summed(family.of(step)))
            step.release()
        return [_Divided(found) for found in figures]

    def mean_step_ns(self) -> float:
        """The mean duration of a step."""
        return sum(step.window.length_ns for step in self.steps) / len(self.steps)


@dataclass(frozen=True)
class _Divided:
    """The figures of steps."""

    figures: list[dict[tuple[Any, ...], tuple[int, int]]]
    """For each step: key -> number and ns."""

    def table(self, keys: Sequence[tuple[Any, ...]], place: int) -> npt.NDArray[np.int64]:
        """Counts (place 0) or ns (place 1): a row for each of the keys of all steps, a column for each step."""
        rows = {key: row for row, key in enumerate(keys)}
        found = np.zeros((len(keys), len(self.figures)), np.int64)
        for column, step in enumerate(self.figures):
            for key, figures in step.items():
                found[rows[key], column] = figures[place]
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
    """Several comparisons of the same steps, which are cut out of their recordings once; see `compare`."""
    if unknown := [each for each in by if each not in BY]:
        raise ValueError(f"by={unknown[0]!r}: steps are compared by {', '.join(BY)}")
    if not 0 < real_number("false_discoveries", false_discoveries) < 1:
        raise ValueError(f"false_discoveries={false_discoveries!r}: the rate lies between 0 and 1")
    if not real_number("least_effect", least_effect) >= 0:
        raise ValueError(f"least_effect={least_effect!r}: a share from 0 on is needed")
    sides = _Side.of(before), _Side.of(now)
    if not all(side.steps for side in sides):
        raise ValueError("there are no steps to compare")
    divided = (side.divided([_FAMILIES[each] for each in by]) for side in sides)
    return [
        _comparison(sides, each, of_sides, false_discoveries, least_effect)
        for each, *of_sides in zip(by, *divided, strict=True)
    ]


def _comparison(
    sides: tuple[_Side, _Side], by: str, divided: Sequence[_Divided], false_discoveries: float, least_effect: float
) -> Answer:
    family = _FAMILIES[by]
    counts = [len(side.steps) for side in sides]
    step_ns = sides[0].mean_step_ns()
    keys = sorted({key for side in divided for step in side.figures for key in step})
    times = [side.table(keys, 1) for side in divided]
    means = [_apportioned(table) for table in times]
    found, notes = _changes(times, [side.runs for side in sides], least_effect * step_ns, false_discoveries)
    change = means[1] - means[0]
    order = sorted(range(len(keys)), key=lambda row: (-abs(change[row]), -means[0][row], keys[row]))
    averages = [side.table(keys, 0).mean(axis=1) for side in divided] if family.has_counts else []
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
        losses=tuple(_losses("before", sides[0].recordings) + _losses("now", sides[1].recordings)),
        notes=(
            *notes,
            *_of_models(sides),
            *_of_steps("before", sides[0]),
            *_of_steps("now", sides[1]),
            *_of_graphs("before", sides[0].recordings, family),
            *_of_graphs("now", sides[1].recordings, family),
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


def _summed(figures: _Figures) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Figures by key; devices and annotations of the same key count together."""
    counts, times = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for key, number, spent in figures:
        counts[key] += number
        times[key] += spent
    return {key: (counts[key], times[key]) for key in times if counts[key] or times[key]}


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


def _losses(side: str, recordings: Sequence[Recording]) -> list[str]:
    return [
        f"{side}: {loss}" if len(recordings) == 1 else f"{side}, step {number}: {loss}"
        for number, recording in enumerate(recordings)
        for loss in recording.ledger.losses()
    ]


def _of_models(sides: tuple[_Side, _Side]) -> list[str]:
    before, now = (models_in_words(side.recordings) for side in sides)
    return [f"The GPUs differ: {before} before, {now} now."] if before and now and before != now else []


def _of_steps(name: str, side: _Side) -> list[str]:
    recordings = [recording for recording, steps in zip(side.recordings, side.runs, strict=True) for _ in range(steps)]
    return [f"{name}: {note}" for note in cut_steps(zip(recordings, side.windows, strict=True))]


def _of_graphs(side: str, recordings: Sequence[Recording], family: _Family) -> list[str]:
    note = whole_graphs(recordings, are_counted=family.counts_graphs)
    return [f"{side}: {note}"] if note else []
