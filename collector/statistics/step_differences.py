"""The difference between the mean steps of two sides, each of which has one or several runs.

The steps of one run vary less than steps of different runs, and a slow step is often followed by a slow one. Two
errors are therefore estimated, and the larger one counts:

* of the steps: Welch, *The Generalization of Student's Problem* (1947), with a variance for each side. Where a run has
  several steps, their number is divided by (1 + r) / (1 - r), with the correlation r of successive steps, as the
  variance of the mean of an autoregressive process of first order requires: Priestley, *Spectral Analysis and Time
  Series* (1981), section 5.3; r is freed of its bias: Marriott and Pope, *Bias in the Estimation of Autocorrelations*
  (1954). A side of one step has the variance of the other side.
* of the runs, if there are more than two and some have several steps: Student's, over the means of the runs, with one
  variance for both sides because they are few. With one run on each side the variation between runs is unknown;
  `collector.statistics.verdicts.ASSUMED_RUN_SPREAD` is added to the error of the steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


class Difference(NamedTuple):
    """The mean of one side minus that of the other, with its confidence interval."""

    estimate: float
    low: float
    high: float
    p_value: float
    """Two-sided probability of steps at least this far apart if both sides were alike."""


def is_spread_assumed(*sides: Sequence[int]) -> bool:
    """Whether the variation between runs is assumed: each side has one run, of one side with several steps.

    Args:
        sides: the numbers of steps of the runs of each side.
    """
    return all(len(side) == 1 for side in sides) and any(sum(side) > 1 for side in sides)


def difference_of_steps(
    now: Sequence[Floats], before: Sequence[Floats], spreads: tuple[float, float], confidence: float
) -> Difference:
    """Return how far the mean step now is above the mean step before; the order of runs does not matter.

    Args:
        now: the values of the steps of each run, in order of time.
        before: the same for the other side.
        spreads: standard deviations between the runs of each side, which count where `is_spread_assumed`.
        confidence: the confidence level of the interval, e.g. 0.95.
    """
    sides = [_Side(now), _Side(before)]
    difference = sides[0].mean - sides[1].mean
    variances = [side.variance_of_mean(other) for side, other in zip(sides, sides[::-1], strict=True)]
    freedoms = [side.freedom or other.freedom for side, other in zip(sides, sides[::-1], strict=True)]
    parts = [(variance, freedom) for variance, freedom in zip(variances, freedoms, strict=True) if variance]
    known = sum(variance for variance, _ in parts)
    variance = known
    if is_spread_assumed(*([len(run) for run in runs] for runs in (now, before))):
        variance += sum(spread**2 for spread in spreads)
    freedom = variance**2 / sum(part**2 / free for part, free in parts) if parts else math.inf
    reach, p_value = _student(difference, math.sqrt(variance), freedom, confidence)
    if len(now) + len(before) > 2 and any(len(run) > 1 for run in (*now, *before)):
        between = _between_runs(sides[0].run_means, sides[1].run_means, confidence)
        reach, p_value = max(reach, between[0]), max(p_value, between[1])
    return Difference(difference, difference - reach, difference + reach, p_value)


class _Side:
    """The steps of one side."""

    def __init__(self, runs: Sequence[Floats]) -> None:
        values = np.sort(np.concatenate(list(runs)))  # sums of floating-point numbers depend on the order
        self.mean = float(values.mean())
        self.run_means = sorted(float(np.mean(run)) for run in runs)
        count = len(values)
        self._variance = float(values.var(ddof=1)) if count > 1 else math.nan
        correlation = _correlation_of_successors(runs)
        self._independent = max(count * (1 - correlation) / (1 + correlation), min(count, 2))
        self.freedom = self._independent - 1
        """Degrees of freedom of the variance; 0: a single step has none."""

    def variance_of_mean(self, other: _Side) -> float:
        """The squared error of the mean; of a single step with the variance of the other side."""
        variance = self._variance if self.freedom else other._variance
        return (0.0 if math.isnan(variance) else variance) / self._independent


def _correlation_of_successors(runs: Sequence[Floats]) -> float:
    """The correlation of successive steps of a run; 0 if it is negative, or no run has three steps."""
    away = [run - run.mean() for run in runs if len(run) > 2]
    squares = math.fsum(value for run in away for value in (run * run).tolist())
    if not squares:
        return 0.0
    products = math.fsum(value for run in away for value in (run[1:] * run[:-1]).tolist())
    found = products / squares
    steps = sum(len(run) for run in away) / len(away)
    return min(max(found + (1 + 3 * found) / steps, 0.0), _HIGHEST_CORRELATION)


_HIGHEST_CORRELATION = 0.98


def _between_runs(now: Sequence[float], before: Sequence[float], confidence: float) -> tuple[float, float]:
    """Half of the interval of the difference of the means of runs, and its p-value."""
    means = [math.fsum(side) / len(side) for side in (now, before)]
    squares = math.fsum((each - mean) ** 2 for side, mean in zip((now, before), means, strict=True) for each in side)
    freedom = len(now) + len(before) - 2
    error = math.sqrt(squares / freedom * (1 / len(now) + 1 / len(before)))
    return _student(means[0] - means[1], error, freedom, confidence)


def _student(difference: float, error: float, freedom: float, confidence: float) -> tuple[float, float]:
    """Half of the interval of a difference with this standard error, and its p-value."""
    from scipy.stats import t

    if error == 0:
        return 0.0, float(difference == 0)
    freedom = min(freedom, _NORMAL)
    return float(t.ppf((1 + confidence) / 2, freedom)) * error, 2 * float(t.sf(abs(difference) / error, freedom))


_NORMAL = 1e9
"""Degrees of freedom from which on Student's distribution is the normal one."""
