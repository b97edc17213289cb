"""The SQLite database that ``nsys export --type sqlite`` writes, as columns of whole numbers and texts.

Versions of Nsight Systems differ in tables and columns, and tables without rows are left out, so nothing is relied on:
a column that is not there is None.
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

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    import numpy.typing as npt

    from collector.formats.file_content import FileContent

    Numbers = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 16
_ACTIVITIES = "CUPTI_ACTIVITY_KIND_"
_HEADER_BYTES = 100
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
"""How a table is declared that holds rows; the rows of a virtual one are made by code."""


@contextlib.contextmanager
def opened(content: FileContent) -> Iterator[NsysDatabase]:
    """Open a database for reading.

    Raises:
        collector.InvalidFileError: it is damaged, or no export of Nsight Systems.
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
            file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".sqlite"))
            file.writelines(content.pieces())
            file.flush()
            path = Path(file.name)
        num_bytes = path.stat().st_size
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            stack.callback(connection.close)
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield NsysDatabase(connection, content, num_bytes)
        except sqlite3.Error as error:
            raise content.error(f"this is an SQLite database that is damaged ({error})") from error


class NsysTable:
    """The rows of one table, column by column."""

    def __init__(self, columns: dict[str, Numbers], texts: list[str], num_rows: int) -> None:
        self._columns = columns
        self._num_rows = num_rows
        self.texts = texts
        """The column of texts that was asked for; ``""`` for what is NULL."""

    def __len__(self) -> int:
        return self._num_rows

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Numbers:
        """A column; zeros where the file has none of that name. What is NULL is 0."""
        found = self._columns.get(name)
        return np.zeros(self._num_rows, np.int64) if found is None else found


class NsysDatabase:
    """An export that is open."""

    def __init__(self, connection: sqlite3.Connection, content: FileContent, num_bytes: int) -> None:
        """Look at what tables there are.

        Raises:
            collector.InvalidFileError: it is no export of Nsight Systems.
        """
        self._connection = connection
        self.skipped: Counter[str] = Counter()
        """Reason -> how many rows were left out because they are damaged."""
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name for name, sql in found if _TABLE.match(str(sql))]
        missing = _missing_bytes(content.head, num_bytes)
        if missing:
            self.skipped["bytes cut off at the end of the file"] += missing
        self._columns = {name: self._columns_of(name) for name in names}
        if "StringIds" not in self._columns and not any(name.startswith(_ACTIVITIES) for name in names):
            raise content.error("this is an SQLite database, but no export of Nsight Systems")
        self._read: dict[str, int] = {}

    def _columns_of(self, table: str) -> frozenset[str]:
        return frozenset(row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))

    def table(
        self, name: str, *columns: str, timed: tuple[str, ...] = (), text: str = "", where: str = ""
    ) -> NsysTable:
        """The rows of a table, those left out and counted that are damaged.

        Args:
            name: of the table; one that is not there has no rows.
            columns: to read, those that are there; what is not a whole number counts as 0.
            timed: columns of `columns` without a whole number in which a row is worth nothing.
            text: a column of texts to read, if it is there.
            where: which rows to read, as SQL.
        """
        there = self._columns.get(name, frozenset())
        wanted = [column for column in columns if column in there]
        if not wanted or not there.issuperset(timed):
            return NsysTable({}, [], 0)
        chosen = [f"CAST(IFNULL({_quoted(column)}, 0) AS INTEGER)" for column in wanted]
        chosen.append(f"CAST(IFNULL({_quoted(text)}, '') AS TEXT)" if text in there else "''")
        conditions = [f"typeof({_quoted(column)}) = 'integer'" for column in timed] + ([where] if where else [])
        query = f"SELECT {', '.join(chosen)} FROM {_quoted(name)} WHERE {' AND '.join(conditions) or 1}"
        numbers: list[Numbers] = []
        texts: list[str] = []
        for rows in self._pieces(name, query):
            numbers.append(np.array([row[:-1] for row in rows], np.int64))
            texts += [row[-1] for row in rows] if text else []
        joined = np.concatenate(numbers) if numbers else np.zeros((0, len(wanted)), np.int64)
        untimed = self.count(name, where) - len(joined) if timed else 0
        if untimed > 0:
            self.skipped[f"rows of {name} that cannot be read or have no time"] += untimed
        self._read[name] = self._read.get(name, 0) + len(joined) + untimed
        return NsysTable({column: joined[:, place] for place, column in enumerate(wanted)}, texts, len(joined))

    def _pieces(self, name: str, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows that a query gives, some at a time, up to where the file is damaged."""
        import sqlite3

        try:
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield rows
        except sqlite3.DatabaseError as error:
            self.skipped[f"pages of {name} that are damaged ({error})"] += 1

    def count(self, table: str, where: str = "") -> int:
        """How many rows a table has; 0 where there is none of that name, or where it is damaged."""
        import sqlite3

        if table not in self._columns:
            return 0
        try:
            (found,) = self._connection.execute(f"SELECT count(*) FROM {_quoted(table)} WHERE {where or 1}").fetchone()
        except sqlite3.DatabaseError:
            return 0
        return int(found)

    def texts(self, table: str, key: str, value: str) -> dict[int, str]:
        """A column of texts by one of whole numbers; of a key that is there twice the last."""
        if not {key, value} <= self._columns.get(table, frozenset()):
            return {}
        query = f"SELECT {_quoted(key)}, {_quoted(value)} FROM {_quoted(table)}"
        rows = (row for piece in self._pieces(table, query) for row in piece)
        return {number: str(text) for number, text in rows if type(number) is int}

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        return table in self._columns and self._columns[table].issuperset(columns)

    def value_of(self, name: str) -> str:
        """What the export says of itself under a name; ``""`` where it says nothing."""
        if not self.has("META_DATA_EXPORT", "name", "value"):
            return ""
        query = f"SELECT value FROM META_DATA_EXPORT WHERE name = '{name}'"
        return next((str(value) for piece in self._pieces("META_DATA_EXPORT", query) for (value,) in piece), "")

    def unread(self) -> dict[str, int]:
        """Table -> how many of its rows, which have a start, were not asked for."""
        counts = {
            name: self.count(name) - self._read.get(name, 0)
            for name, columns in self._columns.items()
            if "start" in columns
        }
        return {name: count for name, count in sorted(counts.items()) if count > 0}


def _missing_bytes(head: bytes, num_bytes: int) -> int:
    """How many bytes a database lacks of what its header says that it has; see section 1.3 of SQLite's file format."""
    if len(head) < _HEADER_BYTES:
        return 0
    (page_bytes,) = struct.unpack_from(">H", head, 16)
    changes, num_pages = struct.unpack_from(">II", head, 24)
    (counted_at,) = struct.unpack_from(">I", head, 92)
    stated = num_pages * (1 << 16 if page_bytes == 1 else page_bytes)
    return max(stated - num_bytes, 0) if counted_at == changes else 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
