"""Unions of time intervals, in whole nanoseconds: what every figure of busy, idle and overlap is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Times = npt.NDArray[Any]


class Union(NamedTuple):
    """Intervals ``[start, end)`` that do not touch each other, in order."""

    starts: Times
    ends: Times

    @classmethod
    def of(cls, starts: Times, ends: Times) -> Union:
        """The union of any intervals; those that end before they start count as empty."""
        order = np.argsort(starts, kind="stable")
        starts = starts[order].astype(np.int64)
        reached = np.maximum.accumulate(np.maximum(ends[order].astype(np.int64), starts))
        is_first = np.concatenate([[True], starts[1:] > reached[:-1]])[: len(starts)]
        is_last = np.concatenate([is_first[1:], [True]])[: len(starts)]
        return cls(starts[is_first], reached[is_last])

    @property
    def length(self) -> int:
        """The time that at least one interval covers."""
        return int((self.ends - self.starts).sum())

    def covered(self, starts: Times, ends: Times) -> Times:
        """The length of each interval ``[start, end)`` that the union covers."""
        return self._until(ends) - self._until(starts)

    def overlap(self, other: Union) -> int:
        """The time that both unions cover."""
        return int(self.covered(other.starts, other.ends).sum())

    def gaps(self, start: int, end: int) -> Union:
        """The intervals between ``start`` and ``end`` that the union leaves free; it lies between the two."""
        begins, ends = np.append(start, self.ends), np.append(self.starts, end)
        return Union(begins[ends > begins], ends[ends > begins])

    def _until(self, times: Times) -> Times:
        """The length that the union covers before each time."""
        lengths = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        begun = np.searchsorted(self.starts, times, side="right")
        ends = np.concatenate([[np.iinfo(np.int64).min], self.ends])[begun]
        return lengths[begun] - np.where(begun > 0, np.maximum(ends, times) - times, 0)


def covered_by_group(groups: Times, starts: Times, ends: Times, count: int) -> Times:
    """For each of the groups 0 to ``count`` - 1 the time that at least one of its intervals covers.

    Args:
        groups: of each interval, the group that it belongs to.
        starts: of each interval.
        ends: of each interval.
        count: of groups.
    """
    covered = np.zeros(count, np.int64)
    if not len(groups):
        return covered
    # Each group is shifted past all times of the one before, so that one union serves all of them.
    first = int(starts.min())
    span = int(ends.max()) - first + 1
    shift = groups.astype(np.int64) * span - first
    union = Union.of(starts + shift, ends + shift)
    np.add.at(covered, union.starts // span, union.ends - union.starts)
    return covered
