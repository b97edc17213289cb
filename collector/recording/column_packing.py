"""Columns of integers in few bytes: a constant as one number, other columns as small differences.

Times and ids of neighbouring rows differ by little, so differences take one to four bytes where values take eight, and
unpacking them is a sum. All arithmetic wraps around at the width of the column's type, so every value is exact.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Values = npt.NDArray[Any]

_JUMP_BYTES = 16
"""The row and the value of a jump."""
_WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Packing:
    """The way from stored numbers to a column's values."""

    type: str
    """The column's type as numpy writes it: ``<i8``."""
    rows: int
    value: int | None = None
    """The value of all rows, if they are equal: nothing else is stored then. None: the rows differ."""
    base: int = 0
    """Added to each stored number."""
    before: bool = False
    """Each number is the difference from the row before; the first one is the difference from 0."""
    column: str = ""
    """Each number is the difference from this column of the table."""
    jumps: bool = False
    """Rows whose difference takes more bytes than the others' are listed apart."""

    def __post_init__(self) -> None:
        """Raise ValueError for fields that are not whole numbers, as a damaged file may have."""
        if any(type(number) is not int for number in (self.rows, self.value or 0, self.base)):
            raise ValueError("the packing of a column is not stated in whole numbers")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The column's type. Raises ValueError for all but integers."""
        dtype = np.dtype(self.type)
        if dtype.kind not in "iu":
            raise ValueError("a column does not hold integers")
        return dtype

    @property
    def num_bytes(self) -> int:
        """The size of the column."""
        return max(self.rows, 0) * self.dtype.itemsize

    def as_dict(self) -> dict[str, Any]:
        """The type, the number of rows, and the fields that differ from their defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        }


class PackedColumn(NamedTuple):
    """A packed column: its packing, its stored numbers, and its jumps as rows and values; None: there are none."""

    packing: Packing
    numbers: Values | None
    jumps: Values | None


def pack(column: str, columns: Mapping[str, Values]) -> PackedColumn:
    """Pack one column of integers of a table."""
    values = columns[column]
    type_, rows = values.dtype.newbyteorder("<").str, len(values)
    if rows == 0 or bool((values == values[0]).all()):
        return PackedColumn(Packing(type_, rows, value=int(values[0]) if rows else 0), None, None)
    plain = Packing(type_, rows)
    candidates = [_narrowed(plain, values)]
    if values.dtype.itemsize > 1:
        signed = values.view(f"i{values.dtype.itemsize}")
        before = np.concatenate([signed[:1], np.diff(signed)])
        candidates.append(_narrowed(Packing(type_, rows, before=True), before))
        start = columns.get("start_ns")
        if column != "start_ns" and start is not None and start.dtype == values.dtype:
            candidates.append(_narrowed(Packing(type_, rows, column="start_ns"), values - start))
    return min(candidates, key=_num_bytes)


def unpack(packing: Packing, numbers: Values, jumps: Values | None, columns: Mapping[str, Values]) -> Values:
    """Return the values of a column whose rows differ, read-only.

    Raises:
        ValueError: the numbers are not those of this packing.
    """
    if numbers.shape != (packing.rows,) or numbers.dtype.kind != "u":
        raise ValueError("a column has another number of values than of rows")
    dtype = packing.dtype
    values: Values = numbers.astype(dtype)
    if packing.base:
        values += _wrapped(packing.base, dtype)
    if packing.jumps:
        _place_jumps(values, jumps)
    if packing.before:
        np.cumsum(values, dtype=dtype, out=values)
    elif packing.column:
        values += columns[packing.column]
    values.flags.writeable = False
    return values


class Constants:
    """Columns of one value. Equal ones are one array, as a table has many columns of zeros."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int, int], Values] = {}

    def column(self, packing: Packing) -> Values:
        """Return the values of a column whose rows are all equal, read-only."""
        value = packing.value or 0
        key = packing.type, packing.rows, value
        if key not in self._made:
            # Zeros take no memory until they are written to.
            made = np.full(packing.rows, value, packing.dtype) if value else np.zeros(packing.rows, packing.dtype)
            made.flags.writeable = False
            self._made[key] = made
        return self._made[key]


def _wrapped(number: int, dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """The number modulo the width of a type."""
    unsigned = np.array(number % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}")
    return unsigned.view(dtype)


def _place_jumps(values: Values, jumps: Values | None) -> None:
    if jumps is None or jumps.ndim != 2 or jumps.shape[0] != 2 or jumps.dtype != np.dtype("<i8"):
        raise ValueError("a column lacks its jumps")
    if jumps.shape[1] and not 0 <= int(jumps[0].min()) <= int(jumps[0].max()) < len(values):
        raise ValueError("a jump of a column is in a row that does not exist")
    values[jumps[0]] = jumps[1].astype(values.dtype)


def _num_bytes(packed: PackedColumn) -> int:
    return sum(part.nbytes for part in (packed.numbers, packed.jumps) if part is not None)


def _narrowed(packing: Packing, numbers: Values) -> PackedColumn:
    """The numbers in as few bytes as most of them need, and the others as jumps."""
    base, width, is_inside = _range_of_most(numbers)
    packing = Packing(
        packing.type, packing.rows, base=base, before=packing.before, column=packing.column, jumps=is_inside is not None
    )
    jumps = None
    if is_inside is not None:
        rows = np.flatnonzero(~is_inside)
        jumps = np.stack([rows.astype("<i8"), numbers[rows].astype("<i8")])
    less = numbers.view(f"u{numbers.dtype.itemsize}") - _wrapped(base, np.dtype(f"u{numbers.dtype.itemsize}"))
    if is_inside is not None:
        less = np.where(is_inside, less, 0)
    return PackedColumn(packing, less.astype(f"<u{width}"), jumps)


def _range_of_most(numbers: Values) -> tuple[int, int, npt.NDArray[np.bool_] | None]:
    """The smallest stored number, the bytes of each, and a mask of the stored numbers; None: all are stored."""
    least, most = int(numbers.min()), int(numbers.max())
    whole = _width(most - least)
    best_bytes = len(numbers) * whole
    best: tuple[int, int, npt.NDArray[np.bool_] | None] = least, whole, None
    if whole > 1 and len(numbers) > _JUMP_BYTES:
        middle = int(np.median(numbers[:: max(len(numbers) >> 12, 1)]))
        for width in (width for width in _WIDTHS if width < whole):
            near = max(least, middle - (1 << 8 * width - 1))
            is_inside = (numbers >= near) & (numbers <= min(near + (1 << 8 * width) - 1, most))
            outside = len(numbers) - int(np.count_nonzero(is_inside))
            num_bytes = len(numbers) * width + outside * _JUMP_BYTES
            if num_bytes < best_bytes:
                best_bytes, best = num_bytes, (near, width, is_inside)
    return best


def _width(span: int) -> int:
    return next(width for width in _WIDTHS if span < 1 << 8 * width)
