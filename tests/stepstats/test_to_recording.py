"""Recording -> .pb -> Recording: every row, column and figure comes back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from kept_tables import assert_equal
from reference.any_recording import recordings

from collector.errors import InvalidFileError
from collector.protos import RunMetadata
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.stepstats.from_recording import run_metadata, serialized, step_stats
from collector.stepstats.to_recording import annotations_of, has_recording, read_recording, recording_of


def assert_same(read: Recording, written: Recording) -> None:
    for part, expected in zip(read.parts, written.parts, strict=True):
        for table in SCHEMA:
            found, wanted = getattr(part, table).columns, getattr(expected, table).columns
            assert list(found) == list(wanted)
            for column, values in wanted.items():
                assert found[column].dtype == values.dtype
                assert np.array_equal(found[column], values), (table, column)
    assert read.strings == written.strings
    assert read.clock == written.clock
    assert read.ledger == written.ledger
    assert read.counters == written.counters
    assert read.environment == written.environment
    assert read.details == written.details


@pytest.mark.medium
@given(recordings())
def test_a_recording_comes_back_whole(recording):
    data = serialized(recording, "/job:worker/replica:0/task:3")
    read = read_recording(data)
    assert_same(read.recording, recording)
    assert read.without_columns == 0
    assert serialized(read.recording, "/job:worker/replica:0/task:3") == data


@pytest.mark.medium
@given(recordings())
def test_annotations_come_back_without_other_activities(recording):
    read = annotations_of(serialized(recording))
    assert_equal(read.annotations, recording.annotations)
    assert read.details == recording.details
    assert not any(len(getattr(read, table)) for table in (*ACTIVITY_TABLES, "api_calls"))


def test_an_empty_recording_comes_back(build):
    recording = build.recording()
    assert_same(recording_of(serialized(recording)), recording)


def test_nodes_without_columns_are_counted(build):
    metadata = run_metadata(build.launch(1, 10).kernel("k", 700, correlation_id=1).recording())
    metadata.step_stats.dev_stats[0].node_stats.add(node_name="of another program")
    metadata.step_stats.dev_stats.add(device="/gpu:1/stream:7").node_stats.add(node_name="op:kernel")
    read = read_recording(metadata.SerializeToString())
    assert read.without_columns == 2
    assert (len(read.recording.kernels), len(read.recording.api_calls)) == (1, 2)


def test_fields_of_later_versions_are_passed_over(build):
    recording = build.kernel("k", 10).recording()
    metadata = run_metadata(recording)
    for node in metadata.step_stats.dev_stats[0].node_stats:
        node.activity.MergeFromString(b"\xc0\x3e\x07")  # field 1000
    assert_same(recording_of(metadata.SerializeToString()), recording)


def with_rows(metadata: RunMetadata, columns: list[tuple[int, list[int]]]) -> bytes:
    rows = metadata.capture.rows.add(kind=metadata.step_stats.dev_stats[0].node_stats[0].activity.kind)
    for field, values in columns:
        rows.columns.add(field=field, values=values)
    return metadata.SerializeToString()


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ([(3, [1, 2]), (3, [3, 4])], "one field twice"),
        ([(3, [1, 2]), *[(4, [])] * 1000], "one field twice"),
        ([(3, [1, 2]), (4, [1])], "different lengths"),
        ([(3, [1]), (4, [1, 2])], "different lengths"),
    ],
)
def test_rows_whose_columns_contradict_each_other_are_refused(build, columns, complaint):
    metadata = run_metadata(build.kernel("k", 10).recording())
    with pytest.raises(InvalidFileError, match=complaint):
        recording_of(with_rows(metadata, columns))


@pytest.mark.medium
def test_a_few_bytes_of_a_file_do_not_become_many_in_memory(build):
    """A column of zeros takes no memory, until the last row has a value in it."""
    metadata = run_metadata(build.kernel("k", 10).recording())
    with_rows(metadata, [(3, [1] * 500_000)])
    data = with_rows(metadata, [(field, [1 << 7]) for field in range(2, 70)])
    assert len(data) < 1_000_000
    with pytest.raises(InvalidFileError, match="than the bytes of the file can hold"):
        recording_of(data)


def test_a_step_of_another_program_has_no_recording(build):
    recording = build.kernel("k", 10).recording()
    for data in (b"", step_stats(recording).SerializeToString(), RunMetadata().SerializeToString()):
        assert not has_recording(data)
        with pytest.raises(InvalidFileError, match="no columns"):
            recording_of(data)


def test_a_broken_step_is_refused(build):
    data = serialized(build.kernel("k", 10).annotation("a", 5, 100, 3, 1).recording())
    for cut in range(1, len(data), 7):
        try:
            recording_of(data[:-cut])
        except InvalidFileError:
            continue


@pytest.mark.parametrize("tables", ["[5]", '{"rows_apart": [5]}', '{"rows_apart": {"kernels": [1, 2]}}'])
def test_tables_of_another_form_are_refused(build, tables):
    metadata = run_metadata(build.kernel("k", 10).recording())
    metadata.capture.other_tables = tables
    with pytest.raises(InvalidFileError, match="the columns of the step are damaged"):
        recording_of(metadata.SerializeToString())
