"""Answers to questions about steps: typed columns with units, meanings and losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.units import UNITS
from collector.checked_arguments import whole_number
from collector.runtime.optional_packages import optional_package
from collector.text.document_cells import csv_text, markdown_row
from collector.text.html_tables import html_line, html_table
from collector.text.terminal import printable, styled
from collector.text.text_tables import folded, table_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    Values = npt.NDArray[Any] | Sequence[str]

JSON_SCHEMA = "collector.answer/1"
"""The schema that the values of `Answer.to_json` name; docs/analysis.md describes it."""
_SHOWN_ROWS = 20
_ROWS_SIDE_BY_SIDE = 8
"""Number of rows that are shown as columns where a table is too wide."""
_WIDTH = 100
_HEADINGS = {("graphs", "activities"): "activities per launch"}
"""Question and column -> the heading in tables for a terminal, where the name alone could be misread."""


class Column(NamedTuple):
    """One column of an answer."""

    name: str
    unit: str
    """One of `collector.analysis.units.UNITS`."""
    meaning: str
    """One sentence."""

    def shown(self, row: Mapping[str, Any]) -> str:
        """The value of a row for people."""
        return UNITS[self.unit].shown(row[self.name])


@dataclass(frozen=True)
class Window:
    """The part of a step that an answer is about, on the clock of its recording."""

    name: str
    """``step``: the whole step; ``span``: from the first to the last activity of each device; ``path``: from the first
    call or activity to the last end of an activity."""
    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Answer:
    """The answer to one question: rows of typed columns, with their definition, window, losses and evidence."""

    question: str
    """Name of the question, as in commands and JSON: ``idle``."""
    definition: str
    """One sentence that defines the figures."""
    columns: tuple[Column, ...]
    values: Mapping[str, npt.NDArray[Any]]
    """Name of a column -> its values: int64, float64 or text, one for each row."""
    totals: Mapping[str, int | float] = field(default_factory=dict)
    """Sums over all rows by column, and further figures of the whole answer by name."""
    windows: tuple[Window, ...] = ()
    """The windows of the recordings that the question was put to."""
    losses: tuple[str, ...] = ()
    """Losses of the records from which the answer was computed, by the ledgers. Empty: nothing was lost."""
    evidence: Sequence[Mapping[str, npt.NDArray[np.int64]]] = ()
    """For each row: table -> the rows of the recording from which it was computed. Empty for several recordings."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the answer, one sentence each."""

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.values.items()}
        if list(lengths) != [column.name for column in self.columns] or len(set(lengths.values())) > 1:
            raise ValueError(f"columns {lengths} do not fit {[column.name for column in self.columns]}")
        check_units(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.values.values()), ()))

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """The values of a column. Raises KeyError, with the names of all columns, if there is none of this name."""
        if column not in self.values:
            known = ", ".join(each.name for each in self.columns)
            raise KeyError(f"answer {self.question} has no column {column!r}: {known}")
        return self.values[column]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as column -> value."""
        lists = [self.values[column.name].tolist() for column in self.columns]
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True))

    def __repr__(self) -> str:
        return f"<Answer {self.question}: {len(self)} rows of {', '.join(column.name for column in self.columns)}>"

    def __str__(self) -> str:
        return self.text()

    def text(
        self,
        *,
        rows: int | None = _SHOWN_ROWS,
        width: int = _WIDTH,
        color: bool = False,
        losses: bool = True,
        whole_names: bool = False,
    ) -> str:
        """The answer as a table for a terminal: see `collector.text.text_tables`.

        Paths with a depth are shown as a tree, and columns in which no row has a value are left out. A single row, and
        a few rows of figures alone, become columns where they are too wide.

        Args:
            rows: the largest number of rows; None: all.
            width: characters of a line.
            color: whether to use terminal colours.
            losses: whether to list the losses below the table.
            whole_names: do not cut names, however wide the lines become, and show whole paths instead of a tree.

        Raises:
            ValueError: ``rows`` is below 0, or ``width`` below 1.
            TypeError: one of them is not a whole number.
        """
        width = whole_number("width", width, least=1)
        rows = None if rows is None else whole_number("rows", rows, least=0)
        shown = len(self) if rows is None else min(rows, len(self))
        parts = ["\n".join(styled(line, "bold", color=color) for line in folded(self.definition, width))]
        if shown:
            parts.append(self._table_text(shown, width, color=color, whole_names=whole_names))
        below = []
        if shown < len(self) or not shown:
            rest = f"{len(self) - shown:,} more of {len(self):,} rows" if len(self) else "There are no rows."
            below.append(styled(rest, "dim", color=color))
        lost = [f"incomplete: {printable(loss)}" for loss in self.losses] if losses else []
        for sentences, styles in ((map(printable, self.notes), ["yellow"]), (lost, ["bold", "red"])):
            below += [styled(line, *styles, color=color) for text in sentences for line in folded(text, width)]
        return "\n\n".join([*parts, "\n".join(below)] if below else parts)

    def _headings(self) -> dict[str, str]:
        """Name of a column -> its heading in tables whose values contain their unit."""
        names = [column.name for column in self.columns]
        return {name: _HEADINGS.get((self.question, name)) or _plain(name, names) for name in names}

    def _table_text(self, shown: int, width: int, *, color: bool, whole_names: bool) -> str:
        """The table of this many rows."""
        is_tree = {"path", "depth"} <= self.values.keys() and not whole_names
        chosen = [each for each in self.columns if not is_tree or each.name != "depth"]
        lines = [
            [
                branch(row["path"], row["depth"]) if is_tree and each.name == "path" else each.shown(row)
                for each in chosen
            ]
            for row in islice(self, shown)
        ]
        kept = [place for place, _ in enumerate(chosen) if any(line[place] for line in lines)]
        kept = kept or list(range(len(chosen)))  # a query may ask for what is not known alone
        headings = self._headings()
        heads = [headings[chosen[at].name] for at in kept]
        lines = [[line[place] for place in kept] for line in lines]
        is_name = [chosen[place].unit == "text" for place in kept]
        is_wide = sum(max(map(len, cells)) + 2 for cells in zip(heads, *lines, strict=True)) > width
        if is_wide and not whole_names and (shown == 1 or (shown <= _ROWS_SIDE_BY_SIDE and not any(is_name))):
            heads, *lines = (list(cells) for cells in zip(heads, *lines, strict=True))
            is_name = [True] + [False] * shown
        return table_text(heads, lines, is_name, width, whole_names=whole_names, color=color)

    def to_csv(self) -> str:
        """The rows as comma-separated values with a line of names; times in ns, sizes in bytes, rates in bytes/s.

        Unprintable characters are escaped as the terminal shows them, and a text that a spreadsheet would take for a
        formula gets an apostrophe before it. `to_json` has every text unchanged.
        """
        return csv_text([[column.name for column in self.columns], *(row.values() for row in self)])

    def to_markdown(self) -> str:
        """The rows as a table of Markdown, with headings and values as the terminal shows them."""
        heads = markdown_row(self._headings().values())
        rules = f"| {' | '.join('---' if each.unit == 'text' else '---:' for each in self.columns)} |"
        rows = (markdown_row(column.shown(row) for column in self.columns) for row in self)
        return "".join(f"{line}\n" for line in (heads, rules, *rows))

    def to_json(self) -> dict[str, Any]:
        """The answer as values that ``json.dumps`` takes; every integer is exact.

        Keys: ``schema``, ``question``, ``definition``, ``windows``, ``columns`` (name, unit, meaning), ``rows`` (lists
        in the order of the columns, null for unknown and infinite values), ``totals``, ``losses``, ``notes``.
        """
        lists = [_finite(self.values[column.name].tolist()) for column in self.columns]
        return {
            "schema": JSON_SCHEMA,
            "question": self.question,
            "definition": self.definition,
            "windows": [{"name": each.name, "start_ns": each.start_ns, "end_ns": each.end_ns} for each in self.windows],
            "columns": [column._asdict() for column in self.columns],
            "rows": [list(row) for row in zip(*lists, strict=True)],
            "totals": dict(zip(self.totals, _finite(self.totals.values()), strict=True)),
            "losses": list(self.losses),
            "notes": list(self.notes),
        }

    def to_arrow(self) -> pa.Table:
        """The rows as a pyarrow table; fields have ``unit`` and ``meaning`` as metadata.

        Raises:
            collector.MissingDependencyError: pyarrow is not installed.
        """
        pa = optional_package("pyarrow")
        types = {np.int64: pa.int64(), np.float64: pa.float64(), object: pa.string()}
        arrays = [
            pa.array(self.values[column.name].tolist(), types[UNITS[column.unit].dtype]) for column in self.columns
        ]
        schema = [
            pa.field(column.name, array.type, metadata={"unit": column.unit, "meaning": column.meaning})
            for column, array in zip(self.columns, arrays, strict=True)
        ]
        about = {"question": self.question, "definition": self.definition}
        return pa.Table.from_arrays(arrays, schema=pa.schema(schema, metadata=about))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for readers of Arrow's C stream: polars, DuckDB, pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas data frame.

        Raises:
            collector.MissingDependencyError: pandas is not installed.
        """
        columns = {column.name: self.values[column.name] for column in self.columns}
        frame: pd.DataFrame = optional_package("pandas").DataFrame(columns)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars data frame.

        Raises:
            collector.MissingDependencyError: polars or pyarrow is not installed.
        """
        frame: pl.DataFrame = optional_package("polars").DataFrame(self.to_arrow())
        return frame

    def _repr_html_(self) -> str:
        rows = [[column.shown(row) for column in self.columns] for row in islice(self, _SHOWN_ROWS)]
        more = [f"{len(self) - len(rows):,} more of {len(self):,} rows"] if len(self) > len(rows) else []
        return "".join(
            [
                html_line(self.definition),
                html_table(
                    list(self._headings().values()),
                    rows,
                    [column.unit == "text" for column in self.columns],
                    meanings=[column.meaning for column in self.columns],
                ),
                *map(html_line, [*more, *self.notes]),
                *(html_line(f"Incomplete: {loss}", "bad") for loss in self.losses),
            ]
        )


def check_units(columns: Iterable[Column]) -> None:
    """Refuse columns with units that do not exist.

    Raises:
        ValueError: a column has such a unit.
    """
    for column in columns:
        if column.unit not in UNITS:
            raise ValueError(f"column {column.name}: no unit {column.unit!r}; there are {', '.join(UNITS)}")


def _plain(name: str, others: Sequence[str]) -> str:
    """The name of a column whose values contain their unit, unless only the unit tells it from another one."""
    stem = name.removesuffix("_ns")
    is_told = stem == name or not {stem, f"{stem}_bytes"}.intersection(others)
    return stem.removeprefix("num_").replace("_", " ") + ("" if is_told else " time")


def branch(path: str, depth: int) -> str:
    """The last part of a path, indented by its depth."""
    return "  " * depth + printable(path.rpartition("/")[2] if depth else path)


def _finite(values: Iterable[Any]) -> list[Any]:
    """Values for JSON, which has neither NaN nor infinity: None for these."""
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
