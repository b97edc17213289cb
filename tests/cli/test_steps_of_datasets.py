"""Steps of datasets, which commands take by name: ``runs/run=tuesday/rank=0/step_3``."""

from __future__ import annotations

from pathlib import Path

import pytest
from captures import CaptureBuilder
from report_pages import page_of

import collector
from collector.cli import main
from collector.cli.compare import EXIT_NOT_ENOUGH_STEPS
from collector.dataset.dataset_writer import DatasetWriter
from collector.files.atomic_files import atomic_write
from collector.formats.named_steps import NamedSteps, named_steps

pytest.importorskip("pyarrow")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A dataset of two runs, of which the second has two ranks with two steps each; and its name."""
    monkeypatch.chdir(tmp_path)
    for run, rank in (("monday", 0), ("tuesday", 0), ("tuesday", 1)):
        with DatasetWriter("runs", run=run, rank=rank) as writer:
            for step in range(2):
                recording = CaptureBuilder().kernel(f"{run}{rank}{step}", 100, 50 + rank).recording()
                writer.write(recording, step=3 + step)
    return tmp_path / "runs"


def printed(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 2
    return capsys.readouterr().err


KERNELS = {
    "runs": ["monday00", "monday01", "tuesday00", "tuesday01", "tuesday10", "tuesday11"],
    "runs/run=tuesday": ["tuesday00", "tuesday01", "tuesday10", "tuesday11"],
    "runs/run=tuesday/rank=1": ["tuesday10", "tuesday11"],
    "runs/run=tuesday/rank=1/step_4": ["tuesday11"],
}


def kernels_in(text: str) -> list[str]:
    return [kernel for kernel in KERNELS["runs"] if kernel in text]


@pytest.mark.medium
@pytest.mark.parametrize(("name", "kernels"), KERNELS.items())
def test_a_name_selects_steps_for_every_command(name, kernels, runs, tmp_path, capsys):
    assert kernels_in(printed(capsys, "stats", name, "--question", "kernels", "--json")) == kernels
    assert kernels_in(printed(capsys, "summary", name)) == kernels
    printed(capsys, "merge", name, "-o", "merged.json")
    merged = collector.load("merged.json")
    assert sorted(merged.kernels.names()) == kernels
    printed(capsys, "export", name, "--to", "parquet", "copy")
    copy = collector.dataset.Dataset("copy")
    assert [step.kernels.names() for step in copy] == [[kernel] for kernel in kernels]
    assert [f"{run}{rank}{step - 3}" for run, rank, step in copy.keys] == kernels
    printed(capsys, "report", name, "-o", "page.html")
    page = page_of(tmp_path / "page.html")
    names = {step["name"]: kernels_in(str(step)) for step in page["steps"]}
    assert names == {f"run={kernel[:-2]}/rank={kernel[-2]}/step_{3 + int(kernel[-1])}": [kernel] for kernel in kernels}


@pytest.mark.medium
@pytest.mark.parametrize(("name", "kernels"), KERNELS.items())
def test_sql_about_named_steps_is_about_them_alone(name, kernels, runs, capsys):
    pytest.importorskip("duckdb")
    told = printed(capsys, "sql", name, "select name from kernels order by run, rank, step", "--csv")
    assert told.split() == ["name", *kernels]


@pytest.mark.medium
def test_sql_of_one_run_or_rank_is_about_it_alone(runs):
    pytest.importorskip("duckdb")
    dataset = collector.dataset.Dataset("runs", run="tuesday", rank=1)
    answer = dataset.sql("select k.name, r.rank from kernels k join ranks r using (run, rank) order by k.name")
    assert [(row["name"], row["rank"]) for row in answer] == [("tuesday10", 1), ("tuesday11", 1)]
    assert [row["run"] for row in dataset.sql("select run from runs")] == ["tuesday"]


@pytest.mark.medium
def test_runs_are_compared_by_their_names(runs, capsys):
    assert main(["compare", "runs/run=monday", "runs/run=tuesday", "--by", "kernel"]) == EXIT_NOT_ENOUGH_STEPS
    told = capsys.readouterr().out
    assert "Means of 2 steps before and 4 now" in told
    assert kernels_in(told) == KERNELS["runs"]


@pytest.mark.medium
def test_a_dataset_can_be_merged_into_the_same_file_again(runs, capsys):
    for _ in range(2):
        assert "all.json: 6 inputs" in printed(capsys, "merge", "runs", "-o", "all.json")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        (["runs", "runs/run=tuesday"], "runs/run=tuesday is given more than once, as runs: it is read once"),
        (["runs/run=tuesday/rank=1", "link", "runs"], "runs/run=tuesday/rank=1 is given more than once, as link: "),
    ],
)
def test_steps_that_are_given_twice_are_in_the_output_once(repeats, message, runs, tmp_path, capsys):
    """As a part of their dataset, before it and after it, and through a link."""
    (tmp_path / "link").symlink_to(runs)
    assert "all.json: 6 inputs" in printed(capsys, "merge", *repeats, "-o", "all.json")
    capsys.readouterr()
    assert main(["export", *repeats, "--to", "parquet", "copy"]) == 0
    told, reported = capsys.readouterr()
    assert "6 steps added" in told
    assert message in reported


@pytest.mark.medium
def test_one_step_is_loaded_drawn_and_cut_by_its_name(runs, capsys):
    step = collector.load("runs/run=tuesday/rank=1/step_3")
    assert (step.kernels.names(), step.rank, step.run) == (["tuesday10"], 1, "tuesday")
    assert step.path is not None
    assert collector.load(step.path).kernels.names() == ["tuesday10"]
    assert collector.load(step.path, window=(1, 2)).kernels.names() == []
    printed(capsys, "timeline", "runs/run=tuesday/rank=1/step_3", "-o", "step.json")
    assert collector.load("step.json").kernels.names() == ["tuesday10"]


@pytest.mark.medium
def test_a_step_that_was_added_after_another_was_loaded_is_found(build, runs):
    collector.load("runs/run=monday/rank=0/step_3")
    with DatasetWriter("runs", run="monday") as writer:
        writer.write(build.kernel("new", 100).recording())
    assert collector.load("runs/run=monday/rank=0/step_5").kernels.names() == ["new"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("timeline", "runs", "runs has 6 steps. Name one of them: runs/run=monday/rank=0/step_3"),
        ("timeline", "runs/run=monday", "runs/run=monday has 2 steps. Name one of them: runs/run=monday/rank=0/step_3"),
        ("merge", "runs/run=friday", "runs has no step of run friday. It has steps of: run monday rank 0, "),
        ("merge", "runs/run=monday/rank=7", "runs has no step of run monday and rank 7. It has steps of: "),
        (
            "merge",
            "runs/run=tuesday/rank=1/step_9",
            "runs/run=tuesday/rank=1 has no step 9. "
            "Its steps are runs/run=tuesday/rank=1/step_3 to runs/run=tuesday/rank=1/step_4",
        ),
        ("timeline", "runs/run=tuesday/rank=1/step_9", "runs/run=tuesday/rank=1 has no step 9. "),
        ("merge", "others/run=tuesday", "others/run=tuesday: No such file or directory"),
    ],
)
def test_a_name_without_a_step_is_answered_with_those_that_are_there(command, name, message, runs, capsys):
    assert message in refused(capsys, command, name, "-o", "out.json")


@pytest.mark.medium
@pytest.mark.parametrize("table", ["steps", "kernels"])
@pytest.mark.parametrize("content", [b"junk", None], ids=["damaged", "a folder"])
@pytest.mark.parametrize(
    "words", [("summary",), ("sql", "select * from kernels, steps"), ("export", "--to", "parquet", "o")]
)
def test_a_damaged_file_of_a_dataset_is_named(table, content, words, runs, capsys):
    if words[0] == "sql":
        pytest.importorskip("duckdb")
    path = runs / table / "run=monday" / "rank=0" / "part-3.parquet"
    path.unlink()
    path.mkdir() if content is None else path.write_bytes(content)
    assert "part-3.parquet" in refused(capsys, words[0], "runs", *words[1:])


@pytest.mark.medium
def test_a_file_that_was_removed_after_the_dataset_was_listed_is_named(runs):
    collector.load("runs/run=monday/rank=0/step_3")
    (runs / "kernels" / "run=monday" / "rank=0" / "part-3.parquet").unlink()
    with pytest.raises(collector.InvalidFileError, match=r"kernels/run=monday/rank=0/part-3.parquet was removed"):
        collector.load("runs/run=monday/rank=0/step_4").recording  # noqa: B018 - it is read here


def test_a_dataset_without_steps_is_answered_with_how_to_add_some(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    DatasetWriter("runs").close()
    assert "runs has no steps. Add steps to it: collector export" in refused(capsys, "summary", "runs")


@pytest.mark.medium
def test_a_file_with_such_a_name_is_a_file(build, runs, tmp_path):
    path = tmp_path / "runs" / "run=other" / "rank=0" / "step_1"
    path.parent.mkdir(parents=True)
    build.kernel("of a file", 100).recording().save(path.with_suffix(".pb"))
    path.with_suffix(".pb").rename(path)
    assert collector.load(path).kernels.names() == ["of a file"]


@pytest.mark.medium
@pytest.mark.parametrize(
    "steps",
    [NamedSteps, lambda folder: NamedSteps(folder, "a:b+c.d-e"), lambda folder: NamedSteps(folder, "a", 12, 34)],
)
def test_a_name_is_read_as_it_is_written(steps, runs):
    named = steps(runs)
    assert named_steps(named.path) == named


@pytest.mark.medium
def test_no_output_replaces_a_file_of_a_dataset(runs, tmp_path, capsys):
    collector.load("runs/run=monday/rank=0/step_3").save("step.pb")
    part = runs / "kernels" / "run=monday" / "rank=0" / "part-3.parquet"
    Path("link.json").symlink_to(runs / "schema.json")
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    commands = (
        ["merge", "runs/run=monday", "-o", "runs/schema.json"],
        ["merge", "step.pb", "-o", "link.json"],
        ["timeline", "step.pb", "-o", "runs/schema.json"],
        ["run", "-o", "runs/schema.json", "true"],
        ["demo", "-o", "runs/schema.json"],
        ["prof", "step.pb", "op", "-output", f"file:outfile={part}"],
        ["prof", "step.pb", "op", "-output", "file:outfile=runs/schema.json"],
    )
    for words in commands:
        assert f"it belongs to the dataset in {runs}. Give the output another name" in refused(capsys, *words), words
    for path in (runs / "schema.json", part):
        with pytest.raises(collector.OutputError, match="it belongs to the dataset in"), atomic_write(path):
            pass
    with pytest.raises(collector.OutputError, match="it belongs to the dataset in"):
        collector.load("step.pb").save("runs/schema.json")
    with (
        pytest.raises(collector.OutputError, match="it belongs to the dataset in"),
        collector.trace("runs/schema.json", strict=True),
    ):
        pass
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before


def test_an_output_that_is_called_like_a_schema_is_replaced(tmp_path):
    recording = CaptureBuilder().kernel("gemm", 100, 50).recording()
    for _ in range(2):
        recording.save(tmp_path / "schema.json")
    assert collector.load(tmp_path / "schema.json").kernels.names() == ["gemm"]
