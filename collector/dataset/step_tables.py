"""The rows of a recording as Arrow tables with the columns of a dataset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities, WorkClass, work_classes
from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.memory import memory_over_time
from collector.analysis.occupancy import occupancy_of_kernels
from collector.analysis.tensor_cores import USES, tensor_core_uses
from collector.dataset.dataset_arrow import Values, table_of
from collector.dataset.dataset_tables import ARGS, COUNTERS, RECORDED_TABLES, STEP, STEPS, DatasetTable
from collector.recording.api_functions import plain_api_name
from collector.recording.arrow import Texts
from collector.recording.counter_rows import counters_over_time
from collector.recording.kernel_names import demangle, short_name
from collector.recording.launch_figures import PEER_COPIES
from collector.recording.nesting import nested_annotations
from collector.recording.recording import are_names_alone
from collector.recording.run_label import RunLabel
from collector.recording.schema import ACTIVITY_TABLES
from collector.recording.stream_devices import FIRST_CONTEXTS
from collector.recording.stream_names import DEVICE_LABELS
from collector.recording.working_devices import WORKING_DEVICES
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Container

    import numpy.typing as npt
    import pyarrow as pa

    from collector.recording.recording import Recording
    from collector.recording.table import Table

ENVIRONMENT = (
    *("source", "simulated", "cuda_version", "driver_version", "cupti_api_version", "devices", "thread_names"),
    *(FIRST_CONTEXTS, WORKING_DEVICES, DEVICE_LABELS, PEER_COPIES),
    *RunLabel._fields,
)
"""The keys of a recording's environment that a dataset keeps: no host, user or path."""
_CLASSES = ["compute", "communication"]


def step_tables(recording: Recording, step: int, base_ns: int, names: Container[str]) -> dict[str, pa.Table]:
    """The tables of a recording that have rows, by their names in a dataset.

    Rows that a recording sets apart are left out, as in every answer; its ledger counts them. All annotations are
    there, because one that began before the step may hold launches.

    Args:
        recording: the recording of one step.
        step: the step's number.
        base_ns: Unix time from which times are counted.
        names: the names of the tables that are made.
    """
    found = {}
    shift = recording.clock.offset_ns - base_ns
    for table in RECORDED_TABLES:
        if table.name not in names:
            continue
        rows = recording.all_annotations if table.recorded == "annotations" else getattr(recording, table.recorded)
        if len(rows):
            columns = _computed(recording, table, rows) | _recorded(table, rows, shift)
            columns["step"] = np.full(len(rows), step, np.int64)
            order = _order(recording, table)
            columns["id"] = np.arange(len(rows), dtype=np.int64)
            found[table.name] = table_of(
                table, columns if order is None else {name: _taken(values, order) for name, values in columns.items()}
            )
    return found


def args_table(recording: Recording, step: int) -> pa.Table | None:
    """Arguments of rows from a file of another program that have no column; None: there are none."""
    pa = optional_package("pyarrow")
    parts = []
    for table in RECORDED_TABLES:
        rows = getattr(recording, table.recorded)
        for key, column in recording.arguments.tables.get(table.recorded, {}).items():
            is_stored = column.rows < len(rows)
            own, codes = column.rows[is_stored], column.codes[is_stored].astype(np.int32)
            values = {
                STEP.name: np.full(len(own), step, np.int64),
                "table": Texts([table.name], np.zeros(len(own), np.int32)),
                "id": own.astype(np.int64),
                "key": Texts([key], np.zeros(len(own), np.int32)),
                "value": Texts(column.texts, codes),
            }
            if len(own):
                parts.append(table_of(ARGS, values))
    return pa.concat_tables(parts).unify_dictionaries() if parts else None


def counters_table(recording: Recording, step: int, base_ns: int) -> pa.Table | None:
    """The rows of the table ``counters``, one for each time at which a value changed; None: there are none."""
    shift = recording.clock.offset_ns - base_ns
    parts = []
    changes = [
        ((device, f"memory {memory}" + (f" pool {pool}" if pool else ""), "bytes"), times, held)
        for (device, memory, pool), times, held in memory_over_time(recording)
    ]
    for (device, name, unit), times, held in [*changes, *counters_over_time(recording)]:
        is_last = np.append(times[1:] != times[:-1], True)[: len(times)]
        count = int(is_last.sum())
        constants = (("name", name), ("unit", unit))
        values = {
            STEP.name: np.full(count, step, np.int64),
            "device_id": np.full(count, device, np.int64),
            "at_ns": times[is_last] + np.int64(shift),
            "value": held[is_last],
            **{name: Texts([text], np.zeros(count, np.int32)) for name, text in constants},
        }
        if count:
            parts.append(table_of(COUNTERS, values))
    return optional_package("pyarrow").concat_tables(parts).unify_dictionaries() if parts else None


