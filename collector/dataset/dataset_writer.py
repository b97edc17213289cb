"""Writing steps into a dataset: ``with DatasetWriter(folder, run="a", rank=0) as writer: writer.write(recording)``."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.shared_values import shared_values
from collector.checked_arguments import plain_text, whole_number
from collector.dataset.dataset_arrow import arrow_schema, table_of
from collector.dataset.dataset_folder import (
    Part,
    check_run,
    link_exclusively,
    make_dataset,
    new_token,
    path_of,
    tables,
    temporary_path,
)
from collector.dataset.dataset_tables import ARGS, COUNTERS, RANKS, RUNS, STEP, STEPS
from collector.dataset.step_claims import AliveWriter, StepClaims
from collector.dataset.step_facts import step_facts
from collector.dataset.step_tables import args_table, counters_table, step_tables, steps_row
from collector.errors import OutputError
from collector.files.atomic_files import absolute, expanded, output_error
from collector.formats.output_paths import filled_path
from collector.recording.recording import Recording
from collector.recording.run_label import RunLabel
from collector.runtime.launcher_ranks import launched_world_size
from collector.runtime.optional_packages import optional_package
from collector.runtime.signal_handlers import error_of_handler
from collector.text.surrogates import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set
    from types import TracebackType

    import pyarrow as pa

    Known = Mapping[str, Mapping[str, Any]]

ROWS_OF_GROUP = 100_000
"""Steps are collected until a row group has this many rows; a larger step is a group of its own."""
BYTES_OF_PART = 256 << 20
"""When the largest file of a part has this many bytes, the part is finished and the next one begins."""
_LAST_NUMBER = (1 << 63) - 2
"""The largest number of a step; the number after it still fits into 64 bits."""
_PATIENCE_S = 1.0
"""The maximum time for which a writer waits for another one to finish with numbers that it needs."""
_PAUSE_S = 0.005
_STARTED_NS = time.time_ns()


def run_of_this_process(also: Sequence[str] = ()) -> str:
    """The name of the run that this process is part of: the same for all ranks of a job.

    ``COLLECTOR_RUN``, the id of torchrun's or Slurm's job, or the time at which this process began and its number.

    Args:
        also: further variables of the environment that hold such an id.
    """
    stated = _stated("COLLECTOR_RUN", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", *also)
    return stated or f"{run_at(_STARTED_NS)}-{os.getpid()}"


def run_that_is_named() -> str:
    """``COLLECTOR_RUN``, ``""`` where it is not set: for steps that other processes recorded."""
    return _stated("COLLECTOR_RUN")


def _stated(*names: str) -> str:
    values = (os.environ.get(name, "") for name in names)
    return next((value for value in values if value not in ("", "none")), "")


def run_at(unix_ns: int) -> str:
    """The name of a run that began at a time: ``20260102T030405Z``."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(max(unix_ns, 0) // 10**9))


