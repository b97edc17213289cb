"""The rows of a tree that are shown where not all of them can be."""

from __future__ import annotations

import numpy as np
import pytest

from collector.analysis.tree_rows import ROOT, largest_rows, left_out

st = pytest.importorskip("hypothesis").strategies
from hypothesis import given  # noqa: E402


@st.composite
def trees(draw):
    """Depths of the rows of a tree, and the own figure of each row."""
    depths = []
    for step in draw(st.lists(st.integers(-3, 1), max_size=40)):
        depths.append(max(0, depths[-1] + step) if depths else 0)
    return np.array(depths, np.int64), draw(
        st.lists(st.integers(0, 20), min_size=len(depths), max_size=len(depths)).map(
            lambda own: np.array(own, np.int64)
        )
    )


def inside(depths, row):
    """The rows inside a row."""
    ends = np.flatnonzero(depths[row + 1 :] <= depths[row])
    return range(row + 1, row + 1 + int(ends[0]) if len(ends) else len(depths))


def parent(depths, row):
    return next((each for each in range(row - 1, -1, -1) if row in inside(depths, each)), ROOT)


def sums(depths, own):
    return np.array([own[row] + own[list(inside(depths, row))].sum() for row in range(len(own))], np.int64)


@given(trees(), st.integers(1, 40))
def test_the_largest_rows_are_chosen_with_those_around_them(tree, most):
    depths, own = tree
    totals = sums(depths, own)
    chosen = largest_rows(depths, totals, most).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(most, len(depths))
    assert {parent(depths, row) for row in chosen} <= {ROOT, *chosen}
    others = set(range(len(depths))) - set(chosen)
    assert max((int(totals[row]) for row in others), default=0) <= min((int(totals[row]) for row in chosen), default=0)
    missing = {place: (rows, total) for place, rows, total in left_out(depths, totals, np.array(chosen, np.int64))}
    assert sum(rows for rows, _ in missing.values()) == len(others)
    for place, row in enumerate(chosen):
        shown = sum(int(totals[each]) for each in chosen if parent(depths, each) == row)
        assert totals[row] == own[row] + shown + missing.get(place, (0, 0))[1]
    outer = sum(int(totals[each]) for each in chosen if parent(depths, each) == ROOT)
    assert own.sum() == outer + missing.get(ROOT, (0, 0))[1]


@given(trees(), st.integers(1, 40))
def test_rows_around_a_chosen_row_are_chosen_whatever_their_totals(tree, most):
    depths, totals = tree
    chosen = largest_rows(depths, totals, most).tolist()
    assert len(chosen) == min(most, len(depths))
    assert {parent(depths, row) for row in chosen} <= {ROOT, *chosen}


def test_a_small_row_is_left_out_and_counted_where_it_is():
    depths, totals = np.array([0, 1, 2, 1, 0, 0]), np.array([9, 5, 1, 3, 8, 2])
    chosen = largest_rows(depths, totals, 4)
    assert chosen.tolist() == [0, 1, 3, 4]
    assert left_out(depths, totals, chosen) == [(ROOT, 1, 2), (1, 1, 1)]
