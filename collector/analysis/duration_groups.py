"""Rows grouped by keys, with the statistics of their durations, for questions by kernel, function or stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.evidence import Evidence
from collector.recording.distinct import distinct_codes, grouped_rows
from collector.recording.first_rows import distinct_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Column

    Numbers = npt.NDArray[np.int64]


class Keys(NamedTuple):
    """One column of keys: the distinct values in order, and for each row the index of its value."""

    values: list[Any]
    codes: Numbers

    @classmethod
    def of(cls, ids: npt.NDArray[Any], form: Callable[[Any], Any] = lambda value: value) -> Keys:
        """The keys that ``form`` makes of each row's id; several ids may have the same key."""
        known, index = distinct_codes(ids)
        return cls.of_values([form(each) for each in known.tolist()], index)

    @classmethod
    def of_values(cls, made: Sequence[Any], index: Numbers) -> Keys:
        """The keys of rows, given values and the index of each row's value; values may be repeated."""
        values = sorted(set(made))
        places = {value: place for place, value in enumerate(values)}
        codes = np.array([places[value] for value in made], np.int64)
        return cls(values, codes[index])

    @classmethod
    def of_shapes(cls, *axes: npt.NDArray[Any]) -> Keys:
        """Texts such as ``8,1,1`` from several columns of numbers."""
        first, codes = distinct_rows(axes)
        shapes = zip(*(axis[first].tolist() for axis in axes), strict=True)
        return cls.of_values([",".join(map(str, shape)) for shape in shapes], codes)

    def array(self) -> npt.NDArray[Any]:
        """The distinct values: numbers or, as objects, texts."""
        are_numbers = bool(self.values) and isinstance(self.values[0], int)
        return np.array(self.values, None if are_numbers else object)

    def column(self) -> npt.NDArray[Any]:
        """The value of each row."""
        return self.array()[self.codes]


class DurationGroups:
    """Rows grouped by their keys, longest total first; groups with equal totals are in order of their keys.

    Every figure is a column with a value for each group, because the groups may be as many as the rows.
    """

    keys: list[npt.NDArray[Any]]
    """For each column of keys the value of each group."""
    num_rows: Numbers
    total_ns: Numbers
    min_ns: Numbers
    median_ns: Numbers
    """The lower middle duration where the number of rows is even."""
    max_ns: Numbers

    def __init__(self, keys: Sequence[Keys], durations: npt.NDArray[Any]) -> None:
        """Group rows.

        Args:
            keys: the columns that make up a key.
            durations: the duration of each row, ns.
        """
        self._order, bounds = grouped_rows(*_combined(keys, len(durations)))
        is_filled = bounds[1:] > bounds[:-1]
        self._begins, counts = bounds[:-1][is_filled], np.diff(bounds)[is_filled]
        codes = [column.codes[self._order[self._begins]] for column in keys]
        totals = self._reduced_unsorted(np.add, durations)
        self._sorted = np.lexsort((*reversed(codes), ~totals))
        self.keys = [column.array()[own[self._sorted]] for column, own in zip(keys, codes, strict=True)]
        self.num_rows = counts[self._sorted]
        self.total_ns = totals[self._sorted]
        self.min_ns = self.reduced(np.minimum, durations)
        self.median_ns = _lower_medians(durations[self._order], self._begins, counts)[self._sorted]
        self.max_ns = self.reduced(np.maximum, durations)

    def __len__(self) -> int:
        return len(self._sorted)

    def reduced(self, reduce: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each group the sum, minimum or the like of the values of its rows, along the last axis of ``values``."""
        found: npt.NDArray[Any] = self._reduced_unsorted(reduce, values)[..., self._sorted]
        return found

    def _reduced_unsorted(self, reduce: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As `reduced`, for the groups in the order of `_begins`."""
        ordered: npt.NDArray[Any] = values[..., self._order]
        return reduce.reduceat(ordered, self._begins, axis=-1) if len(self._begins) else ordered

    def first_rows(self) -> Numbers:
        """The first row of each group."""
        return self._order[self._begins[self._sorted]]

    def named_keys(self, columns: Sequence[Column]) -> dict[str, npt.NDArray[Any]]:
        """The keys as columns of an answer."""
        return {column.name: values for column, values in zip(columns, self.keys, strict=True)}

    def figures(self) -> dict[str, npt.NDArray[Any]]:
        """The number of rows of each group and its times, as answers name them; its share is that of all durations."""
        whole = int(self.total_ns.sum())
        return {
            "count": self.num_rows,
            "total_ns": self.total_ns,
            "share": self.total_ns / whole if whole else np.zeros(len(self)),
            "min_ns": self.min_ns,
            "median_ns": self.median_ns,
            "max_ns": self.max_ns,
        }

    def rows(self, group: int) -> Numbers:
        """The rows of one group, in order."""
        begin = self._begins[self._sorted[group]]
        return self._order[begin : begin + self.num_rows[group]]

    def group_of_rows(self) -> Numbers:
        """The group of each row."""
        groups = np.zeros(len(self._order), np.int64)
        places = np.argsort(self._sorted)  # of the groups in the order of their rows
        groups[self._order] = np.repeat(places, self.num_rows[places])
        return groups

    def evidence(self, table: str) -> GroupEvidence:
        """The rows of each group as evidence, if the rows are those of a table."""
        return GroupEvidence(self, table)


class GroupEvidence(Evidence):
    """The rows of groups, which are those of a table."""

    def __init__(self, groups: DurationGroups, table: str) -> None:
        super().__init__(len(groups), lambda group: {table: groups.rows(group)})
        self.groups, self.table = groups, table


def _combined(keys: Sequence[Keys], length: int) -> tuple[Numbers, int]:
    """A number for each row's combination of keys, and the number of possible combinations."""
    codes, count = np.zeros(length, np.int64), 1
    for column in keys:
        if len(column.values) < 2:
            continue
        codes = column.codes if count == 1 else codes * len(column.values) + column.codes
        count *= len(column.values)
        if count > max(length, _FEW):
            distinct, codes = distinct_codes(codes)
            count = len(distinct)
    return codes, count


_FEW = 1 << 16
"""Up to this many possible combinations, and up to the number of rows, the numbers may have gaps."""


_ROWS_OF_MANY = 32
"""The mean number of rows of a group from which on a call for each takes less time than sorting all rows."""


def _lower_medians(spent: npt.NDArray[Any], begins: Numbers, counts: Numbers) -> npt.NDArray[Any]:
    """The lower median of each group, given the durations group after group."""
    if len(spent) >= _ROWS_OF_MANY * len(counts):
        pairs = zip(begins.tolist(), counts.tolist(), strict=True)
        return np.array([lower_median(spent[begin : begin + count]) for begin, count in pairs], np.int64)
    groups = np.repeat(np.arange(len(counts)), counts)
    ordered = spent[np.lexsort((spent, groups))]
    medians: npt.NDArray[Any] = ordered[begins + (counts - 1) // 2]
    return medians


def lower_median(values: npt.NDArray[Any]) -> int:
    """The median of integers; the lower middle one if their number is even, so that it is always one of them."""
    return int(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
