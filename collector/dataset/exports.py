"""Steps of files as a dataset, and a dataset as one database or as lines of JSON."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.analysis.ranks import rank_of
from collector.dataset.dataset import Dataset, StepKey
from collector.dataset.dataset_folder import tables
from collector.dataset.dataset_tables import ENUMS, RANKS, RUNS, STEPS, TRACE_EVENTS
from collector.dataset.dataset_writer import ROWS_OF_GROUP, DatasetWriter, run_at
from collector.dataset.steps_by_name import keys_of
from collector.dataset.trace_events import drawn_events, events_of_file
from collector.errors import OutputError
from collector.files.atomic_files import atomic_path, check_writable, database_error, output_error
from collector.formats.loading import load
from collector.formats.named_steps import named_steps
from collector.merging.rank_numbers import step_number
from collector.recording.schema import SCHEMA
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set
    from pathlib import Path

    import pyarrow as pa

    from collector.dataset.dataset_writer import Known
    from collector.formats.named_steps import NamedSteps
    from collector.formats.step import Step

_ROWS = 50_000
"""Rows that are turned into Python's values at a time."""
_LINES = 4096
"""Rows that are turned into lines of JSON at a time."""


class _StepToWrite(NamedTuple):
    """A step, and where it belongs."""

    run: str
    rank: int
    number: int | None
    name: str
    step: Step
    copied: Mapping[str, pa.Table]
    """Rows of tables that are copied, not made from the step again."""
    known: Known
    """The values of the tables ``runs`` and ``ranks``."""


def export_steps(
    paths: Sequence[Path],
    folder: Path,
    *,
    run: str = "",
    label: str = "",
    draw_events: bool = False,
    on_step: Callable[[Step], None] = lambda step: None,
    only: Set[str] | None = None,
) -> int:
    """Add the steps in files to a dataset; return their number.

    The rank of a file is that of its devices, the one that the file states, or the one in its name (``rank3``), else 0.
    Its step is the number in its name (``step_12``, ``timeline-12``) if all files have one; otherwise the files are
    counted. The folder of another dataset is copied step by step, which makes few large files of many small ones: its
    steps keep their runs, ranks and numbers.

    Args:
        paths: files of steps, and folders of datasets.
        folder: the folder of the dataset.
        run: the name of the run of all files; by default the time at which the step of the first began.
        label: a text about the run.
        draw_events: fill ``trace_events`` with the events of a Chrome trace of each step; steps that were read from
            such a trace have the events of their file in any case.
        on_step: called with each step after it was read.
        only: the names of the tables that are written, by default of all; see `DatasetWriter`.

    Raises:
        CollectorError: a file cannot be read, or the dataset cannot be written.
    """
    writers: dict[tuple[str, int], DatasetWriter] = {}
    written = 0
    with ExitStack() as opened:
        for each in _read_ahead(_steps_in(paths, only), on_step):
            recording = each.step.recording
            if not each.run:  # the steps of all files are one run
                run = run or run_at(recording.clock.cupti_start_ns + recording.clock.offset_ns)
            place = (each.run or run, each.rank)
            if place not in writers:
                writer = DatasetWriter(folder, run=place[0], rank=each.rank, label=label, known=each.known, only=only)
                writers[place] = opened.enter_context(writer)
            copied = {**each.copied}
            if draw_events and TRACE_EVENTS.name not in copied:
                copied[TRACE_EVENTS.name] = drawn_events(each.step)
            writers[place].write(recording, step=each.number, name=each.name, copied=copied)
            written += 1
    return written


def _read_ahead(steps: Iterator[_StepToWrite], on_step: Callable[[Step], None]) -> Iterator[_StepToWrite]:
    """The same steps, of which the first ones, or all if they are small, are read before the first is written.

    The rows of a run and a rank are written before its steps, and stay. There shall be none if an input cannot be read.
    """
    held: list[_StepToWrite] = []
    num_rows = 0
    for each in steps:
        on_step(each.step)
        held.append(each)
        num_rows += 1 + sum(len(getattr(each.step.recording, table)) for table in SCHEMA)
        if num_rows > ROWS_OF_GROUP:
            yield from held
            held.clear()
    yield from held


def _steps_in(paths: Sequence[Path], only: Set[str] | None) -> Iterator[_StepToWrite]:
    """The steps of datasets, which have numbers, and then those of files, which may be counted after them."""
    files = []
    for path in paths:
        named = named_steps(path)
        if named is not None:
            yield from _steps_of_dataset(named)
        else:
            files.append(path)
    are_numbered = all(step_number(path.name) is not None for path in files)
    if are_numbered:
        files.sort(key=lambda path: step_number(path.name) or 0)
    for path in files:
        step = load(path)
        rank = rank_of(step) or 0
        number = step_number(path.name) if are_numbered else None
        events = events_of_file(step) if only is None or TRACE_EVENTS.name in only else None
        copied = {} if events is None else {TRACE_EVENTS.name: events}
        known = {} if step.world_size is None else {RUNS.name: {"world_size": step.world_size}}
        yield _StepToWrite("", rank, number, path.name, step, copied, known)


