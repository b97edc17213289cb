"""Changes of many figures from one set of steps to another: each figure has an interval and a verdict.

A step is the unit of replication, because the kernels and gaps within one step depend on each other. The ratio of the
means of a figure has the interval of the difference of logarithms, see `collector.statistics.step_differences`. A
figure that is 0 in some steps has no ratio: the rank test of Mann and Whitney and the difference of the values have to
show a change. The false discovery rate over all figures of one comparison is controlled: Benjamini and Hochberg,
*Controlling the False Discovery Rate* (1995), by `scipy.stats.false_discovery_control`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collector.statistics.step_differences import difference_of_steps
from collector.statistics.verdicts import ASSUMED_RUN_SPREAD, CONFIDENCE, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

ChangeVerdict = Literal["slower", "faster", "no change shown", "small", "new", "gone", "not enough steps"]
"""``small``: the figure is below the least change on both sides, or 0 in every step, and was not tested; or the change
that was shown is below it. ``new`` and ``gone``: the figure is 0 in every step of the other side alone."""

FALSE_DISCOVERIES = 1 - CONFIDENCE
"""False discovery rate: the share of the shown changes that are not changes, on average."""


@dataclass(frozen=True)
class Change:
    """One figure now against itself before."""

    ratio: Interval | None
    """Ratio of the means; None: the figure is 0 in some step, or was not tested."""
    p_value: float
    """NaN: it was not tested."""
    verdict: ChangeVerdict


def discoveries(p_values: Sequence[float], rate: float = FALSE_DISCOVERIES) -> list[bool]:
    """Return which hypotheses are rejected at a false discovery rate of ``rate`` (Benjamini and Hochberg)."""
    if not len(p_values):
        return []
    from scipy.stats import false_discovery_control

    adjusted: Any = false_discovery_control(p_values)
    return [bool(each <= rate) for each in adjusted]


def steps_suffice(before: int, now: int, figures: int = 1, rate: float = FALSE_DISCOVERIES) -> bool:
    """Whether these numbers of steps suffice to show a change of one of ``figures`` figures, without assumptions.

    The smallest possible p-value of a rank test is 2 divided by the number of ways to choose the steps of one side. It
    has to reach the first threshold of Benjamini and Hochberg, which takes 4 steps on each side for one figure and 8
    for 200.
    """
    # Exact, because the number of ways exceeds the largest float from about 515 steps on each side on.
    return min(before, now) > 0 and 2 * max(figures, 1) <= Fraction(rate) * math.comb(before + now, now)


def changes(
    before: npt.NDArray[Any],
    now: npt.NDArray[Any],
    *,
    least: float,
    rate: float = FALSE_DISCOVERIES,
    runs: tuple[Sequence[int], Sequence[int]] | None = None,
) -> list[Change]:
    """Return how each figure changed.

    Args:
        before: a row for each figure, a column for each step; no value is negative.
        now: the same figures in other steps.
        least: the smallest change of a mean that matters, in the unit of the figures.
        rate: the false discovery rate, more than 0 and less than 1.
        runs: for each side the number of steps of each run; the steps are in the order of the runs, and in a run in
            order of time. None: each step is a run of its own.
    """
    means = [side.mean(axis=1) for side in (before, now)]
    is_there = [side.max(axis=1, initial=0) > 0 for side in (before, now)]
    is_tested = is_there[0] & is_there[1] & (np.maximum(*means) >= least)
    enough = steps_suffice(before.shape[1], now.shape[1], int(is_tested.sum()), rate)
    rows = np.flatnonzero(is_tested).tolist() if enough else []
    ends = [np.cumsum(side)[:-1] for side in runs or ([1] * before.shape[1], [1] * now.shape[1])]
    tests = {row: _test(np.split(before[row], ends[0]), np.split(now[row], ends[1])) for row in rows}
    shown = dict(zip(rows, discoveries([p_value for _, p_value in tests.values()], rate), strict=True))

    def verdict(row: int) -> ChangeVerdict:
        if is_there[0][row] != is_there[1][row]:
            return "new" if is_there[1][row] else "gone"
        if not is_tested[row]:
            return "small"
        if not enough:
            return "not enough steps"
        if not shown[row]:
            return "no change shown"
        difference = means[1][row] - means[0][row]
        return "small" if abs(difference) < least else "slower" if difference > 0 else "faster"

    return [Change(*tests.get(row, (None, math.nan)), verdict(row)) for row in range(len(before))]


def _test(before: Sequence[npt.NDArray[Any]], now: Sequence[npt.NDArray[Any]]) -> tuple[Interval | None, float]:
    """The ratio of one figure with its interval, and the p-value, from the steps of each run."""
    sides = [np.concatenate(list(runs)) for runs in (now, before)]
    if min(side.min() for side in sides) > 0:
        logarithms = [[np.log(run) for run in runs] for runs in (now, before)]
        spreads = (ASSUMED_RUN_SPREAD, ASSUMED_RUN_SPREAD)
        found = difference_of_steps(logarithms[0], logarithms[1], spreads, CONFIDENCE)
        with np.errstate(over="ignore"):
            ends = [float(np.exp(each)) for each in (found.estimate, found.low, found.high)]
        return Interval(*ends), found.p_value
    from scipy.stats import mannwhitneyu

    values = [[run.astype(np.float64) for run in runs] for runs in (now, before)]
    spreads = (ASSUMED_RUN_SPREAD * float(sides[0].mean()), ASSUMED_RUN_SPREAD * float(sides[1].mean()))
    by_values = difference_of_steps(values[0], values[1], spreads, CONFIDENCE)
    by_ranks = mannwhitneyu(*(np.sort(side) for side in sides))
    return None, max(by_values.p_value, float(by_ranks.pvalue))
