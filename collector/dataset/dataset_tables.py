"""The tables of a dataset and their columns: one version, from which files, schema.json and SQL follow.

Every integer is signed, every time is in nanoseconds since the run's ``base_ns``, a size is in bytes. A column is NULL
only where a value is not known; ids at or above 2^63 are stored in two's complement. The columns ``run`` and ``rank``
are the folders of a file (``run=NAME/rank=NUMBER``), as Hive, Spark, DuckDB and BigQuery read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.recording.capture import NO_OBJECT
from collector.recording.cupti_enums import (
    COPY_KINDS,
    JIT_ENTRY_TYPES,
    JIT_OPERATION_TYPES,
    LAUNCH_TYPES,
    MEMORY_KINDS,
    MEMORY_OPERATIONS,
    OVERHEAD_KINDS,
    SYNC_TYPES,
)
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
"""The version of the schema. A dataset of another version is refused."""

INT64, INT32, TEXT, BOOLEAN, DOUBLE = "int64", "int32", "string", "bool", "double"


class DatasetColumn(NamedTuple):
    """One column of a table of a dataset."""

    name: str
    type: str
    """int64, int32, string, bool or double."""
    recorded: str = ""
    """The column of the recording's table from which it is made; empty: it is computed."""
    scale: int = 1
    """The factor by which the recorded number is multiplied."""
    unknown: int | None = None
    """The recorded number that stands for a value that is not known."""
    is_known: bool = False
    """Whether the value is known in every row; any other column may have NULLs."""

    @property
    def unit(self) -> str:
        """ns, bytes, bytes/s, Hz, or empty."""
        endings = (("_bytes_per_s", "bytes/s"), ("_ns", "ns"), ("_bytes", "bytes"), ("_hz", "Hz"))
        if self.name == "num_bytes":
            return "bytes"
        return next((unit for ending, unit in endings if self.name.endswith(ending)), "")


class DatasetTable(NamedTuple):
    """One table of a dataset."""

    name: str
    columns: tuple[DatasetColumn, ...]
    recorded: str = ""
    """The table of the recording from which it is made."""
    has_rank: bool = True
    """Whether its rows belong to a rank; those of ``runs`` belong to a whole run."""

    def column(self, name: str) -> DatasetColumn:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)


_NAMES = {
    "sync_type": ("sync_kind", 1),
    "compute_major": ("cc_major", 1),
    "compute_minor": ("cc_minor", 1),
    "num_multiprocessors": ("sm_count", 1),
    "max_warps_per_multiprocessor": ("max_warps_per_sm", 1),
    "max_blocks_per_multiprocessor": ("max_blocks_per_sm", 1),
    "max_registers_per_multiprocessor": ("registers_per_sm", 1),
    "max_shared_bytes_per_multiprocessor": ("shared_bytes_per_sm", 1),
    "memory_kilobytes_per_s": ("memory_bandwidth_bytes_per_s", 1000),
    "core_clock_khz": ("clock_hz", 1000),
}
"""Column of a recording -> the name and the scale that it has in a dataset, where they differ."""
_UNKNOWN = {"correlation_id": 0, "graph_id": 0, "graph_node_id": 0, "event_id": NO_OBJECT, "event_sync_id": 0}
"""Column of a recording -> the number that stands for an id that is not known."""
_NARROW = ("i4", "u2", "i2", "u1", "i1")

STEP = DatasetColumn("step", INT64, is_known=True)
ID = DatasetColumn("id", INT64, is_known=True)
PROCESS_ID = DatasetColumn("process_id", INT64)
OP = DatasetColumn("op", TEXT)


def _column(recorded: str, dtype: str) -> DatasetColumn:
    if recorded == "end_ns":
        return DatasetColumn("duration_ns", INT64, recorded, is_known=True)
    if texts := text_column(recorded):
        return DatasetColumn(texts, TEXT, recorded)
    name, scale = _NAMES.get(recorded, (recorded, 1))
    kind = INT32 if dtype in _NARROW and scale == 1 else INT64
    unknown = _UNKNOWN.get(recorded)
    return DatasetColumn(name, kind, recorded, scale, unknown, is_known=unknown is None)


_DATASET_NAMES = {
    "memcpys": "copies",
    "synchronizations": "syncs",
    "memory_operations": "memory_ops",
    "cuda_events": "events",
}
"""Table of a recording -> its name in datasets, where that differs."""
_COMPUTED = {
    "kernels": (
        DatasetColumn("demangled_name", TEXT),
        DatasetColumn("class", TEXT),
        PROCESS_ID,
        OP,
        DatasetColumn("occupancy_percent", DOUBLE),
        DatasetColumn("uses_tensor_cores", TEXT),
    ),
    **dict.fromkeys(("memcpys", "memsets", "memory_operations", "graph_launches"), (PROCESS_ID, OP)),
    "api_calls": (DatasetColumn("api", TEXT), DatasetColumn("is_outer", BOOLEAN), OP),
    "annotations": (
        DatasetColumn("parent_id", INT64),
        DatasetColumn("path", TEXT),
        DatasetColumn("details", TEXT),
        DatasetColumn("is_in_step", BOOLEAN),
    ),
}
"""Table of a recording -> the columns that `collector.dataset.step_tables` computes beside the recorded ones."""