def _steps_of_dataset(named: NamedSteps) -> Iterator[_StepToWrite]:
    dataset = Dataset(named.folder, run=named.run, rank=named.rank)
    keys = keys_of(dataset, named)
    names = {
        StepKey(row["run"], row["rank"], row["step"]): row["name"] for row in dataset.table(STEPS.name).to_pylist()
    }
    runs = {row.pop("run"): row for row in dataset.table(RUNS.name).to_pylist()}
    ranks = {(row.pop("run"), row.pop("rank")): row for row in dataset.table(RANKS.name).to_pylist()}
    for key in keys:
        events = dataset.table(TRACE_EVENTS.name, run=key.run, rank=key.rank, step=key.step)
        copied = {TRACE_EVENTS.name: events.drop_columns(["run", "rank"])} if len(events) else {}
        known = {RUNS.name: runs.get(key.run, {}), RANKS.name: ranks.get(key[:2], {})}
        yield _StepToWrite(key.run, key.rank, key.step, names[key], dataset.step(key), copied, known)


def export_sqlite(dataset: Dataset, target: Path) -> None:
    """Write all tables of a dataset into a new file of SQLite.

    Raises:
        OutputError: the file exists already, or cannot be written.
    """
    import sqlite3

    _refuse_existing(target)
    try:
        with atomic_path(target) as path, closing(sqlite3.connect(path)) as connection, connection:
            for name, rows in _all_tables(dataset):
                columns = ", ".join(f'"{field.name}" {_sqlite_type(field)}' for field in rows.schema)
                connection.execute(f'CREATE TABLE "{name}" ({columns})')
                marks = ", ".join("?" * len(rows.schema))
                connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', _tuples(rows))
    except sqlite3.Error as error:
        raise database_error(f"cannot write {target}", str(error)) from error


def export_ndjson(dataset: Dataset, folder: Path, inputs: Sequence[Path] = ()) -> None:
    """Write each table as lines of JSON, ``<table>.ndjson``, with ``<table>.schema.json`` as ``bq load`` takes it.

    Args:
        dataset: the dataset to write.
        folder: the folder of the files; it is made.
        inputs: the files from which the dataset was made, which are not replaced.

    Raises:
        OutputError: a file cannot be written, or exists already. Then none is there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(f"cannot make {folder}", error) from error
    with ExitStack() as written:  # which renames the files when all are written
        for name, rows in _all_tables(dataset):
            schema = [{"name": each.name, "type": _bigquery_type(each), "mode": "NULLABLE"} for each in rows.schema]
            described = json.dumps(schema, indent=1).encode() + b"\n"
            lines = (lines_of(batch) for batch in rows.to_batches(max_chunksize=_LINES))
            for path, pieces in (
                (folder / f"{name}.schema.json", (described,)),
                (folder / f"{name}.ndjson", lines),
            ):
                check_writable(path, *inputs)
                _refuse_existing(path)
                with written.enter_context(atomic_path(path)).open("xb") as file:
                    file.writelines(pieces)


def ingest(dataset: Dataset, connection: Any) -> None:
    """Write all tables through a connection of ADBC, which warehouses have drivers for.

    Args:
        dataset: the dataset to write.
        connection: a DB-API connection such as that of ``adbc_driver_sqlite.dbapi.connect``; it is committed.
    """
    with connection.cursor() as cursor:
        for name, rows in _all_tables(dataset):
            cursor.adbc_ingest(name, rows, mode="create")
    connection.commit()


def enum_table(name: str) -> pa.Table:
    """The numbers of one of CUPTI's enumerations with their labels."""
    pa = optional_package("pyarrow")
    labels = ENUMS[name]
    return pa.table({"id": pa.array(list(labels), pa.int32()), "label": pa.array(list(labels.values()), pa.string())})


def _all_tables(dataset: Dataset) -> Iterator[tuple[str, pa.Table]]:
    for name in tables():
        yield name, dataset.table(name)
    for name in ENUMS:
        yield name, enum_table(name)


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in rows.to_batches(max_chunksize=_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def lines_of(rows: pa.RecordBatch) -> bytes:
    """Each row as an object of JSON on a line of its own.

    Lines are joined column by column, because a loop over rows takes many times as long.

    Raises:
        ValueError: a value is infinite or NaN.
    """
    pa, compute = optional_package("pyarrow"), optional_package("pyarrow.compute")

    pieces: list[Any] = []
    before = "{"
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        pieces += [pa.scalar(f"{before}{_json(name)}: ", pa.large_string()), _json_texts(column)]
        before = ", "
    ends = [pa.scalar("}\n", pa.large_string()), pa.scalar("", pa.large_string())]  # the second is what separates them
    lines: list[str] = compute.binary_join_element_wise(*pieces, *ends).to_pylist()
    return "".join(lines).encode()


def _json_texts(column: pa.Array) -> pa.Array:
    pa = optional_package("pyarrow")
    if pa.types.is_integer(column.type):
        texts = column.cast(pa.large_string())
    else:
        distinct = column.dictionary_encode()
        texts = pa.array(map(_json, distinct.dictionary.to_pylist()), pa.large_string()).take(distinct.indices)
    return texts.fill_null("null")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise OutputError(f"{target} exists already", "Name another folder, or remove it")


def _sqlite_type(field: pa.Field) -> str:
    pa = optional_package("pyarrow")
    if pa.types.is_floating(field.type):
        return "REAL"
    return "TEXT" if pa.types.is_string(field.type) else "INTEGER"


def _bigquery_type(field: pa.Field) -> str:
    pa = optional_package("pyarrow")
    if pa.types.is_boolean(field.type):
        return "BOOLEAN"
    if pa.types.is_floating(field.type):
        return "FLOAT"
    return "STRING" if pa.types.is_string(field.type) else "INTEGER"
