"""Single rows of a table: named tuples of its columns, which know their name, their duration and their annotation."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.recording.kernel_names import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def name_for_people(table: str, recorded: str) -> str:
    """The short name of a kernel (``add``); for rows of other tables the name as it was recorded."""
    return short_name(recorded) if table == "kernels" else recorded


class Origin(NamedTuple):
    """The values of a recording that its rows use; rows of one annotation share it."""

    strings: Sequence[str]
    annotation_id: int | Callable[[], int]
    """The index of the annotation's path among the strings, or a function that finds it; -1: none."""


class _Row:
    """Attributes of rows besides their columns; they are not part of the tuple.

    They are found when they are asked for: most programs look at one of them, and a table has millions of rows.
    """

    _table: str
    _fields: tuple[str, ...]
    _beside: tuple[str, ...]
    _origin: Origin

    def __reduce__(self) -> tuple[Any, ...]:
        beside = {name: getattr(self, name) for name in self._beside}
        return _row, (self._table, self._fields, tuple(self), beside)  # type: ignore[arg-type]


class _Beside:
    """An attribute that is made anew each time, except of rows that were pickled, which hold its value.

    ``functools.cached_property`` takes a lock up to Python 3.11, which costs more than what it keeps.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, row: Any, owner: type | None = None) -> Any:
        return self if row is None else self._make(row)


def _name(row: Any) -> str:
    """The row's name for people."""
    return name_for_people(row._table, row._origin.strings[row.name_id])


def _duration_ns(row: Any) -> int:
    """The time from its start to its end."""
    duration_ns: int = row.end_ns - row.start_ns
    return duration_ns


def _annotation(row: Any) -> str:
    """The path of the annotation it was launched under; ``""``: there was none."""
    origin: Origin = row._origin
    annotation_id = origin.annotation_id() if callable(origin.annotation_id) else origin.annotation_id
    return origin.strings[annotation_id] if annotation_id >= 0 else ""


_BESIDE = {"name": _Beside(_name), "duration_ns": _Beside(_duration_ns), "annotation": _Beside(_annotation)}


@cache
def row_type(table: str, columns: tuple[str, ...], beside: tuple[str, ...]) -> Any:
    """The type of the rows of a table: ``Kernel`` for kernels.

    Args:
        table: the name of the table.
        columns: the names of its columns.
        beside: the names of further attributes: ``name``, ``duration_ns``, ``annotation``.
    """
    title = table.removesuffix("s").title().replace("_", "")
    attributes: dict[str, Any] = {"__module__": __name__, "_table": table, "_beside": beside}
    attributes |= {name: _BESIDE[name] for name in beside}
    return type(title, (_Row, namedtuple(title, columns)), attributes)


def _row(table: str, columns: tuple[str, ...], values: tuple[Any, ...], beside: dict[str, Any]) -> Any:
    """The row that was pickled."""
    row = row_type(table, columns, tuple(beside))._make(values)
    row.__dict__.update(beside)
    return row
