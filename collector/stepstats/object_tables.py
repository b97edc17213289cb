"""The tables whose rows are objects and not activities (devices, contexts, streams, CUDA events), row by row.

They are read from a recording, or from the wire bytes of a step that was saved with them, without reading columns of
activities.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import DecodeError

from collector.errors import InvalidFileError
from collector.protos import Capture, RunMetadata
from collector.recording.schema import ACTIVITY_KINDS, SCHEMA
from collector.recording.text_columns import text_column
from collector.stepstats.wire import fields_of
from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.recording.recording import Recording

ObjectRow: TypeAlias = "dict[str, Any]"
"""Column -> value; ``name`` stands for ``name_id``, and so for other columns of texts. Times are wall times."""

NUM_KEPT = "kept"
"""The member of a message's tables that states, for each table with rows set apart at its end, the number of rows
before these."""
ROWS_APART = "rows_apart"
"""The member with the numbers of rows by table that a part of a recording counts but does not have."""
OBJECT_TABLES = tuple(table for table in SCHEMA if table not in ACTIVITY_KINDS)
"""The names of these tables."""


def object_rows(recording: Recording) -> dict[str, list[ObjectRow]]:
    """Table -> rows, for the tables that have rows."""
    tables = {name: getattr(recording, name) for name in OBJECT_TABLES}
    columns = {
        name: {column: values.tolist() for column, values in table.columns.items()}
        for name, table in tables.items()
        if len(table)
    }
    return _rows(columns, recording.strings, recording.clock.offset_ns)


def object_rows_of(data: bytes | bytearray | memoryview) -> dict[str, list[ObjectRow]]:
    """Table -> rows, from the wire bytes of a ``RunMetadata``; {} if it was saved without these tables.

    Raises:
        InvalidFileError: the tables are damaged.
    """
    text, strings, clock = b"", [], b""
    for number, capture in fields_of(memoryview(data)):
        if number != RunMetadata.CAPTURE_FIELD_NUMBER or capture is None:
            continue
        for member, content in fields_of(capture):
            if member == Capture.OTHER_TABLES_FIELD_NUMBER and content is not None:
                text = bytes(content)
            elif member == Capture.STRINGS_FIELD_NUMBER and content is not None:
                strings.append(str(content, "utf-8", "replace"))
            elif member == Capture.CLOCK_FIELD_NUMBER and content is not None:
                clock = bytes(content)
    return _parsed(text, strings, clock)


def strings_of(data: bytes | bytearray | memoryview) -> list[str]:
    """The strings of the recording in the wire bytes of a ``RunMetadata``."""
    captures = (part for number, part in fields_of(memoryview(data)) if number == RunMetadata.CAPTURE_FIELD_NUMBER)
    return [
        str(content, "utf-8", "replace")
        for capture in captures
        if capture is not None
        for member, content in fields_of(capture)
        if member == Capture.STRINGS_FIELD_NUMBER and content is not None
    ]


def _parsed(text: bytes, strings: Sequence[str], clock: bytes) -> dict[str, list[ObjectRow]]:
    if not text:
        return {}
    from collector.recording.recording import Clock  # not before: it needs numpy, and formats are listed without it

    try:
        tables = json_64_bit(text)
        times = Capture.Clock.FromString(clock)
        offset_ns = Clock(*(getattr(times, item.name) for item in fields(Clock))).offset_ns
        kept = tables.get(NUM_KEPT, {})
        own = {
            name: {column: values[: kept.get(name)] for column, values in tables[name].items()}
            for name in OBJECT_TABLES
            if name in tables
        }
        return _rows(own, strings, offset_ns)
    except (DecodeError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InvalidFileError(f"the tables of devices, contexts, streams and events are damaged ({error})") from error


def _rows(
    tables: Mapping[str, Mapping[str, list[Any]]], strings: Sequence[str], offset_ns: int
) -> dict[str, list[ObjectRow]]:
    found = {}
    for name, columns in tables.items():
        texts = [column for column in columns if text_column(column)]
        named = {column: values for column, values in columns.items() if column not in texts}
        if "start_ns" in named:
            named["start_ns"] = [start_ns + offset_ns for start_ns in named["start_ns"]]
        for column in texts:
            named[text_column(column)] = [strings[name_id] for name_id in columns[column]]
        found[name] = [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
    return found
