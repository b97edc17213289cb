"""Waits of the host by thread, against their definition nanosecond by nanosecond."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from collector.recording.thread_waits import UNKNOWN_THREAD, ThreadWaits, thread_numbers

THREADS = st.sampled_from([UNKNOWN_THREAD, 11, 12, 1 << 40])
INTERVALS = st.lists(st.tuples(THREADS, st.integers(0, 60), st.integers(0, 30)), max_size=12)


def columns(rows):
    """Threads, starts and ends of (thread, start, duration)."""
    threads, starts, durations = np.array(rows, np.int64).reshape(-1, 3).T
    return threads, starts, starts + durations


def rows_of(waits, thread):
    """The waits of a thread, each with its row: those of unknown threads are those of all."""
    known = (thread, UNKNOWN_THREAD)
    return [(row, each) for row, each in enumerate(waits) if thread == UNKNOWN_THREAD or each[0] in known]


@given(INTERVALS, INTERVALS)
def test_an_interval_is_covered_by_the_waits_of_its_thread(waits, intervals):
    threads, starts, ends = columns(intervals)
    found = ThreadWaits(*columns(waits)).covered(threads, starts, ends)
    expected = [
        sum(
            any(begin <= at < begin + length for _, (_, begin, length) in rows_of(waits, thread))
            for at in range(start, start + duration)
        )
        for thread, start, duration in intervals
    ]
    assert found.tolist() == expected


@given(INTERVALS, st.lists(st.tuples(THREADS, st.integers(0, 100)), max_size=12))
def test_the_wait_that_ends_last_is_one_of_its_thread(waits, wanted):
    threads, times = np.array(wanted, np.int64).reshape(-1, 2).T
    calls = ThreadWaits(*columns(waits))
    for (thread, time), row in zip(wanted, calls.last_to_end(threads, times).tolist(), strict=True):
        begun = {at: (start + duration, -start) for at, (_, start, duration) in rows_of(waits, thread) if start <= time}
        assert (row == -1) == (not begun)
        assert row == -1 or begun[row] == max(begun.values())


@pytest.mark.medium
def test_times_of_many_threads_beside_many_waits_of_unknown_ones():
    """Each of 3,000 threads waits for the last 10 ns of its 100 ns; another wait of 5 ns is in the first 10 of each."""
    number = np.arange(1, 3001)
    starts = 100 * number
    threads = np.concatenate([thread_numbers(number, number), np.zeros(3000, np.int64)])
    waits = ThreadWaits(threads, np.concatenate([starts + 90, starts]), np.concatenate([starts + 100, starts + 5]))
    own = thread_numbers(number, number)
    assert waits.covered(own, starts, starts + 100).tolist() == [15] * 3000
    assert waits.covered(own[::-1], starts, starts + 100).tolist() == [5] * 3000
    assert waits.covered(np.zeros(3000, np.int64), starts, starts + 195).tolist() == [25] * 2999 + [15]
    assert waits.last_to_end(own, starts + 95).tolist() == list(range(3000))
    assert waits.last_to_end(own, starts + 1).tolist() == list(range(3000, 6000))


def test_no_two_threads_have_one_number():
    processes, threads = np.array([0, 0, 1, 1, 2**31 - 1], np.uint32), np.array([0, 1, 0, 2**32 - 1, 1], np.uint32)
    numbers = thread_numbers(processes, threads).tolist()
    assert numbers == sorted({*numbers})
    assert numbers[0] == UNKNOWN_THREAD
