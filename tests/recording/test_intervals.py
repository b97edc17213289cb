"""Unions of intervals, compared with sets of whole nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.recording.intervals import Union, covered_by_group

INTERVALS = st.lists(st.tuples(st.integers(-20, 60), st.integers(0, 15)), max_size=12)


def _union(intervals: list[tuple[int, int]]) -> Union:
    starts, lengths = (np.array([pair[side] for pair in intervals], np.int64) for side in (0, 1))
    return Union.of(starts, starts + lengths)


def _instants(intervals: list[tuple[int, int]]) -> set[int]:
    return {instant for start, length in intervals for instant in range(start, start + length)}


@settings(deadline=None)
@given(INTERVALS, INTERVALS)
def test_lengths_and_overlaps_are_those_of_sets(ones, others):
    union, other = _union(ones), _union(others)
    assert union.length == len(_instants(ones))
    assert union.overlap(other) == other.overlap(union) == len(_instants(ones) & _instants(others))
    starts, ends = (np.array([start + length * side for start, length in others], np.int64) for side in (0, 1))
    assert union.covered(starts, ends).tolist() == [len(_instants(ones) & _instants([one])) for one in others]
    assert (union.starts[1:] > union.ends[:-1]).all()


def test_an_interval_that_ends_before_it_starts_is_empty():
    assert Union.of(np.array([5, 10]), np.array([1, 12])).length == 2


def test_times_may_be_those_of_clocks():
    at = 1_800_000_000 * 10**9
    assert Union.of(np.array([at]), np.array([at + 7])).covered(np.array([at + 2]), np.array([at + 99])).tolist() == [5]


@settings(deadline=None)
@given(INTERVALS)
def test_gaps_are_what_the_union_leaves_free(intervals):
    gaps = _union(intervals).gaps(-30, 90)
    free = set(range(-30, 90)) - _instants(intervals)
    assert _instants([(start, end - start) for start, end in zip(*gaps, strict=True)]) == free
    assert (gaps.ends > gaps.starts).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 60), st.integers(0, 15)), max_size=12))
def test_what_each_group_covers_is_its_own_union(rows):
    groups, starts, lengths = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    wanted = [_union([(start, length) for group, start, length in rows if group == each]).length for each in range(5)]
    assert covered_by_group(groups, starts, starts + lengths, 5).tolist() == wanted
