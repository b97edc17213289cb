"""The rank of a process, as each launcher states it."""

from __future__ import annotations

from pathlib import Path

import pytest
from captures import FakeSource

import collector
from collector.errors import CollectorWarning
from collector.formats.output_paths import file_of_this_process, filled_path
from collector.runtime.launcher_ranks import RANK_VARIABLES, has_other_ranks, launched_rank, launched_world_size


@pytest.mark.parametrize(
    ("environment", "rank", "world_size", "others"),
    [
        ({}, None, None, False),
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3, 8, True),
        ({"RANK": "0", "WORLD_SIZE": "1"}, 0, 1, False),
        ({"RANK": "3"}, 3, None, False),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, 2, 4, True),
        ({"MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_SIZE": "4"}, 2, 4, True),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, 2, 4, True),
        ({"PMIX_RANK": "2"}, 2, None, True),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}, 2, 4, True),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, 0, None, False),  # a batch script
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "RANK": "9", "WORLD_SIZE": "16"}, 9, 16, True),
        ({"LOCAL_RANK": "1"}, None, None, False),
        ({"RANK": "first", "WORLD_SIZE": "-1"}, None, None, False),
    ],
    ids=str,
)
def test_each_launcher(environment, rank, world_size, others):
    assert launched_rank(environment) == rank
    assert launched_world_size(environment) == world_size
    assert has_other_ranks(environment) is others


@pytest.fixture
def launched(monkeypatch):
    """Sets variables where no launcher has set any."""
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def launch(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return launch


def test_each_rank_of_an_mpi_job_writes_its_own_file(launched, example, tmp_path):
    launched(OMPI_COMM_WORLD_RANK="2", OMPI_COMM_WORLD_SIZE="4")
    with (
        pytest.warns(CollectorWarning, match=r"this is rank 2 of 4: it writes .*step\.rank2\.json"),
        collector.trace(tmp_path / "step.json", source=FakeSource(example.to_capture())) as step,
    ):
        pass
    assert step.path == tmp_path / "step.rank2.json"
    assert [path.name for path in tmp_path.iterdir()] == ["step.rank2.json"]


def test_a_rank_among_an_unknown_number(launched):
    launched(PMIX_RANK="5")
    path, reason = file_of_this_process(Path("step.json"), None)
    assert path == Path("step.rank5.json")
    assert reason.startswith("this is rank 5: ")
    assert filled_path(Path("{rank}.json"), None) == Path("5.json")
