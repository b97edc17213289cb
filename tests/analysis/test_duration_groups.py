"""Rows grouped by keys, compared with a plain count."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from collector.analysis.duration_groups import Keys, duration_groups, lower_median


@pytest.mark.parametrize("distinct", [1, 3, 400])
def test_rows_of_three_keys(distinct):
    """400 values of each key have more combinations than are counted one by one."""
    random = np.random.default_rng(distinct)
    columns = [random.integers(0, distinct, 500) for _ in range(3)]
    durations = random.integers(0, 50, 500)
    rows_of = defaultdict(list)
    for row, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        rows_of[key].append(row)
    found = duration_groups([Keys.of(column) for column in columns], durations)
    assert {group.key: group.rows.tolist() for group in found} == rows_of
    for group in found:
        own = sorted(durations[rows_of[group.key]].tolist())
        figures = (group.num_rows, group.total_ns, group.min_ns, group.median_ns, group.max_ns)
        assert figures == (len(own), sum(own), own[0], own[(len(own) - 1) // 2], own[-1])
    assert [group.key for group in found] == sorted(rows_of, key=lambda key: (-int(durations[rows_of[key]].sum()), key))


def test_without_keys_all_rows_are_one_group_and_without_rows_there_is_none():
    (group,) = duration_groups([], np.array([5, 3, 4]))
    assert (group.key, group.rows.tolist(), group.total_ns) == ((), [0, 1, 2], 12)
    assert duration_groups([], np.zeros(0, np.int64)) == []
    assert duration_groups([Keys.of(np.zeros(0, np.int64))], np.zeros(0, np.int64)) == []


def test_ids_of_the_same_key_are_one_key():
    keys = Keys.of(np.array([7, 1, 4, 1]), lambda number: "odd" if number % 2 else "even")
    assert (keys.values, keys.column().tolist()) == (["even", "odd"], ["odd", "odd", "even", "odd"])


def test_the_lower_of_two_middle_values_is_the_median():
    assert [lower_median(np.array(values)) for values in ([5], [9, 1], [4, 9, 1], [8, 2, 6, 4])] == [5, 1, 4, 4]
