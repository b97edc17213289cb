"""Rows and tables of a recording as people use them: names, durations and annotations beside the columns."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import collector
from collector.recording.recording import Recording


@pytest.fixture
def recording(build):
    """Two kernels, one under an annotation, a copy and an operation without an end."""
    build.launch(5, 1000).kernel("_Z3addIfEvPT_i", 2000, 100, correlation_id=5).annotation("conv", 500, 4000, 3, 5)
    build.kernel("relu", 9000, 300).memcpy(12_000, 50)
    return build.recording()


def test_a_row_has_a_name_a_duration_and_an_annotation(recording):
    first, second = recording.kernels
    assert (first.name, first.duration_ns, first.annotation) == ("add<float>", 100, "conv")
    assert (second.name, second.duration_ns, second.annotation) == ("relu", 300, "")
    assert recording.kernels[-1].name == "relu"
    assert recording.memcpys[0].duration_ns == 50
    assert not hasattr(recording.memcpys[0], "name")
    assert recording.annotations[0].name == "conv"


def test_a_row_is_the_tuple_of_its_columns(recording):
    row = recording.kernels[0]
    assert row._fields == tuple(recording.kernels.columns)
    assert row == tuple(values[0] for values in recording.kernels.columns.values())
    assert repr(row).startswith("Kernel(start_ns=")


def test_rows_are_pickled_with_what_they_have_beside(recording):
    for row in (recording.kernels[0], *recording.kernels):
        back = pickle.loads(pickle.dumps(row))
        assert back == row
        assert type(back) is type(row)
        assert (back.name, back.duration_ns, back.annotation) == (row.name, row.duration_ns, row.annotation)


def test_a_pickled_table_knows_its_annotations_and_holds_no_others(recording):
    back = pickle.loads(pickle.dumps(recording.kernels[1:]))
    assert back["annotation"].tolist() == [""]
    assert pickle.loads(pickle.dumps(recording.kernels))[:1]["annotation"].tolist() == ["conv"]
    assert pickle.loads(pickle.dumps(recording)).kernels["annotation"].tolist() == ["conv", ""]


def test_columns_by_name(recording):
    kernels = recording.kernels
    assert kernels["duration_ns"].tolist() == [100, 300]
    assert kernels["start_ns"] is kernels.start_ns
    assert kernels["name"].tolist() == ["add<float>", "relu"]
    assert kernels["annotation"].tolist() == ["conv", ""]
    assert kernels[kernels["duration_ns"] > 100]["name"].tolist() == ["relu"]


@pytest.mark.parametrize(
    ("table", "column"), [("kernels", "length"), ("memcpys", "name"), ("annotations", "annotation")]
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(recording, table, column):
    with pytest.raises(KeyError, match=rf"table {table} has no column '{column}': .*start_ns.*duration_ns"):
        getattr(recording, table)[column]


def test_parts_of_a_recording_know_their_annotations(recording, tmp_path):
    assert recording.between(0).kernels["annotation"].tolist() == ["conv", ""]
    recording.save(tmp_path / "step.gpurec")
    assert Recording.load(tmp_path / "step.gpurec").kernels["annotation"].tolist() == ["conv", ""]


def test_a_table_outlives_its_recording(build):
    build.launch(5, 1000).kernel("k", 2000, correlation_id=5).annotation("conv", 500, 4000, 3, 5)
    assert build.recording().kernels["annotation"].tolist() == ["conv"]


def test_arrow_and_pandas_have_the_same_columns(recording):
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    for name, frame in recording.to_pandas().items():
        arrow = recording.to_arrow()[name]
        assert list(frame.columns) == arrow.column_names
        for column in arrow.column_names:
            assert frame[column].tolist() == arrow[column].to_pylist(), (name, column)
    kernels = recording.kernels.to_pandas()
    assert kernels["name"].tolist() == ["add<float>", "relu"]
    assert kernels["demangled_name"].tolist()[0] == "void add<float>(float*, int)"
    assert kernels["annotation"].tolist() == ["conv", ""]
    assert kernels.groupby("annotation", observed=True)["duration_ns"].sum().to_dict() == {"conv": 100, "": 300}
    assert str(kernels["name"].dtype) == "category"


def test_empty_tables_have_the_columns_of_others(build, recording):
    pytest.importorskip("pandas")
    assert list(build.recording().kernels[:0].to_pandas().columns) == list(recording.kernels.to_pandas().columns)


def test_libraries_that_take_arrow_s_stream_take_a_table(recording):
    pa = pytest.importorskip("pyarrow")
    if not hasattr(pa.RecordBatchReader, "from_stream"):
        pytest.skip("this pyarrow does not read Arrow's stream")
    assert pa.RecordBatchReader.from_stream(recording.kernels).read_all()["duration_ns"].to_pylist() == [100, 300]


def test_polars(recording):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = polars.DataFrame(recording.kernels)
    assert frame["name"].to_list() == ["add<float>", "relu"]
    assert frame["annotation"].to_list() == ["conv", ""]


@pytest.mark.parametrize(("method", "package"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas")])
def test_what_is_not_installed_is_named_with_its_remedy(recording, monkeypatch, method, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(collector.MissingDependencyError, match=rf"^{package} is not installed\. Run: pip install "):
        getattr(recording, method)()


def test_columns_stay_read_only(recording):
    with pytest.raises(ValueError, match="read-only"):
        recording.kernels["start_ns"][0] = 1
    assert isinstance(recording.kernels["duration_ns"], np.ndarray)
