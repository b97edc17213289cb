"""The fields of an ``Activity``: the columns of a recording's table that are on the wire, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import Activity
from collector.recording.schema import ACTIVITY_KINDS, SCHEMA
from collector.stepstats.shown_tables import SIDE_TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from collector.recording.table import Table

NODE_COLUMNS = {
    "kernels": ("start_ns", "end_ns", "correlation_id"),
    "memcpys": ("start_ns", "end_ns", "correlation_id"),
    "memsets": ("start_ns", "end_ns", "correlation_id"),
    "api_calls": ("start_ns", "end_ns", "correlation_id", "thread_id"),
    "other_ranges": ("start_ns", "end_ns", "correlation_id", "thread_id"),
    "graph_launches": ("start_ns", "end_ns", "correlation_id"),
    "annotations": ("start_ns", "end_ns", "thread_id"),
    **{
        table: tuple(column for column in ("start_ns", "end_ns", "correlation_id") if column in SCHEMA[table])
        for table in SIDE_TABLES
    },
}
"""Table whose rows are nodes -> the columns that the node itself contains exactly."""

NativeTable = tuple[int, dict[str, "npt.NDArray[Any]"], list[tuple[int, str]]]
"""Kind, columns, and (field of Activity, column) in the order of the fields: a table for the extension."""


def kind_of(table: str) -> int:
    """``Activity.Kind`` of a table's rows."""
    return ACTIVITY_KINDS[table]


def field_of(column: str) -> int:
    """The field number of a column in ``Activity``."""
    return Activity.DESCRIPTOR.fields_by_name[column].number


def native_table(table: Table, beside: tuple[str, ...]) -> NativeTable:
    """A table for the extension, without the columns in ``beside``, which the activity's node contains."""
    columns = table.columns
    fields = sorted((field_of(name), name) for name in columns if name not in beside)
    return kind_of(table.name), columns, fields


WantedTable = tuple[int, list[tuple[int, int]]]
"""Kind, and (field of Activity, bytes of a value) of each column: a table that the extension reads."""


def wanted_tables(tables: Collection[str]) -> list[WantedTable]:
    """The tables in the form in which the extension takes them."""
    return [
        (kind_of(table), [(field_of(column), np.dtype(dtype).itemsize) for column, dtype in SCHEMA[table].items()])
        for table in tables
    ]


def read_tables(
    tables: Collection[str], values: Sequence[Sequence[npt.NDArray[np.uint8]]]
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The columns of `wanted_tables` from the bytes that the extension read."""
    return {
        table: {column: read.view(dtype) for (column, dtype), read in zip(SCHEMA[table].items(), own, strict=True)}
        for table, own in zip(tables, values, strict=True)
    }
