"""One table of a recording: immutable columns with names."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np

from collector.recording.kernel_names import demangle, short_name
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa


class Table:
    """Rows of one kind of activity, as one read-only numpy array per column.

    Columns are attributes (``kernels.start_ns``); what they are is in `collector.recording.schema.SCHEMA`. Times are
    CUPTI's nanoseconds. A table is sliced and filtered like an array, and the result shares memory where numpy's does:

    >>> kernels[kernels.duration_ns > 1_000].where(stream_id=7).names()
    """

    __slots__ = ("_columns", "_strings", "name")

    def __init__(self, name: str, columns: Mapping[str, npt.NDArray[Any]], strings: Sequence[str]) -> None:
        """Wrap ``columns``, all equally long, and make them read-only. ``strings`` is what ``name_id`` indexes."""
        self.name = name
        """The table's name in the schema: kernels, memcpys, ..."""
        for values in columns.values():
            values.flags.writeable = False
        self._columns = dict(columns)
        self._strings = strings

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """A new dict of column name -> values, in the schema's order."""
        return dict(self._columns)

    @property
    def duration_ns(self) -> npt.NDArray[np.int64]:
        """``end_ns - start_ns`` of every row, int64."""
        return cast("npt.NDArray[np.int64]", self.end_ns - self.start_ns)

    def __getattr__(self, column: str) -> npt.NDArray[Any]:
        try:
            return cast("npt.NDArray[Any]", object.__getattribute__(self, "_columns")[column])
        except KeyError:
            raise AttributeError(f"table {self.name} has no column {column!r}: {', '.join(self._columns)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def __getstate__(self) -> tuple[str, dict[str, npt.NDArray[Any]], list[str]]:
        return self.name, self._columns, list(self._strings)

    def __setstate__(self, state: tuple[str, dict[str, npt.NDArray[Any]], list[str]]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __repr__(self) -> str:
        return (
            f"<Table {self.name}: {counted('{} row[|s]', len(self))}, {counted('{} column[|s]', len(self._columns))}>"
        )

    def __iter__(self) -> Iterator[Any]:
        """Every row as a named tuple of Python numbers."""
        make = _row_type(self.name, tuple(self._columns))._make
        return map(make, zip(*(values.tolist() for values in self._columns.values()), strict=True))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice | npt.NDArray[Any] | Sequence[int]) -> Table: ...
    def __getitem__(self, index: int | slice | npt.NDArray[Any] | Sequence[int]) -> Any:
        """One row as a named tuple, or the table of the rows that a slice, mask or index array selects."""
        if isinstance(index, (int, np.integer)):
            row_type = _row_type(self.name, tuple(self._columns))
            return row_type._make(values[index].item() for values in self._columns.values())
        return Table(self.name, {name: values[index] for name, values in self._columns.items()}, self._strings)

    def where(self, **equal: int) -> Table:
        """Return the rows whose columns have exactly these values: ``kernels.where(device_id=0, stream_id=7)``."""
        mask = np.ones(len(self), bool)
        for column, value in equal.items():
            mask &= getattr(self, column) == value
        return self[mask]

    def recorded_names(self) -> list[str]:
        """Every row's name as it was recorded (mangled, for kernels)."""
        return self._named(lambda name: name)

    def demangled_names(self) -> list[str]:
        """Every row's whole name as its programmer wrote it: ``void add<float>(float*, int)``."""
        return self._named(demangle)

    def names(self) -> list[str]:
        """Every row's name for people: the short name of a kernel (``add``), the path of an annotation."""
        return self._named(short_name if self.name == "kernels" else lambda name: name)

    def _named(self, form: Callable[[str], str]) -> list[str]:
        ids, inverse = np.unique(self.name_id, return_inverse=True)
        distinct = [form(self._strings[index]) for index in ids.tolist()]
        return [distinct[index] for index in inverse.tolist()]

    def text(self, name_id: int) -> str:
        """The name that ``name_id`` stands for, as recorded."""
        return self._strings[name_id]

    def to_arrow(self) -> pa.Table:
        """The columns as a pyarrow table; see `collector.recording.arrow.arrow_table`."""
        from collector.recording.arrow import arrow_table

        return arrow_table(self.name, self._columns, self._strings)


@cache
def _row_type(name: str, columns: tuple[str, ...]) -> type[NamedTuple]:
    return cast("type[NamedTuple]", namedtuple(name.removesuffix("s").title().replace("_", ""), columns))
