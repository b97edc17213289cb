"""The SQLite database that ``nsys export --type sqlite`` writes, as columns of whole numbers and texts.

Versions of Nsight Systems differ in tables and columns, and omit tables without rows, so every table and every column
is optional: a missing table has no rows, and a missing column is 0.
"""

from __future__ import annotations

import contextlib
import re
import struct
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.errors import InvalidFileError
from collector.files.atomic_files import output_error
from collector.formats.kept_texts import KeptTexts, TextRoom

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator

    import numpy.typing as npt

    from collector.formats.file_content import FileContent

    Numbers = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 16
_LARGEST_TIME_NS = (1 << 62) - 1
"""As for the events of Chrome traces: the sum of two possible times has 63 bits."""
_ACTIVITIES = "CUPTI_ACTIVITY_KIND_"
_METADATA = ("META_DATA_EXPORT", "EXPORT_META_DATA")
"""The table of the export's own metadata, from Nsight Systems 2023.3 on and before."""
_HEADER_BYTES = 100
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
"""The declaration of a table that stores rows; the rows of a virtual table are computed by code."""


@contextlib.contextmanager
def opened(content: FileContent) -> Iterator[NsysDatabase]:
    """Open a database for reading.

    Raises:
        collector.InvalidFileError: the database is damaged, or is not an export of Nsight Systems.
    """
    try:
        import sqlite3
    except ImportError as error:
        raise InvalidFileError(
            f"{content.name}: this is an SQLite database, and this Python was built without sqlite3",
            "Use a Python that has the module sqlite3",
        ) from error
    with contextlib.ExitStack() as stack:
        path = content.plain_file
        if path is None:
            path = Path(stack.enter_context(_unpacked(content)))
        num_bytes = path.stat().st_size
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            stack.callback(connection.close)
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield NsysDatabase(connection, content, num_bytes)
        except _damage() as error:
            raise content.error(f"this is an SQLite database that is damaged ({_reason(error)})") from error


@contextlib.contextmanager
def _unpacked(content: FileContent) -> Iterator[str]:
    """The name of a temporary file with the bytes of a packed database.

    Raises:
        collector.OutputError: it cannot be written.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".sqlite"))
            file.writelines(content.pieces())
            file.flush()
        except OSError as error:
            stack.pop_all()
            raise output_error(f"cannot unpack {content.name} into the folder of temporary files", error) from error
        yield file.name


def _damage() -> tuple[type[Exception], ...]:
    """The errors that a damaged database causes: SQLite's messages quote names, which may be no UTF-8."""
    import sqlite3

    return sqlite3.Error, UnicodeDecodeError


def _reason(error: Exception) -> str:
    return "a name in it is not text" if isinstance(error, UnicodeDecodeError) else str(error)


class NsysTable:
    """The rows of one table, column by column."""

    def __init__(
        self, columns: dict[str, Numbers], texts: list[str], num_rows: int, others: dict[str, KeptTexts]
    ) -> None:
        self._columns = columns
        self._num_rows = num_rows
        self.texts = texts
        """The requested column of texts; ``""`` stands for NULL."""
        self.others = others
        """The columns that were not requested."""

    def __len__(self) -> int:
        return self._num_rows

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Numbers:
        """A column, in which 0 stands for NULL; zeros if the file has no column of that name."""
        found = self._columns.get(name)
        return np.zeros(self._num_rows, np.int64) if found is None else found


