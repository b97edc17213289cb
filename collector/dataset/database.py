"""The tables and views of a dataset in DuckDB, for queries that can only read."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Answer, Column
from collector.dataset.dataset import Dataset
from collector.dataset.dataset_folder import NOT_UTF8, check_readable_path, tables
from collector.dataset.dataset_tables import ENUMS, TRACE_EVENTS
from collector.dataset.interrupted_queries import answered_in_thread, interruptible
from collector.dataset.view_files import view_texts
from collector.errors import CollectorError, InvalidFileError, OutputError
from collector.files.atomic_files import atomic_path, database_error
from collector.files.new_folders import scratch_folder
from collector.formats.named_steps import named_steps
from collector.runtime.optional_packages import optional_package
from collector.text.surrogates import is_utf8
from collector.text.wording import most_similar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence, Set
    from types import TracebackType

    from collector.formats.step import Step

_LOCKED = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Settings that keep a query from files, networks and extensions, and from changing these settings."""
_REFUSED = "Only one SELECT over the tables and views of the dataset, or EXPLAIN of one, is answered"
_WRITING_WORD = re.compile(r"\b(?:copy|insert|update|delete|merge)\b", re.IGNORECASE)
_WRITING_OPERATOR = re.compile(r"COPY_|INSERT|UPDATE|DELETE|MERGE_INTO")
_EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\b", re.IGNORECASE | re.DOTALL)
_POSITION = re.compile(r"LINE (\d+): (.*)\n( *)\^")
_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist")
_CANDIDATES = re.compile(r"Candidate (?:bindings|tables)[: ]+(.*)")
_ADVICE = re.compile(r"\n((?:Did you mean|Either) .*)")
_ALL_TABLES = "`collector sql DIR_OR_FILE --tables` lists all tables and views with their columns"
_DUCKDB_BEGINS = b"DUCK"
_LARGEST_EXACT = 1 << 53
_NUMERIC_TYPE = re.compile(r"(?i)number|u?(?:tiny|small|big|huge)?int(?:eger)?|double|float|decimal.*")
"""Names of types of columns; before 1.4 DuckDB stated ``NUMBER`` for all of them."""
_INT64 = (1 << 63) - 1
_DRAWN = "drawn"
_WORD = re.compile(r"\w+")
_LISTS_NAMES = re.compile(
    r"information_schema|pg_catalog|sqlite_|duckdb_|pragma|show|describe|summarize", re.IGNORECASE
)
"""Words of queries that list the names of tables and views."""