def _of_recording(recorded: str) -> DatasetTable:
    own = (_column(column, dtype) for column, dtype in SCHEMA[recorded].items() if column != "details_id")
    name = _DATASET_NAMES.get(recorded, recorded)
    return DatasetTable(name, (STEP, ID, *own, *_COMPUTED.get(recorded, ())), recorded)


RECORDED_TABLES = tuple(map(_of_recording, SCHEMA))
"""The tables that are made from those of a recording."""

STEPS = DatasetTable(
    "steps",
    (
        STEP,
        DatasetColumn("start_ns", INT64),
        DatasetColumn("end_ns", INT64),
        DatasetColumn("name", TEXT),
        DatasetColumn("complete", BOOLEAN),
        DatasetColumn("cupti_offset_ns", INT64),
        DatasetColumn("wall_start_ns", INT64),
        DatasetColumn("wall_end_ns", INT64),
        DatasetColumn("clock_uncertainty_ns", INT64),
        DatasetColumn("environment", TEXT),
    ),
)
"""One row for each step. Its file is written last: a step without a row here was not written completely."""
RUNS = DatasetTable(
    "runs",
    (
        DatasetColumn("base_ns", INT64),
        DatasetColumn("source", TEXT),
        DatasetColumn("cupti_version", TEXT),
        DatasetColumn("driver_version", TEXT),
        DatasetColumn("cuda_version", TEXT),
        DatasetColumn("world_size", INT64),
        DatasetColumn("label", TEXT),
        DatasetColumn("tags", TEXT),
    ),
    has_rank=False,
)
RANKS = DatasetTable(
    "ranks",
    (
        PROCESS_ID,
        DatasetColumn("job", TEXT),
        DatasetColumn("clock_offset_ns", INT64),
        DatasetColumn("clock_error_ns", INT64),
        DatasetColumn("clock_source", TEXT),
        DatasetColumn("aligned", BOOLEAN),
    ),
)
ARGS = DatasetTable(
    "args",
    (STEP, DatasetColumn("table", TEXT), ID, DatasetColumn("key", TEXT), DatasetColumn("value", TEXT)),
)
"""Values of another program's file that no column holds, as text, for the row with that ``id`` of a table."""
COUNTERS = DatasetTable(
    "counters",
    (
        STEP,
        DatasetColumn("device_id", INT64, is_known=True),
        DatasetColumn("name", TEXT),
        DatasetColumn("at_ns", INT64, is_known=True),
        DatasetColumn("value", INT64, is_known=True),
        DatasetColumn("unit", TEXT),
    ),
)
"""The value that a figure of a device had from ``at_ns`` on, until its next row: the memory of each kind and pool,
and the figures of ``counter_samples``."""
TRACE_EVENTS = DatasetTable(
    "trace_events",
    (
        STEP,
        DatasetColumn("index", INT64),
        DatasetColumn("name", TEXT),
        DatasetColumn("ph", TEXT),
        DatasetColumn("cat", TEXT),
        DatasetColumn("pid", INT64),
        DatasetColumn("tid", INT64),
        DatasetColumn("ts", DOUBLE),
        DatasetColumn("dur", DOUBLE),
        DatasetColumn("arg_name", TEXT),
        DatasetColumn("arg_op", TEXT),
    ),
)
"""The events of Chrome traces, one row each, in the order of their files; ``ts`` and ``dur`` in microseconds."""

LEDGER = "ledger"
"""The table of facts from which a recording's ledger is restored."""
STEP_ROWS = "step_rows"
"""The table of facts from which the numbers of rows that a recording sets apart are restored."""

ENUMS: Mapping[str, Mapping[int, str]] = {
    "enum_copy_kind": dict(enumerate(COPY_KINDS)),
    "enum_memory_kind": dict(enumerate(MEMORY_KINDS)),
    "enum_sync_kind": dict(enumerate(SYNC_TYPES)),
    "enum_launch_type": dict(enumerate(LAUNCH_TYPES)),
    "enum_memory_operation": dict(enumerate(MEMORY_OPERATIONS)),
    "enum_overhead_kind": OVERHEAD_KINDS,
    "enum_jit_operation": dict(enumerate(JIT_OPERATION_TYPES)),
    "enum_jit_entry": dict(enumerate(JIT_ENTRY_TYPES)),
}
"""Table -> number of CUPTI's interface -> label."""
