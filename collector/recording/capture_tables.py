"""The tables of a recording, made of the columns of a capture: checked, sorted, and split by their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.cupti_enums import CUPTI_OVERHEADS
from collector.recording.launch_annotations import LaunchAnnotations
from collector.recording.possible_times import is_possible
from collector.recording.schema import ACTIVITY_TABLES, LATER_COLUMNS, LATER_TABLES, ORDER, SCHEMA
from collector.recording.table import Table
from collector.recording.text_columns import text_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]
    Window = tuple[int | None, int | None]
    """The begin and end of a step, CUPTI's ns; None: its rows may lie beyond."""

ROWS_CUT = "rows_cut"
"""The counter of rows that a part lacks. A capture that has it, even if it is 0, is that of a part."""
_ROWS_AT_ONCE = 1 << 16
"""The rows whose order is checked at once."""


def checked_columns(name: str, columns: Mapping[str, npt.NDArray[Any]] | None, num_strings: int) -> Columns:
    """The columns of a table, of which a capture of an earlier version may lack some.

    Raises:
        ValueError: they do not follow the schema, or name a text beyond the strings.
    """
    schema = SCHEMA[name]
    if not columns and name in LATER_TABLES:
        return {column: np.zeros(0, dtype) for column, dtype in schema.items()}
    if columns:
        rows = len(next(iter(columns.values())))
        later = [column for column in schema if (name, column) in LATER_COLUMNS]
        columns = {**{column: np.zeros(rows, schema[column]) for column in later}, **columns}
    if columns is None or set(columns) != set(schema):
        raise ValueError(f"the capture's table {name} has not the columns of the schema")
    arrays = {column: np.asarray(columns[column]) for column in schema}
    wrong = [column for column, dtype in schema.items() if arrays[column].dtype != np.dtype(dtype)]
    if wrong:
        raise ValueError(f"column {name}.{wrong[0]} is {arrays[wrong[0]].dtype}, not {schema[wrong[0]]}")
    if len({values.shape for values in arrays.values()}) != 1 or next(iter(arrays.values())).ndim != 1:
        raise ValueError(f"the columns of table {name} differ in length")
    for column, values in arrays.items():
        if text_column(column) and len(values) and values.max() >= num_strings:
            raise ValueError(f"{name}.{column} points beyond the capture's {num_strings} strings")
    return arrays


def with_capture_paths(columns: dict[str, Columns], window: Window, strings: tuple[str, ...]) -> tuple[str, ...]:
    """The strings with the paths of activities that have an annotation at the capture of their graph."""
    works = [columns[name] for name in ACTIVITY_TABLES if columns[name]["captured_external_id"].any()]
    if not works:
        return strings
    annotations, external = (
        [part.columns for part in split_table(name, columns[name], window, strings)]
        for name in ("annotations", "external_correlations")
    )
    annotated = LaunchAnnotations(annotations, external[0], strings)
    paths = {
        path
        for work in works
        for path in annotated.paths_with_capture(work["correlation_id"], work["captured_external_id"])
    }
    return (*strings, *sorted(paths - set(strings)))


def with_an_empty_text(columns: dict[str, Columns], strings: tuple[str, ...]) -> tuple[str, ...]:
    """Let the rows of files that lack a column of texts have empty ones; return the strings with an empty text.

    Number 0 is the empty text, except in files of versions before these columns.
    """
    if not strings or not strings[0]:
        return strings
    number = strings.index("") if "" in strings else len(strings)
    is_used = False
    for table, column in LATER_COLUMNS:
        values = columns[table][column]
        if text_column(column) and len(values) and not values.any():
            columns[table][column] = np.full(len(values), number, values.dtype)
            is_used = True
    return (*strings, "") if is_used and number == len(strings) else strings


def close_annotations(annotations: Columns, stop_ns: int) -> None:
    """End annotations that were still open when the step ended, at ``stop_ns``."""
    still_open = (annotations["end_ns"] == 0) & (annotations["start_ns"] > 0)
    if still_open.any():
        annotations["end_ns"] = np.where(still_open, stop_ns, annotations["end_ns"])


def split_table(
    name: str, columns: Columns, window: Window, strings: tuple[str, ...]
) -> tuple[Table, Table, Table, Table]:
    """Return the table's sorted rows in four parts: within the step, with impossible times, before it, after it."""
    order = row_order(name, columns)
    if order is not None:
        columns = {column: values[order] for column, values in columns.items()}
    table = Table(name, columns, strings)
    apart = _set_apart(columns, window)
    if apart is None:
        return table, table[:0], table[:0], table[:0]
    invalid, early, late = apart
    return table[~(invalid | early | late)], table[invalid], table[early], table[late]


def window_of(capture: Capture) -> Window:
    """The begin and end of the step of a capture; without ends for a part, whose rows may run beyond its window."""
    if ROWS_CUT in capture["counters"]:
        return None, None
    clock = capture["clock"]
    return int(clock["cupti_start_ns"]), int(clock["cupti_stop_ns"])


def without_those_of_tracing(overheads: Columns, window: Window) -> Columns:
    """Leave out CUPTI's own work outside the step: each flush at its end has a record of itself."""
    apart = _set_apart(overheads, window)
    if apart is None:
        return overheads
    _, early, late = apart
    of_step = ~((early | late) & np.isin(overheads["overhead_kind"], CUPTI_OVERHEADS))
    return {column: values[of_step] for column, values in overheads.items()}


def _set_apart(columns: Mapping[str, npt.NDArray[Any]], window: Window) -> list[npt.NDArray[np.bool_]] | None:
    """Masks of rows with impossible times, before the step, and after it; None: there are no such rows."""
    if "start_ns" not in columns:
        return None
    start = columns["start_ns"]
    end = columns.get("end_ns", start)
    invalid = ~is_possible(start, end)
    none = np.zeros(len(start), bool)
    begin_ns, end_ns = window
    early = none if begin_ns is None else ~invalid & (start < begin_ns)
    late = none if end_ns is None else ~invalid & ~early & (end > end_ns)
    return [invalid, early, late] if (invalid | early | late).any() else None


def rows_in_parts(capture: Capture, name: str) -> npt.NDArray[np.int64]:
    """For each row of the recording, over its parts, its row in the capture's table."""
    columns = capture["tables"][name]
    found = row_order(name, columns)
    order: npt.NDArray[np.int64] = np.arange(len(next(iter(columns.values())))) if found is None else found
    times: Columns = {column: columns[column][order] for column in ("start_ns", "end_ns") if column in columns}
    apart = _set_apart(times, window_of(capture))
    if apart is None:
        return order
    return np.concatenate([order[~np.logical_or.reduce(apart)], *(order[part] for part in apart)])


def row_order(name: str, columns: Columns) -> npt.NDArray[np.int64] | None:
    """The permutation that sorts the rows into the table's order, or None if they are sorted already."""
    keys = [-columns[key[1:]] if key.startswith("-") else columns[key] for key in ORDER[name]]
    return None if _is_ordered(keys) else np.lexsort(keys[::-1])


def _is_ordered(keys: list[npt.NDArray[Any]]) -> bool:
    """Whether rows are sorted by ``keys``, first key first. Needs no memory that grows with the rows."""
    for first in range(0, len(keys[0]) - 1, _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE + 1)
        tied = np.ones(len(keys[0][part]) - 1, bool)
        for key in keys:
            values = key[part]
            if (tied & (values[1:] < values[:-1])).any():
                return False
            tied &= values[1:] == values[:-1]
    return True
