"""The paths of the plugin's outputs: placeholders, and the home folder, as in the paths of ``collector.trace``."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from plugin_runs import INI, report_of, run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.simulator

SOURCE = """
def test_fails(simulated_gpu):
    simulated_gpu.launch("sgemm")
    assert False

def test_passes(simulated_gpu):
    simulated_gpu.launch("relu")
"""
OUTPUTS = ("--gpu-trace=traces", "--gpu-html=pages", "--gpu-report=out.json")


@pytest.fixture
def rank(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")


def files_below(folder: Path) -> list[str]:
    return sorted(os.fspath(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.slow)]
)
def test_each_rank_of_a_run_has_places_of_its_own(pytester, rank, workers):
    if workers:
        pytest.importorskip("xdist")
    options = ["--gpu-simulate", *(each.replace("=", "={rank}/{host}/{pid}-") for each in OUTPUTS), *workers]
    result = run(pytester, SOURCE, *options, apart=bool(workers))
    result.assert_outcomes(passed=1, failed=1)
    (folder,) = pytester.path.glob("*/*/*traces")
    assert folder.parent == pytester.path / "3" / socket.gethostname()
    process = folder.name.removesuffix("-traces")
    assert process.isdigit()
    assert files_below(folder.parent) == sorted(
        f"{process}-{name}"
        for name in (
            "out.json",
            "pages/index.html",
            "pages/test_step.py--test_fails.html",
            "pages/test_step.py--test_passes.html",
            "traces/test_step.py--test_fails.trace.json",
        )
    )
    _, tests = report_of(pytester, f"3/{socket.gethostname()}/{process}-out.json")
    assert tests["test_fails"]["trace"] == str(folder / "test_step.py--test_fails.trace.json")
    result.stdout.fnmatch_lines([f"1 trace kept in {folder}"])


@pytest.mark.slow
def test_dumps_are_in_the_folder_of_the_rank(pytester, rank):
    run(pytester, SOURCE, "--gpu-record=dumps-{rank}", "--gpu-simulate", apart=True).assert_outcomes(passed=1, failed=1)
    assert len(list((pytester.path / "dumps-3").iterdir())) == 1


@pytest.mark.slow
def test_a_dataset_has_the_rank_of_the_test_run(pytester, rank):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    for options in (("--gpu-dataset=all",), ("--gpu-dataset=of-{rank}",)):
        run(pytester, SOURCE, "--gpu-simulate", *options, apart=True).assert_outcomes(passed=1, failed=1)
    for folder in ("all", "of-3"):
        assert {key.rank for key in Dataset(pytester.path / folder).keys} == {3}
    assert not (pytester.path / "of-{rank}").exists()


def test_paths_of_the_ini_file_have_placeholders_too(pytester, rank, monkeypatch):
    monkeypatch.setenv("JOB", "night")
    run(pytester, SOURCE, "--gpu-simulate", ini=f"{INI}gpu_report = {{env:JOB}}-{{rank}}.json\n")
    assert (pytester.path / "night-3.json").is_file()


def test_the_home_folder_is_that_of_the_user(pytester, monkeypatch):
    monkeypatch.setenv("HOME", str(pytester.mkdir("home")))
    run(pytester, SOURCE, "--gpu-simulate", "--gpu-report=~/out.json")
    assert (pytester.path / "home" / "out.json").is_file()


@pytest.mark.parametrize("output", [*OUTPUTS, "--gpu-record=dumps"])
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("{rnk}", "{rnk} is not a placeholder; did you mean {rank}?"),
        ("{step}", "{step} stands for nothing here"),
        ("{env:COLLECTOR_TEST_UNSET}", "the environment variable COLLECTOR_TEST_UNSET is not set"),
    ],
)
def test_a_placeholder_without_a_value_ends_the_run_before_the_first_test(pytester, output, word, message):
    result = run(pytester, SOURCE, output.replace("=", f"={word}/"), "--gpu-simulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().count(message) == 1
    assert sorted(path.name for path in pytester.path.iterdir()) == ["pytest.ini", "test_step.py"]
