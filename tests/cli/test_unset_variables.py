"""A path that names a variable of the environment which is not set: found before the program, not after it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import collector
from collector.cli import main
from collector.errors import CollectorWarning, OutputError
from collector.testing import SimulatedGpu

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
UNSET = "the environment variable COLLECTOR_TEST_UNSET is not set. Set it, or remove it from the path"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLLECTOR_TEST_UNSET", raising=False)


@pytest.mark.parametrize("output", ["x-{env:COLLECTOR_TEST_UNSET}.pb", "{env:COLLECTOR_TEST_UNSET}/"])
def test_run_does_not_start_the_program(output, tmp_path, capsys):
    program = f"open({str(tmp_path / 'ran')!r}, 'w')"
    assert main(["run", "-o", output, sys.executable, "-c", program]) == 2
    assert capsys.readouterr().err.endswith(f"{UNSET}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
@pytest.mark.parametrize("variable", ["RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_PROCID"])
def test_run_leaves_variables_of_launchers_to_them(variable, tmp_path, monkeypatch):
    monkeypatch.delenv(variable, raising=False)
    program = f"open({str(tmp_path / 'ran')!r}, 'w')"
    assert main(["run", "-o", f"x-{{env:{variable}}}.pb", sys.executable, "-c", program]) == 0
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["bench", str(EXAMPLES / "bench_saxpy.py"), "--dataset", "{env:COLLECTOR_TEST_UNSET}"],
        ["export", "absent.pb", "--to", "parquet", "{env:COLLECTOR_TEST_UNSET}"],
    ],
    ids=lambda words: words[0],
)
def test_other_commands_do_nothing_first(words, tmp_path, capsys):
    assert main(words) == 2
    assert capsys.readouterr() == ("", f"collector: {{env:COLLECTOR_TEST_UNSET}}: {UNSET}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.simulator
def test_a_session_warns_at_its_begin_and_once():
    session = collector.trace(dataset="{env:COLLECTOR_TEST_UNSET}")
    with SimulatedGpu(cuda="12.4"):
        with pytest.warns(CollectorWarning, match="the step will not be in the dataset: .*UNSET is not set"):
            session.start()
        session.stop()  # where a warning would be an error


@pytest.mark.simulator
def test_a_strict_session_raises_before_the_body():
    with SimulatedGpu(cuda="12.4"), pytest.raises(OutputError, match="UNSET is not set"):
        collector.trace(dataset="{env:COLLECTOR_TEST_UNSET}", strict=True).start()


@pytest.mark.medium
@pytest.mark.simulator
def test_a_recorder_puts_dumps_into_the_folder_that_it_has_without_a_name(tmp_path):
    with SimulatedGpu(cuda="12.4") as gpu:
        with pytest.warns(CollectorWarning, match="dumps are put into collector-dumps: .*UNSET is not set"):
            recorder = collector.record(folder="{env:COLLECTOR_TEST_UNSET}/dumps")
        with recorder:
            gpu.launch("relu", stream=7, duration_ns=3_000)
            dump = recorder.dump()
            with pytest.warns(CollectorWarning, match="nothing is dumped: .*UNSET is not set"):
                assert recorder.dump("{env:COLLECTOR_TEST_UNSET}.pftrace") is None
    assert dump.path.parent == tmp_path / "collector-dumps"
    assert [each.name for each in tmp_path.iterdir()] == ["collector-dumps"]


@pytest.mark.medium
@pytest.mark.simulator
def test_the_paths_of_a_recorder_take_placeholders(tmp_path, monkeypatch):
    monkeypatch.setenv("COLLECTOR_TEST_UNSET", "night")
    folder = "{env:COLLECTOR_TEST_UNSET}-{rank}"
    with SimulatedGpu(cuda="12.4") as gpu, collector.record(folder=folder) as recorder:
        gpu.launch("relu", stream=7, duration_ns=3_000)
        assert recorder.dump().path.parent == tmp_path / "night-0"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-o", "x-{i}.pb", sys.executable, "-c", "open('ran', 'w')"],
        ["run", "-o", "runs-{i}/", sys.executable, "-c", "open('ran', 'w')"],
        ["bench", str(EXAMPLES / "bench_saxpy.py"), "--dataset", "runs-{i}"],
        ["export", "absent.pb", "--to", "parquet", "runs-{i}"],
    ],
    ids=["run", "run_dataset", "bench", "export"],
)
def test_a_word_that_nothing_replaces_is_refused_before_anything_is_done(words, tmp_path, capsys):
    assert main(words) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert (
        "{i} is not a placeholder. Write {rank}, {pid}, {host}, {step} or {env:VARIABLE}, or remove the braces" in said
    )
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_of_many_steps_is_not_named_after_one(tmp_path, capsys):
    assert main(["run", "-o", "runs-{step}/", sys.executable, "-c", "open('ran', 'w')"]) == 2
    assert "runs-{step}: {step} stands for nothing here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["ndjson", "sqlite", "parquet"])
def test_every_kind_of_export_fills_in_the_folder(kind, tmp_path, monkeypatch, example, capsys):
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("COLLECTOR_TEST_UNSET", "night")
    example.save(tmp_path / "step.gpurec")
    assert main(["export", "step.gpurec", "--to", kind, "{env:COLLECTOR_TEST_UNSET}"]) == 0
    assert capsys.readouterr().out == "night: 1 step added\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["night", "step.gpurec"]


@pytest.mark.parametrize(
    ("variable", "words", "run"),
    [("night", [], "night"), ("night", ["--run", "day"], "day"), ("none", [], None), ("", [], None)],
)
def test_an_export_names_its_run_as_the_variable_of_all_datasets_does(
    variable, words, run, tmp_path, monkeypatch, example
):
    """The error about a run that has the step already gives this advice."""
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("COLLECTOR_RUN", variable)
    example.save(tmp_path / "step.gpurec")
    assert main(["export", "step.gpurec", "--to", "parquet", "runs", *words]) == 0
    [made] = (tmp_path / "runs" / "steps").iterdir()
    assert made.name == f"run={run}" if run else re.fullmatch(r"run=\d{8}T\d{6}Z", made.name)
