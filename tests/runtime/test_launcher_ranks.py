"""The rank of a process, as each launcher states it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from captures import FakeSource

import collector
from collector.errors import CollectorWarning
from collector.formats.output_paths import file_of_this_process, filled_path
from collector.runtime.launcher_ranks import LAUNCHER_VARIABLES, has_other_ranks, launched_rank, launched_world_size


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
    for name in LAUNCHER_VARIABLES:
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


AT_ONCE = """
import sys, time, warnings
import collector
from collector.testing import SimulatedGpu
warnings.simplefilter("ignore")
with SimulatedGpu() as gpu, collector.trace("step.json") as step:
    gpu.launch(sys.argv[1])
    gpu.synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
print(step.path)
"""


@pytest.mark.simulator
@pytest.mark.slow
def test_processes_without_ranks_that_end_together_write_different_files(tmp_path):
    """They were all started before one of them wrote, and the file system can store who did."""
    try:
        os.setxattr(tmp_path, "user.collector.test", b"")
    except OSError:
        pytest.skip("PROCESSES THAT END TOGETHER NOT TESTED: the file system stores no attributes")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, f"kernel{number}"],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES},
        )
        for number in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    paths = [process.communicate()[0].strip() for process in processes]
    assert len(set(paths)) == 6
    found = [collector.load(tmp_path / path).recording.kernels[0].name for path in paths]
    assert found == [f"kernel{number}" for number in range(6)]
