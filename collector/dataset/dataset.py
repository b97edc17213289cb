"""A dataset as a sequence of steps that are read on request, and as tables for SQL."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, overload

from collector.checked_arguments import plain_text, whole_number
from collector.dataset.dataset_arrow import arrow_schema
from collector.dataset.dataset_folder import files_of, tables
from collector.dataset.dataset_recording import recording_of
from collector.dataset.dataset_tables import STEP, STEPS
from collector.errors import InvalidFileError
from collector.files.atomic_files import expanded
from collector.formats.named_steps import NamedSteps
from collector.formats.step import Step
from collector.formats.step_sources import ColumnsSource
from collector.runtime.later_modules import later_function
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pyarrow as pa

    from collector.analysis.answer import Answer
    from collector.dataset.dataset_folder import DatasetFiles, Part
    from collector.dataset.dataset_tables import DatasetTable
    from collector.recording.recording import Recording


class StepKey(NamedTuple):
    """The identity of a step: run, rank and number."""

    run: str
    rank: int
    step: int


_SHOWN_RANKS = 8
_OPEN_AGAIN = "Open the dataset again, if another program has changed it"
_EXPORT_AGAIN = "Remove the files of this part from all tables, and export its steps again"


class Dataset(Sequence[Step]):
    """The steps that are in the folder of a dataset when it is opened, in order of runs, ranks and numbers.

    >>> dataset = Dataset("runs")  # doctest: +SKIP
    >>> analysis.kernels(dataset)  # doctest: +SKIP
    >>> dataset.sql("select name, sum(duration_ns) from kernels group by name")  # doctest: +SKIP

    Args:
        folder: the folder of the dataset.
        run: only the steps of this run.
        rank: only the steps of this rank.

    Raises:
        MissingDependencyError: pyarrow is not installed.
        InvalidFileError: the folder holds no dataset, or one of another version, or there is no such run or rank.
    """

    def __init__(self, folder: str | os.PathLike[str], *, run: str | None = None, rank: int | None = None) -> None:
        if find_spec("pyarrow") is None:  # its import takes long, and SQL does not need it
            optional_package("pyarrow.parquet")
        self.folder = expanded(folder)
        found = files_of(self.folder)
        self.files: DatasetFiles = found.of_steps(run, rank)
        """The files of all tables, and those that are left alone."""
        if (run is not None or rank is not None) and not self.keys:
            wanted = " and ".join(
                f"{name} {value}" for name, value in (("run", run), ("rank", rank)) if value is not None
            )
            raise InvalidFileError(f"{self.folder} has no step of {wanted}", _ranks_in_words(found))

    def __repr__(self) -> str:
        runs = len({key.run for key in self.keys})
        ranks = len({key[:2] for key in self.keys})
        return f"<Dataset {str(self.folder)!r}: {runs} runs, {ranks} ranks, {len(self.keys)} steps>"

    @cached_property
    def keys(self) -> tuple[StepKey, ...]:
        """Run, rank and number of each step."""
        return tuple(
            sorted({StepKey(part.run, part.rank, step) for step, parts in self._parts.items() for part in parts})
        )

    @cached_property
    def _parts(self) -> dict[int, set[Part]]:
        """Number of a step -> the parts that have a step of this number, of all runs and ranks."""
        found = defaultdict(set)
        for part, path in self.files.by_table.get(STEPS.name, {}).items():
            for step in _rows(path, _schema(STEPS, [STEP.name]))[STEP.name].to_pylist():
                found[step].add(part)
        return found

    def select(self, run: str | None, rank: int | None, step: int | None) -> list[StepKey]:
        """The keys of the steps of a run, a rank and a number, in their order; None: of all."""
        if step is not None:
            return sorted({StepKey(part.run, part.rank, step) for part in self._files(STEPS.name, run, rank, step)})
        return [key for key in self.keys if run in (None, key.run) and rank in (None, key.rank)]

    def files_of(self, key: StepKey) -> tuple[list[Path], int]:
        """The files of all tables that are read for a step, and the number of steps in these files."""
        files = [path for name in self.files.by_table for path in self._files(name, *key).values()]
        return files, sum(self._steps_of_parts[part] for part in self._files(STEPS.name, *key))

    def _files(self, name: str, run: str | None, rank: int | None, step: int | None) -> dict[Part, Path]:
        """The files of a table that can have rows of a run, a rank and a step; None: of all."""
        if step is None or STEP not in tables()[name].columns:
            return self.files.parts_of(name, run, rank)
        files = self.files.by_table.get(name, {})
        return {
            part: files[part]
            for part in self._parts.get(step, ())  # few, where the table may have thousands
            if part in files and run in (None, part.run) and rank in (None, part.rank)
        }

    @cached_property
    def _steps_of_parts(self) -> Counter[Part]:
        """Part -> the number of its steps."""
        return Counter(part for parts in self._parts.values() for part in parts)

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        """The step at an index; its rows are read on request."""
        if isinstance(index, slice):
            return [self.step(key) for key in self.keys[index]]
        return self.step(self.keys[index])

    def table(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        run: str | None = None,
        rank: int | None = None,
        step: int | None = None,
    ) -> pa.Table:
        """Rows of a table, with the columns ``run`` and ``rank`` first.

        Args:
            name: the name of the table.
            columns: the columns to read; all by default.
            run: only rows of this run.
            rank: only rows of this rank.
            step: only rows of this step; files and row groups without rows of it are not read.

        Raises:
            KeyError: there is no such table.
            TypeError: ``columns`` is a single name, or ``rank`` or ``step`` is not a whole number.
            InvalidFileError: a file is damaged, or was removed since the dataset was opened.
        """
        if name not in tables():
            raise KeyError(f"there is no table {name!r}: choose from {', '.join(tables())}")
        if isinstance(columns, str):
            raise TypeError(f"columns takes several names, not one: write [{columns!r}]")
        for argument, number in (("rank", rank), ("step", step)):
            if number is not None:
                whole_number(argument, number)
        pa = optional_package("pyarrow")
        table = tables()[name]
        schema = _schema(table, columns)
        filters = [(STEP.name, "=", step)] if STEP in table.columns and step is not None else None
        found = []
        for part, path in sorted(self._files(name, run, rank, step).items()):
            rows = _rows(path, schema, filters)
            if table.has_rank:
                rows = rows.add_column(0, "rank", pa.array([part.rank] * len(rows), pa.int32()))
            found.append(rows.add_column(0, "run", pa.array([part.run] * len(rows), pa.string())))
        return pa.concat_tables(found) if found else empty_table(name, schema.names)

    def recording(self, key: StepKey) -> Recording:
        """Read the recording of one step."""
        return recording_of(lambda table: self.table(table, run=key.run, rank=key.rank, step=key.step))

    def sql(self, query: str) -> Answer:
        """Answer one query in the SQL of DuckDB; docs/sql.md lists the tables and views.

        Raises:
            MissingDependencyError: duckdb is not installed.
            CollectorError: the query is wrong, or would write, or access files or the network.
            TypeError: the query is not text.
        """
        plain_text("query", query)
        answer: Answer = later_function("ask_dataset")(self, query)
        return answer

    def step(self, key: StepKey) -> Step:
        """The step with a key of `keys`; its rows are read on request."""
        path = NamedSteps(self.folder, *key).path
        return Step(_StepInDataset(self, key), kind="dataset", path=path, rank=key.rank, run=key.run)


class _StepInDataset(ColumnsSource):
    """A step whose rows are read on request."""

    def __init__(self, dataset: Dataset, key: StepKey) -> None:
        self._dataset = dataset
        self._key = key

    def recording(self) -> Recording:
        """See `StepSource`."""
        return self._dataset.recording(self._key)

    def size(self) -> str:
        """See `StepSource`."""
        return f"step {self._key.step} of rank {self._key.rank}, run {self._key.run}"


def _schema(table: DatasetTable, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of a table's files with some of their columns; None: with all."""
    pa = optional_package("pyarrow")
    return pa.schema([field for field in arrow_schema(table) if columns is None or field.name in columns])


