"""Arguments of datasets with impossible values: nothing is written, and the errors name valid values."""

from __future__ import annotations

import math

import pytest

from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

pytest.importorskip("pyarrow")

from collector.dataset import Dataset, DatasetWriter


@pytest.mark.parametrize("rank", ["x", None, math.nan, 2.5, True])
def test_a_rank_is_a_whole_number(tmp_path, rank):
    with pytest.raises(TypeError, match="rank takes a whole number, not "):
        DatasetWriter(tmp_path / "runs", rank=rank)
    with pytest.raises(ValueError, match="rank is -1: at least 0 is needed"):
        DatasetWriter(tmp_path / "runs", rank=-1)
    assert not (tmp_path / "runs").exists()


def test_names_are_texts(tmp_path, example):
    for name in ("run", "label"):
        with pytest.raises(TypeError, match=f"{name} takes text, not 3"):
            DatasetWriter(tmp_path / "runs", **{name: 3})
    with DatasetWriter(tmp_path / "runs") as writer, pytest.raises(TypeError, match="name takes text, not 3"):
        writer.write(example, name=3)


def test_a_writer_takes_recordings_with_whole_numbers(tmp_path, example):
    with DatasetWriter(tmp_path, run="a") as writer:
        for step in (3, None, Step(RecordingSource(example))):
            with pytest.raises(TypeError, match=r"a dataset takes recordings, not .*: give step\.recording"):
                writer.write(step)
        for number in ("x", math.nan, 2.5, True):
            with pytest.raises(TypeError, match="step takes a whole number, not "):
                writer.write(example, step=number)
        for number, named in ((-1, "at least 0 is needed"), (2**70, "at most ")):
            with pytest.raises(ValueError, match=named):
                writer.write(example, step=number)
        assert writer.write(example) == 0
    assert len(Dataset(tmp_path)) == 1


def test_tables_and_queries_are_named_by_texts(tmp_path, example):
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(example)
    dataset = Dataset(tmp_path)
    for name in ("kernel", 3, None, ""):
        with pytest.raises(KeyError, match=r"there is no table .*: choose from .*kernels"):
            dataset.table(name)
    with pytest.raises(TypeError, match=r"columns takes several names, not one: write \['name'\]"):
        dataset.table("kernels", columns="name")
    for option in ("rank", "step"):
        with pytest.raises(TypeError, match=f"{option} takes a whole number, not 'x'"):
            dataset.table("kernels", **{option: "x"})
    with pytest.raises(TypeError, match="query takes text, not 3"):
        dataset.sql(3)
