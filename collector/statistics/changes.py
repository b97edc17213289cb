"""Changes of many figures from one set of steps to another: each figure has an interval and a verdict.

A step is the unit of replication, because the kernels and gaps within one step depend on each other. The ratio of the
means of a figure has Student's interval on logarithms, as `collector.statistics.verdicts.independent_ratio` computes
it. A figure that is 0 in some steps has no ratio, and the rank test of Mann and Whitney decides. The false discovery
rate over all figures of one comparison is controlled: Benjamini and Hochberg, *Controlling the False Discovery Rate*
(1995), by `scipy.stats.false_discovery_control`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collector.statistics.verdicts import CONFIDENCE, Interval, independent_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

ChangeVerdict = Literal["slower", "faster", "no change shown", "small", "new", "gone", "not enough steps"]
"""``small``: the figure is below the least change on both sides and was not tested, or the change that was shown is
below it; ``new`` and ``gone``: the figure is 0 in every step of the other side."""

FALSE_DISCOVERIES = 1 - CONFIDENCE
"""False discovery rate: the share of the shown changes that are no changes, on average."""


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
    before: npt.NDArray[Any], now: npt.NDArray[Any], *, least: float, rate: float = FALSE_DISCOVERIES
) -> list[Change]:
    """Return how each figure changed.

    Args:
        before: a row for each figure, a column for each step; no value is negative.
        now: the same figures in other steps.
        least: the smallest change of a mean that matters, in the unit of the figures.
        rate: the false discovery rate, more than 0 and less than 1.
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
