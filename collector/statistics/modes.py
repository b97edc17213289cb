"""Detection of two modes in samples: a median between them describes neither.

The test statistic is the dip: the distance of the samples' distribution function from the nearest one with a single
mode (Hartigan and Hartigan, *The Dip Test of Unimodality*, Annals of Statistics 13(1), 1985). It assumes no shape. Of
all distributions with one mode, it most often mistakes the uniform one for two modes, so its error rate there is a
bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

GPU_TICK_NS = 32.0
"""Step of a GPU's timestamps: durations recorded on V100 and A100 are multiples of it, within 2 ns."""
FEWEST_SAMPLES = 30
_CRITICAL = 0.72
"""Threshold of sqrt(n) times the dip, which one in a thousand uniform samples of at least 30 exceeds (simulated)."""
_SMALLEST_SHARE = 0.05  # smaller groups of samples count as outliers
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Mode:
    """One of the values around which samples cluster."""

    share: float
    """Share of the samples, between 0 and 1."""
    median: float
    """Median of the mode's samples, in their unit."""


def two_modes(samples: npt.ArrayLike, *, resolution: float = 0.0, apart: float = 0.01) -> tuple[Mode, Mode] | None:
    """Return the two modes of positive ``samples``, the lower first; None if the samples have one mode.

    Args:
        samples: in any order and unit.
        resolution: step of their clock, in their unit. Values rounded to multiples of the step would be mistaken for
            modes, so every sample is spread evenly over one step.
        apart: the minimum share by which the upper mode must exceed the lower one.
    """
    values = np.sort(np.asarray(samples, np.float64))
    if len(values) < FEWEST_SAMPLES or values[0] == values[-1]:
        return None
    # Multiples of the golden ratio spread the samples of every run of ties evenly and reproducibly.
    offsets = np.arange(1, len(values) + 1) * _GOLDEN % 1 - 0.5
    spread = np.sort(values + offsets * max(resolution, float(np.finfo(np.float64).eps) * values[-1]))
    if dip(spread) * len(values) ** 0.5 <= _CRITICAL:
        return None
    below = _split(np.log(values))
    modes = tuple(Mode(len(part) / len(values), float(np.median(part))) for part in (values[:below], values[below:]))
    return (modes[0], modes[1]) if modes[1].median > (1 + apart) * modes[0].median else None


def dip(ordered: npt.NDArray[np.float64]) -> float:
    """Return the dip of samples in ascending order without ties: between 1 / 2n, which fits one mode, and 1 / 4.

    The nearest distribution function with one mode is convex up to the mode and concave after it. Both parts are taken
    from the hulls of the samples' own function; the mode lies where these are furthest apart, and the hulls of the rest
    are computed again, until they are closer together than the distance found outside.
    """
    count = len(ordered)
    ranks = np.arange(1.0, count + 1)
    found, low, high = 1.0, 0, count - 1  # twice the dip, in samples
    while True:
        part, rank = ordered[low : high + 1], ranks[low : high + 1]
        convex = _hull(part, rank - 1)
        concave = _hull(part, -rank)
        lower = np.interp(part, part[convex], rank[convex] - 1)
        upper = np.interp(part, part[concave], rank[concave])
        knots = np.union1d(convex, concave)
        widest = int(knots[np.argmax(upper[knots] - lower[knots])])
        if upper[widest] - lower[widest] <= found:
            break
        begin = int(convex[np.searchsorted(convex, widest, side="right") - 1])
        end = int(concave[np.searchsorted(concave, widest)])
        found = max(
            found,
            float((rank - lower)[: begin + 1].max()),
            float((upper - rank + 1)[end:].max()),
        )
        if begin == 0 and end == len(part) - 1:
            break
        low, high = low + begin, low + end
    return found / (2 * count)


def _hull(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The indices of the corners of the lower convex hull, in order (Andrew's monotone chain)."""
    xs: Sequence[float] = x.tolist()
    ys: Sequence[float] = y.tolist()
    corners: list[int] = []
    for index in range(len(xs)):
        while len(corners) > 1:
            before, last = corners[-2], corners[-1]
            rise, run = ys[last] - ys[before], xs[last] - xs[before]
            if rise * (xs[index] - xs[before]) < (ys[index] - ys[before]) * run:
                break
            corners.pop()
        corners.append(index)
    return np.asarray(corners, np.int64)


def _split(ordered: npt.NDArray[np.float64]) -> int:
    """The number of values in the lower of the two groups with the smallest distances to their medians."""
    count = len(ordered)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    fewest = max(1, round(_SMALLEST_SHARE * count))
    splits = np.arange(fewest, count - fewest + 1)

    def distance(begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The total distance of the values begin..end from their median: the upper half minus the lower half."""
        half = (end - begin) // 2
        return np.asarray(sums[end] - sums[end - half] - sums[begin + half] + sums[begin])

    zero, whole = np.zeros_like(splits), np.full_like(splits, count)
    return int(splits[np.argmin(distance(zero, splits) + distance(splits, whole))])
