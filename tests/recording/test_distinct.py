"""The distinct values of a column, and its rows by them, compared with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from collector.recording.distinct import (
    are_among,
    combination_codes,
    descending_order,
    distinct_codes,
    distinct_values,
    grouped_rows,
)


@pytest.mark.parametrize("values", [[], [3], [3, 3], [5, 1, 5, 2, 1], [2**63 - 1, -(2**63), 0]])
def test_they_are_those_that_numpy_finds(values):
    column = np.array(values, np.int64)
    assert distinct_values(column).tolist() == np.unique(column).tolist()
    assert column.tolist() == values


COLUMNS = [
    np.array([5, 1, 5, 2, 1], np.int32),
    np.array([2**63 - 1, -(2**63), 0, 0], np.int64),
    np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
    np.array([-3, -1, -3], np.int8),
    np.array([True, False, True]),
    np.array([], np.uint32),
    np.array([0.5, 0.25, 0.5]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.dtype} {len(column)}")
def test_codes_are_those_that_numpy_finds(column):
    distinct, codes = distinct_codes(column)
    expected = np.unique(column, return_inverse=True)
    assert distinct.dtype == column.dtype
    assert [distinct.tolist(), codes.tolist()] == [each.tolist() for each in expected]


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ([], [1]),
        ([3, 1, 9, 4], []),
        ([3, 1, 9, 4, 0], [1, 4, 5]),
        ([3, 1, 2**40, 2**32 - 1, 2**32], [2**32 - 1, 3, 2**40 + 1]),
        ([0, 2**63 - 1, 7], [0, 2**63 - 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_values_are_found_among_keys_as_numpy_finds_them(values, keys, dtype):
    column, known = np.array(values, dtype), np.array(keys, dtype)
    assert are_among(column, known).tolist() == np.isin(column, known).tolist()


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_combinations_are_numbered_in_their_order(rows):
    random = np.random.default_rng(rows)
    columns = [
        random.integers(0, 4, rows).astype(np.uint32),
        np.full(rows, 7, np.int64),
        random.choice(np.array([0, 5, 2**64 - 1], np.uint64), rows),
    ]
    combinations = list(zip(*(column.tolist() for column in columns), strict=True))
    in_order = sorted(set(combinations))
    assert combination_codes(columns).tolist() == [in_order.index(each) for each in combinations]


@pytest.mark.parametrize("count", [3, 1 << 16, (1 << 16) + 1])
def test_rows_are_grouped_in_their_order(count):
    codes = np.array([2, 0, 2, count - 1, 0])
    order, bounds = grouped_rows(codes, count)
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()
    assert bounds.tolist() == np.searchsorted(np.sort(codes), np.arange(count + 1)).tolist()


@pytest.mark.parametrize(
    "values",
    [[], [3], [1, 3, 3, 2, 1], [70_000, 1, 70_000, 65_536, 1], [2**40, 5, 2**40, 7], [2**63 - 1, -(2**63), 0, 0]],
)
def test_a_descending_order_keeps_the_order_of_equal_values(values):
    order = descending_order(np.array(values, np.int64)).tolist()
    assert order == sorted(range(len(values)), key=lambda row: -values[row])
