"""--gpu-dataset: a step in a dataset for each part of a test that used the GPU, over all runs and workers."""

from __future__ import annotations

import pytest
from plugin_runs import run

pytest.importorskip("pyarrow")

from collector.dataset import Dataset

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.simulator

TESTS = """
import pytest

@pytest.fixture
def prepared(simulated_gpu):
    simulated_gpu.launch("fill")

@pytest.mark.parametrize("name", ["sgemm", "a 'b'"])
def test_work(prepared, simulated_gpu, name):
    simulated_gpu.launch(name)
    simulated_gpu.launch(name)

def test_without_gpu():
    pass
"""


@pytest.mark.medium
@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.slow)]
)
def test_each_test_is_in_the_dataset(pytester, workers, monkeypatch):
    if workers:
        pytest.importorskip("xdist")
    for name in ("first", "second"):
        monkeypatch.setenv("COLLECTOR_RUN", name)
        result = run(pytester, TESTS, "--gpu-dataset=runs", "--gpu-simulate", *workers, apart=bool(workers))
        result.assert_outcomes(passed=3)
        result.stdout.fnmatch_lines([f"2 tests added to the dataset {pytester.path / 'runs'}"])
    dataset = Dataset(pytester.path / "runs")
    assert {key.run for key in dataset.keys} == {"first", "second"}
    assert not dataset.files.unfinished
    names = dataset.table("steps", columns=["step", "name"], run="first")
    assert sorted(names["name"].to_pylist()) == [
        "test_step.py::test_work[a 'b'] (call)",
        "test_step.py::test_work[a 'b'] (setup)",
        "test_step.py::test_work[sgemm] (call)",
        "test_step.py::test_work[sgemm] (setup)",
    ]
    kernels = dataset.table("kernels", columns=["name"], run="second")["name"].to_pylist()
    assert sorted(kernels) == ["a 'b'", "a 'b'", "fill", "fill", "sgemm", "sgemm"]


@pytest.mark.slow
def test_workers_share_a_run_that_nobody_named(pytester, monkeypatch):
    pytest.importorskip("xdist")
    for name in ("COLLECTOR_RUN", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    run(pytester, TESTS, "--gpu-dataset=runs", "--gpu-simulate", "-n", "2", apart=True).assert_outcomes(passed=3)
    assert len({key.run for key in Dataset(pytester.path / "runs").keys}) == 1


def test_a_folder_that_cannot_be_written_is_one_error(pytester):
    result = run(pytester, TESTS, "--gpu-dataset=/dev/full/runs", "--gpu-simulate")
    assert result.ret == 1
    assert result.stdout.str().count("the dataset cannot be written: cannot write to the folder /dev/full/runs") == 1
    assert "could not be added" not in result.stdout.str()


def test_a_folder_of_something_else_is_reported(pytester):
    (pytester.path / "runs").mkdir()
    (pytester.path / "runs" / "notes.txt").write_text("mine")
    result = run(pytester, TESTS, "--gpu-dataset=runs", "--gpu-simulate")
    assert result.ret == 1
    assert "runs is not a dataset, and not empty" in result.stdout.str()
    assert "tests added to the dataset" not in result.stdout.str()


def test_a_missing_package_is_one_error_before_any_test(pytester, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    result = run(pytester, TESTS, "--gpu-dataset=runs", "--gpu-simulate")
    assert result.ret == 4
    assert "pyarrow" in result.stderr.str()


def test_a_variable_that_is_not_set_ends_the_run_before_the_first_test(pytester):
    result = run(pytester, TESTS, "--gpu-dataset={env:COLLECTOR_TEST_UNSET}/runs", "--gpu-simulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the environment variable COLLECTOR_TEST_UNSET is not set*"])
