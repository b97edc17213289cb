"""Single rows of a table: named tuples of its columns, which know their name, their duration and their annotation."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any


class _Row:
    """What rows have besides their columns, as attributes; they are no part of the tuple."""

    _table: str
    _fields: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _row, (self._table, self._fields, tuple(self), self.__dict__)  # type: ignore[arg-type]


@cache
def row_type(table: str, columns: tuple[str, ...]) -> Any:
    """The type of the rows of a table: ``Kernel`` for kernels."""
    title = table.removesuffix("s").title().replace("_", "")
    return type(title, (_Row, namedtuple(title, columns)), {"__module__": __name__, "_table": table})


def _row(table: str, columns: tuple[str, ...], values: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The row that was pickled."""
    row = row_type(table, columns)._make(values)
    row.__dict__.update(attributes)
    return row
