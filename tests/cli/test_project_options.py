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
        ("[tool.collector.stats]\nrowz = 2\n", "did you mean rows? See `collector stats --help`"),
        (
            "[tool.collector.stast]\nrows = 2\n",
            "pyproject.toml has a table [tool.collector.stast], but collector has no command `stast`. "
            "Did you mean `stats`?",
        ),
        ("[tool.collector.quux]\nrows = 2\n", "but collector has no command `quux`. `collector --help` lists"),
        ("[tool.collector]\nrows = 2\n", "is not a table. Write [tool.collector.COMMAND] with options below it"),
        ("[tool.collector]\nstats = 2\n", "tool.collector.stats in"),
        ("[tool]\ncollector = 3\n", "is not a table"),
        ('[tool.collector.stats]\nrows = "many"\n', "rows of [tool.collector.stats]"),
        ("[tool.collector.stats]\nrows = -1\n", "'-1' is neither a number from 1 on nor 'all'"),
        ("[tool.collector.stats]\nrows = true\n", "it takes one value"),
        ("[tool.collector.stats]\njson = true\ncsv = true\n", "json and csv of [tool.collector.stats] in"),
        ("[tool.collector.stats]\nisolated = true\n", "isolated of [tool.collector.stats]"),
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
    file.write_bytes(b"# tool.collector \xff\n")
    assert stats(capsys, step)[2].startswith(f"collector: {file} is not valid TOML")


FAULTY = "[tool.collector.stats]\nrowz = 2\n"


def test_options_that_exclude_each_other_may_both_be_named(project, step, capsys):
    project('[tool.collector.stats]\nquestion = "kernels"\njson = true\ncsv = false\n')
    status, out, _ = stats(capsys, step)
    assert (status, out[:1]) == (0, "[")


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("content", [FAULTY, "[tool.collector.stast]\n", "[tool.collector\n"])
def test_a_faulty_table_leaves_help_alone(project, capsys, content, option):
    project(content)
    with pytest.raises(SystemExit) as end:
        main(["stats", option])
    printed = capsys.readouterr()
    assert (end.value.code, printed.err) == (0, "")
    assert printed.out.startswith("usage: collector stats")
    assert "--question NAME" in printed.out
    assert " FILE [FILE ...]\n\n" in printed.out


def test_help_of_the_program_to_run_is_the_programs(project, capfd):
    project("[tool.collector.run]\nqiet = true\n")
    assert main(["run", "sh", "-c", "exit 0", "--help"]) == 2
    assert "did you mean quiet?" in capfd.readouterr().err


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("content", ["", FAULTY, "[tool.collector\n"])
def test_isolated_may_be_anywhere_before_the_program_to_run(project, step, capsys, content, place):
    project(content)
    words = ["stats", step]
    words.insert(place, "--isolated")
    assert main(words) == 0
    assert "kernel0" in capsys.readouterr().out


def test_isolated_after_the_program_to_run_is_the_programs(project, capfd):
    project("[tool.collector.run]\nqiet = true\n")
    assert main(["run", "sh", "-c", "exit 0", "--isolated"]) == 2
    assert main(["run", "--isolated", "-q", "sh", "-c", "exit 5"]) == 5


def test_a_broken_file_that_states_no_options_is_no_business_of_ours(project, step, capsys):
    project('[project]\ndescription = "a collector of stamps\n')
    status, _, err = stats(capsys, step)
    assert (status, err) == (0, "")


@pytest.mark.parametrize("content", [FAULTY.replace("stats", "info"), "[tool.collector\n"])
def test_info_warns_of_a_faulty_table_and_works(project, capsys, content):
    file = project(content)
    assert main(["info"]) in (0, 1)
    printed = capsys.readouterr()
    assert "collector: " in printed.out
    assert str(file) in printed.err
    assert len(printed.err.splitlines()) == 1


def test_completion_warns_of_a_faulty_table_and_works(project, capsys):
    pytest.importorskip("shtab")
    project("[tool.collector\n")
    assert main(["completion", "bash"]) == 0
    assert "_shtab_collector" in capsys.readouterr().out


def test_a_deleted_working_directory_has_no_options(step, capsys, tmp_path, monkeypatch):
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    status, out, err = stats(capsys, step)
    assert (status, err) == (0, "")
    assert "kernel0" in out
    for command in (["timeline", step, "-o", "step.json"], ["run", "-o", "step.json", "true"]):
        assert main(command) == 2
        printed = capsys.readouterr()
        assert (printed.out, len(printed.err.splitlines())) == ("", 1)
