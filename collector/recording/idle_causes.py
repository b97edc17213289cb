"""The causes of a device's idle times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.recording.intervals import gaps_between
from collector.recording.row_index import numbers_in
from collector.recording.thread_waits import UNKNOWN_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from collector.recording.thread_waits import ThreadWaits

    Ints = npt.NDArray[np.int64]


class IdleCauses(NamedTuple):
    """The parts of idle times in ns. There is one row per idle time, whose parts add up to its length."""

    queued: Ints
    """The activity that ended the idle time was launched before it began, and waited for something else."""
    synchronizing: Ints
    """The activity was not launched yet, and the thread that launched it was in a synchronizing call."""
    unlaunched: Ints
    """The activity was not launched yet, and the thread that launched it did something else."""
    latency: Ints
    """The activity was launched during the idle time and had not started yet."""
    unknown: Ints
    """The launch time of the activity is unknown."""
    tail: Ints
    """No activity ended the idle time."""


def idle_causes(
    begins: Ints,
    ends: Ints,
    is_ended: npt.NDArray[np.bool_],
    launched: Ints,
    threads: Ints,
    waits: ThreadWaits,
) -> IdleCauses:
    """The causes of idle times.

    Args:
        begins: begin of each idle time, ns.
        ends: end of each idle time, ns.
        is_ended: whether an activity started at the end.
        launched: launch time of that activity, ns; 0 or less if unknown.
        threads: number of the thread that launched it, as ``waits`` has it.
        waits: the calls in which the host waited for a device.
    """
    is_known = launched > 0
    is_queued = launched < begins
    is_late = is_ended & is_known & ~is_queued
    until = np.clip(launched, begins, ends)
    waited = waits.covered(threads, begins, until)

    def where(condition: npt.NDArray[np.bool_], times: Ints) -> Ints:
        return np.where(condition, times, 0)

    return IdleCauses(
        queued=where(is_ended & is_known & is_queued, ends - begins),
        synchronizing=where(is_late, waited),
        unlaunched=where(is_late, until - begins - waited),
        latency=where(is_late, ends - until),
        unknown=where(is_ended & ~is_known, ends - begins),
        tail=where(~is_ended, ends - begins),
    )


class IdleTimes(NamedTuple):
    """The times in which nothing runs on a device, in order. There is one row per idle time."""

    begins: Ints
    ends: Ints
    ended_by: Ints
    """The index of the first activity that starts at its end; -1: none does."""
    threads: Ints
    """The number of the thread whose launch counts; `UNKNOWN_THREAD`: it is not known, or no activity starts."""
    causes: IdleCauses

    @property
    def lengths(self) -> Ints:
        """The length of each idle time, ns."""
        return self.ends - self.begins


def idle_times(
    starts: Ints,
    ends: Ints,
    window: tuple[int, int],
    launched: Callable[[Ints], tuple[Ints, Ints]],
    waits: ThreadWaits,
) -> IdleTimes:
    """The idle times of a device in a window, with their causes.

    If several activities start at once, any of them may have ended the idle time: the earliest launch counts, and of
    launches at the same time that of the thread with the smallest number. If the launch of one of them is unknown, the
    cause is unknown.

    Args:
        starts: the starts of the activities, sorted, ns.
        ends: the ends of the activities, ns.
        window: begin and end, ns.
        launched: gives for places of activities the times of their launches, ns (0 or less: not known), and the numbers
            of the threads that launched them, as ``waits`` has them.
        waits: the calls in which the host waited for a device.
    """
    return _with_causes(*gaps_between(starts, ends, *window), starts, launched, waits)


def idle_times_of_windows(
    starts: Ints,
    ends: Ints,
    windows: tuple[Ints, Ints],
    launched: Callable[[Ints], tuple[Ints, Ints]],
    waits: ThreadWaits,
) -> list[tuple[Ints, IdleTimes]]:
    """The idle times of a device in each of several windows: the same as `idle_times` of what overlaps each window.

    An idle time that reaches beyond its window ends with it, and no activity ended it.

    Args:
        starts: the starts of the activities, sorted, ns.
        ends: the ends of the activities, ns.
        windows: begins and ends, ns; a window does not begin before the end of the one before it.
        launched: see `idle_times`.
        waits: see `idle_times`.

    Returns:
        Indices of windows, and the idle times in them, in several parts.
    """
    window_starts, window_ends = windows
    if not len(window_starts):
        return []
    gap_begins, gap_ends, ended_by = gaps_between(starts, ends, int(window_starts[0]), int(window_ends[-1]))
    first = np.searchsorted(window_ends, gap_begins, side="right")
    last = np.searchsorted(window_starts, gap_ends, side="left")
    window, gap = numbers_in(first, last), np.repeat(np.arange(len(gap_begins)), last - first)
    begins = np.maximum(gap_begins[gap], window_starts[window])
    until = np.minimum(gap_ends[gap], window_ends[window])
    is_inside = gap_ends[gap] < window_ends[window]
    inside, at_end = np.flatnonzero(is_inside), np.flatnonzero(~is_inside)
    # Of the activities that start with the end of a window, those without length are in it.
    moments = np.flatnonzero(ends == starts)
    place = np.searchsorted(starts[moments], until[at_end], side="left")
    is_there = np.append(starts[moments], -1)[place] == until[at_end]
    return [
        (
            window[inside],
            _with_causes(begins[inside], until[inside], ended_by[gap[inside]], starts, launched, waits),
        ),
        (
            window[at_end],
            _with_causes(
                begins[at_end],
                until[at_end],
                np.where(is_there, place, -1),
                starts[moments],
                lambda places: launched(moments[places]),
                waits,
            ),
        ),
    ]


def _with_causes(
    begins: Ints,
    free_until: Ints,
    ended_by: Ints,
    starts: Ints,
    launched: Callable[[Ints], tuple[Ints, Ints]],
    waits: ThreadWaits,
) -> IdleTimes:
    """Idle times with their causes, given the index of the first activity that started at the end of each; -1: none."""
    called, threads = np.full(len(begins), -1, np.int64), np.full(len(begins), UNKNOWN_THREAD, np.int64)
    is_ended = ended_by >= 0
    if is_ended.any():
        first = ended_by[is_ended]
        counts = np.searchsorted(starts, free_until[is_ended], side="right") - first
        groups = np.cumsum(counts) - counts
        places = np.repeat(first - groups, counts) + np.arange(counts.sum())
        times, of_threads = launched(places)
        earliest = np.minimum.reduceat(times, groups)
        is_earliest = times == np.repeat(earliest, counts)
        called[is_ended] = earliest
        threads[is_ended] = np.minimum.reduceat(np.where(is_earliest, of_threads, np.iinfo(np.int64).max), groups)
    causes = idle_causes(begins, free_until, is_ended, called, threads, waits)
    return IdleTimes(begins, free_until, ended_by, threads, causes)