def _rows(path: Path, schema: pa.Schema, filters: list[tuple[str, str, int]] | None = None) -> pa.Table:
    """Rows of a file of a dataset.

    Raises:
        InvalidFileError: the file is damaged, or was removed.
    """
    pa, parquet = optional_package("pyarrow"), optional_package("pyarrow.parquet")
    try:
        if filters is None:  # a small file takes a third of the time of `read_table`, which also imports pandas
            with parquet.ParquetFile(path) as file:
                rows = file.read(columns=schema.names).select(schema.names)
        else:
            rows = parquet.read_table(
                path, columns=schema.names, partitioning=None, filters=filters, read_dictionary=[]
            )
        return rows.cast(schema)  # which columns a file can have no NULL in depends on who wrote it
    except FileNotFoundError as error:
        raise InvalidFileError(f"{path} was removed, or is not a file", _OPEN_AGAIN) from error
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:  # KeyError, ValueError: it has other columns
        raise InvalidFileError(f"{path} cannot be read: {' '.join(str(error).split())}", _EXPORT_AGAIN) from error


def _ranks_in_words(files: DatasetFiles) -> str:
    parts = sorted({(part.run, part.rank) for part in files.by_table.get(STEPS.name, {})})
    if not parts:
        return "It has no steps at all"
    shown = ", ".join(f"run {run} rank {rank}" for run, rank in parts[:_SHOWN_RANKS])
    return f"It has steps of: {shown}" + (", ..." if len(parts) > _SHOWN_RANKS else "")


def empty_table(name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of a dataset without rows, with the columns ``run`` and ``rank`` first."""
    pa = optional_package("pyarrow")
    table = tables()[name]
    own = [field for field in arrow_schema(table) if columns is None or field.name in columns]
    places = [pa.field("run", pa.string()), *([pa.field("rank", pa.int32())] if table.has_rank else [])]
    return pa.schema([*places, *own]).empty_table()
