"""Recording -> each format -> recording: what the documentation says that the format keeps comes back."""

from __future__ import annotations

import pickle
import re
from collections import Counter

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from kept_tables import assert_equal
from reference.any_recording import recordings
from support.properties import examples

from collector.formats.loading import load
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.kernel_names import demangle
from collector.recording.launch_figures import LAUNCH_FIGURES
from collector.recording.recording import SET_APART
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.recording.text_columns import text_column
from collector.stepstats.object_tables import OBJECT_TABLES

WHOLE = ("gpurec", "pb", "pbtxt", "pickle")
"""The forms that hold every row and every column."""
DRAWN = ("json", "json.gz", "xplane.pb")


def steps(max_rows=4):
    """Recordings, what is stated of their steps, and the prefix of the names of their devices."""
    ranks = st.one_of(st.none(), st.integers(0, 1 << 20))
    return st.tuples(recordings(max_rows), ranks, ranks, st.sampled_from(["", "/job:worker/replica:0/task:3"]))


def converted(given, folder, suffix):
    recording, rank, world_size, prefix = given
    if suffix == "pickle":
        recording = pickle.loads(pickle.dumps(recording))
    step = Step(RecordingSource(recording, prefix), rank=rank, world_size=world_size or None)
    if suffix == "pickle":
        return step
    step.save(folder / f"step.{suffix}")
    return load(folder / f"step.{suffix}")


def assert_stated_alike(found, given):
    """What is stated of a step besides its rows."""
    recording, rank, world_size, _ = given
    assert (found.rank, found.world_size) == (rank, world_size or None)
    assert found.recording.clock.window_ns == recording.clock.window_ns
    assert set(recording.ledger.losses()) <= set(found.recording.ledger.losses())
    figures, stated = found.recording.ledger.as_dict(), recording.ledger.as_dict()
    for figure in (*LAUNCH_FIGURES, *SET_APART, *recording.ledger.source_counters):
        assert figures.get(figure) == stated[figure], figure


@pytest.mark.medium
@pytest.mark.parametrize("suffix", WHOLE)
@settings(max_examples=examples(40))
@given(step=steps())
def test_every_row_and_figure_comes_back(tmp_path_factory, suffix, step):
    found = converted(step, tmp_path_factory.mktemp("whole"), suffix)
    assert_stated_alike(found, step)
    read, recording = found.recording, step[0]
    for part, expected in zip(read.parts, recording.parts, strict=True):
        for table in SCHEMA:
            assert_equal(getattr(part, table), getattr(expected, table))
    assert read.ledger == recording.ledger
    assert read.clock == recording.clock
    assert dict(read.environment) == dict(recording.environment)
    assert [read.details[number - 1] for number in read.annotations.details_id if number] == [
        recording.details[number - 1] for number in recording.annotations.details_id if number
    ]
    for table in ACTIVITY_TABLES:
        assert read.annotations_of(getattr(read, table)) == recording.annotations_of(getattr(recording, table))


def work_of(recording):
    """The GPU work of a step as every drawn format has it: names, places, times and ops."""
    found = Counter()
    offset_ns = recording.clock.offset_ns
    for table in ACTIVITY_TABLES:
        rows = getattr(recording, table)
        names = [named(name) for name in rows.recorded_names()] if table == "kernels" else [table] * len(rows)
        for row, name, op in zip(rows, names, recording.annotations_of(rows), strict=True):
            found[
                table, name, spelled(op), row.device_id, row.stream_id, row.start_ns + offset_ns, row.duration_ns
            ] += 1
    return found


def host_of(recording):
    """The times and threads of ops and of calls."""
    offset_ns = recording.clock.offset_ns
    return Counter(
        (table, row.start_ns + offset_ns, row.duration_ns, row.thread_id)
        for table in ("annotations", "api_calls")
        for row in getattr(recording, table)
    )


def named(kernel):
    """The whole name of a kernel; a label keeps no two ``@`` together."""
    return demangle(kernel).replace("@ @", "@@")


def spelled(op):
    """An op as ``op:kernel`` has it."""
    return re.sub(":+", ".", op)


def objects_of(recording):
    """The rows of the tables that a drawn trace has in its metadata, with wall times; impossible sizes are 0."""
    found = Counter()
    for table in OBJECT_TABLES:
        rows = getattr(recording, table)
        columns = []
        for column, values in rows.columns.items():
            offset_ns = recording.clock.offset_ns if column == "start_ns" else 0
            numbers = [value + offset_ns if value < 1 << 63 else 0 for value in values.tolist()]
            columns.append(rows.texts(column) if text_column(column) else numbers)
        found.update((table, *row) for row in zip(*columns, strict=True))
    return found


@pytest.mark.medium
@pytest.mark.parametrize("suffix", DRAWN)
@settings(max_examples=examples(40))
@given(step=steps())
def test_a_drawn_step_has_its_work_and_what_is_stated_of_it(tmp_path_factory, suffix, step):
    found = converted(step, tmp_path_factory.mktemp("drawn"), suffix)
    assert_stated_alike(found, step)
    assert work_of(found.recording) == work_of(step[0])
    assert host_of(found.recording) == host_of(step[0])
    if "json" in suffix:
        assert dict(found.recording.environment) == {**step[0].environment, "simulated": False}
        assert objects_of(found.recording) == objects_of(step[0])
