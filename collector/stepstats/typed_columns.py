"""The fields of an ``Activity``: the columns of a recording's table that are on the wire, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.protos import Activity
from collector.recording.schema import ACTIVITY_KINDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.table import Table

NODE_COLUMNS = {
    "kernels": ("start_ns", "end_ns", "correlation_id"),
    "memcpys": ("start_ns", "end_ns", "correlation_id"),
    "memsets": ("start_ns", "end_ns", "correlation_id"),
    "api_calls": ("start_ns", "end_ns", "correlation_id", "thread_id"),
    "synchronizations": ("start_ns", "end_ns", "correlation_id"),
    "overheads": ("start_ns", "end_ns", "correlation_id"),
    "jit_operations": ("start_ns", "end_ns", "correlation_id"),
    "memory_operations": ("start_ns", "correlation_id"),
    "nvtx_ranges": ("start_ns", "end_ns"),
    "other_ranges": ("start_ns", "end_ns", "correlation_id", "thread_id"),
    "graph_launches": ("start_ns", "end_ns", "correlation_id"),
    "annotations": ("start_ns", "end_ns", "thread_id"),
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
