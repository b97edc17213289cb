"""Packed rows of journals, the twin of ``native/capture/packed_rows.cpp``.

``native/capture/journal_format.h`` explains the encoding.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import mmap

    import numpy.typing as npt

_HEAD = struct.Struct("<BBQ")  # coding, width, base
_FIRST = struct.Struct("<Q")
_VALUES, _DIFFERENCES, _FROM_COLUMN = range(3)
_WIDEST = 8
_MOST_ROWS = 4096
"""The maximum number of rows in a block: a damaged file could claim any number of rows without residuals."""


def unpack_rows(
    data: bytes | mmap.mmap, at: int, end: int, layout: np.dtype[Any], count: int
) -> dict[str, npt.NDArray[Any]]:
    """The columns of ``count`` packed rows at bytes ``at`` to ``end``.

    Raises:
        ValueError: the bytes are not packed rows of this layout.
        struct.error: they end too early.
    """
    if not 1 <= count <= _MOST_ROWS:
        raise ValueError(f"{count} packed rows in one block")
    columns: dict[str, npt.NDArray[Any]] = {}
    before: npt.NDArray[np.uint64] | None = None
    for name in layout.names or ():
        if at + _HEAD.size > end:
            raise ValueError(f"the packed rows end before the column {name}")
        coding, width, base = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        first = 0
        if coding == _DIFFERENCES:
            first = _FIRST.unpack_from(data, at)[0]
            at += _FIRST.size
        if coding > _FROM_COLUMN or width > _WIDEST or (coding == _FROM_COLUMN and before is None):
            raise ValueError(f"the column {name} is packed in an unknown way")
        num_residuals = count - 1 if coding == _DIFFERENCES else count
        if at + width * num_residuals > end:
            raise ValueError(f"the packed rows end inside the column {name}")
        values = _residuals(data, at, width, num_residuals)
        at += width * num_residuals
        values += np.uint64(base)
        if coding == _DIFFERENCES:
            steps, values = values, np.empty(count, "u8")
            values[:1] = first
            values[1:] = steps
            np.cumsum(values, out=values)
        elif before is not None and coding == _FROM_COLUMN:
            values += before
        before = values
        field: np.dtype[Any] = layout.fields[name][0]  # type: ignore[index]
        columns[name] = values.astype(f"u{field.itemsize}").view(field)
    return columns


def _residuals(data: bytes | mmap.mmap, at: int, width: int, count: int) -> npt.NDArray[np.uint64]:
    if width == 0:
        return np.zeros(count, "u8")
    if width in (1, 2, 4, 8):
        return np.frombuffer(data, f"<u{width}", count, at).astype("u8")
    padded = np.zeros((count, 8), "u1")
    padded[:, :width] = np.frombuffer(data, "u1", width * count, at).reshape(count, width)
    return padded.view("<u8")[:, 0]