class NsysDatabase:
    """An open export."""

    def __init__(self, connection: sqlite3.Connection, content: FileContent, num_bytes: int) -> None:
        """Read the names of the tables and columns.

        Raises:
            collector.InvalidFileError: the database is not an export of Nsight Systems.
        """
        self._connection = connection
        self.skipped: Counter[str] = Counter()
        """Reason -> the number of rows left out because of damage."""
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name for name, sql in found if _TABLE.match(str(sql))]
        missing = _missing_bytes(content.head, num_bytes)
        if missing:
            self.skipped["bytes cut off at the end of the file"] += missing
        self._columns = {name: self._columns_of(name) for name in names}
        if "StringIds" not in self._columns and not any(name.startswith(_ACTIVITIES) for name in names):
            raise content.error("this is an SQLite database, but no export of Nsight Systems")
        self._read: dict[str, int] = {}
        self.room = TextRoom()
        """The memory for the values of columns that are kept as text."""

    def _columns_of(self, table: str) -> frozenset[str]:
        return frozenset(row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))

    def table(
        self,
        name: str,
        *columns: str,
        timed: tuple[str, ...] = (),
        times: tuple[str, ...] = (),
        text: str = "",
        where: str = "",
        understood: Collection[str] | None = None,
    ) -> NsysTable:
        """The intact rows of a table; damaged rows are left out and counted.

        Args:
            name: the name of the table; a missing table has no rows.
            columns: the columns to read, as far as they exist; values that are not integers become 0.
            timed: columns of `columns` in which a row needs an integer; other rows are left out.
            times: columns of `columns` that are times; rows with one that is not possible are left out.
            text: a column of texts to read, if it exists.
            where: the condition of the rows to read, as SQL.
            understood: further columns that need not be kept; all others are kept as text. None: no column is kept.
        """
        there = self._columns.get(name, frozenset())
        wanted = [column for column in columns if column in there]
        if not wanted or not there.issuperset(timed):
            return NsysTable({}, [], 0, {})
        whole = {column: f"CAST(IFNULL({_quoted(column)}, 0) AS INTEGER)" for column in wanted}
        chosen = list(whole.values())
        chosen.append(f"CAST(IFNULL({_quoted(text)}, '') AS TEXT)" if text in there else "''")
        conditions = [f"typeof({_quoted(column)}) = 'integer'" for column in timed] + ([where] if where else [])
        bounds = f"BETWEEN {-_LARGEST_TIME_NS} AND {_LARGEST_TIME_NS}"
        conditions += [f"{whole[column]} {bounds}" for column in times if column in whole]
        condition = " AND ".join(conditions) or "1"
        kept = sorted(there.difference(wanted, understood, (text,))) if understood is not None else []
        same, kept = self._same_values(name, kept, condition)
        others = {column: KeptTexts(self.room) for column in (*same, *kept)}
        chosen += map(_quoted, kept)
        query = f"SELECT {', '.join(chosen)} FROM {_quoted(name)} WHERE {condition}"
        numbers: list[Numbers] = []
        texts: list[str] = []
        for rows in self._pieces(name, query):
            numbers.append(np.array([row[: len(wanted)] for row in rows], np.int64))
            texts += [row[len(wanted)] for row in rows] if text else []
            for column, value in same.items():
                others[column].add_same(value, len(rows))
            for place, column in enumerate(kept, start=len(wanted) + 1):
                others[column].add([row[place] for row in rows])
        joined = np.concatenate(numbers) if numbers else np.zeros((0, len(wanted)), np.int64)
        untimed = self.count(name, where) - len(joined) if timed else 0
        if untimed > 0:
            self.skipped[f"rows of {name} that cannot be read or have no possible time"] += untimed
        self._read[name] = self._read.get(name, 0) + len(joined) + untimed
        found = {column: joined[:, place] for place, column in enumerate(wanted)}
        return NsysTable(found, texts, len(joined), others)

    def _same_values(self, name: str, columns: list[str], condition: str) -> tuple[dict[str, object], list[str]]:
        """The values of the columns that have one value in all rows, and the columns whose values differ.

        Columns without any value are left out: exports have many, and reading each value costs more than this query.
        """
        if not columns:
            return {}, []
        figures = ", ".join(f"count({column}), min({column}), max({column})" for column in map(_quoted, columns))
        try:
            found = self._connection.execute(f"SELECT {figures}, count(*) FROM {_quoted(name)} WHERE {condition}")
            *each, num_rows = found.fetchone()
        except _damage():  # what is intact is read piece by piece
            return {}, columns
        same, differing = {}, []
        for column, count, least, most in zip(columns, each[::3], each[1::3], each[2::3], strict=True):
            if count == num_rows and least == most:
                same[column] = least
            elif count:
                differing.append(column)
        return same, differing

    def _pieces(self, name: str, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query in pieces, up to the first damage of the file."""
        try:
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield rows
        except _damage() as error:
            self.skipped[f"pages of {name} that are damaged ({_reason(error)})"] += 1

    def count(self, table: str, where: str = "") -> int:
        """The number of rows of a table; 0 if it is missing or damaged."""
        if table not in self._columns:
            return 0
        try:
            (found,) = self._connection.execute(f"SELECT count(*) FROM {_quoted(table)} WHERE {where or 1}").fetchone()
        except _damage():
            return 0
        return int(found)

    def texts(self, table: str, key: str, value: str) -> dict[int, str]:
        """A column of texts by a column of integer keys; of repeated keys the last one counts."""
        if not {key, value} <= self._columns.get(table, frozenset()):
            return {}
        query = f"SELECT {_quoted(key)}, {_quoted(value)} FROM {_quoted(table)}"
        rows = (row for piece in self._pieces(table, query) for row in piece)
        return {number: str(text) for number, text in rows if type(number) is int}

    def has(self, table: str, *columns: str) -> bool:
        """Whether the export has a table with these columns."""
        return table in self._columns and self._columns[table].issuperset(columns)

    def value_of(self, name: str) -> str:
        """A value of the export's own metadata; ``""`` if it is missing."""
        for table in _METADATA:
            if self.has(table, "name", "value"):
                query = f"SELECT value FROM {table} WHERE name = '{name}'"
                return next((str(value) for piece in self._pieces(table, query) for (value,) in piece), "")
        return ""

    def unread(self) -> dict[str, int]:
        """Table of activities, or with start times -> the number of its rows that were not read."""
        counts = {
            name: self.count(name) - self._read.get(name, 0)
            for name, columns in self._columns.items()
            if name.startswith(_ACTIVITIES) or "start" in columns
        }
        return {name: count for name, count in sorted(counts.items()) if count > 0}


def _missing_bytes(head: bytes, num_bytes: int) -> int:
    """The number of bytes that are missing from the size in the header; see section 1.3 of SQLite's file format."""
    if len(head) < _HEADER_BYTES:
        return 0
    (page_bytes,) = struct.unpack_from(">H", head, 16)
    changes, num_pages = struct.unpack_from(">II", head, 24)
    (counted_at,) = struct.unpack_from(">I", head, 92)
    stated = num_pages * (1 << 16 if page_bytes == 1 else page_bytes)
    return max(stated - num_bytes, 0) if counted_at == changes else 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
