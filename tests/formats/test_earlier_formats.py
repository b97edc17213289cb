"""Files of earlier versions (`tests/data/formats/vN`, written by `scripts/write_format_files.py`) stay readable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import collector
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column

FOLDERS = sorted((Path(__file__).parent.parent / "data/formats").iterdir())


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request) -> Path:
    return request.param


@pytest.fixture(scope="module")
def expected(folder):
    return json.loads((folder / "expected.json").read_text())


def values_of(table, column):
    return table.texts(column) if text_column(column) else getattr(table, column).tolist()


def newer(column, rows):
    """The values of a column that a file was written without."""
    return ["" if text_column(column) else 0] * rows


def test_there_is_a_set_of_every_version():
    assert [folder.name for folder in FOLDERS] == [f"v{number + 1}" for number in range(len(FOLDERS))]


@pytest.mark.parametrize("table", SCHEMA)
def test_a_recording_has_every_column_it_was_written_with_and_nothing_for_newer_ones(folder, expected, table):
    recording = Recording.load(folder / "step.gpurec")
    written = expected["tables"].get(table, {})
    rows = len(next(iter(written.values()), ()))
    for column in SCHEMA[table]:
        assert values_of(getattr(recording, table), column) == written.get(column, newer(column, rows)), column
    assert set(written) <= set(SCHEMA[table])
    assert [*recording.strings, ""][: len(expected["strings"])] == expected["strings"]
    assert set(recording.strings) <= {*expected["strings"], ""}
    assert len(recording.details) == len(expected["details"])
    assert recording.ledger.record_losses() == []


@pytest.mark.parametrize("table", SCHEMA)
def test_a_journal_has_every_row_that_had_reached_it(folder, expected, table):
    recording = Recording.load(folder / "step.journal")
    written = expected["tables"].get(table, {})
    rows = expected["journal_rows"].get(table, 0)
    found = getattr(recording, table)
    assert len(found) == rows
    for column in SCHEMA[table]:
        if (table, column) != ("annotations", "end_ns"):  # those still open end with the journal
            assert values_of(found, column) == written.get(column, newer(column, rows))[:rows], column


@pytest.mark.parametrize("suffix", ["pb", "json"])
def test_a_step_has_every_node_with_its_times_and_its_label(folder, expected, suffix):
    step_stats = collector.load(folder / f"step.{suffix}").step_stats
    found = [
        [device.device, node.node_name, node.all_start_nanos, node.all_end_rel_nanos, node.timeline_label]
        for device in step_stats.dev_stats
        for node in device.node_stats
    ]
    nodes = expected["nodes"][suffix]
    if suffix == "json":  # the nodes are made of the columns of slices, whose labels state more, in another order
        found, nodes = (sorted(node[:-1] for node in each) for each in (found, nodes))
    assert found == nodes
    assert found


@pytest.mark.parametrize("suffix", ["pb", "json"])
def test_the_columns_of_a_step_are_saved_again(folder, suffix, tmp_path):
    """With the names of its threads, whose numbers these files have as text."""
    recording = collector.load(folder / f"step.{suffix}").recording
    recording.save(tmp_path / "again.pb")
    again = collector.load(tmp_path / "again.pb")
    assert again.recording.environment["thread_names"] == recording.environment["thread_names"]
    assert all(type(thread) is int for thread in recording.environment["thread_names"])
    (host,) = (device for device in again.step_stats.dev_stats if device.device == "/cpu:0")
    assert "MainThread" in host.thread_names.values()
