"""Rows grouped by keys, compared with a plain count."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from collector.analysis.answer import Column
from collector.analysis.duration_groups import DurationGroups, Keys, lower_median


@pytest.mark.parametrize("distinct", [1, 3, 400])
def test_rows_of_three_keys(distinct):
    """400 values of each key have more combinations than are counted one by one, and groups of few rows."""
    random = np.random.default_rng(distinct)
    columns = [random.integers(0, distinct, 500) for _ in range(3)]
    durations = random.integers(0, 50, 500)
    errors = random.integers(0, 2, (2, 500))
    rows_of = defaultdict(list)
    for row, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        rows_of[key].append(row)
    found = DurationGroups([Keys.of(column) for column in columns], durations)
    keys = list(zip(*(column.tolist() for column in found.keys), strict=True))
    assert keys == sorted(rows_of, key=lambda key: (-int(durations[rows_of[key]].sum()), key))
    assert [found.rows(group).tolist() for group in range(len(found))] == [rows_of[key] for key in keys]
    assert found.first_rows().tolist() == [rows_of[key][0] for key in keys]
    assert found.group_of_rows().tolist() == [keys.index(key) for key in zip(*columns, strict=True)]
    own = [sorted(durations[rows_of[key]].tolist()) for key in keys]
    assert {name: column.tolist() for name, column in found.figures().items()} == {
        "count": [len(times) for times in own],
        "total_ns": [sum(times) for times in own],
        "share": [sum(times) / int(durations.sum()) for times in own],
        "min_ns": [times[0] for times in own],
        "median_ns": [times[(len(times) - 1) // 2] for times in own],
        "max_ns": [times[-1] for times in own],
    }
    assert found.reduced(np.add, errors).tolist() == [
        [int(each[rows_of[key]].sum()) for key in keys] for each in errors
    ]


def test_evidence_is_the_rows_of_each_group():
    evidence = DurationGroups([Keys.of(np.array([3, 1, 3]))], np.array([5, 20, 6])).evidence("kernels")
    assert [{table: rows.tolist() for table, rows in each.items()} for each in evidence] == [
        {"kernels": [1]},
        {"kernels": [0, 2]},
    ]


def test_keys_are_columns_of_numbers_or_texts():
    numbers, texts = Keys.of(np.array([7, 1])), Keys.of(np.array([7, 1]), lambda number: f"k{number}")
    found = DurationGroups([numbers, texts], np.array([1, 2]))
    names = Column("number", "number", "A number."), Column("name", "text", "A name.")
    named = found.named_keys(names)
    assert {name: column.tolist() for name, column in named.items()} == {"number": [1, 7], "name": ["k1", "k7"]}
    assert [named[column.name].dtype for column in names] == [np.int64, object]


def test_without_keys_all_rows_are_one_group_and_without_rows_there_is_none():
    found = DurationGroups([], np.array([5, 3, 4]))
    assert (found.keys, found.rows(0).tolist(), found.total_ns.tolist()) == ([], [0, 1, 2], [12])
    for keys in ([], [Keys.of(np.zeros(0, np.int64))]):
        nothing = DurationGroups(keys, np.zeros(0, np.int64))
        assert len(nothing) == 0
        assert [len(column) for column in nothing.figures().values()] == [0] * 6
        assert len(nothing.group_of_rows()) == len(nothing.evidence("kernels")) == 0


def test_durations_of_zero_have_no_share():
    assert DurationGroups([], np.zeros(3, np.int64)).figures()["share"].tolist() == [0.0]


def test_ids_of_the_same_key_are_one_key():
    keys = Keys.of(np.array([7, 1, 4, 1]), lambda number: "odd" if number % 2 else "even")
    assert (keys.values, keys.column().tolist()) == (["even", "odd"], ["odd", "odd", "even", "odd"])


def test_the_lower_of_two_middle_values_is_the_median():
    assert [lower_median(np.array(values)) for values in ([5], [9, 1], [4, 9, 1], [8, 2, 6, 4])] == [5, 1, 4, 4]
