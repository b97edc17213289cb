"""The limits of possible times: of an activity, of a whole step, of a wall clock."""

from __future__ import annotations

from typing import Any

LARGEST_TIME_NS = 1 << 53
"""Viewers store times in doubles, in which every nanosecond is exact up to here, i.e. 104 days."""
FAR_NS = LARGEST_TIME_NS // 4
"""A start further than this (26 days) from the median of a step is damaged, and so is a longer duration. All starts
within it are within `LARGEST_TIME_NS` of each other. native/stepstats/possible_times.h has the same number, and applies
it to the nodes of a step (`collector.stepstats.node_times`)."""
_EARLIEST_WALL_NS = 10**18
"""September 2001, before any GPU could be traced."""


def is_possible(start_ns: Any, end_ns: Any) -> Any:
    """Whether a recorded activity can have these times (also for arrays). CUPTI reports unknown times as 0.

    The times of other files may count from 0: `collector.formats.capture_builder` moves them, and the clock of the
    recording states by how much.
    """
    return (start_ns > 0) & (end_ns >= start_ns)


def is_wall_time(time_ns: int) -> bool:
    """Whether a time can be a time since the epoch, as opposed to a time since an arbitrary moment."""
    return time_ns >= _EARLIEST_WALL_NS
