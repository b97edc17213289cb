"""NVIDIA's Python records as the columns that every source fills.

cupti-python passes each buffer as a list of record objects that may point into the buffer, so their fields are copied
before the callback returns. The callback does nothing else: one C-level ``attrgetter`` call per record. Columns, names
and numpy arrays are built after the session, in `Rows.columns`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.schema import ACTIVITY_TABLES, CONDITIONS, KINDS, KINDS_ON_REQUEST, RECORDS, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from collector.recording.schema import Record
    from collector.sources.tick_scale import TickScale

    Column = npt.NDArray[Any]

KINDS_OF_OPTION = {
    option: tuple(record.kind for record in RECORDS if record.option == option)
    for option in (*KINDS, *KINDS_ON_REQUEST)
}
"""`collector.options.KINDS` and ``KINDS_ON_REQUEST`` -> the activity kinds to enable."""

_TIMES = ("start_ns", "end_ns")
_RECORD_OF_KIND = {record.kind: record for record in RECORDS}
FIELDS = {record.kind: record.attributes for record in RECORDS}
"""Activity kind -> our column -> the record's attribute with its value."""
MADE_ONCE = frozenset(record.kind for record in RECORDS if record.made_once)
"""Activity kinds whose records CUPTI writes when an object is created, and on request for all existing objects."""


class Rows:
    """Field tuples of the records seen so far, by activity kind."""

    def __init__(self) -> None:
        self._of_kind: dict[int, list[tuple[Any, ...]]] = {kind: [] for kind in FIELDS}
        self._readers: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
        self._unknown: list[int] = []

    def add(self, records: Iterable[Any]) -> None:
        """Copy the fields of ``records``. Called inside CUPTI's completion callback, so it does nothing else.

        Several threads may run this at once: every change is one append, which the GIL makes atomic.
        """
        for record in records:
            kind = record.kind
            rows = self._of_kind.get(kind)
            if rows is None:
                self._unknown.append(kind)
                continue
            # One class belongs to one kind, except for API calls, whose two kinds have the same fields.
            reader = self._readers.get(type(record))
            if reader is None:
                reader = self._readers[type(record)] = _reader_of(record, _RECORD_OF_KIND[kind])
            rows.append(reader(record))

    def counts(self) -> dict[str, int]:
        """Return the number of records, and the number of those whose kind was not enabled."""
        known = sum(map(len, self._of_kind.values()))
        return {"records_decoded": known + len(self._unknown), "records_unknown_kind": len(self._unknown)}

    def columns(
        self, strings: Strings, api_name: Callable[[int, int], str], scale: TickScale | None = None
    ) -> dict[str, dict[str, Column]]:
        """Return every table but ``annotations``; names are added to ``strings``.

        Args:
            strings: the texts that ``name_id`` columns will refer to.
            api_name: (callback domain, callback id) -> name of an API function.
            scale: the scale of the records' times, if they are not nanoseconds.
        """
        tables = {}
        for table, dtypes in SCHEMA.items():
            records = sorted(record for record in RECORDS if record.table == table)
            if not records:
                continue
            parts = [self._columns_of(record, strings, api_name) for record in records]
            tables[table] = {
                column: np.concatenate([part[column] for part in parts]).astype(dtype, copy=False)
                for column, dtype in dtypes.items()
            }
            if scale is not None:
                tables[table] |= {name: scale.column(tables[table][name]) for name in _TIMES if name in dtypes}
            if table in ACTIVITY_TABLES:
                tables[table] = _in_stream_and_time_order(tables[table])
        return tables

    def _columns_of(self, record: Record, strings: Strings, api_name: Callable[[int, int], str]) -> dict[str, Column]:
        rows = self._of_kind[record.kind]
        values: dict[str, Any] = dict.fromkeys(record.attributes, ())
        if rows:
            values.update(zip(record.attributes, zip(*rows, strict=True), strict=True))
        values.update({column: [value] * len(rows) for column, value in record.constants.items()})
        values.update({column: [value & 1 for value in values[column]] for column in record.flags})
        values.update({column: [int(value != 0) for value in values[column]] for column in record.truths})
        if "callback_id" in values:
            calls = zip(values["domain"], values["callback_id"], strict=True)
            values["name_id"] = [strings.id_of(api_name(domain, callback_id)) for domain, callback_id in calls]
        elif "name_id" in SCHEMA[record.table]:
            values["name_id"] = [strings.id_of(name) for name in values.get("name_id", [""] * len(rows))]
        columns = {
            name: _column(values.get(name, [0] * len(rows)), dtype) for name, dtype in SCHEMA[record.table].items()
        }
        for name, (other, kept) in CONDITIONS.get(record.table, {}).items():
            if name != "name_id":  # names without an attribute are ""
                columns[name] = np.where(np.isin(columns[other], kept), columns[name], 0).astype(columns[name].dtype)
        return columns


def _reader_of(example: Any, record: Record) -> Callable[[Any], tuple[Any, ...]]:
    """A function that reads the fields of a record; fields that an older installed package lacks are 0."""
    missing = {column for column in record.later if not hasattr(example, record.attributes[column])}
    if not missing:
        return attrgetter(*record.attributes.values())
    readers = [(lambda _: 0) if column in missing else attrgetter(name) for column, name in record.attributes.items()]
    return lambda each: tuple(read(each) for read in readers)


class Strings:
    """Distinct texts in the order of their first use."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def id_of(self, text: str) -> int:
        """Return the ``name_id`` of ``text``."""
        return self._ids.setdefault(text, len(self._ids))

    def texts(self) -> list[str]:
        """Return the texts that the ids refer to."""
        return list(self._ids)


def leave_out_calls_of(thread_id: int, since_ns: int, tables: dict[str, dict[str, Column]]) -> None:
    """Remove the collector's own API calls, i.e. those of this thread from ``since_ns`` on, and their waits."""
    calls, waits = tables["api_calls"], tables["synchronizations"]
    own = (calls["thread_id"] == thread_id) & (calls["start_ns"] >= since_ns)
    own_waits = np.isin(waits["correlation_id"], calls["correlation_id"][own])
    tables["api_calls"] = {name: column[~own] for name, column in calls.items()}
    tables["synchronizations"] = {name: column[~own_waits] for name, column in waits.items()}


def _column(values: Iterable[int], dtype: str) -> Column:
    # Converted through unsigned 64 bits, because a damaged record's time may not fit its signed column.
    wide = np.array(values, dtype="i8" if dtype in ("i1", "i4") else "u8")
    if dtype == "i1":  # narrower than the record's field, which cupti-python may give as unsigned
        wide = np.clip(wide.astype("i4"), -128, 127)
    return np.minimum(wide, 255).astype(dtype) if dtype == "u1" else wide.astype(dtype)


def _in_stream_and_time_order(columns: dict[str, Column]) -> dict[str, Column]:
    # Buffers, and threads' buffers, come in any order; this is the order of the native source.
    keys = [columns[name] for name in ("start_ns", "stream_id", "context_id", "device_id")]
    order = np.lexsort(keys)
    return {name: column[order] for name, column in columns.items()}
