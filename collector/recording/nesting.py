"""Nested ranges of one thread: the parent of each range, and the ranges that are open at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]


class NestedRanges:
    """Ranges of many threads, each with a start and an end in ns.

    The parent of a range is the range of its thread that began last before it and ended no earlier. Of two ranges with
    the same times, the one with the smaller row is the parent.
    """

    def __init__(self, threads: Numbers, starts: Numbers, ends: Numbers) -> None:
        """Determine the parents. All arrays have the same length; a row is an index into them."""
        self._ends = ends
        self._order = np.lexsort((np.arange(len(starts)), -ends, starts, threads))
        self._threads, self._starts = threads[self._order], starts[self._order]
        self.parents: Numbers
        """The row of each range's parent, or -1 if it has none."""
        self.depths: Numbers
        """The number of ranges that enclose each range."""
        self.parents, self.depths = convert_extension.nested_ranges(self._order, threads, ends)

    def innermost_open(self, threads: Numbers, times_ns: Numbers) -> Numbers:
        """The rows of the innermost ranges open on these threads at these times; -1 if none was open.

        A range is open from its start to its end, both included.
        """
        if not len(self._order):
            return np.full(len(times_ns), -1, np.int64)
        # Threads and times are replaced by ranks, so that both fit into one number for a binary search.
        distinct_threads, thread_ranks = np.unique(self._threads, return_inverse=True)
        distinct_starts, start_ranks = np.unique(self._starts, return_inverse=True)
        keys = thread_ranks * (len(distinct_starts) + 1) + start_ranks
        asked_threads = np.searchsorted(distinct_threads, threads)
        is_known = distinct_threads[np.minimum(asked_threads, len(distinct_threads) - 1)] == threads
        asked = asked_threads * (len(distinct_starts) + 1) + np.searchsorted(distinct_starts, times_ns, side="right")
        places = np.searchsorted(keys, asked, side="left") - 1
        is_known &= (places >= 0) & (thread_ranks[places] == asked_threads)
        found = np.where(is_known, self._order[places], -1)
        while True:
            is_over = (found >= 0) & (self._ends[found] < times_ns)
            if not is_over.any():
                return found
            found[is_over] = self.parents[found[is_over]]


def nested_annotations(table: Table) -> tuple[Numbers, Numbers]:
    """For each annotation of a table the row of its parent, or -1, and the number of annotations that enclose it.

    An annotation without length encloses nothing; its parent is the innermost one that was open then.
    """
    parents, depths = np.full(len(table), -1, np.int64), np.zeros(len(table), np.int64)
    threads = table.thread_id.astype(np.int64)
    own, moments = np.flatnonzero(table.end_ns > table.start_ns), np.flatnonzero(table.end_ns == table.start_ns)
    nested = NestedRanges(threads[own], table.start_ns[own], table.end_ns[own])
    for rows, around in (
        (own, nested.parents),
        (moments, nested.innermost_open(threads[moments], table.start_ns[moments])),
    ):
        is_inside = around >= 0
        parents[rows[is_inside]] = own[around[is_inside]]
        depths[rows[is_inside]] = nested.depths[around[is_inside]] + 1
    return parents, depths