class Database:
    """A database with the tables and views of a dataset; a context manager."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        for statement in _LOCKED:
            connection.execute(statement)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    @classmethod
    @interruptible()
    def of(
        cls,
        paths: Sequence[Path],
        on_step: Callable[[Step], None] = lambda step: None,
        *,
        draw_events: bool = True,
        query: str | None = None,
    ) -> Database:
        """The database of a dataset, of one that was exported to a file of DuckDB, or of files of steps.

        Args:
            paths: the folder, the file, or the files.
            on_step: called with each step that is read.
            draw_events: fill ``trace_events`` also for steps that were not read from a Chrome trace, which takes longer
                than everything else; see `names_events`.
            query: the only query that will be asked, if known: only the tables and views that it can read are made,
                because all of them take longer than most queries.

        Raises:
            MissingDependencyError: duckdb is not installed.
            InvalidFileError: a file cannot be read.
        """
        duckdb = optional_package("duckdb")
        named = named_steps(paths[0]) if len(paths) == 1 else None
        if named is not None and named.step is None:
            dataset = Dataset(named.folder, run=named.run, rank=named.rank)
            return cls.of_dataset(dataset, draw_events=draw_events, query=query)
        if len(paths) == 1 and is_database(paths[0]):
            check_readable_path(paths[0])
            try:
                return cls(duckdb.connect(str(paths[0]), read_only=True))
            except duckdb.Error as error:
                raise InvalidFileError(f"{paths[0]}: {_first_line(error)}") from error
        from collector.dataset.exports import export_steps

        readable = _readable_names(query)
        with scratch_folder() as scratch:
            folder = scratch / "dataset"
            export_steps(paths, folder, draw_events=draw_events, on_step=on_step, only=readable)
            connection = duckdb.connect()
            _fill(connection, Dataset(folder), readable)
        return cls(connection)

    @classmethod
    @interruptible()
    def of_dataset(cls, dataset: Dataset, *, draw_events: bool = False, query: str | None = None) -> Database:
        """The database of a dataset; a table is read from its files when a query needs it.

        Args:
            dataset: the dataset to query.
            draw_events: draw the ``trace_events`` of steps that were stored without.
            query: the only query that will be asked, if known; see `of`.

        Raises:
            InvalidFileError: a file of the dataset is damaged, or was removed since the dataset was opened.
        """
        check_readable_path(dataset.folder.resolve())
        readable = _readable_names(query)
        duckdb = optional_package("duckdb")
        connection = duckdb.connect()
        connection.execute(f"SET allowed_directories = [{_text(dataset.folder.resolve())}]")
        draw_events = draw_events and TRACE_EVENTS.name in readable
        try:
            for name in filter(readable.__contains__, tables()):
                kind = "TABLE" if draw_events and name == TRACE_EVENTS.name else "VIEW"
                connection.execute(f'CREATE {kind} "{name}" AS {_select(dataset, name)}')
        except duckdb.Error as error:
            raise InvalidFileError(f"{dataset.folder} cannot be read: {_first_line(error)}") from error
        if draw_events:
            _draw_events(connection, dataset)
        _add_views(connection, readable)
        return cls(connection)

    @staticmethod
    @interruptible()
    def save(dataset: Dataset, target: Path) -> None:
        """Write the tables and views of a dataset into a new file of DuckDB.

        Raises:
            OutputError: the file exists already, or cannot be written.
        """
        duckdb = optional_package("duckdb")
        if target.exists():
            raise OutputError(f"{target} exists already", "Name another folder, or remove it")
        if not is_utf8(str(target)):
            raise OutputError(f"cannot write {target}: {NOT_UTF8}", "Name another folder")
        try:
            with atomic_path(target) as path, duckdb.connect(str(path)) as connection:
                _fill(connection, dataset, _readable_names(None))
        except duckdb.Error as error:
            raise database_error(f"cannot write {target}", _first_line(error)) from error

    def sql(self, query: str) -> Answer:
        """The answer to one query.

        Raises:
            CollectorError: the query is wrong, or would write, or access files or the network.
        """
        duckdb = optional_package("duckdb")
        if not is_utf8(query):
            raise CollectorError("the query is refused (it is not UTF-8)", _REFUSED)
        try:
            statement = self._read_only(query)
            described, rows = answered_in_thread(self._connection, lambda: self._rows(statement))
        except duckdb.PermissionException as error:
            raise CollectorError(f"the query is refused: {_first_line(error)}", _REFUSED) from error
        except duckdb.Error as error:
            raise CollectorError(_with_position(str(error)), _remedy(str(error))) from error
        names = _distinct([each[0] for each in described])
        numeric = [_NUMERIC_TYPE.fullmatch(str(each[1])) is not None for each in described]
        return _answer(query, list(zip(names, numeric, strict=True)), rows)

    def _rows(self, statement: Any) -> tuple[list[Any], list[Any]]:
        """The description of the columns, and the rows."""
        self._connection.execute(statement)
        return self._connection.description, self._connection.fetchall()

    def _read_only(self, query: str) -> Any:
        """The one statement of a query that can only read.

        DuckDB runs the statement that ``EXPLAIN ANALYZE`` explains, such as a ``COPY`` into the dataset. So the
        explained part has to be a ``SELECT`` by itself, without ``ANALYZE`` or other options before it.
        """
        kinds, statements = self._statements(query)
        if kinds == ["SELECT"] and not self._writes(query):
            return statements[0]
        if kinds == ["EXPLAIN"]:
            explained = _EXPLAIN.match(query)
            rest = query[explained.end() :] if explained else ""
            try:
                if self._statements(rest)[0] == ["SELECT"] and not self._writes(rest):
                    return f"EXPLAIN {rest}"
            except optional_package("duckdb").Error:  # options are not a statement
                pass
            kinds = ["EXPLAIN with options, or of another statement"]
        refused = "a statement that writes" if kinds == ["SELECT"] else ", ".join(kinds)
        raise CollectorError(f"the query is refused ({refused or 'nothing in it'})", _REFUSED)

    def _statements(self, query: str) -> tuple[list[str], Sequence[Any]]:
        """The kinds of the statements of a query, and the statements."""
        statements = self._connection.extract_statements(query)
        return [statement.type.name for statement in statements], statements

    def _writes(self, select: str) -> bool:
        """Whether a ``SELECT`` writes: from DuckDB 2.0 on, ``WITH`` takes ``COPY``, ``INSERT`` and other statements."""
        if not _WRITING_WORD.search(select):
            return False
        plans = self._connection.execute(f"EXPLAIN (FORMAT JSON) {select}").fetchall()
        return any(_WRITING_OPERATOR.search(name) for _, plan in plans for name in _operators(json.loads(plan)))


def _operators(plan: Any) -> Iterator[str]:
    """The names of the operators of a plan of DuckDB."""
    for node in plan if isinstance(plan, list) else [plan]:
        yield node.get("name", "")
        yield from _operators(node.get("children", []))


def ask_dataset(dataset: Dataset, query: str) -> Answer:
    """See `Dataset.sql`."""
    with Database.of_dataset(dataset, draw_events=names_events(query), query=query) as database:
        return database.sql(query)


def names_events(query: str) -> bool:
    """Whether a query may read ``trace_events``."""
    return TRACE_EVENTS.name in query.lower()


def _readable_names(query: str | None) -> Set[str]:
    """The names of all tables and views that a query can read: those in its text and in the views that it names.

    Args:
        query: one of SQL; None, or one that asks for names, can read everything.
    """
    texts = view_texts("duckdb")
    everything = {name.lower(): name for name in (*tables(), *ENUMS, *texts)}
    if query is None or _LISTS_NAMES.search(query):
        return set(everything.values())
    readable: set[str] = set()
    unread = [query]
    while unread:
        words = set(_WORD.findall(unread.pop().lower()))
        named = {everything[word] for word in words & everything.keys()} - readable
        readable |= named
        unread += [texts[name] for name in named & texts.keys()]
    return readable


def _select(dataset: Dataset, name: str) -> str:
    """The query that reads a table from its files."""
    table = tables()[name]
    types = {"int64": "BIGINT", "int32": "INTEGER", "string": "VARCHAR", "bool": "BOOLEAN", "double": "DOUBLE"}
    places = {"run": "VARCHAR", **({"rank": "INTEGER"} if table.has_rank else {})}
    columns = {**places, **{column.name: types[column.type] for column in table.columns}}
    if not (files := dataset.files.of(name)):
        nothing = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in columns.items())
        return f"SELECT {nothing} WHERE false"
    wanted = ", ".join(f'"{column}"' for column in columns)
    listed = ", ".join(_text(path.resolve()) for path in files)
    kinds = ", ".join(f"'{column}': {kind}" for column, kind in places.items())
    return f"SELECT {wanted} FROM read_parquet([{listed}], hive_partitioning = true, hive_types = {{{kinds}}})"


def _fill(connection: Any, dataset: Dataset, names: Set[str]) -> None:
    """Make tables of a dataset's rows in a database, and the views, as far as they are among the names."""
    for name in filter(names.__contains__, tables()):
        connection.execute(f'CREATE TABLE "{name}" AS {_select(dataset, name)}')
    _add_views(connection, names)


