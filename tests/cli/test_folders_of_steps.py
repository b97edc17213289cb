"""Folders in place of files: the traces in them and below them, a database, a dataset."""

from __future__ import annotations

import os
import shlex
import sqlite3
import zipfile

import pytest

import collector
from collector.cli import main
from collector.formats.loading import is_trace
from tests.support.file_permissions import permissions_hold

QUERY = "select count(*) as n from kernels"


@pytest.fixture
def nested(build, tmp_path):
    """Two traces, each in a folder of its own below one, and a file that is none."""
    recording = build.kernel("relu", 100).recording()
    for name in ("a/step_1.pb", "b/deeper/step_2.gpurec", ".hidden/step_3.pb"):
        path = tmp_path / "runs" / name
        path.parent.mkdir(parents=True)
        recording.save(path)
    (tmp_path / "runs" / "a" / "notes.txt").write_text("none")
    return tmp_path / "runs"


@pytest.mark.parametrize("command", ["stats", "summary"])
def test_the_traces_below_a_folder_are_read(command, nested, capsys):
    assert main([command, str(nested)]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("a/notes.txt") == 1
    assert "step_3" not in printed.out + printed.err


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_read(nested, capsys):
    (nested / "closed").mkdir(mode=0)
    with permissions_hold():
        assert main(["summary", str(nested)]) == 0
    printed = capsys.readouterr()
    assert f"{nested}: left out, because this user may not read them: closed" in printed.err
    assert printed.out.count("1 kernel") == 2


def test_a_report_and_a_merged_trace_take_folders(nested, tmp_path, capsys):
    assert main(["report", str(nested), "-o", str(tmp_path / "r.html")]) == 0
    assert main(["merge", str(nested), "-o", str(tmp_path / "m.json")]) == 0
    assert "m.json: 2 inputs" in capsys.readouterr().out


def test_a_folder_can_be_merged_into_a_file_of_it_again(nested, capsys):
    output = nested / "all.json"
    assert main(["merge", str(nested), "-o", str(output)]) == 0
    first = output.read_bytes()
    assert main(["merge", str(nested), "-o", str(output)]) == 0
    assert output.read_bytes() == first
    assert f"{output} is the output, and not an input" in capsys.readouterr().err
    assert main(["merge", str(nested), str(output), "-o", str(output)]) == 2


@pytest.mark.parametrize("command", ["merge", "export"])
def test_a_file_that_is_given_twice_is_in_the_output_once(command, nested, tmp_path, capsys):
    """As a part of a folder, by another name, and through a link."""
    path, link = nested / "a" / "step_1.pb", tmp_path / "link.pb"
    link.symlink_to(path)
    inputs = [str(each) for each in (nested, path, link, nested / "b" / ".." / "b" / "deeper" / "step_2.gpurec")]
    if command == "merge":
        assert main(["merge", *inputs, "-o", str(tmp_path / "m.json")]) == 0
    else:
        pytest.importorskip("pyarrow")
        assert main(["export", "--to", "parquet", str(tmp_path / "runs.parquet"), *inputs]) == 0
    printed, reported = capsys.readouterr()
    assert ("m.json: 2 inputs" if command == "merge" else "2 steps added") in printed
    assert f"{path} is given more than once: it is read once" in reported
    assert f"{link} is given more than once, as {path}: it is read once" in reported
    assert reported.count("more than once") == 3


@pytest.fixture
def in_two_formats(nested):
    """A step beside a copy of it in another format."""
    collector.load(nested / "a" / "step_1.pb").save(nested / "a" / "step_1.json")
    return nested


@pytest.mark.parametrize("command", ["merge", "stats", "summary", "report"])
def test_a_step_beside_its_copy_in_another_format_is_reported(command, in_two_formats, tmp_path, capsys):
    """A folder that holds the trace for the viewer beside the recording would count each step twice, in silence."""
    output = {"merge": ["-o", str(tmp_path / "m.json")], "report": ["-o", str(tmp_path / "r.html")]}
    assert main([command, str(in_two_formats), *output.get(command, [])]) == 0
    folder = in_two_formats / "a"
    said = capsys.readouterr().err
    assert said.count("has the same times as") == 1
    assert f"{folder / 'step_1.pb'} has the same times as {folder / 'step_1.json'}: a step in two files " in said


def test_copies_of_many_steps_are_one_line(in_two_formats, capsys):
    for number in range(3, 8):
        for suffix in (".pb", ".gpurec"):
            path = in_two_formats / f"step_{number}{suffix}"
            path.write_bytes((in_two_formats / "b" / "deeper" / "step_2.gpurec").read_bytes())
    assert main(["stats", str(in_two_formats)]) == 0
    said = capsys.readouterr().err
    assert said.count("has the same times as") == 1
    assert "(5 more such files)" in said


def test_the_same_file_on_both_sides_of_a_comparison_is_no_repeat(nested, capsys):
    path = str(nested / "a" / "step_1.pb")
    assert main(["compare", path, path]) == 3
    assert "same times" not in capsys.readouterr().err


def test_a_merged_trace_beside_its_inputs_is_reported(build, nested, tmp_path, capsys):
    second = nested / "b" / "deeper" / "step_2.gpurec"
    type(build)().kernel("relu", 5_000).recording().save(second)
    made = nested / "c.json"
    assert main(["merge", str(nested), "-o", str(made)]) == 0
    assert "the times of" not in capsys.readouterr().err
    for command in (["merge", "-o", str(tmp_path / "m.pftrace")], ["stats"]):
        assert main([command[0], str(nested), *command[1:]]) == 0
        assert f"{made} has the times of {nested / 'a' / 'step_1.pb'} to {second}: " in capsys.readouterr().err


def test_sql_reads_the_traces_below_a_folder(nested, capsys):
    pytest.importorskip("duckdb")
    assert main(["sql", str(nested), QUERY, "--csv"]) == 0
    assert capsys.readouterr().out == "n\n2\n"


@pytest.fixture
def with_strangers(nested):
    """The two traces, and beside one of them files of other programs with suffixes of traces."""
    folder = nested / "a"
    (folder / "config.json").write_text('{"learning_rate": 0.1, "layers": [{"size": 64}]}')
    (folder / "losses.json").write_text("[0.5, 0.25, 0.125]")
    (folder / "graph.pb").write_bytes(b"\x0a\x07\x0a\x01a\x12\x02Op")  # a node of a GraphDef
    (folder / "junk.pb").write_bytes(b"hello")
    (folder / "nothing.pb").write_bytes(b"")
    with zipfile.ZipFile(folder / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", "weights")
    with sqlite3.connect(folder / "runs.sqlite") as database:
        database.execute("CREATE TABLE runs (id INTEGER)")
    database.close()
    os.mkfifo(folder / "pipe.json")
    return nested


STRANGERS = {
    "settings.toml": "[tool.collector.stats]\nrows = 5\n",
    "tox.ini": "[tox]\nenvlist = py310\n",
    "README.md": "[![badge](https://example.org/badge.svg)](https://example.org)\n",
    "train.log": "[2026-01-01 10:00] started\n[2026-01-01 10:01] ended\n",
    "numbers.log": "[1] started\n",
    "objects.json": '[{"question": "kernels", "rows": [{"name": "relu", "total_ns": 100}]}]',
    "acidity.json": '[{"ph": 7.2, "ts": "monday"}, {"ph": 6.9, "ts": "tuesday"}]',
    "tree.json": '[{"children": [{"children": [], "size": 3}], "size": 3}]',
    "list.json": "[]",
    "cut_list.json": "[",
    "page.json": "{% if traced %}[{}]{% endif %}",
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_text_that_begins_with_a_bracket_is_no_trace(name, nested, capsys):
    (nested / "a" / name).write_text(STRANGERS[name])
    assert main(["summary", str(nested)]) == 0
    assert f"a/{name}" in capsys.readouterr().err


def test_answers_that_were_saved_in_the_folder_are_no_traces(nested, capsys):
    assert main(["stats", str(nested), "--json"]) == 0
    (nested / "a" / "stats.json").write_text(capsys.readouterr().out)
    assert main(["stats", str(nested), "--question", "kernels", "--csv"]) == 0
    assert "a/stats.json" in capsys.readouterr().err


EVENT = '{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "a"}'


@pytest.mark.parametrize(
    "text",
    [
        f"[{EVENT}]",
        f"[{EVENT},",
        f'[{EVENT}, {{"ph": "X", "t',
        f'[0, {{"name": "a"}}, {EVENT}',
        f'{{"traceEvents": [{EVENT}, {{',
    ],
)
def test_a_list_of_events_is_a_trace_also_where_its_end_is_missing(text, tmp_path):
    (tmp_path / "trace.json").write_text(text)
    assert is_trace(tmp_path / "trace.json")
    assert collector.load(tmp_path / "trace.json").kind == "Chrome trace"


@pytest.mark.parametrize("command", ["stats", "summary", "merge", "compare"])
def test_files_of_other_programs_in_a_folder_are_left_out(command, with_strangers, tmp_path, capsys):
    more = {"merge": ["-o", str(tmp_path / "m.json")], "compare": [str(with_strangers / "a" / "step_1.pb")]}
    assert main([command, str(with_strangers), *more.get(command, [])]) in (0, 3)
    assert capsys.readouterr().err == (
        f"collector: {with_strangers}: files that are not traces, or hold no records, are left out: "
        "a/config.json, a/graph.pb, a/junk.pb, a/losses.json, a/model.pt, a/notes.txt, a/nothing.pb, a/pipe.json "
        "and 1 more\n"
    )


def test_a_pattern_passes_over_pipes(nested, capsys):
    os.mkfifo(nested / "a" / "step_2.pb")
    steps = str(nested / "a" / "step_*")
    assert main(["compare", steps, steps]) == 3
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("suffix", ["pb", "json", "gpurec", "xplane.pb"])
def test_a_trace_that_is_cut_off_is_a_trace_where_anything_of_it_can_be_read(suffix, build, tmp_path):
    step = tmp_path / f"whole.{suffix}"
    build.kernel("relu", 100).kernel("sgemm", 300).recording().save(step)
    data, cut = step.read_bytes(), tmp_path / f"cut.{suffix}"
    readable = 0
    for num_bytes in range(1, len(data), len(data) // 60):
        cut.write_bytes(data[:num_bytes])
        try:
            collector.load(cut)
        except collector.InvalidFileError:
            continue
        readable += 1
        assert is_trace(cut), num_bytes
    assert readable


COMMANDS = {
    "summary": [],
    "stats": [],
    "timeline": ["-o", "out.json"],
    "merge": ["-o", "out.json"],
    "report": ["-o", "out.html"],
    "compare": ["a.pb"],
    "export": ["--to", "ndjson", "out"],
    "sql": ["select 1"],
    "prof": ["scope"],
    "bench": [],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("given", ["locked/step_1.pb", "locked", f"{'n' * 300}.pb"])
def test_a_file_that_cannot_be_looked_at_is_one_line(command, given, nested, monkeypatch, capsys):
    """Status 1 would mean that a step became slower."""
    monkeypatch.chdir(nested)
    (nested / "a").rename(nested / "locked")
    (nested / "locked").chmod(0)
    try:
        with permissions_hold():
            assert main([command, given, *COMMANDS[command]]) == 2
    finally:
        (nested / "locked").chmod(0o700)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert given in told
    assert told.endswith(("Permission denied\n", "File name too long\n"))


def test_what_this_user_may_not_read_in_a_folder_is_left_out(nested, capsys):
    (nested / "a").rename(nested / "locked")
    (nested / "secret.pb").write_bytes((nested / "locked" / "step_1.pb").read_bytes())
    (nested / "secret.pb").chmod(0)
    (nested / "locked").chmod(0)
    try:
        with permissions_hold():
            assert main(["summary", str(nested)]) == 0
    finally:
        (nested / "locked").chmod(0o700)
    told = capsys.readouterr().err
    assert told == f"collector: {nested}: left out, because this user may not read them: locked, secret.pb\n"


@pytest.mark.medium
def test_sql_reads_the_database_that_export_has_written_into_a_folder(nested, tmp_path, capsys):
    pytest.importorskip("duckdb")
    assert main(["export", str(nested), "--to", "duckdb", str(tmp_path / "made")]) == 0
    capsys.readouterr()
    assert main(["sql", str(tmp_path / "made"), QUERY, "--csv"]) == 0
    assert capsys.readouterr().out == "n\n2\n"
    (tmp_path / "made" / "trace.duckdb").rename(tmp_path / "made" / "one.duckdb")
    (tmp_path / "made" / "two.duckdb").write_bytes((tmp_path / "made" / "one.duckdb").read_bytes())
    assert main(["sql", str(tmp_path / "made"), QUERY]) == 2
    assert "made has several databases: one.duckdb, two.duckdb. Name one of them" in capsys.readouterr().err


@pytest.mark.medium
def test_a_dataset_beside_traces_is_named_and_left_out(nested, capsys):
    pytest.importorskip("pyarrow")
    dataset = nested / "b" / "set"
    assert main(["export", str(nested / "a"), "--to", "parquet", str(dataset)]) == 0
    capsys.readouterr()
    assert main(["summary", str(nested)]) == 0
    printed = capsys.readouterr()
    assert f"{nested}: datasets are left out, unless they are named themselves: b/set\n" in printed.err
    assert printed.out.count("1 kernel") == 2
    assert main(["summary", str(nested), str(dataset)]) == 0
    assert capsys.readouterr().out.count("1 kernel") == 3


@pytest.mark.medium
def test_a_dataset_in_a_folder_is_named(nested, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "all"
    assert main(["export", str(nested), "--to", "parquet", str(folder / "runs")]) == 0
    capsys.readouterr()
    assert main(["summary", str(folder)]) == 2
    expected = (
        f"there are no traces in this folder. {folder / 'runs'} is a dataset: give its name, and its steps are read"
    )
    assert expected in capsys.readouterr().err


@pytest.mark.simulator
def test_a_journal_in_segments_is_one_trace(tmp_path, capsys):
    from collector.testing import SimulatedGpu

    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(journal=tmp_path / "run.journal", stream=True):
        gpu.launch("relu", stream=7, duration_ns=3_000)
    assert main(["merge", str(tmp_path), "-o", str(tmp_path / "m.json")]) == 0
    assert "m.json: 1 input, " in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        *("summary ''", "merge '' -o m.json", "report a.pb --before '' -o r.html", "timeline '' -o t.json", "ui ''"),
        *("timeline a.pb -o ''", "merge a.pb -o ''", "report a.pb -o ''", "demo -o ''", "bench a.py --dataset ''"),
    ],
)
def test_an_empty_word_is_not_the_working_directory(command, capsys):
    """As `collector summary "$FILE"` gives one where FILE is not set."""
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command))
    assert ended.value.code == 2
    assert "the name of a file is empty: is a variable of the shell not set?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        *("compare '' a.pb", "sql '' 'select 1'", "bench ''", "prof '' scope", "attach 1 stop -o ''"),
        *("export a.pb --to parquet ''", "export a.pb --to ndjson ''"),
    ],
)
def test_an_empty_pattern_is_not_the_working_directory(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 2
    assert "the name of a file is empty. Is a variable of the shell not set?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_program_without_a_name_is_none(capsys):
    assert main(["run", ""]) == 2
    assert "no program is named" in capsys.readouterr().err


def test_a_misspelled_command_of_prof_is_no_file(nested, capsys):
    assert main(["prof", str(nested / "a" / "step_1.pb"), "scop"]) == 2
    assert capsys.readouterr().err == "collector: scop is neither a file nor a command; did you mean scope?\n"
