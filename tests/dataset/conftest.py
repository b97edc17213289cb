"""Datasets of the worked example and of recorded traces."""

from __future__ import annotations

import shutil

import pytest
from captures import CaptureBuilder, worked_example

import collector


@pytest.fixture(scope="session")
def example_runs(tmp_path_factory):
    """The folder of the worked example as steps 0 and 1 of two ranks, written once."""
    pytest.importorskip("pyarrow")
    from collector.dataset import DatasetWriter

    folder = tmp_path_factory.mktemp("example") / "runs"
    example = worked_example(CaptureBuilder()).recording()
    for rank in (0, 1):
        with DatasetWriter(folder, run="a", rank=rank) as writer:
            writer.write(example)
            writer.write(example)
    return folder


@pytest.fixture
def example_dataset(example_runs, tmp_path):
    """A copy of `example_runs` that a test may change."""
    from collector.dataset import Dataset

    return Dataset(shutil.copytree(example_runs, tmp_path / "runs"))


@pytest.fixture(scope="session")
def recorded_traces(shared):
    """Five recorded traces whose idle times are known: graphs, orphans, two nodes, memory, one GPU."""
    folder = shared / "data" / "gpu_traces"
    names = (
        "hta/v100_rank1of2_diff_test_graphs.json.gz",
        "hta/a100_rank0of16_orphan_kernels.json.gz",
        "hta/a100_rank0of2_nccl_metadata.json.gz",
        "hta/v100_rank1of2_profile_memory.json.gz",
        "torch_tutorial/h100_transformer_before.json.gz",
    )
    return [collector.load(folder / name) for name in names]