def steps_row(recording: Recording, step: int, base_ns: int, name: str) -> pa.Table:
    """The row of the table ``steps``."""
    clock = recording.clock
    shift = clock.offset_ns - base_ns
    environment = {key: recording.environment[key] for key in ENVIRONMENT if key in recording.environment}
    row = {
        "step": step,
        "start_ns": clock.cupti_start_ns + shift,
        "end_ns": clock.cupti_stop_ns + shift,
        "name": name,
        "complete": recording.ledger.complete,
        "cupti_offset_ns": clock.offset_ns,
        "wall_start_ns": clock.wall_start_ns - base_ns,
        "wall_end_ns": clock.wall_stop_ns - base_ns,
        "clock_uncertainty_ns": clock.uncertainty_ns,
        "environment": json.dumps(environment, sort_keys=True, default=str),
    }
    return table_of(STEPS, {key: [value] for key, value in row.items()})


def _order(recording: Recording, table: DatasetTable) -> npt.NDArray[np.int64] | None:
    """The rows of activities in order of devices and starts; of other tables as they are."""
    if table.recorded not in ACTIVITY_TABLES:
        return None
    work = Activities.of(recording)
    order = work.row[work.table == ACTIVITY_TABLES.index(table.recorded)]
    return None if (order[1:] > order[:-1]).all() else order


def _taken(values: Values | pa.Array, order: npt.NDArray[np.int64]) -> Values | pa.Array:
    """The values in an order; of a column of one value, as many are, the column itself."""
    if isinstance(values, Texts):
        return values if len(values.distinct) < 2 else Texts(values.distinct, values.codes[order])
    if not isinstance(values, np.ndarray):
        return values.take(order)
    return values if (values == values[0]).all() else values[order]


def _recorded(table: DatasetTable, rows: Table, shift: int) -> dict[str, Values | pa.Array]:
    """The columns that a recording has, with the names, units and NULLs of a dataset."""
    arrow = optional_package("pyarrow")
    columns: dict[str, Values | pa.Array] = {}
    for column in table.columns:
        if not column.recorded:
            continue
        if column.type == "string":
            ids = rows.columns[column.recorded]
            columns[column.name] = Texts.of(ids, lambda name_id: _shown_name(table, rows.text(name_id)))
            continue
        values = rows.columns[column.recorded]
        if column.recorded == "start_ns":
            values = values + np.int64(shift)
        elif column.recorded == "end_ns":
            values = rows.duration_ns
        is_unknown = None if column.unknown is None else values == column.unknown
        if column.scale != 1:
            values = values.astype(np.int64) * column.scale
        if is_unknown is not None and is_unknown.any():
            columns[column.name] = arrow.array(values.astype(np.int64), mask=is_unknown)
        else:
            columns[column.name] = values
    return columns


def _shown_name(table: DatasetTable, recorded: str) -> str:
    return short_name(recorded) if table.name == "kernels" else recorded


def _computed(recording: Recording, table: DatasetTable, rows: Table) -> dict[str, Values | pa.Array]:
    """The columns that are not recorded in the table itself."""
    columns: dict[str, Values | pa.Array] = {}
    names = {column.name for column in table.columns if not column.recorded}
    if "demangled_name" in names:
        columns["demangled_name"] = Texts.of(rows.name_id, lambda name_id: demangle(rows.text(name_id)))
        is_communication = work_classes(recording)[0] == WorkClass.COMMUNICATION
        columns["class"] = Texts(_CLASSES, is_communication.astype(np.int32))
        columns["uses_tensor_cores"] = Texts(list(USES), tensor_core_uses(recording).astype(np.int32))
        columns["occupancy_percent"] = _not_nan(occupancy_of_kernels(recording) * 100)
    if "process_id" in names:
        columns["process_id"] = _process_ids(recording, rows)
    if "op" in names:
        text = recording.strings
        columns["op"] = Texts.of(rows.annotation_ids, lambda index: text[index] if index >= 0 else "")
    if "is_outer" in names:
        columns["api"] = Texts.of(rows.name_id, lambda name_id: plain_api_name(rows.text(name_id)))
        columns["is_outer"] = recording.launch_rows(rows.correlation_id) == np.arange(len(rows))
    if "is_in_step" in names:
        columns |= _of_annotations(recording, rows)
    return columns


def _not_nan(values: npt.NDArray[np.float64]) -> pa.Array:
    return optional_package("pyarrow").array(values, from_pandas=True)


def _process_ids(recording: Recording, rows: Table) -> npt.NDArray[np.int64] | pa.Array:
    """The process whose call launched each row; where no call of it was recorded, the only process that made calls."""
    pa = optional_package("pyarrow")
    calls = recording.api_calls.process_id
    if not len(calls):
        return pa.nulls(len(rows), pa.int64())
    if (calls == calls[0]).all():
        return np.full(len(rows), calls[0], np.int64)
    launches = recording.launch_rows(rows.correlation_id)
    return pa.array(calls[np.maximum(launches, 0)].astype(np.int64), mask=launches < 0)


def _of_annotations(recording: Recording, rows: Table) -> dict[str, Values | pa.Array]:
    pa = optional_package("pyarrow")
    parents, _ = nested_annotations(rows)
    paths, index = annotation_paths(recording)
    details = [""] + [json.dumps(each) for each in recording.details]
    kept = len(recording.annotations)
    return {
        "parent_id": pa.array(parents, mask=(parents < 0) | are_names_alone(rows)),
        "path": Texts.of(index, lambda place: paths[place]),
        "details": Texts.of(rows.details_id, lambda number: details[number]),
        "is_in_step": np.arange(len(rows)) < kept,
    }
