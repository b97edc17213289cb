"""Wire bytes -> Recording: the columns of the activities in a step that this project wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from collector.errors import InvalidFileError
from collector.protos import Capture, Provenance, RunMetadata
from collector.recording.launch_figures import LAUNCH_FIGURES
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_KINDS, LATER_COLUMNS, SCHEMA
from collector.runtime.extension import convert_extension
from collector.stepstats.environment_texts import environment_of
from collector.stepstats.object_tables import ROWS_APART
from collector.stepstats.typed_columns import read_tables, wanted_tables
from collector.stepstats.wire import fields_of, is_run_metadata, provenance_of
from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from collector.recording.capture import Capture as RecordedCapture

_TABLES = [table for table in SCHEMA if table in ACTIVITY_KINDS]


@dataclass(frozen=True)
class ReadRecording:
    """A recording read from a step, and the number of nodes without columns."""

    recording: Recording
    without_columns: int
    """Nodes that have no columns and therefore no rows: TensorFlow's nodes, or nodes that others added to the step."""


def has_recording(data: bytes | bytearray | memoryview) -> bool:
    """Whether wire bytes are those of a step from which a recording can be read."""
    if not is_run_metadata(data):
        return False
    return any(number == RunMetadata.CAPTURE_FIELD_NUMBER for number, _ in fields_of(memoryview(data)))


def recording_of(data: bytes | bytearray | memoryview) -> Recording:
    """The recording in the wire bytes of one of our ``RunMetadata``: all its original rows and columns.

    Raises:
        InvalidFileError: the bytes are damaged, or contain no recording because they are TensorFlow's or too old.
    """
    return read_recording(data).recording


def annotations_of(data: bytes | bytearray | memoryview) -> Recording:
    """Like `recording_of`, but of the rows of activities only those of annotations are read.

    Raises:
        InvalidFileError: see `recording_of`.
    """
    return read_recording(data, ("annotations",)).recording


def read_recording(data: bytes | bytearray | memoryview, tables: Collection[str] = _TABLES) -> ReadRecording:
    """Like `recording_of`, but also counts the nodes that the recording lacks.

    Args:
        data: the wire bytes.
        tables: the tables of activities that are read; the others are empty.
    """
    if not has_recording(data):
        raise InvalidFileError("the step has no columns of a recording: another program wrote it, or an older version")
    provenance = provenance_of(data) or Provenance()
    try:
        values, rest, without = convert_extension.read_activities(
            data, is_run_metadata=True, offset_ns=provenance.clock_offset_nanos, tables=wanted_tables(tables)
        )
        capture = Capture.FromString(rest)
        others = json_64_bit(capture.other_tables) if capture.other_tables else {}
        given: RecordedCapture = {
            "tables": read_tables(tables, values)
            | _other_tables(others)
            | {table: _no_rows(table) for table in _TABLES if table not in tables},
            "strings": list(capture.strings),
            "counters": {
                **_counters(capture, provenance.ledger),
                **({"nodes_without_columns": without} if without else {}),
            },
            "clock": {name: getattr(capture.clock, name) for name in capture.clock.DESCRIPTOR.fields_by_name},
            "environment": environment_of(
                provenance.environment, {*provenance.json_environment, *capture.json_environment}
            ),
            "details": json_64_bit(capture.details) if capture.details else [],
        }
        if provenance.ledger.keys() >= set(LAUNCH_FIGURES):  # rows of a part, or of a drawn trace, do not tell them
            given["launch_figures"] = {name: provenance.ledger[name] for name in LAUNCH_FIGURES}
        if ROWS_APART in others:
            given["rows_apart"] = others[ROWS_APART]
        recording = Recording.from_capture(given)
    except convert_extension.WireError as error:
        raise InvalidFileError(f"not a whole step: {error.args[0]}") from error
    except (DecodeError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InvalidFileError(f"the columns of the step are damaged ({error})") from error
    return ReadRecording(recording, without)


def _no_rows(table: str) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    return {column: np.zeros(0, dtype) for column, dtype in SCHEMA[table].items()}


def _other_tables(tables: Mapping[str, Any]) -> dict[str, dict[str, np.ndarray[Any, np.dtype[Any]]]]:
    """The tables whose rows are not activities."""
    return {
        name: {
            column: np.array(tables.get(name, {}).get(column, []), dtype)
            for column, dtype in columns.items()
            if column in tables.get(name, {}) or (name, column) not in LATER_COLUMNS
        }
        for name, columns in SCHEMA.items()
        if name not in ACTIVITY_KINDS
    }


def _counters(capture: Capture, ledger: Mapping[str, int]) -> dict[str, int]:
    figures = sorted(ledger.items())
    return {**capture.counters, **dict(figures[place] for place in capture.ledger_counters)}
