"""Nested ranges, compared with a search through all ranges."""

from __future__ import annotations

import numpy as np
import pytest

from collector.recording.nesting import NestedRanges, nested_annotations
from collector.runtime.extension import convert_extension


def arrays(rows):
    return (np.array([row[place] for row in rows], np.int64) for place in range(3))


def test_ranges_of_one_thread_lie_in_each_other():
    nested = NestedRanges(*arrays([(1, 0, 100), (1, 10, 50), (1, 20, 30), (1, 60, 70), (2, 15, 25)]))
    assert nested.parents.tolist() == [-1, 0, 1, 0, -1]
    assert nested.depths.tolist() == [0, 1, 2, 1, 0]


def test_of_equal_ranges_the_first_is_outside():
    nested = NestedRanges(*arrays([(1, 0, 10), (1, 0, 10)]))
    assert nested.parents.tolist() == [-1, 0]
    assert nested.innermost_open(np.array([1]), np.array([5])).tolist() == [1]


@pytest.mark.parametrize(
    ("time", "row"), [(-1, -1), (0, 0), (10, 1), (30, 2), (31, 1), (55, 0), (65, 3), (100, 0), (101, -1)]
)
def test_the_innermost_range_that_is_open(time, row):
    nested = NestedRanges(*arrays([(1, 0, 100), (1, 10, 50), (1, 20, 30), (1, 60, 70)]))
    assert nested.innermost_open(np.array([1, 2]), np.array([time, time])).tolist() == [row, -1]


def test_without_ranges_none_is_open():
    nothing = np.zeros(0, np.int64)
    nested = NestedRanges(nothing, nothing, nothing)
    assert nested.innermost_open(np.array([1]), np.array([5])).tolist() == [-1]
    assert nested.innermost_open(nothing, nothing).tolist() == []


def test_an_annotation_without_length_lies_in_the_innermost_one_and_encloses_none(build):
    """Also where another begins or ends at the same time; annotations of another thread enclose none of this one."""
    spans = [
        (11, 0, 100),
        (11, 10, 10),
        (11, 10, 50),
        (11, 20, 20),
        (11, 20, 20),
        (11, 50, 50),
        (12, 20, 20),
        (12, 15, 30),
    ]
    for number, (thread, start, end) in enumerate(spans):
        build.annotation(f"a{number}", start, end - start, number + 1)
        build.rows["annotations"][-1]["thread_id"] = thread
    table = build.recording().annotations
    names = table.names()
    parents, depths = nested_annotations(table)
    found = {
        name: (names[parent] if parent >= 0 else None) for name, parent in zip(names, parents.tolist(), strict=True)
    }
    assert found == {
        "a0": None, "a1": "a2", "a2": "a0", "a3": "a2", "a4": "a2", "a5": "a2", "a6": "a7", "a7": None,
    }  # fmt: skip
    assert dict(zip(names, depths.tolist(), strict=True)) == {
        "a0": 0, "a1": 2, "a2": 1, "a3": 2, "a4": 2, "a5": 2, "a6": 1, "a7": 0,
    }  # fmt: skip


def test_any_ranges_and_any_times():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    moments = st.integers(-(1 << 62), 1 << 62) | st.integers(0, 12)
    ranges = st.lists(st.tuples(st.integers(0, 2), moments, moments).map(lambda row: (row[0], *sorted(row[1:]))))

    @hypothesis.given(ranges, st.lists(st.tuples(st.integers(0, 3), moments)))
    def check(rows, asked):
        nested = NestedRanges(*arrays(rows)) if rows else NestedRanges(*[np.zeros(0, np.int64)] * 3)
        threads = np.array([thread for thread, _ in asked], np.int64)
        times = np.array([time for _, time in asked], np.int64)
        found = nested.innermost_open(threads, times).tolist()
        for (thread, time), row in zip(asked, found, strict=True):
            is_open = [
                (start, -end, place)
                for place, (own, start, end) in enumerate(rows)
                if own == thread and start <= time <= end
            ]
            assert row == (max(is_open)[2] if is_open else -1)
        for place, parent in enumerate(nested.parents.tolist()):
            if parent >= 0:
                assert rows[parent][0] == rows[place][0]
                assert rows[parent][1] <= rows[place][1] <= rows[place][2] <= rows[parent][2]
                assert nested.depths[place] == nested.depths[parent] + 1

    check()


def test_the_parents_of_any_ranges():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    moments = st.integers(-(1 << 62), 1 << 62) | st.integers(0, 12)
    ranges = st.lists(st.tuples(st.integers(0, 2), moments, moments).map(lambda row: (row[0], *sorted(row[1:]))))

    @hypothesis.given(ranges)
    def check(rows):
        expected = [-1] * len(rows), [0] * len(rows)
        open_rows: list[int] = []
        for row in sorted(range(len(rows)), key=lambda row: (rows[row][0], rows[row][1], -rows[row][2], row)):
            thread, _, end = rows[row]
            open_rows = [other for other in open_rows if rows[other][0] == thread]
            while open_rows and rows[open_rows[-1]][2] < end:
                open_rows.pop()
            expected[0][row] = open_rows[-1] if open_rows else -1
            expected[1][row] = len(open_rows)
            open_rows.append(row)
        nested = NestedRanges(*arrays(rows))
        assert (nested.parents.tolist(), nested.depths.tolist()) == expected

    check()


def test_an_order_with_other_rows_is_refused():
    rows = np.zeros(2, np.int64)
    for order in ([0, 2], [0, -1]):
        with pytest.raises(IndexError, match="a row that is not there"):
            convert_extension.nested_ranges(np.array(order, np.int64), rows, rows)
    with pytest.raises(ValueError, match="differ in length"):
        convert_extension.nested_ranges(rows, rows[:1], rows)
