"""Ids that are unique within one process only, as numbers that are unique among all processes of a recording.

CUPTI counts contexts, launches and graphs in each process, and the threads and GPUs of two machines may have the same
numbers. A recording that holds several processes would join the launches of one with the work of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.distinct import are_among, distinct_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import numpy.typing as npt

    Numbers = npt.NDArray[Any]


class ProcessNumbers:
    """Ids of several processes, renumbered so that they are unique among all of them.

    If several processes use an id, the process with the smallest number keeps it, so that the ids of a single process
    do not change. The others get the smallest numbers that no process uses.
    """

    def __init__(
        self,
        parts: Iterable[tuple[Numbers, Numbers]],
        *,
        shared: Collection[int] = (0,),
        first: Collection[tuple[Numbers, Numbers]] = (),
    ) -> None:
        """Collect the processes and ids of all rows.

        Args:
            parts: the processes and the ids of some rows; all ids are of one type.
            shared: ids that mean the same in every process, as 0 does where it means none.
            first: ids of processes, among those of the parts, that keep their numbers before the ids of other
                processes do, and get the smaller numbers where they cannot.
        """
        processes, ids = (np.concatenate(each) for each in zip(*parts, strict=True))
        self._processes, self._ids = distinct_values(processes), distinct_values(ids)
        self._keys = distinct_values(self._key(processes, ids))
        own = self._ids[self._keys // max(len(self._processes), 1)]
        order = np.arange(len(own))
        is_later = np.ones(len(own), bool)
        if first:
            is_later = ~are_among(self._keys, self._key(*(np.concatenate(each) for each in zip(*first, strict=True))))
            order = np.lexsort((is_later, own))
        is_taken = np.zeros(len(own), bool)
        is_taken[order[1:]] = own[order[1:]] == own[order[:-1]]
        for number in shared:
            is_taken &= own != number
        taken = np.flatnonzero(is_taken)
        taken = taken[np.argsort(is_later[taken], kind="stable")]
        self._numbers = own.copy()
        self._numbers[taken] = self._unused(len(taken), shared)

    def _unused(self, count: int, shared: Collection[int]) -> Numbers:
        """The smallest numbers from 1 on that no process uses."""
        numbers = np.arange(1, len(self._ids) + len(shared) + count + 1).astype(self._ids.dtype)
        taken = np.concatenate([self._ids, np.array(shared, self._ids.dtype)])
        unused: Numbers = numbers[~are_among(numbers, taken)][:count]
        return unused

    def _key(self, processes: Numbers, ids: Numbers) -> Numbers:
        """One number for each pair of id and process, ordered by id, then by process."""
        ranks = np.searchsorted(self._ids, ids)
        return ranks * len(self._processes) + np.searchsorted(self._processes, processes)

    def of(self, processes: Numbers, ids: Numbers) -> Numbers:
        """The new numbers of collected ids."""
        found: Numbers = self._numbers[np.searchsorted(self._keys, self._key(processes, ids))]
        return found
