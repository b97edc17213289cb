"""The rows of a table by an id, so that many parts of a recording can be cut without a pass over the table for each."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.distinct import are_among, distinct_values

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]

_ROWS_PER_ID = 16
"""With fewer rows than this for each wanted id, one pass over the table is faster than a search among sorted ids."""


class RowIndex:
    """The rows of a column of ids; they are sorted when a few ids of many are first asked for."""

    def __init__(self, ids: npt.NDArray[Any]) -> None:
        """Take the id of each row."""
        self._ids = ids

    def rows_of(self, wanted: npt.NDArray[Any]) -> Rows:
        """The rows with one of these ids, ascending."""
        if len(wanted) * _ROWS_PER_ID >= len(self._ids):
            return np.flatnonzero(are_among(self._ids, wanted))
        wanted = distinct_values(wanted)
        ids, order = self._sorted
        begins, ends = (np.searchsorted(ids, wanted, side=side) for side in ("left", "right"))
        return np.sort(order[numbers_in(begins, ends)])

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[Any], Rows]:
        """The sorted ids, and their rows."""
        order = np.argsort(self._ids, kind="stable")
        return self._ids[order], order


def numbers_in(begins: Rows, ends: Rows) -> Rows:
    """The numbers from each begin up to its end, which is not included, one range after the other."""
    counts = np.maximum(ends - begins, 0)
    numbers: Rows = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    return numbers


def united(some: Rows, others: Rows, count: int) -> Rows:
    """The rows that are among some or among others, ascending, of a table with ``count`` rows."""
    if (len(some) + len(others)) * _ROWS_PER_ID < count:
        return distinct_values(np.concatenate([some, others]))
    is_chosen = np.zeros(count, bool)
    is_chosen[some] = True
    is_chosen[others] = True
    return np.flatnonzero(is_chosen)
