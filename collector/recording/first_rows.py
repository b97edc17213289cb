"""The first row of each id, and the look-up of ids: a launch is found by its correlation id in this way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.distinct import combination_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def first_rows(ids: npt.NDArray[Any], *keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct ids, sorted, and the first row of each.

    Args:
        ids: the id of each row.
        keys: the order of the rows, the first key decides; none: the rows are in order.
    """
    if not keys and (ids[1:] >= ids[:-1]).all():
        is_first = np.ones(len(ids), bool)
        is_first[1:] = ids[1:] != ids[:-1]
        return ids[is_first], np.flatnonzero(is_first)
    if not keys:
        return np.unique(ids, return_index=True)
    order = np.lexsort((*keys[::-1], ids))
    distinct, first = np.unique(ids[order], return_index=True)
    return distinct, order[first]


def distinct_rows(columns: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first row of each combination of values, in the order of the combinations, and each row's combination.

    Args:
        columns: see `combination_codes`.
    """
    codes = combination_codes(columns)
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last assignment counts
    return first, codes


_TABLE_PER_VALUE = 4
"""A table of keys is faster than searching each wanted key up to this many entries for each key."""


def look_up(wanted: npt.NDArray[Any], keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The value of each wanted key, or -1 if it is missing. ``keys`` are sorted; key 0 is never found."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    first, last = int(keys[0]), int(keys[-1])
    if first >= 0 and last < 1 << 62 and last - first < _TABLE_PER_VALUE * min(len(keys), len(wanted)):
        table = np.full(last - first + 2, -1, np.int64)  # the last entry is that of all keys that are missing
        table[keys[::-1].astype(np.int64) - first] = values[::-1]  # of equal keys the first one counts, the last here
        table[-1] = -1
        if first == 0:
            table[0] = -1
        is_within = (wanted >= first) & (wanted <= last)
        return table[np.where(is_within, wanted.astype(np.int64) - first, -1)]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (wanted != 0), values[at].astype(np.int64), -1)
