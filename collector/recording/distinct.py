"""The distinct values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def distinct_values(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values in ascending order.

    ``np.unique`` of NumPy 2.3 and later uses hashes unless an index is requested, which is a hundred times slower if
    most values are distinct, as ids are.
    """
    ordered: npt.NDArray[Any] = np.sort(values)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
