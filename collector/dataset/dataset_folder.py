"""The files of a dataset: ``DIR/<table>/run=<name>/rank=<number>/part-<first step>.parquet`` and ``DIR/schema.json``.

A part is one writer's steps: a file for each table that has rows. The part's file of ``steps`` gets its name last, and
only parts that have one are read, so that a writer that was killed leaves nothing half written behind. The numbers of
its steps are those of no other part, and none of another part's lies between them (`collector.dataset.step_claims`).
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from collector.dataset.dataset_tables import (
    ARGS,
    COUNTERS,
    ENUMS,
    RANKS,
    RECORDED_TABLES,
    RUNS,
    STEPS,
    TRACE_EVENTS,
    VERSION,
)
from collector.dataset.fact_tables import fact_tables
from collector.errors import InvalidFileError, OutputError
from collector.files.atomic_files import atomic_write, output_error
from collector.files.dataset_files import SCHEMA_FILE, SCHEMA_NAME
from collector.formats.named_steps import is_dataset
from collector.formats.output_paths import check_place, check_without_step, placeholders_of
from collector.text.surrogates import is_utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.dataset.dataset_tables import DatasetTable

NOT_UTF8 = "its path is not UTF-8, which libraries of Parquet and SQL require"
_PART = re.compile(r"part-(\d{1,19})\.parquet")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:-]*")


@cache
def tables() -> Mapping[str, DatasetTable]:
    """Every table of a dataset by its name."""
    own = (RUNS, RANKS, STEPS, *RECORDED_TABLES, ARGS, COUNTERS, TRACE_EVENTS, *fact_tables())
    return {table.name: table for table in own}


class Part(NamedTuple):
    """The steps that one writer wrote at once."""

    run: str
    rank: int
    first_step: int


@dataclass(frozen=True)
class DatasetFiles:
    """The files that are in the folder of a dataset."""

    by_table: Mapping[str, Mapping[Part, Path]]
    """Table -> part -> file; of ``runs`` and ``ranks`` too, whose parts have the first step 0."""
    unfinished: tuple[Path, ...]
    """Files of parts that were not complete when the files were listed."""
    foreign: tuple[Path, ...]
    """Parquet files that do not belong to a dataset."""

    def of(self, table: str) -> list[Path]:
        """The files of a table, in order of runs, ranks and first steps."""
        return [path for _, path in sorted(self.by_table.get(table, {}).items())]

    def of_steps(self, run: str | None, rank: int | None) -> DatasetFiles:
        """The files of one run, or of one rank of a run; None: of all."""
        by_table = {name: self.parts_of(name, run, rank) for name in self.by_table}
        return DatasetFiles(by_table, self.unfinished, self.foreign)

    def parts_of(self, table: str, run: str | None, rank: int | None) -> dict[Part, Path]:
        """The files of a table of one run, or of one rank of a run; None: of all."""
        has_rank = tables()[table].has_rank
        return {
            part: path
            for part, path in self.by_table.get(table, {}).items()
            if run in (None, part.run) and (rank in (None, part.rank) or not has_rank)
        }


def check_run(run: str) -> str:
    """Return the name of a run, which becomes the name of a folder.

    Raises:
        OutputError: the name cannot be that of a run.
    """
    if len(run) > 128 or not _RUN.fullmatch(run):
        raise OutputError(
            f"a run cannot be called {run[:140]!r}",
            "Use up to 128 letters, digits and the characters . _ + : -, and begin with a letter or a digit",
        )
    return run


def path_of(folder: Path, table: DatasetTable, part: Part) -> Path:
    """The file of a table's part."""
    place = folder / table.name / f"run={quote(part.run, safe='')}"
    return (place / f"rank={part.rank}" if table.has_rank else place) / f"part-{part.first_step}.parquet"


def files_of(folder: Path) -> DatasetFiles:
    """The files of a dataset.

    ``steps`` is listed first: steps that are added meanwhile are then absent from all tables, not from some.

    Raises:
        InvalidFileError: the folder holds no dataset, or one of another version.
    """
    check_schema(folder)
    steps = (_place(path.relative_to(folder)) for path in (folder / STEPS.name).rglob("*.parquet"))
    finished = {place[1] for place in steps if place is not None}
    found: dict[str, dict[Part, Path]] = defaultdict(dict)
    unfinished, foreign = [], []
    for path in sorted(folder.rglob("*.parquet")):
        place = _place(path.relative_to(folder))
        if place is None:
            foreign.append(path)
        elif place[1] in finished or place[0] in (RUNS.name, RANKS.name):
            found[place[0]][place[1]] = path
        elif place[0] != STEPS.name:
            unfinished.append(path)
    return DatasetFiles(found, tuple(unfinished), tuple(foreign))


def first_step_of(name: str) -> int | None:
    """The first step of the part whose file has a name, or None."""
    found = _PART.fullmatch(name)
    return None if found is None else int(found[1])


