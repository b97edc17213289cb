"""Changes of many figures from one set of steps to another, each with an interval and all together with a verdict.

A step is the unit of replication: what happens within one step (its kernels, its gaps) depends on each other. The ratio
of a figure's means has Student's interval on logarithms, as `collector.statistics.verdicts.independent_ratio` gives it;
where a figure is 0 in some steps there is no ratio, and the rank test of Mann and Whitney decides. Over all figures of
one comparison the share of false discoveries is kept: Benjamini and Hochberg, *Controlling the False Discovery Rate*
(1995), by `scipy.stats.false_discovery_control`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collector.statistics.verdicts import CONFIDENCE, Interval, independent_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

ChangeVerdict = Literal["slower", "faster", "no change shown", "small", "new", "gone", "not enough steps"]
"""``small``: less than what matters, as a figure of both sides, which is not tested then, or as a change that was
shown; ``new`` and ``gone``: in no step of the other side."""

FALSE_DISCOVERIES = 1 - CONFIDENCE
"""Share of the changes that are shown and are none, on average."""


@dataclass(frozen=True)
class Change:
    """One figure now against itself before."""

    ratio: Interval | None
    """Of its means; None: it is 0 in some step, or there is one step of each side."""
    p_value: float
    """NaN: it was not tested."""
    verdict: ChangeVerdict


def discoveries(p_values: Sequence[float], rate: float = FALSE_DISCOVERIES) -> list[bool]:
    """Return which hypotheses fall when at most a share of ``rate`` of those that fall is to be true."""
    if not len(p_values):
        return []
    from scipy.stats import false_discovery_control

    adjusted: Any = false_discovery_control(p_values)
    return [bool(each <= rate) for each in adjusted]


def steps_suffice(before: int, now: int, figures: int = 1, rate: float = FALSE_DISCOVERIES) -> bool:
    """Whether so many steps of each side can show a change of one of so many figures, without assumptions.

    The least p-value of a rank test, 2 by the number of ways to choose the steps of one side, has to reach the first
    threshold of Benjamini and Hochberg: 4 steps of each side for one figure, 8 for 200.
    """
    return min(before, now) > 0 and 2 * max(figures, 1) <= rate * math.comb(before + now, now)


def changes(
    before: npt.NDArray[Any], now: npt.NDArray[Any], *, least: float, rate: float = FALSE_DISCOVERIES
) -> list[Change]:
    """Return how each figure changed.

    Args:
        before: a row for each figure, a column for each step; none is negative.
        now: the same figures in other steps.
        least: the change of a mean that matters, in the unit of the figures.
        rate: share of the changes that are shown and are none, on average.
    """
    means = [side.mean(axis=1) for side in (before, now)]
    is_new, is_gone = before.max(axis=1, initial=0) == 0, now.max(axis=1, initial=0) == 0
    is_tested = ~(is_new | is_gone) & (np.maximum(*means) >= least)
    enough = steps_suffice(before.shape[1], now.shape[1], int(is_tested.sum()), rate)
    rows = np.flatnonzero(is_tested).tolist() if enough else []
    tests = {row: _test(before[row], now[row]) for row in rows}
    shown = dict(zip(rows, discoveries([p_value for _, p_value in tests.values()], rate), strict=True))

    def verdict(row: int) -> ChangeVerdict:
        if is_new[row] or is_gone[row]:
            return "new" if is_new[row] else "gone"
        if not is_tested[row]:
            return "small"
        if not enough:
            return "not enough steps"
        if not shown[row]:
            return "no change shown"
        difference = means[1][row] - means[0][row]
        return "small" if abs(difference) < least else "slower" if difference > 0 else "faster"

    return [Change(*tests.get(row, (None, math.nan)), verdict(row)) for row in range(len(before))]


def _test(before: npt.NDArray[Any], now: npt.NDArray[Any]) -> tuple[Interval | None, float]:
    """The ratio of one figure with its interval, and the p-value; both are the same in any order of the steps."""
    before, now = np.sort(before), np.sort(now)  # sums of floating-point numbers depend on the order
    if before.min() > 0 and now.min() > 0:
        found = independent_ratio([[each] for each in now], [[each] for each in before])
        return found.interval, found.p_value
    from scipy.stats import mannwhitneyu

    return None, float(mannwhitneyu(now, before).pvalue)
