"""Rows grouped by keys, with the statistics of their durations, for questions by kernel, function or stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.distinct import distinct_codes, grouped_rows
from collector.recording.first_rows import distinct_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

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
        return cls([",".join(map(str, shape)) for shape in shapes], codes)

    def column(self) -> npt.NDArray[np.object_]:
        """The value of each row."""
        return np.array(self.values, object)[self.codes]


class DurationGroup(NamedTuple):
    """The rows of one key."""

    key: tuple[Any, ...]
    rows: Numbers
    num_rows: int
    total_ns: int
    min_ns: int
    median_ns: int
    """The lower middle duration where their number is even."""
    max_ns: int


def duration_groups(keys: Sequence[Keys], durations: npt.NDArray[Any]) -> list[DurationGroup]:
    """The rows grouped by their keys, longest total first; groups with equal totals are in order of their keys.

    Args:
        keys: the columns that make up a key.
        durations: the duration of each row, ns.
    """
    order, bounds = grouped_rows(*_combined(keys, len(durations)))
    if not len(order):
        return []
    is_filled = bounds[1:] > bounds[:-1]
    begins, ends = bounds[:-1][is_filled], bounds[1:][is_filled]
    firsts = order[begins]
    named = [[column.values[code] for code in column.codes[firsts].tolist()] for column in keys]
    spent = durations[order]
    figures = [reduce.reduceat(spent, begins).tolist() for reduce in (np.add, np.minimum, np.maximum)]
    groups = [
        DurationGroup(key, order[begin:end], end - begin, total, least, lower_median(spent[begin:end]), most)
        for key, begin, end, total, least, most in zip(
            zip(*named, strict=True) if keys else [()],
            begins.tolist(),
            ends.tolist(),
            *figures,
            strict=True,
        )
    ]
    return sorted(groups, key=lambda group: (-group.total_ns, group.key))


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


def lower_median(values: npt.NDArray[Any]) -> int:
    """The median of integers; the lower middle one if their number is even, so that it is always one of them."""
    return int(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
