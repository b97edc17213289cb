"""What samples say: medians and ratios with intervals, and verdicts that keep their error under control.

Rounds are blocks: in each, every arm runs once, next to each other in time. What slows a whole round (a drifting clock,
a warm card) slows all its arms alike and leaves their ratio alone, so arms are compared by the ratios within rounds.

Sources: the interval of a median from order statistics, which assumes no distribution, is Hahn and Meeker, *Statistical
Intervals* (1991), as `scipy.stats.quantile_test` computes it; its p-value is the sign test's. Holm's step-down
procedure is Holm, *A Simple Sequentially Rejective Multiple Test Procedure* (1979).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

Verdict = Literal["faster", "slower", "same", "not enough data"]
"""What a comparison says of an arm against the reference arm."""

CONFIDENCE = 0.95
"""Confidence of every interval, and 1 - the error rate of all verdicts of one report together."""
_RESAMPLES = 2000
_FENCE = 3.0  # interquartile ranges beyond the quartiles: what Tukey calls far out


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the estimate; infinite where there is no interval."""
        if not np.isfinite(self.high - self.low) or self.estimate == 0:
            return float("inf")
        return (self.high - self.low) / 2 / abs(self.estimate)

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals have a value in common."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Ratio:
    """An arm's time over the reference's, from the rounds in which both ran."""

    interval: Interval
    p_value: float
    """Probability of rounds at least this one-sided if the two took equally long; two-sided sign test."""
    rounds: int


def median(samples: npt.ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the median of ``samples`` and its distribution-free interval.

    With too few samples for any interval (fewer than 6 at 95 %) its ends are infinite.

    Raises:
        ValueError: there are no samples, or one is not a finite number.
    """
    values = _finite(samples)
    estimate = float(np.median(values))
    ranks = _ranks(len(values), confidence)
    if ranks is None:
        return Interval(estimate, float("-inf"), float("inf"))
    ordered = np.sort(values)
    return Interval(estimate, float(ordered[ranks[0]]), float(ordered[ranks[1]]))


def paired_ratio(arm: npt.ArrayLike, reference: npt.ArrayLike, confidence: float = CONFIDENCE) -> Ratio:
    """Return the median ratio of ``arm`` to ``reference``, which are paired by round.

    Raises:
        ValueError: the two differ in length, are empty, or hold a value that is not positive and finite.
    """
    from scipy.stats import quantile_test

    logarithms = _log_ratios(arm, reference)
    result: Any = quantile_test(logarithms, q=0.0, p=0.5, alternative="two-sided")
    return Ratio(paired_interval(arm, reference, confidence), float(result.pvalue), len(logarithms))


def paired_interval(arm: npt.ArrayLike, reference: npt.ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Return the median ratio with its interval, without a test; see `paired_ratio`."""
    found = median(_log_ratios(arm, reference), confidence)
    return Interval(*(float(np.exp(each)) for each in (found.estimate, found.low, found.high)))


def _log_ratios(arm: npt.ArrayLike, reference: npt.ArrayLike) -> npt.NDArray[np.float64]:
    numerator, denominator = _finite(arm), _finite(reference)
    if len(numerator) != len(denominator):
        raise ValueError(f"paired samples differ in number: {len(numerator)} and {len(denominator)}")
    if (numerator <= 0).any() or (denominator <= 0).any():
        raise ValueError("a ratio needs positive times")
    return np.asarray(np.log(numerator / denominator))


def independent_ratio(
    now: npt.ArrayLike, before: npt.ArrayLike, confidence: float = CONFIDENCE, seed: int = 0
) -> Ratio:
    """Return the ratio of the medians of two runs, which have no rounds in common.

    The interval is the percentile bootstrap's (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter
    13; `scipy.stats.bootstrap`), the p-value Mann and Whitney's. Both know only what varies within a run.

    Raises:
        ValueError: there are fewer than two samples of either, or one is not positive and finite.
    """
    from scipy.stats import bootstrap, mannwhitneyu

    numerator, denominator = _finite(now), _finite(before)
    if min(len(numerator), len(denominator)) < 2:
        raise ValueError("a ratio of two runs needs two samples of each")
    if (numerator <= 0).any() or (denominator <= 0).any():
        raise ValueError("a ratio needs positive times")

    def of_medians(one: Any, other: Any, axis: int = -1) -> Any:
        return np.median(one, axis=axis) / np.median(other, axis=axis)

    result: Any = bootstrap(
        (numerator, denominator),
        of_medians,
        n_resamples=_RESAMPLES,
        confidence_level=confidence,
        method="percentile",
        vectorized=True,
        random_state=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    p_value = float(mannwhitneyu(numerator, denominator).pvalue)
    estimate = float(of_medians(numerator, denominator))
    return Ratio(Interval(estimate, float(interval.low), float(interval.high)), p_value, len(numerator))


def verdicts(ratios: Sequence[Ratio], same_within: Sequence[float], error: float = 1 - CONFIDENCE) -> list[Verdict]:
    """Return what each ratio says, so that all together are wrong with probability ``error`` at most (Holm).

    Args:
        ratios: the comparisons of one report.
        same_within: for each, how far from 1 its whole interval may lie to be called the same.
        error: probability that any of them calls equal arms different.
    """
    rejected = holm([ratio.p_value for ratio in ratios], error)
    return [
        _verdict(ratio.interval, differs, within)
        for ratio, differs, within in zip(ratios, rejected, same_within, strict=True)
    ]


def outliers(samples: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which samples lie far outside the bulk: beyond the quartiles by three interquartile ranges (Tukey).

    They are for showing. Nothing leaves them out: the median does not mind them.
    """
    values = _finite(samples)
    first, third = np.percentile(values, [25, 75])
    reach = _FENCE * (third - first)
    return np.asarray((values < first - reach) | (values > third + reach))


def is_stationary(samples: npt.ArrayLike, window: int) -> bool:
    """Return whether the last ``window`` samples look like the ``window`` before: the warm-up is over.

    Their medians' intervals must overlap. False while there are not two windows yet.
    """
    values = np.asarray(samples, float)
    if len(values) < 2 * window:
        return False
    return median(values[-window:]).overlaps(median(values[-2 * window : -window]))


def _finite(samples: npt.ArrayLike) -> npt.NDArray[np.float64]:
    values = np.asarray(samples, np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("there are no samples")
    if not np.isfinite(values).all():
        raise ValueError("a sample is not a finite number")
    return values


@functools.cache
def _ranks(count: int, confidence: float) -> tuple[int, int] | None:
    """Which of ``count`` samples in order are the ends of the median's interval; None where there are too few."""
    from scipy.stats import quantile_test

    result: Any = quantile_test(np.arange(count), q=0, p=0.5)
    interval = result.confidence_interval(confidence_level=confidence)
    if not np.isfinite(interval.low) or not np.isfinite(interval.high):
        return None
    return int(interval.low), int(interval.high)


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Return which hypotheses fall when the error of all together is to stay below ``error``."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        if p_values[index] > error / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def _verdict(interval: Interval, differs: bool, same_within: float) -> Verdict:
    if 1 - same_within <= interval.low and interval.high <= 1 + same_within:
        return "same"
    if not differs or interval.low <= 1 <= interval.high:
        return "not enough data"
    return "faster" if interval.estimate < 1 else "slower"
