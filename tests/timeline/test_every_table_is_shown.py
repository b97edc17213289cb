"""Every table of a recording has slices in every drawn file, or is named here with the place that shows its rows."""

from __future__ import annotations

import json

import pytest
from support.xspaces import xspace

from collector.formats.loading import load
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.schema import SCHEMA
from collector.stepstats.from_recording import run_metadata
from collector.stepstats.shown_tables import SIDE_TABLES, TABLE_ARGUMENTS
from collector.stepstats.typed_columns import NODE_COLUMNS

WITHOUT_SLICES = {
    "external_correlations": "links of calls with annotations: the argument `op` of what the calls launched",
    "contexts": "objects: metadata of the file",
    "streams": "objects: labels of the streams' tracks, and metadata of the file",
    "devices": "objects: labels of the GPUs' processes, and metadata of the file",
    "cuda_events": "objects: the ends of the arrows of waits, and metadata of the file",
    "graph_changes": "the history of graphs, by which the annotations at the capture of their nodes are found",
    "collectives": "further arguments of kernels",
    "counter_samples": "counters",
}
"""Table -> why no slice shows its rows. A table of activities has no place here."""
ARGUMENTS_IN_CODE = {"nvtx_ranges", "overheads", "synchronizations"}
"""Tables with devices of their own whose arguments depend on several columns: `native/draw/typed_arguments.cpp`."""
WITHOUT_ARGUMENT = {
    ("graph_launches", "device_id"): "the device of the slice",
    ("graph_launches", "end_device_id"): "that of the last node, which nearly always is the same",
}
"""Column that no argument shows -> why."""
NAME = "the name of the row"
FILES = ("json", "pftrace", "pb")


@pytest.fixture
def drawn(build, start_ns, tmp_path):
    """Draws the recording of a kernel and, beside it, a row of a table.

    The result are the names of the slices, the bytes of the files, and the number of events in a profile.
    """

    def draw(table=""):
        if table:
            values = {"start_ns": start_ns + 50_000, "end_ns": start_ns + 50_700, "name_id": build.text(NAME)}
            build.raw(table, **{name: value for name, value in values.items() if name in SCHEMA[table]})
        recording = build.recording()
        files = {suffix: tmp_path / f"with_{table}.{suffix}" for suffix in FILES}
        for path in files.values():
            Step(RecordingSource(recording)).save(path)
        slices = [event["name"] for event in json.loads(files["json"].read_text())["traceEvents"] if event["ph"] == "X"]
        lines = [line for plane in xspace(run_metadata(recording)).planes for line in plane.lines]
        return slices, files, sum(len(line.events) for line in lines)

    build.launch(1, 1000).kernel("k", 5000, correlation_id=1)
    return draw


@pytest.mark.parametrize("table", sorted(SCHEMA.keys() - WITHOUT_SLICES.keys()))
def test_a_row_is_a_slice_in_every_drawn_file(drawn, table):
    without, files_without, events_without = drawn()
    slices, files, num_events = drawn(table)
    added = [name for name in slices if name not in without]
    assert added, f"no slice shows the rows of {table}: docs/architecture.md, Add a record kind"
    shown = added[0].encode()
    assert files["pftrace"].read_bytes().count(shown) > files_without["pftrace"].read_bytes().count(shown)
    assert num_events > events_without
    with_row, without_row = (getattr(load(each["json"]).recording, table) for each in (files, files_without))
    assert len(with_row) > len(without_row)


@pytest.mark.parametrize("table", WITHOUT_SLICES)
def test_a_table_that_is_shown_otherwise_has_no_slices(drawn, table):
    without, *_ = drawn()
    slices, *_ = drawn(table)
    assert slices == without


def test_a_description_of_arguments_has_every_column():
    assert SIDE_TABLES.keys() - TABLE_ARGUMENTS.keys() == ARGUMENTS_IN_CODE
    hidden = set()
    for table, arguments in TABLE_ARGUMENTS.items():
        shown = {*NODE_COLUMNS[table], *(argument.column for argument in arguments)}
        if table in SIDE_TABLES:
            shown.add(SIDE_TABLES[table].name)
        hidden |= {(table, column) for column in SCHEMA[table].keys() - shown}
    assert hidden == WITHOUT_ARGUMENT.keys()