def _draw_events(connection: Any, dataset: Dataset) -> None:
    """Add the events of steps that were stored without to the table ``trace_events``."""
    from collector.dataset.trace_events import drawn_events_of, steps_without_events

    for key in steps_without_events(dataset):
        connection.register(_DRAWN, drawn_events_of(dataset, key))
        connection.execute(f'INSERT INTO "{TRACE_EVENTS.name}" BY NAME SELECT * FROM {_DRAWN}')
        connection.unregister(_DRAWN)


def _add_views(connection: Any, names: Set[str]) -> None:
    for name in filter(names.__contains__, ENUMS):
        labels = ENUMS[name]
        rows = ", ".join(f"({number}, {_text(label)})" for number, label in labels.items())
        connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM (VALUES {rows}) AS labels(id, label)')
    texts = view_texts("duckdb")
    for name in filter(names.__contains__, texts):
        connection.execute(f'CREATE VIEW "{name}" AS {texts[name]}')


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def is_database(path: Path) -> bool:
    """Whether a file is a database of DuckDB."""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == _DUCKDB_BEGINS
    except OSError:
        return False


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _with_position(message: str) -> str:
    """An error of DuckDB in one line, with the place in the query."""
    first = message.strip().partition("\n")[0]
    found = _place_of(message)
    return f"{first} (line {found[0]}, column {found[1]}: {found[2][:60]})" if found else first


