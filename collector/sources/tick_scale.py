"""Nanoseconds from the ticks of a timestamp callback: the rules of native/cupti/tick_scale.h, for cupti-python."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_OWN_CLOCK = 10**18
"""CUPTI's own clock is later than this, in nanoseconds since 1970; a counter of ticks is not."""
_SECOND_NS = 10**9
_GLANCE_S, _MEASUREMENT_S = 50e-6, 10e-3
_SLEW_DIVISOR, _MOST_TICKS_PER_NS, _MOST_NS_PER_TICK = 500, 100, 1000


@dataclass(frozen=True)
class ClockReading:
    """One instant on CUPTI's clock and on the system's clocks."""

    cupti: int
    wall_ns: int
    monotonic_ns: int
    uncertainty_ns: int


@dataclass(frozen=True)
class TickScale:
    """The rate of a clock that does not count nanoseconds, and one instant of it."""

    first: ClockReading
    ticks: int
    elapsed_ns: int

    def ns(self, ticks: int) -> int:
        """Nanoseconds of the system's clock; 0 and times of CUPTI's own clock stay as they are."""
        if ticks == 0 or ticks >= _OWN_CLOCK:
            return ticks
        return self.first.wall_ns + (ticks - self.first.cupti) * self.elapsed_ns // self.ticks

    def column(self, ticks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """`ns` for an array of ticks."""
        since = (ticks - self.first.cupti) * (self.elapsed_ns / self.ticks)
        is_own = (ticks == 0) | (ticks >= _OWN_CLOCK)
        return np.where(is_own, ticks, self.first.wall_ns + np.rint(since).astype(ticks.dtype))


def tick_scale(read: Callable[[], ClockReading]) -> TickScale | None:
    """The scale of a clock; None if it counts nanoseconds. Takes 10 ms for a counter of ticks."""
    first = read()
    if abs(first.cupti - first.wall_ns) < _SECOND_NS:
        return None
    scale = None
    for seconds in (_GLANCE_S, _MEASUREMENT_S):
        time.sleep(seconds)
        scale = _scale_between(first, read())
        if scale is None:
            return None
    return scale


def _scale_between(first: ClockReading, second: ClockReading) -> TickScale | None:
    ticks, elapsed_ns = second.cupti - first.cupti, second.monotonic_ns - first.monotonic_ns
    is_possible = 0 < ticks <= elapsed_ns * _MOST_TICKS_PER_NS and elapsed_ns <= ticks * _MOST_NS_PER_TICK
    if not is_possible or second.cupti >= _OWN_CLOCK or abs(ticks - elapsed_ns) <= elapsed_ns // _SLEW_DIVISOR:
        return None
    return TickScale(first, ticks, elapsed_ns)
