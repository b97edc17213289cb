"""The limits of possible times: of an activity, of a whole step, of a wall clock."""

from __future__ import annotations

from typing import Any

LARGEST_TIME_NS = 1 << 53
"""Viewers keep times in doubles: up to here, which is 104 days, every nanosecond is exact."""
FAR_NS = LARGEST_TIME_NS // 4
"""A start further than this (26 days) from the middle one of a step is damaged, as is a longer duration; two starts
within it of the middle are within `LARGEST_TIME_NS` of each other. native/draw/selection.h has the same number."""
_EARLIEST_WALL_NS = 10**18
"""September 2001: before any GPU could be traced."""


def is_possible(start_ns: Any, end_ns: Any) -> Any:
    """Whether an activity can have these times, or which of many can: CUPTI gives 0 for what it does not know."""
    return (start_ns > 0) & (end_ns >= start_ns)


def is_near(start_ns: int, duration_ns: int, middle_ns: int) -> bool:
    """Whether an activity can belong to a step whose middle start is ``middle_ns``."""
    return abs(start_ns - middle_ns) <= FAR_NS and duration_ns <= FAR_NS


def is_wall_time(time_ns: int) -> bool:
    """Whether a time can be one since the epoch, rather than one since a moment that only its recorder knew."""
    return time_ns >= _EARLIEST_WALL_NS
