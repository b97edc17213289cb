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


def run(words: str, step: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main([step if word == "STEP" else word for word in words.split()])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[tool.collector.timeline]\ntensorflow = true\n", "timeline STEP -o o.json --name kernel"),
        ('[tool.collector.timeline]\nname = "kernel"\n', "timeline STEP -o o.json --tensorflow"),
        ("[tool.collector.timeline]\nmax-events = 1000\n", "timeline STEP -o o.gpurec"),
        ("[tool.collector.timeline]\ntensorflow = true\n", "timeline STEP -o o.pftrace"),
        (
            '[tool.collector.timeline]\ntensorflow = true\nname = "kernel"\n',
            "timeline STEP -o o.json --tensorflow",
        ),
        ("[tool.collector.run]\ndelay = 3\n", "run -q --capture-range cudaProfilerApi true"),
        (
            '[tool.collector.run]\ncapture-range = "cudaProfilerApi"\ncapture-range-end = "stop"\n',
            "run -q --duration 3 true",
        ),
        ('[tool.collector.run]\ncapture-range-end = "stop"\n', "run -q true"),
        ("[tool.collector.stats]\nsame-clock = true\n", "stats STEP --question idle"),
        ("[tool.collector.stats]\nclock-offset = '1=5'\n", "stats STEP"),
        ("[tool.collector.stats]\ncsv = true\n", "stats STEP --question idle --question kernels"),
        ('[tool.collector.stats]\nby = "op"\n', "stats STEP --question idle"),
        ('[tool.collector.stats]\nquestion = "idle"\n', "stats STEP --by op"),
        ('[tool.collector.stats]\nwindow = "span"\n', "stats STEP --question ledger"),
        ("[tool.collector.compare]\ncsv = true\n", "compare STEP STEP --by op --by kernel"),
        ('[tool.collector.merge]\nmarker = "AllReduce"\n', "merge STEP STEP -o o.json"),
        ('[tool.collector.sql]\ndialect = "spark"\n', "sql --tables STEP"),
        ('[tool.collector.prof]\nprofile_path = "gone"\n', "prof STEP scope"),
    ],
)
def test_what_does_not_go_together_with_the_command_line_is_left_out(project, step, capsys, content, words):
    if words.startswith("sql"):
        pytest.importorskip("duckdb")
    project(content)
    status, _, err = run(words, step, capsys)
    assert status in (0, 3), err  # 3: too few steps for a comparison
    assert "pyproject" not in err


@pytest.mark.parametrize("key", ["json", "baseline", "plot"])
def test_options_about_measuring_do_not_keep_stored_benchmarks_from_a_comparison(project, step, capsys, root, key):
    pytest.importorskip("scipy")
    project(f'[tool.collector.bench]\n{key} = "x.{key}"\n')
    report = root / "tests" / "data" / "bench_report_v1.json"
    assert run(f"bench compare {report} {report}", step, capsys)[0] == 0
    assert run(f"bench compare {report} {report} --{key} y", step, capsys)[0] == 2


@pytest.mark.parametrize(
    ("content", "words", "keys"),
    [
        ('timeline]\ntensorflow = true\nname = "kernel"\n', "timeline STEP -o o.json", "tensorflow and name of"),
        ('timeline]\noutput = "o.gpurec"\nname = "kernel"\n', "timeline STEP", "output of"),
        ('timeline]\noutput = "o.gpurec"\n', "timeline STEP --name kernel", "output of"),
        ('timeline]\noutput = "o.pb"\n', "timeline STEP --tensorflow", "output of"),
        ('run]\ncapture-range = "cudaProfilerApi"\ndelay = 3\n', "run true", "capture-range and delay of"),
        ("stats]\ncsv = true\n", "stats STEP", "csv of"),
        ('stats]\nby = "op"\nquestion = "idle"\n', "stats STEP", "by of"),
        ("compare]\ncsv = true\n", "compare STEP STEP", "csv of"),
        ('prof]\nprofile_path = "a"\ngraph_path = "b"\n', "prof scope", "profile_path and graph_path of"),
    ],
)
def test_what_does_not_go_together_in_the_file_names_it(project, step, capsys, content, words, keys):
    file = project(f"[tool.collector.{content}")
    status, out, err = run(words, step, capsys)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{keys} [tool.collector." in err
    assert str(file) in err


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
