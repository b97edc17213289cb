"""Options that a project states in its pyproject.toml."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from collector.cli import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the pyproject.toml of a folder; a folder below that one is the working directory."""

    def state(content: str) -> Path:
        (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
        below = tmp_path / "src" / "package"
        below.mkdir(parents=True)
        monkeypatch.chdir(below)
        return tmp_path / "pyproject.toml"

    return state


@pytest.fixture
def step(build, tmp_path: Path) -> str:
    for number in range(4):
        build.kernel(f"kernel{number}", 1000 * number)
    build.recording().save(tmp_path / "step.gpurec")
    return str(tmp_path / "step.gpurec")


def stats(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["stats", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_options_are_those_of_the_project_above(project, step, capsys):
    project('[tool.collector.stats]\nquestion = ["kernels"]\nrows = 2\n')
    status, out, _ = stats(capsys, step)
    assert (status, sum(f"kernel{number}" in out for number in range(4))) == (0, 2)
    assert sum(f"kernel{number}" in stats(capsys, step, "--rows", "3")[1] for number in range(4)) == 3


def test_the_command_line_wins(project, step, capsys):
    project('[tool.collector.stats]\nquestion = "kernels"\nrows = 2\njson = true\n')
    _, out, _ = stats(capsys, step, "--question", "copies", "--rows", "1")
    (answer,) = json.loads(out)
    assert answer["question"] == "copies"


def test_an_option_that_excludes_a_stated_one_wins(project, step, capsys):
    project('[tool.collector.stats]\nquestion = "kernels"\njson = true\n')
    status, out, err = stats(capsys, step, "--csv")
    assert (status, err) == (0, "")
    names = next(csv.reader(out.splitlines()))
    assert len(names) > 2


def test_isolated_takes_nothing_of_the_project(project, step, capsys):
    project('[tool.collector.stats]\nquestion = "kernels"\njson = true\n')
    assert main(["--isolated", "stats", step, "--question", "kernels"]) == 0
    assert not capsys.readouterr().out.startswith("[")


def test_false_leaves_a_switch_off(project, step, capsys):
    project('[tool.collector.stats]\nquestion = "kernels"\njson = false\n')
    assert not stats(capsys, step)[1].startswith("[")


def test_a_project_without_a_table_is_passed_for_the_one_above_it(tmp_path, step, capsys, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.collector.stats]\nquestion = "kernels"\njson = true\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "collector-of-stamps"\n')
    monkeypatch.chdir(inner)
    assert stats(capsys, step)[1].startswith("[")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[tool.collector.stats]\nrowz = 2\n", "rowz of [tool.collector.stats]"),
        ("[tool.collector.stats]\nrowz = 2\n", "did you mean rows?"),
        ("[tool.collector.stast]\nrows = 2\n", "is no command of collector; did you mean stats?"),
        ("[tool.collector]\nstats = 2\n", "tool.collector.stats in"),
        ("[tool]\ncollector = 3\n", "is not a table"),
        ('[tool.collector.stats]\nrows = "many"\n', "rows of [tool.collector.stats]"),
        ("[tool.collector.stats]\nrows = true\n", "it takes one value"),
        ('[tool.collector.stats]\njson = "yes"\n', "it takes true or false"),
        ('[tool.collector.stats]\nby = "kernle"\n', "did you mean kernel?"),
        ("[tool.collector.stats\n", "is not valid TOML"),
    ],
)
def test_what_cannot_be_used_is_one_line_that_names_the_file(project, step, capsys, content, said):
    file = project(content)
    status, out, err = stats(capsys, step)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert str(file) in err
    assert said in err


def test_a_file_that_is_no_text_is_one_line(project, step, capsys):
    file = project("")
    file.write_bytes(b"# collector \xff\n")
    assert stats(capsys, step)[2].startswith(f"collector: {file} is not valid TOML")
