"""One table of a recording: immutable columns with names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from collector.recording.distinct import distinct_codes
from collector.recording.kernel_names import demangle
from collector.recording.table_rows import Origin, name_for_people, row_type
from collector.recording.text_columns import text_column
from collector.text.html_tables import html_table
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

    from collector.recording.arrow import Texts
    from collector.recording.launch_annotations import LaunchAnnotations

_SHOWN_ROWS = 8
_SHOWN_COLUMNS = 10


class Table:
    """Rows of one kind of activity, as one read-only numpy array per column.

    Columns are attributes (``kernels.start_ns``); `collector.recording.schema.SCHEMA` lists them. Times are CUPTI's
    nanoseconds. A table is sliced and filtered like an array, and the result shares memory where numpy's does:

    >>> kernels[kernels.duration_ns > 1_000].where(stream_id=7).names()
    """

    __slots__ = ("_annotations", "_columns", "_strings", "name")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, npt.NDArray[Any]],
        strings: Sequence[str],
        annotations: LaunchAnnotations | npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Wrap ``columns``, all equally long, and make them read-only.

        Args:
            name: the table's name in the schema.
            columns: the column's name -> its values.
            strings: the texts that ``name_id`` indexes.
            annotations: the annotations around launches by correlation id, or the index of each row's; None: not known.
        """
        self.name = name
        """The table's name in the schema: kernels, memcpys, ..."""
        for values in columns.values():
            values.flags.writeable = False
        self._columns = dict(columns)
        self._strings = strings
        self._annotations = annotations if "correlation_id" in columns else None

    def launched_under(self, annotations: LaunchAnnotations) -> Table:
        """The same rows with the annotations around their launches."""
        table = object.__new__(Table)  # the columns are read-only already, and a recording has many tables
        table.name, table._columns, table._strings = self.name, self._columns, self._strings
        table._annotations = annotations if "correlation_id" in self._columns else None
        return table

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

    def __reduce__(self) -> tuple[Any, ...]:
        annotations = self.annotation_ids if self.has_annotations else None
        return Table, (self.name, self._columns, list(self._strings), annotations)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __repr__(self) -> str:
        return (
            f"<Table {self.name}: {counted('{} row[|s]', len(self))}, {counted('{} column[|s]', len(self._columns))}>"
        )

    def _repr_html_(self) -> str:
        shown = self[:_SHOWN_ROWS]
        non_zero = [name for name in self._columns if name != "name_id" and shown[name].any()]
        names = [*reversed(self._beside()), *non_zero][:_SHOWN_COLUMNS]
        rows = [[str(value) for value in row] for row in zip(*(shown[name].tolist() for name in names), strict=True)]
        return html_table(
            names,
            rows,
            [name in ("name", "annotation") for name in names],
            caption=f"{self.name}: {counted('{:,} row[|s]', len(self))} of {len(self._columns)} columns",
        )

    def __iter__(self) -> Iterator[Any]:
        """Every row as a named tuple of Python numbers, with ``name``, ``duration_ns`` and ``annotation`` beside."""
        rows = map(self._row_type()._make, zip(*(each.tolist() for each in self._columns.values()), strict=True))
        strings = self._strings
        origins: dict[int, Origin] = {}
        for row, annotation_id in zip(rows, self.annotation_ids.tolist(), strict=True):
            origin = origins.get(annotation_id)
            row._origin = origin or origins.setdefault(annotation_id, Origin(strings, annotation_id))
            yield row

    def _row_type(self) -> Any:
        return row_type(self.name, tuple(self._columns), tuple(self._beside()))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: str) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, index: slice | npt.NDArray[Any] | Sequence[int]) -> Table: ...
    def __getitem__(self, index: int | str | slice | npt.NDArray[Any] | Sequence[int]) -> Any:
        """One row, the values of a column, or the table of the rows that a slice, mask or index array selects.

        A row is a named tuple of its columns with ``name``, ``duration_ns`` and ``annotation`` beside; these three are
        columns by name, too, where the table has them.

        Raises:
            KeyError: there is no such column.
        """
        if isinstance(index, str):
            return self._column(index)
        if isinstance(index, (int, np.integer)):
            row = self._row_type()._make(each[index].item() for each in self._columns.values())
            row._origin = Origin(self._strings, partial(self._annotation_id_at, int(index)))
            return row
        if isinstance(index, np.ndarray) and index.dtype == bool and index.shape == (len(self),):
            index = np.flatnonzero(index)  # a mask would be searched anew for each column
        columns = {name: values[index] for name, values in self._columns.items()}
        annotations = self._annotations[index] if isinstance(self._annotations, np.ndarray) else self._annotations
        return Table(self.name, columns, self._strings, annotations)

    def _column(self, name: str) -> npt.NDArray[Any]:
        if name in self._columns:
            return self._columns[name]
        if name not in self._beside():
            known = ", ".join([*self._columns, *self._beside()])
            raise KeyError(f"table {self.name} has no column {name!r}: {known}")
        texts = {"name": self.names, "annotation": self.annotations}
        return np.array(texts[name](), object) if name in texts else self.duration_ns

    def _beside(self) -> list[str]:
        """Names of the values that rows have besides their columns."""
        has = {"name": self.has_names, "duration_ns": self.has_duration, "annotation": self.has_annotations}
        return [name for name, is_there in has.items() if is_there]

    @property
    def has_names(self) -> bool:
        """Whether rows have a name."""
        return "name_id" in self._columns

    @property
    def has_duration(self) -> bool:
        """Whether rows have a start and an end."""
        return {"start_ns", "end_ns"} <= self._columns.keys()

    @property
    def has_annotations(self) -> bool:
        """Whether rows were caused by calls, which may have been made under an annotation."""
        return self._annotations is not None

    @property
    def annotation_ids(self) -> npt.NDArray[np.int64]:
        """For each row the ``strings`` index of the annotation it was launched under, -1 where there was none.

        The path of an activity in a CUDA graph also contains the path of its capture: see `graph_paths`.
        """
        if self._annotations is None or isinstance(self._annotations, np.ndarray):
            return np.full(len(self), -1, np.int64) if self._annotations is None else self._annotations
        return self._annotations.name_ids_of(self.correlation_id, self._columns.get("captured_external_id"))

    def _annotation_id_at(self, row: int) -> int:
        """The element of `annotation_ids` for one row, without computing the others."""
        if self._annotations is None or isinstance(self._annotations, np.ndarray):
            return -1 if self._annotations is None else int(self._annotations[row])
        return int(self[row : row + 1 or None].annotation_ids[0])

    def annotations(self) -> list[str]:
        """For each row the path of the annotation it was launched under, ``""`` where there was none."""
        return [self._strings[index] if index >= 0 else "" for index in self.annotation_ids.tolist()]

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
        return self._named(lambda recorded: name_for_people(self.name, recorded))

    def _named(self, form: Callable[[str], str]) -> list[str]:
        ids, inverse = distinct_codes(self.name_id)
        distinct = [form(self._strings[index]) for index in ids.tolist()]
        return [distinct[index] for index in inverse.tolist()]

    def text(self, name_id: int) -> str:
        """The text that a value of ``name_id`` or of another column of texts stands for, as recorded."""
        return self._strings[name_id]

    def texts(self, column: str) -> list[str]:
        """For each row the text that its value in a column of texts, such as ``group_name_id``, stands for."""
        return [self._strings[index] for index in self._columns[column].tolist()]

    def to_arrow(self) -> pa.Table:
        """The columns as a pyarrow table, with ``name``, ``duration_ns`` and ``annotation`` where rows have them.

        Kernels have ``demangled_name``, too. Texts are dictionary-encoded, other columns are not copied.

        Raises:
            collector.MissingDependencyError: pyarrow is not installed.
        """
        from collector.recording.arrow import arrow_table

        return arrow_table(self._shown())

    def to_pandas(self) -> pd.DataFrame:
        """The columns of `to_arrow` as a pandas data frame; texts are categories.

        Raises:
            collector.MissingDependencyError: pandas is not installed.
        """
        from collector.recording.arrow import pandas_table

        return pandas_table(self._shown())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns of `to_arrow` for libraries that read Arrow's C stream, e.g. polars, DuckDB and pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _shown(self) -> Iterator[tuple[str, Texts | npt.NDArray[Any]]]:
        """The columns with names in place of ``name_id``, and the computed values of rows."""
        from collector.recording.arrow import Texts

        for column, values in self._columns.items():
            if column == "name_id":
                continue  # names follow, in the form for people
            texts = text_column(column)
            yield (texts, Texts.of(values, lambda index: self._strings[index])) if texts else (column, values)
        if self.has_duration:
            yield "duration_ns", self.duration_ns
        if self.has_names:
            yield "name", Texts.of(self.name_id, lambda index: name_for_people(self.name, self._strings[index]))
        if self.name == "kernels":
            yield "demangled_name", Texts.of(self.name_id, lambda index: demangle(self._strings[index]))
        if self.has_annotations:
            yield "annotation", Texts.of(self.annotation_ids, lambda at: self._strings[at] if at >= 0 else "")
