"""A recording that is restored from the rows of a dataset: `collector.analysis` gives the same answers for it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.dataset.dataset_tables import ARGS, LEDGER, RECORDED_TABLES, STEP_ROWS
from collector.recording.annotation_details import Details
from collector.recording.ledger import Ledger
from collector.recording.recording import Clock, Recording
from collector.recording.row_arguments import ArgumentColumn, RowArguments
from collector.recording.schema import SCHEMA, Tables
from collector.recording.table import Table
from collector.recording.text_columns import text_column
from collector.runtime.optional_packages import optional_package
from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pyarrow as pa

    from collector.dataset.dataset_tables import DatasetColumn, DatasetTable

_UNREAD = "unread: "
_CAUSES = ("unfinished", "lost_with_context")
"""Figures of rows that are set apart and not stored: no numbers by table have them."""
_WHOLE_NAMES = {"kernels": "demangled_name"}
"""Table -> the column of its whole names, where its ``name`` is a short one."""


def recording_of(read: Callable[[str], pa.Table]) -> Recording:
    """The recording of one step.

    Args:
        read: returns the rows of the step in a table of the dataset.
    """
    (step,) = read("steps").to_pylist()
    runs = read("runs").to_pylist()
    base_ns = runs[0]["base_ns"] if runs else 0
    shift = base_ns - step["cupti_offset_ns"]
    strings: dict[str, int] = {}
    details: dict[str, int] = {}
    kept, early = {}, {}
    for table in RECORDED_TABLES:
        rows = read(table.name)
        columns = _columns(table, rows, shift, strings, details)
        is_in_step = np.ones(len(rows), bool)
        if "is_in_step" in rows.column_names:
            is_in_step = rows["is_in_step"].to_numpy()[_order(rows)]
        kept[table.recorded] = {name: values[is_in_step] for name, values in columns.items()}
        early[table.recorded] = {name: values[~is_in_step] for name, values in columns.items()}
    texts = tuple(strings)
    parts = [Tables(*(Table(name, part[name], texts) for name in SCHEMA)) for part in (kept, early)]
    nothing = Tables(*(table[:0] for table in (getattr(parts[0], name) for name in SCHEMA)))
    clock = Clock(
        cupti_start_ns=step["start_ns"] + shift,
        cupti_stop_ns=step["end_ns"] + shift,
        wall_start_ns=step["wall_start_ns"] + base_ns,
        wall_stop_ns=step["wall_end_ns"] + base_ns,
        uncertainty_ns=step["clock_uncertainty_ns"],
    )
    ledger = _ledger(read(LEDGER))
    return Recording(
        (parts[0], nothing, parts[1], nothing),
        texts,
        clock,
        ledger,
        {**ledger.source_counters, **{name: count for name in _CAUSES if (count := getattr(ledger, name))}},
        json.loads(step["environment"]),
        [Details.from_fields(json_64_bit(text)) for text in details],
        RowArguments(lambda: _arguments(read(ARGS.name))),
        _apart(read(STEP_ROWS)),
    )


def _arguments(rows: pa.Table) -> dict[str, dict[str, ArgumentColumn]]:
    """The arguments of rows, by the tables of a recording."""
    recorded = {table.name: table.recorded for table in RECORDED_TABLES}
    found: dict[str, dict[str, ArgumentColumn]] = {}
    for table, key in sorted(set(zip(rows["table"].to_pylist(), rows["key"].to_pylist(), strict=True))):
        compute = optional_package("pyarrow.compute")
        own = rows.filter(compute.and_(compute.equal(rows["table"], table), compute.equal(rows["key"], key)))
        own = own.sort_by("id")
        texts: dict[str, int] = {}
        codes = _coded(own["value"], texts).astype(np.uint32)
        found.setdefault(recorded[table], {})[key] = ArgumentColumn(
            own["id"].to_numpy().astype(np.uint32), codes, list(texts)
        )
    return found


def _ledger(rows: pa.Table) -> Ledger:
    figures = dict(zip(rows["figure"].to_pylist(), rows["value"].to_pylist(), strict=True))
    unread = {name.removeprefix(_UNREAD): value for name, value in figures.items() if name.startswith(_UNREAD)}
    own = {name: value for name, value in figures.items() if not name.startswith(_UNREAD)}
    ledger = Ledger.from_dict(own)
    return replace(ledger, unread=unread)


def _apart(rows: pa.Table) -> dict[str, tuple[int, int, int]] | None:
    """The numbers of rows that are set apart, by tables of a recording; None: they are not stored."""
    counts = zip(*(rows[name].to_pylist() for name in ("invalid", "early", "late")), strict=True)
    return dict(zip(rows["table"].to_pylist(), counts, strict=True)) or None


def _order(rows: pa.Table) -> npt.NDArray[np.int64]:
    """The rows in the order of the recording."""
    order: npt.NDArray[np.int64] = np.argsort(rows["id"].to_numpy(), kind="stable")
    return order


def _columns(
    table: DatasetTable, rows: pa.Table, shift: int, strings: dict[str, int], details: dict[str, int]
) -> dict[str, npt.NDArray[Any]]:
    """The columns of the recording's table, in its order."""
    stored = {column.recorded: column for column in table.columns if column.recorded}
    found: dict[str, npt.NDArray[Any]] = {}
    for name, dtype in SCHEMA[table.recorded].items():
        if texts := text_column(name):
            found[name] = _coded(rows[_WHOLE_NAMES.get(table.name, texts) if texts == "name" else texts], strings)
        elif name == "details_id":
            found[name] = _coded(rows["details"], details, none="", first=1)
        else:
            found[name] = _numbers(rows, stored[name])
        if name == "captured_external_id":
            _coded(rows["op"], strings)  # the path of a node's launch and capture is a text of the recording
        if name == "start_ns":
            found[name] = found[name] + np.int64(shift)
        elif name == "end_ns":
            found[name] = found["start_ns"] + found[name]
        found[name] = found[name].astype(dtype)
    order = _order(rows)
    return {name: values[order] for name, values in found.items()}


def _numbers(rows: pa.Table, column: DatasetColumn) -> npt.NDArray[Any]:
    values = rows[column.name]
    if values.null_count:
        values = values.fill_null(0 if column.unknown is None else column.unknown)
    numbers: npt.NDArray[Any] = values.to_numpy()
    return numbers // column.scale if column.scale != 1 else numbers


def _coded(texts: pa.ChunkedArray, known: dict[str, int], none: str | None = None, first: int = 0) -> npt.NDArray[Any]:
    """The number of each text; texts that are new get the next ones."""
    pa = optional_package("pyarrow")
    encoded = texts.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    numbers = [
        0 if text == none else first + known.setdefault(text, len(known)) for text in encoded.dictionary.to_pylist()
    ]
    codes: npt.NDArray[Any] = np.array(numbers, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes
