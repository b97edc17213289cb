"""Single rows of a table: named tuples of its columns, which know their name, their duration and their annotation."""

from __future__ import annotations

from collections import namedtuple
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from collector.recording.kernel_names import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence


def name_for_people(table: str, recorded: str) -> str:
    """The short name of a kernel (``add``); of rows of other tables the name as it was recorded."""
    return short_name(recorded) if table == "kernels" else recorded


class _Row:
    """Attributes of rows besides their columns; they are no part of the tuple.

    They are found when they are asked for: most programs look at one of them, and a table has millions of rows.
    """

    _table: str
    _fields: tuple[str, ...]
    _beside: tuple[str, ...]
    _strings: Sequence[str]
    _annotation_id: int

    def __reduce__(self) -> tuple[Any, ...]:
        beside = {name: getattr(self, name) for name in self._beside}
        return _row, (self._table, self._fields, tuple(self), beside)  # type: ignore[arg-type]


def _name(row: Any) -> str:
    """The row's name for people."""
    return name_for_people(row._table, row._strings[row.name_id])


def _duration_ns(row: Any) -> int:
    """The time from its start to its end."""
    duration_ns: int = row.end_ns - row.start_ns
    return duration_ns


def _annotation(row: Any) -> str:
    """The path of the annotation it was launched under; ``""``: there was none."""
    path: str = row._strings[row._annotation_id] if row._annotation_id >= 0 else ""
    return path


_BESIDE = {"name": _name, "duration_ns": _duration_ns, "annotation": _annotation}


@cache
def row_type(table: str, columns: tuple[str, ...], beside: tuple[str, ...]) -> Any:
    """The type of the rows of a table: ``Kernel`` for kernels.

    Args:
        table: its name.
        columns: their names.
        beside: what rows have besides them: ``name``, ``duration_ns``, ``annotation``.
    """
    title = table.removesuffix("s").title().replace("_", "")
    attributes: dict[str, Any] = {"__module__": __name__, "_table": table, "_beside": beside}
    attributes |= {name: cached_property(_BESIDE[name]) for name in beside}
    return type(title, (_Row, namedtuple(title, columns)), attributes)


def _row(table: str, columns: tuple[str, ...], values: tuple[Any, ...], beside: dict[str, Any]) -> Any:
    """The row that was pickled."""
    row = row_type(table, columns, tuple(beside))._make(values)
    row.__dict__.update(beside)
    return row
