"""Columns of whole numbers as planes of bytes, which pack well: the lowest bytes of all values come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def least_width(values: npt.NDArray[Any] | int) -> int:
    """The number of bytes, 1 or more, that hold each of the values, which are 0 or more."""
    return max(1, -(-int(np.max(values, initial=0)).bit_length() // 8))


def byte_planes(values: npt.NDArray[Any], width: int) -> bytes:
    """The lowest ``width`` bytes of each value, 0 or more, plane after plane."""
    return np.ascontiguousarray(values.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].T).tobytes()
