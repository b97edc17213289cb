"""Waits of the host for devices, by thread: a wait of one thread does not keep another thread from launching."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.distinct import distinct_codes, grouped_rows
from collector.recording.intervals import Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

UNKNOWN_THREAD = 0
"""The number of a thread that is not known."""


def thread_numbers(process_ids: npt.NDArray[Any], thread_ids: npt.NDArray[Any]) -> Ints:
    """A number for each thread of a process, never negative, in the order of processes and threads."""
    numbers: Ints = (process_ids.astype(np.int64) & 0x7FFFFFFF) << 32 | thread_ids.astype(np.int64)
    return numbers


class ThreadWaits:
    """Calls in which threads of the host waited for a device.

    A thread that is not known may be any thread: its waits are those of all threads, and it has the waits of all.
    """

    def __init__(self, threads: Ints, starts: Ints, ends: Ints) -> None:
        """Take the number of the thread of each call, `UNKNOWN_THREAD` if it is not known, and the times in ns."""
        self.starts, self.ends = starts, ends
        self._rows = dict(_by_thread(threads))
        self._unions: dict[int, Union] = {}  # several devices ask for them

    def covered(self, threads: Ints, starts: Ints, ends: Ints) -> Ints:
        """The length of each interval ``[start, end)`` in which its thread waited."""
        found = self._times_of_unknown.covered(starts, ends)
        begins, until = self._beside_unknown(starts), self._beside_unknown(ends)
        for thread, own in _by_thread(threads):
            if thread == UNKNOWN_THREAD:
                found[own] = self._times_of_all.covered(starts[own], ends[own])
            elif thread in self._rows:
                found[own] += self._times_beside_unknown(thread).covered(begins[own], until[own])
        return found

    @cached_property
    def _times_of_all(self) -> Union:
        return Union.of(self.starts, self.ends)

    @cached_property
    def _times_of_unknown(self) -> Union:
        return Union.of(self.starts[self._unknown_rows], self.ends[self._unknown_rows])

    @property
    def _unknown_rows(self) -> Ints:
        return self._rows.get(UNKNOWN_THREAD, np.zeros(0, np.int64))

    def _times_beside_unknown(self, thread: int) -> Union:
        """The waits of a thread that is known, on the clock of `_beside_unknown`."""
        if thread not in self._unions:
            starts, ends = self._calls_beside_unknown
            self._unions[thread] = Union.of(starts[self._rows[thread]], ends[self._rows[thread]])
        return self._unions[thread]

    @cached_property
    def _calls_beside_unknown(self) -> tuple[Ints, Ints]:
        return self._beside_unknown(self.starts), self._beside_unknown(self.ends)

    def _beside_unknown(self, times: Ints) -> Ints:
        """Times on a clock that stands still while unknown threads wait, whose waits count for each thread anyway.

        The union of these waits with those of each thread would take time in proportion to their number and that of the
        threads together.
        """
        return times - self._times_of_unknown.covered(np.zeros(len(times), np.int64), times)

    def last_to_end(self, threads: Ints, times: Ints) -> Ints:
        """For each time the row of that wait of its thread, begun before, which ends last; -1: none had begun.

        A wait inside another one, such as the driver's call inside that of the runtime, never ends last. Of several
        waits that end at once the one that began first counts.
        """
        found = self._last_to_end(self._unknown_rows, times)
        for thread, own in _by_thread(threads):
            if thread == UNKNOWN_THREAD:
                found[own] = self._last_to_end(np.arange(len(self.starts)), times[own])
            elif thread in self._rows:
                pair = np.stack([self._last_to_end(self._rows[thread], times[own]), found[own]])
                found[own] = self._later_to_end(*pair)
        return found

    def _last_to_end(self, rows: Ints, times: Ints) -> Ints:
        """As `last_to_end`, of the waits in some rows."""
        order = rows[np.argsort(self.starts[rows], kind="stable")]
        ends = self.ends[order]
        is_last = np.ones(len(order), bool)
        is_last[1:] = ends[1:] > np.maximum.accumulate(ends)[:-1]
        last = order[is_last]
        place = np.searchsorted(self.starts[last], times, side="right") - 1
        return np.where(place >= 0, last[place], -1) if len(last) else place

    def _later_to_end(self, one: Ints, other: Ints) -> Ints:
        """Of two waits the one that ends later, or of equal ends the one that began first; -1 stands for no wait."""
        ends, starts = np.append(self.ends, np.iinfo(np.int64).min), np.append(self.starts, 0)
        is_later = (ends[one] > ends[other]) | ((ends[one] == ends[other]) & (starts[one] <= starts[other]))
        return np.where(is_later, one, other)


def _by_thread(threads: Ints) -> Iterator[tuple[int, Ints]]:
    """Each thread with its rows."""
    numbers, codes = distinct_codes(threads)
    order, bounds = grouped_rows(codes, len(numbers))
    for place, thread in enumerate(numbers.tolist()):
        yield thread, order[bounds[place] : bounds[place + 1]]