def _place_of(message: str) -> tuple[str, int, str] | None:
    """The line and the column that an error of DuckDB states, and the query from there on; None if it states none."""
    if not (found := _POSITION.search(message)):
        return None
    line, excerpt, indent = found.groups()
    column = len(indent) - len(f"LINE {line}: ") + 1
    return line, column, excerpt[max(column - 1, 0) :]


def _remedy(message: str) -> str:
    """The remedy for an error of DuckDB; ``""`` where none is known."""
    if unknown := _UNKNOWN_TABLE.search(message):  # DuckDB has only the tables whose names are in the query
        similar = most_similar(unknown[1].lower(), [*tables(), *view_texts("duckdb"), *ENUMS])
        return f"Did you mean {similar}? {_ALL_TABLES}" if similar else _ALL_TABLES
    if found := _CANDIDATES.search(message):
        place = _place_of(message)
        quotes = "A text is written in single quotes. " if place and place[2].startswith('"') else ""
        return f"{quotes}Similar names are {found[1]}. {_ALL_TABLES}"
    if found := _ADVICE.search(message):
        return found[1]
    return _ALL_TABLES if "does not have a column" in message else ""


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of columns, of which a query may give several one name."""
    found: list[str] = []
    for name in names:
        number = 1
        while (free := name if number == 1 else f"{name}_{number}") in found:
            number += 1
        found.append(free)
    return found


def _answer(query: str, named: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Any]]) -> Answer:
    """The rows of a query; ``named`` has the name of each column, and whether it holds numbers."""
    lists = [list(values) for values in zip(*rows, strict=True)] or [[] for _ in named]
    columns, values = [], {}
    for (name, is_numeric), own in zip(named, lists, strict=True):
        unit, values[name] = _typed(name, is_numeric, own)
        columns.append(Column(name, unit, "Column of the query."))
    return Answer("sql", " ".join(query.split()), tuple(columns), values)


def _typed(name: str, is_numeric: bool, values: list[Any]) -> tuple[str, np.ndarray[Any, Any]]:
    """A column's unit and values: whole numbers, numbers with NaN for NULL, or texts, which are empty for NULL."""
    values = [float(value) if isinstance(value, Decimal) else value for value in values]
    known = [value for value in values if value is not None]
    if not known and is_numeric:
        return "value", np.full(len(values), np.nan)
    is_whole = all(type(value) is int and -_INT64 <= value <= _INT64 for value in known)
    if known and is_whole and len(known) == len(values):
        unit = "ns" if name.endswith("_ns") else "bytes" if name.endswith("_bytes") else "number"
        return unit, np.array(values, np.int64)
    is_number = all(type(value) in (int, float) for value in known)
    if known and is_number and all(type(value) is float or abs(value) <= _LARGEST_EXACT for value in known):
        return "value", np.array([np.nan if value is None else value for value in values], np.float64)
    return "text", np.array(["" if value is None else str(value) for value in values], object)