class DatasetWriter:
    """Writes the steps of one rank of a run into a dataset, which may have other runs, ranks and earlier steps.

    Existing files are not changed: a writer makes new files, which appear when it is closed without an error. Several
    ranks can write at the same time, and several processes the steps of one rank.

    Args:
        folder: the folder of the dataset, which is made if missing;
            `collector.formats.output_paths.filled_path` lists the placeholders.
        run: the name of the run, `run_of_this_process` by default.
        rank: the rank of the traced process.
        label: a text about the run, by default that of its first step; the first writer's is kept.
        known: columns of the tables ``runs`` and ``ranks`` with the values that another file or dataset states.
        only: the names of the tables that are written beside ``runs``, ``ranks`` and ``steps``, by default of all; a
            dataset without some is one for a query, and no step can be read from it.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        InvalidFileError: the folder holds a dataset of another version.
        OutputError: the folder cannot be written, or the run cannot have this name.
        ValueError: the rank is below 0.
        TypeError: an argument has a wrong type.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        run: str = "",
        rank: int = 0,
        label: str = "",
        known: Known | None = None,
        only: Set[str] | None = None,
    ) -> None:
        rank = whole_number("rank", rank, least=0)
        for argument, value in (("run", run), ("label", label)):
            plain_text(argument, value)
        optional_package("pyarrow.parquet")
        self._folder = absolute(filled_path(expanded(folder), rank))
        self._run = check_run(run or run_of_this_process())
        self._rank = rank
        self._label = label
        self._known = known or {}
        self._only = tables().keys() if only is None else only
        make_dataset(self._folder)
        self._pending: dict[str, list[pa.Table]] = {}
        self._num_pending = 0
        self._part: Part | None = None
        self._writers: dict[str, tuple[Any, Path]] = {}
        self._token = new_token()
        self._alive: AliveWriter | None = None
        self._base_ns: int | None = None
        self._claims = StepClaims(self._folder, self._run, rank)
        self._claims.delete_abandoned()
        self._last_step = self._claims.last_written()
        self._next_step = self._claims.next_free()
        self._keeps_numbers = False

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is None:
            self.close()
        else:
            self.abort()

    def write(
        self,
        recording: Recording,
        *,
        step: int | None = None,
        name: str = "",
        copied: Mapping[str, pa.Table] | None = None,
    ) -> int:
        """Add a step; return its number, for which a later one is taken if another writer's step gets it first.

        Args:
            recording: the recording of the step.
            step: the step's number, larger than that of the rank's last step; by default the next one.
            name: the name of the step.
            copied: rows of further tables of the dataset, such as those of ``trace_events`` that
                `collector.dataset.trace_events` makes, or of tables of facts for which another dataset has better
                values.

        Raises:
            OutputError: the rank has a step of this number or a later one already, or a file cannot be written.
            ValueError: the number is below 0 or has more than 64 bits.
            TypeError: an argument has a wrong type.
        """
        if not isinstance(recording, Recording):
            raise TypeError(f"a dataset takes recordings, not {recording!r}: give step.recording")
        if step is not None and (step := whole_number("step", step, least=0)) > _LAST_NUMBER:
            raise ValueError(f"step is {step}: at most {_LAST_NUMBER} is possible")
        plain_text("name", name)
        with self._as_output_error():
            return self._write(recording, step, name, copied or {})

    def _write(self, recording: Recording, step: int | None, name: str, copied: Mapping[str, pa.Table]) -> int:
        number = self._next_step if step is None else step
        if number <= self._last_step:
            raise OutputError(
                f"{self._folder}: rank {self._rank} of the run {self._run} has a step {self._last_step} already, and "
                f"step {number} is not after it",
                "Name another run (COLLECTOR_RUN, or --run of collector export)",
            )
        if self._base_ns is None:
            self._base_ns = self._base_of_run(recording)
            self._write_rank(recording)
        with shared_values():
            found = step_tables(recording, number, self._base_ns, self._only)
            found |= step_facts(recording, number, self._only)
        if ARGS.name in self._only and (args := args_table(recording, number)) is not None:
            found[ARGS.name] = args
        if COUNTERS.name in self._only and (counters := counters_table(recording, number, self._base_ns)) is not None:
            found[COUNTERS.name] = counters
        for table, rows in copied.items():
            if rows.num_rows and table in self._only:
                steps = np.full(rows.num_rows, number, np.int64)
                found[table] = table_of(tables()[table], {**_columns(rows), STEP.name: steps})
        found[STEPS.name] = steps_row(recording, number, self._base_ns, without_surrogates(name))
        self._last_step, self._next_step = number, number + 1
        if self._part is None:
            self._part, self._keeps_numbers = Part(self._run, self._rank, number), False
        self._keeps_numbers |= step is not None
        for table, rows in found.items():
            self._pending.setdefault(table, []).append(rows)
            self._num_pending += rows.num_rows
        if self._num_pending >= ROWS_OF_GROUP:
            self._write_pending()
        return self._last_step

    def close(self) -> None:
        """Finish the files, and let them appear.

        Raises:
            OutputError: another process has added a step of a number that was given, or a file cannot be written.
        """
        with ExitStack() as undo, self._as_output_error():
            undo.callback(self.abort)
            self._finish()
            undo.pop_all()

    def _finish(self) -> None:
        self._write_pending()
        part, self._part = self._part, None
        writers, self._writers = self._writers, {}
        if part is None:
            return
        files = {name: temporary for name, (_, temporary) in writers.items()}
        with ExitStack() as undo:
            undo.callback(self._discard, files)
            for writer, _ in writers.values():
                writer.close()
            self._publish(files, range(part.first_step, self._last_step + 1))

    def abort(self) -> None:
        """Discard the unfinished files."""
        self._part, self._pending, self._num_pending = None, {}, 0
        writers, self._writers = self._writers, {}
        for writer, _ in writers.values():
            with suppress(OSError):  # where a file cannot be written, neither can its end
                writer.close()
        self._discard({name: temporary for name, (_, temporary) in writers.items()})

    @contextmanager
    def _as_output_error(self) -> Iterator[None]:
        """Raise the system's errors about files of the dataset as `OutputError`."""
        try:
            yield
        except OSError as error:
            if error_of_handler(error) is not None:
                raise
            raise output_error(f"cannot write the dataset {self._folder}", error) from error

    def _discard(self, files: Mapping[str, Path]) -> None:
        for temporary in files.values():
            temporary.unlink(missing_ok=True)
        if self._alive is not None:
            self._alive.release()

    def _publish(self, files: dict[str, Path], steps: range) -> None:
        """Give the files of a part their names; with later numbers, where other writers' steps have those of the part.

        Args:
            files: the files of the tables; files that are made again with later numbers replace the first ones.
            steps: from the first number of the part to the last one.
        """
        waits_until = time.monotonic() + _PATIENCE_S
        while True:
            with self._claims.claim(steps) as are_ours:
                if are_ours:
                    self._link(files, steps.start)
                    return
            is_late = time.monotonic() > waits_until
            if self._keeps_numbers and (is_late or self._claims.are_written(steps)):
                raise self._taken(steps)
            later = max(self._claims.next_free() - steps.start, int(is_late))  # at last without a claim that has no end
            if later <= 0 or self._keeps_numbers:
                time.sleep(_PAUSE_S * (1 + os.urandom(1)[0]) / 256)  # two that wait for each other wake one by one
                continue
            steps = range(steps.start + later, steps.stop + later)
            for name, temporary in files.items():
                files[name] = _renumbered(temporary, self._path(name, steps.start), name, later, self._token)
            self._last_step, self._next_step = steps.stop - 1, steps.stop

    def _link(self, files: Mapping[str, Path], first_step: int) -> None:
        """Let the files of a part appear, whose numbers are claimed; that of ``steps`` last."""
        self._claims.delete_files(first_step)
        for name in sorted(files, key=STEPS.name.__eq__):
            if not link_exclusively(files[name], self._path(name, first_step)):
                raise OutputError(f"{self._folder}: another process writes rank {self._rank} of the run {self._run}")

    def _taken(self, steps: range) -> OutputError:
        numbers = f"step {steps.start}" if len(steps) == 1 else f"one of the steps {steps.start} to {steps.stop - 1}"
        remedy = "Name another run (COLLECTOR_RUN, or --run of collector export)"
        if (claim := self._claims.claim_path(steps.start)).exists():
            remedy += f"; if that process was killed, delete {claim}"
        return OutputError(
            f"{self._folder}: another process adds {numbers} of rank {self._rank} to the run {self._run}", remedy
        )

    def _path(self, name: str, first_step: int) -> Path:
        return path_of(self._folder, tables()[name], Part(self._run, self._rank, first_step))

    def _base_of_run(self, recording: Recording) -> int:
        """Unix time from which the run's times are counted: the first step's of the writer that came first."""
        parquet = optional_package("pyarrow.parquet")
        path = path_of(self._folder, RUNS, Part(self._run, 0, 0))
        if not path.exists():
            base_ns = recording.clock.cupti_start_ns + recording.clock.offset_ns
            environment = recording.environment
            stated = RunLabel.of(recording).label
            row = {
                "base_ns": base_ns,
                "source": str(environment.get("source", "")),
                "cupti_version": _version(environment.get("cupti_api_version")),
                "driver_version": _version(environment.get("driver_version")),
                "cuda_version": _version(environment.get("cuda_version")),
                "world_size": launched_world_size(),
                "label": stated,
                "tags": "{}",
                **self._known.get(RUNS.name, {}),
                **({"label": self._label} if self._label else {}),
            }
            self._write_once(RUNS.name, path, row)
        base: int = parquet.read_table(path, columns=["base_ns"], partitioning=None)["base_ns"][0].as_py()
        return base

    def _write_rank(self, recording: Recording) -> None:
        path = path_of(self._folder, RANKS, Part(self._run, self._rank, 0))
        calls = recording.api_calls.process_id
        row = {
            "process_id": int(calls[0]) if len(calls) else None,
            "job": "",
            "clock_offset_ns": 0,
            "clock_error_ns": None,
            "clock_source": "wall clock",
            "aligned": False,
            **self._known.get(RANKS.name, {}),
        }
        if not path.exists():
            self._write_once(RANKS.name, path, row)

    def _write_once(self, name: str, path: Path, row: dict[str, Any]) -> None:
        """Write a file of one row, unless another process does so first."""
        temporary = temporary_path(path)
        with ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            table = table_of(tables()[name], {key: [value] for key, value in row.items()})
            optional_package("pyarrow.parquet").write_table(table, temporary)
            link_exclusively(temporary, path)

    def _write_pending(self) -> None:
        """Write one row group of each table that has rows."""
        if self._part is None:
            return
        pa = optional_package("pyarrow")
        pending, self._pending, self._num_pending = self._pending, {}, 0
        for name, parts in pending.items():
            rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts).unify_dictionaries()
            if name not in self._writers:
                temporary = temporary_path(self._path(name, self._part.first_step), self._token)
                with ExitStack() as undo:
                    undo.callback(temporary.unlink, missing_ok=True)
                    self._writers[name] = _opened(temporary, name), temporary
                    undo.pop_all()
                if name == STEPS.name:
                    self._alive = AliveWriter(temporary)
            writer, _ = self._writers[name]
            writer.write_table(rows.cast(writer.schema) if rows.schema != writer.schema else rows, len(rows))
        if any(path.stat().st_size > BYTES_OF_PART for _, path in self._writers.values()):
            self.close()


