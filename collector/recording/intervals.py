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
        """How much of each interval ``[start, end)`` the union covers."""
        return self._until(ends) - self._until(starts)

    def overlap(self, other: Union) -> int:
        """The time that both unions cover."""
        return int(self.covered(other.starts, other.ends).sum())

    def _until(self, times: Times) -> Times:
        """How much the union covers before each time."""
        lengths = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        begun = np.searchsorted(self.starts, times, side="right")
        ends = np.concatenate([[np.iinfo(np.int64).min], self.ends])[begun]
        return lengths[begun] - np.where(begun > 0, np.maximum(ends, times) - times, 0)
