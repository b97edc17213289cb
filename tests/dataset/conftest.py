"""Datasets of the worked example and of recorded traces."""

from __future__ import annotations

import pytest

import collector


@pytest.fixture
def example_dataset(example, tmp_path):
    """The worked example as steps 0 and 1 of two ranks."""
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset, DatasetWriter

    for rank in (0, 1):
        with DatasetWriter(tmp_path / "runs", run="a", rank=rank) as writer:
            writer.write(example)
            writer.write(example)
    return Dataset(tmp_path / "runs")


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