_PRUNED_BY = ("step", "id", "start_ns", "duration_ns", "device_id", "stream_id", "correlation_id", "index", "at_ns")
"""Columns whose smallest and largest values are stored for each row group, so that queries can skip groups; for all
columns this would take a quarter of the time of writing."""
_VALUES_AT_ONCE = 1 << 16
"""The number of values of a column per write; Parquet's default of 1,024 takes twice as long for texts."""


def _opened(path: Path, name: str) -> Any:
    """A writer of a table's file.

    Numbers are stored as differences, in the fewest bits: in half the time that it takes to look for equal ones. After
    that Snappy leaves a tenth more bytes than Zstandard, and takes a fifth less of the time of writing.
    """
    pa, parquet = optional_package("pyarrow"), optional_package("pyarrow.parquet")
    table = tables()[name]
    schema = arrow_schema(table)
    packed = [field.name for field in schema if pa.types.is_integer(field.type)]
    stored = pa.schema(
        [
            field.with_type(pa.dictionary(pa.int32(), pa.string()))
            if field.type == pa.string()
            else field.with_nullable(not column.is_known)
            for field, column in zip(schema, table.columns, strict=True)
        ]
    )
    return parquet.ParquetWriter(
        path,
        stored,
        compression={column: "snappy" if column in packed else "zstd" for column in schema.names},
        compression_level={column: 1 for column in schema.names if column not in packed},
        use_dictionary=[column for column in schema.names if column not in packed],
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        store_schema=False,
        write_statistics=[column for column in schema.names if column in _PRUNED_BY],
        write_batch_size=_VALUES_AT_ONCE,
    )


def _renumbered(file: Path, target: Path, name: str, later: int, token: str) -> Path:
    """A temporary file with the rows of another, which is deleted, and step numbers that are larger by ``later``."""
    parquet, compute = optional_package("pyarrow.parquet"), optional_package("pyarrow.compute")
    temporary = temporary_path(target, token)
    with ExitStack() as undo:
        undo.callback(temporary.unlink, missing_ok=True)
        texts = [column.name for column in tables()[name].columns if column.type == "string"]
        with parquet.ParquetFile(file, read_dictionary=texts) as read, _opened(temporary, name) as writer:
            place = writer.schema.get_field_index(STEP.name)
            for group in range(read.num_row_groups):
                rows = read.read_row_group(group)
                steps = compute.add(rows[STEP.name], later)
                rows = rows.set_column(place, writer.schema.field(place), steps)
                writer.write_table(rows.cast(writer.schema), len(rows))
        file.unlink()
        undo.pop_all()
    return temporary


def _columns(table: pa.Table) -> dict[str, Any]:
    return {name: table[name] for name in table.column_names}


def _version(value: object) -> str | None:
    return None if value is None else str(value)
