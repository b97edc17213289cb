"""Unions of time intervals in whole nanoseconds, from which all figures of busy, idle and overlapping time are made.

The algorithms are those of native/analysis, which need no memory beyond their results and do not sort what is in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    import numpy.typing as npt

    Times = npt.NDArray[Any]
    Ints = npt.NDArray[np.int64]


class Union(NamedTuple):
    """Intervals ``[start, end)`` that do not touch each other, in order."""

    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, starts: Times, ends: Times) -> Union:
        """The union of any intervals; those that end before they start count as empty."""
        return cls(*convert_extension.interval_union(_int64(starts), _int64(ends)))

    @property
    def length(self) -> int:
        """The time that at least one interval covers."""
        return int((self.ends - self.starts).sum())

    def covered(self, starts: Times, ends: Times) -> Ints:
        """The length of each interval ``[start, end)`` that the union covers."""
        return convert_extension.covered_lengths(self.starts, self.ends, _int64(starts), _int64(ends))

    def overlap(self, other: Union) -> int:
        """The time that both unions cover."""
        return convert_extension.overlap_length(*self, *other)

    def without(self, other: Union) -> Union:
        """The part of the union that the other one leaves."""
        return Union(*convert_extension.interval_difference(*self, *other))

    def within(self, start: int, end: int) -> Union:
        """The part of the union between two times."""
        starts, ends = np.clip(self.starts, start, end), np.clip(self.ends, start, end)
        is_there = ends > starts
        return Union(starts[is_there], ends[is_there])

    def gaps(self, start: int, end: int) -> Union:
        """The intervals between ``start`` and ``end`` that the union leaves free."""
        begins, ends, _ = gaps_between(*self, start, end)
        return Union(begins, ends)


def gaps_between(starts: Times, ends: Times, start: int, end: int) -> tuple[Ints, Ints, Ints]:
    """The times between ``start`` and ``end`` that any intervals leave free.

    Returns:
        Starts and ends of these times, and the row of the interval that starts at each end; -1: none does.
    """
    return convert_extension.interval_gaps(_int64(starts), _int64(ends), start, end)


def covered_by_group(groups: Times, starts: Times, ends: Times, count: int) -> Ints:
    """For each of the groups 0 to ``count`` - 1 the time that at least one of its intervals covers.

    Args:
        groups: the group of each interval.
        starts: the start of each interval, ns.
        ends: the end of each interval, ns.
        count: the number of groups.
    """
    return convert_extension.covered_by_group(_int64(groups), _int64(starts), _int64(ends), count)


class GroupTimes(NamedTuple):
    """Times of groups of intervals in ns, one value for each group."""

    covered: Ints
    """The time in which at least one interval of the group ran."""
    alone: Ints
    """The time in which no interval of another group ran beside it."""

    @classmethod
    def of(cls, groups: Times, starts: Times, ends: Times, count: int) -> GroupTimes:
        """The times of the groups 0 to ``count`` - 1; arguments are those of `covered_by_group`."""
        return cls(*convert_extension.sweep_groups(_int64(groups), _int64(starts), _int64(ends), count))


def times_by_number(starts: Times, ends: Times, start: int, end: int) -> Ints:
    """Time between ``start`` and ``end`` in which 0, 1, 2, ... of the intervals ran at once."""
    return convert_extension.times_by_number(_int64(starts), _int64(ends), start, end)


def _int64(values: Times) -> Ints:
    return np.ascontiguousarray(values, np.int64)
