"""Checks that a table of a recording reaches files and Arrow unchanged."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from collector.errors import InvalidFileError
from collector.recording.recording import Recording
from collector.recording.table import Table
from collector.recording.text_columns import text_column


def assert_equal(found: Table, expected: Table) -> None:
    """All columns are equal, with names as text."""
    assert list(found.columns) == list(expected.columns)
    for column, values in expected.columns.items():
        if text_column(column):
            assert found.texts(column) == expected.texts(column)
        else:
            np.testing.assert_array_equal(getattr(found, column), values, column)


def assert_kept(recording: Recording, table: str, folder: Path) -> None:
    """The table is the same in a `.gpurec`, and in `to_arrow()` where pyarrow is installed."""
    recording.save(folder / "kept.gpurec")
    expected = getattr(recording, table)
    assert_equal(getattr(Recording.load(folder / "kept.gpurec"), table), expected)
    assert getattr(recording.ledger, table) == len(expected) > 0
    pytest.importorskip("pyarrow")
    arrow = recording.to_arrow()[table]
    for column, values in expected.columns.items():
        if column == "name_id":
            assert arrow.column("name").to_pylist() == expected.names()
        elif texts := text_column(column):
            assert arrow.column(texts).to_pylist() == expected.texts(column)
        else:
            assert arrow.column(column).to_pylist() == values.tolist()


def journal_with(path: Path, table: str, rows: int, copy: Path) -> Recording:
    """The journal of an open step once it has that many rows of a table; the test's time limit ends the wait."""
    while True:
        copy.write_bytes(path.read_bytes())
        try:
            recording = Recording.load(copy)
        except InvalidFileError:  # its first frame is being written
            continue
        if len(getattr(recording, table)) >= rows:
            return recording
        time.sleep(0.01)