def _place(path: Path) -> tuple[str, Part] | None:
    """The table and the part that the path of a file says, or None."""
    table = tables().get(path.parts[0])
    first_step = first_step_of(path.name)
    folders = path.parts[1:-1]
    if table is None or first_step is None or len(folders) != 1 + table.has_rank or not folders[0].startswith("run="):
        return None
    rank = folders[1].removeprefix("rank=") if table.has_rank else "0"
    if not rank.isdecimal() or (table.has_rank and folders[1] != f"rank={rank}"):
        return None
    return table.name, Part(unquote(folders[0].removeprefix("run=")), int(rank), first_step)


def check_output(folder: Path) -> None:
    """Report before the work for a dataset is done that the dataset cannot be written.

    Args:
        folder: of the dataset; it may contain placeholders (`collector.formats.output_paths`).

    Raises:
        InvalidFileError: it holds a dataset of another version.
        OutputError: it cannot be made, it is named after one step, or it has other content.
    """
    check_without_step(folder)
    check_place(folder, is_folder=True)
    if not placeholders_of(folder) and folder.exists():
        _check_content(folder)


def make_dataset(folder: Path) -> None:
    """Make the folder of a dataset, or check that it is one that can be appended to.

    Raises:
        InvalidFileError: it holds a dataset of another version.
        OutputError: it cannot be made, or it has other content.
    """
    if not is_utf8(str(folder)):
        raise OutputError(f"cannot make the dataset {folder}: {NOT_UTF8}", "Name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(f"cannot make the dataset {folder}", error) from error
    described = _check_content(folder)
    if described is not None and not tables().keys() - described.get("tables", {}).keys():
        return  # else an earlier program, which had fewer tables, wrote it
    with atomic_write(folder / SCHEMA_FILE, is_of_dataset=True) as file:
        file.write(json.dumps(schema_document(), indent=1).encode() + b"\n")


def _check_content(folder: Path) -> dict[str, Any] | None:
    """The content of schema.json, or None where the folder is empty; raise if it can hold no dataset of ours."""
    try:
        has_others = not is_dataset(folder) and any(not each.name.startswith(".") for each in folder.iterdir())
    except OSError as error:
        raise output_error(f"cannot make the dataset {folder}", error) from error
    if is_dataset(folder):  # another rank may just have written it
        return check_schema(folder)
    if has_others:
        raise OutputError(f"{folder} is not a dataset, and not empty", "Name a folder that does not exist yet")
    return None


def check_readable_path(path: Path) -> None:
    """Raise `InvalidFileError` if pyarrow and DuckDB cannot read at a path, because it is not UTF-8."""
    if not is_utf8(str(path)):
        raise InvalidFileError(f"{path} cannot be read: {NOT_UTF8}", "Rename its folders")


def check_schema(folder: Path) -> dict[str, Any]:
    """Return the content of schema.json; raise `InvalidFileError` unless the folder holds a dataset of this version."""
    check_readable_path(folder)
    try:
        document: Any = json.loads((folder / SCHEMA_FILE).read_bytes())
    except OSError as error:
        raise InvalidFileError(
            f"{folder} is not a dataset: {SCHEMA_FILE}: {error.strerror or error}", "Write one: collector export"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{folder / SCHEMA_FILE} is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("name") != SCHEMA_NAME:
        raise InvalidFileError(f"{folder / SCHEMA_FILE} is not the schema of a collector dataset")
    if document.get("version") != VERSION:
        raise InvalidFileError(
            f"{folder} has version {document.get('version')!r} of the schema, and this program version {VERSION}",
            "Export the recordings again into a new folder: versions cannot be mixed",
        )
    return document


def schema_document() -> dict[str, Any]:
    """The content of schema.json."""
    return {
        "name": SCHEMA_NAME,
        "version": VERSION,
        "times": "ns since base_ns of the run, which is Unix time",
        "tables": {
            table.name: {
                "partitions": ["run", "rank"][: 1 + table.has_rank],
                "columns": [
                    {"name": column.name, "type": column.type, **({"unit": column.unit} if column.unit else {})}
                    for column in table.columns
                ],
            }
            for table in tables().values()
        },
        "enums": {name: {str(number): label for number, label in labels.items()} for name, labels in ENUMS.items()},
    }


def temporary_path(path: Path, token: str = "") -> Path:
    """A name beside a file's own, until the file is complete; the folder is made.

    Args:
        path: the path of the file.
        token: a text that identifies the writer; by default a unique one.

    Raises:
        OutputError: the folder cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(f"cannot make {path.parent}", error) from error
    return path.with_name(f".{path.name.removeprefix('.')}.{token or new_token()}.part")


def new_token() -> str:
    """A part of names that no other process uses."""
    return os.urandom(4).hex()


def link_exclusively(temporary: Path, target: Path) -> bool:
    """Give a finished file its name, unless that is taken; return whether it was free."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        with suppress(FileNotFoundError):
            if temporary.samefile(target):  # the first answer of a network file system was lost
                temporary.unlink()
                return True
        return False
    except OSError:  # a file system without links
        if target.exists():
            return False
        temporary.replace(target)
        return True
    temporary.unlink()
    return True
