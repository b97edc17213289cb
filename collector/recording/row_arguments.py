"""Arguments of rows from files of other programs that have no column, as text."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    import numpy.typing as npt

    _Made: TypeAlias = Mapping[str, Mapping[str, "ArgumentColumn"]]


class ArgumentColumn(NamedTuple):
    """One argument of the rows of a table."""

    rows: npt.NDArray[np.uint32]
    """The rows that have it, in order."""
    codes: npt.NDArray[np.uint32]
    """The place of each of their values among the texts."""
    texts: list[str]
    """The distinct values: texts as they are, all others as JSON writes them."""

    def value(self, row: int) -> str | None:
        """The value of a row; None where it has none."""
        place = int(np.searchsorted(self.rows, row))
        return self.texts[self.codes[place]] if place < len(self.rows) and self.rows[place] == row else None

    def values(self, count: int) -> list[str | None]:
        """The values of the first ``count`` rows; None where one has none."""
        found: list[str | None] = [None] * count
        for row, code in zip(self.rows.tolist(), self.codes.tolist(), strict=True):
            if row < count:
                found[row] = self.texts[code]
        return found


class RowArguments:
    """Table -> name of an argument -> its values. They are made on request, because a file may have millions.

    Rows are counted over the parts of a recording: those of the step, then those that it sets apart.
    """

    def __init__(self, make: Callable[[], _Made] = dict) -> None:
        """Take the function that makes them."""
        self._make = make

    @cached_property
    def tables(self) -> _Made:
        """Table -> name of an argument -> its values."""
        return self._make()

    def of_row(self, table: str, row: int) -> dict[str, str]:
        """The arguments of one row of a table."""
        columns = self.tables.get(table, {})
        return {name: value for name, column in columns.items() if (value := column.value(row)) is not None}

    def part(self, rows_of: Callable[[str], npt.NDArray[np.int64]]) -> RowArguments:
        """The arguments of the selected rows of each table.

        Args:
            rows_of: takes the name of a table and gives its selected rows, ascending.
        """
        return RowArguments(
            lambda: {
                table: {name: _chosen(column, rows_of(table)) for name, column in columns.items()}
                for table, columns in self.tables.items()
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.tables,)


def _made(tables: _Made) -> RowArguments:
    return RowArguments(lambda: tables)


def _chosen(column: ArgumentColumn, rows: npt.NDArray[np.int64]) -> ArgumentColumn:
    places = np.searchsorted(rows, column.rows)
    own = np.flatnonzero(np.append(rows, -1)[places] == column.rows)
    return ArgumentColumn(places[own].astype(np.uint32), column.codes[own], column.texts)
