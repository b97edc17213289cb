"""Steps of files as datasets, databases and lines of JSON, on the command line and in Python."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import collector
from collector.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

import pyarrow as pa

from collector.dataset import Dataset, DatasetWriter, exports
from collector.dataset.database import Database
from collector.dataset.dataset_writer import run_at
from collector.dataset.exports import ingest, lines_of
from collector.dataset.trace_events import drawn_events
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource


@pytest.fixture
def files(example, tmp_path):
    """Two steps of two ranks as files."""
    found = []
    for rank in (0, 1):
        for step in (9, 10):
            found.append(tmp_path / f"rank{rank}_step{step}.gpurec")
            example.save(found[-1])
    return list(map(str, found))


@pytest.mark.medium
def test_ranks_and_steps_are_taken_from_the_names_of_files(files, tmp_path, capsys):
    assert main(["export", *files, "--to", "parquet", str(tmp_path / "runs"), "--run", "tuesday"]) == 0
    assert capsys.readouterr().out.endswith("runs: 4 steps added\n")
    dataset = Dataset(tmp_path / "runs")
    assert list(dataset.keys) == [("tuesday", rank, step) for rank in (0, 1) for step in (9, 10)]
    assert main(["export", *files, "--to", "parquet", str(tmp_path / "runs"), "--run", "tuesday"]) == 2
    assert "step 10 already" in capsys.readouterr().err
    assert len(Dataset(tmp_path / "runs")) == 4


@pytest.mark.medium
def test_the_rank_is_that_of_the_devices_where_only_they_state_it(example, tmp_path):
    """As in StepStats of TensorFlow's workers; `collector merge` and the question `ranks` take it from there, too."""
    for rank, name in ((3, "a.pb"), (1, "b.pb")):
        step = Step(RecordingSource(example, f"/job:worker/replica:0/task:{rank}"))
        (tmp_path / name).write_bytes(step.step_stats.SerializeToString())
    files = [str(tmp_path / name) for name in ("a.pb", "b.pb")]
    assert main(["export", *files, "--to", "parquet", str(tmp_path / "runs"), "--run", "a"]) == 0
    assert sorted(Dataset(tmp_path / "runs").keys) == [("a", 1, 0), ("a", 3, 0)]


@pytest.mark.medium
def test_steps_of_ranks_have_one_score_in_sql_and_in_python(build, tmp_path):
    files = []
    for number in range(5):
        for rank in (0, 1):
            own = type(build)().kernel("k", 0, 10 + number + 100 * rank)
            own.clock["cupti_stop_ns"] = own.clock["cupti_start_ns"] + 20 + number * number + 300 * rank
            files.append(tmp_path / f"rank{rank}_step{number}.gpurec")
            own.recording().save(files[-1])
    loaded = [collector.load(file) for file in files]
    answer = collector.analysis.steps(loaded)
    with Database.of(files) as database:
        found = database.sql("select z, verdict from answer_steps order by step, rank")
    assert found["verdict"].tolist() == answer["verdict"].tolist()
    assert found["z"].tolist() == pytest.approx(answer["z"].tolist(), nan_ok=True)
    for run, own in (("a", files[:8]), ("b", files[1:])):
        assert main(["export", *map(str, own), "--to", "parquet", str(tmp_path / "runs"), "--run", run]) == 0
    dataset = Dataset(tmp_path / "runs")
    answer = collector.analysis.steps(dataset)
    found = dataset.sql("select z, verdict from answer_steps order by run, rank, step")
    assert found["verdict"].tolist() == answer["verdict"].tolist()
    assert answer["verdict"].tolist().count("first") == 4
    assert found["z"].tolist() == pytest.approx(answer["z"].tolist(), nan_ok=True)


@pytest.mark.medium
def test_a_run_is_called_by_the_time_at_which_it_began(files, tmp_path):
    assert main(["export", files[0], "--to", "parquet", str(tmp_path / "runs")]) == 0
    assert Dataset(tmp_path / "runs").keys[0].run == "20231114T221320Z"


@pytest.mark.medium
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_that_cannot_be_read_leaves_the_dataset_as_it_was(files, tmp_path, capsys, is_new):
    """Rows about a run are written before its steps, and stay, because other processes may use them."""
    bad, runs = tmp_path / "rank0_step11.gpurec", tmp_path / "runs"
    bad.write_bytes(b"no recording")
    if not is_new:
        assert main(["export", files[0], "--to", "parquet", str(runs), "--run", "monday"]) == 0
    before = sorted(runs.rglob("*"))
    assert main(["export", *files, str(bad), "--to", "parquet", str(runs), "--run", "tuesday"]) == 2
    assert str(bad) in capsys.readouterr().err
    assert sorted(runs.rglob("*")) == before
    assert runs.exists() != is_new


def test_steps_are_written_before_all_are_read_if_they_are_large(files, tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "ROWS_OF_GROUP", 2 * len(collector.load(files[0]).recording.kernels))
    read, written = [], []
    monkeypatch.setattr(DatasetWriter, "write", lambda *_, **__: written.append(len(read)))
    exports.export_steps(list(map(Path, files)), tmp_path / "runs", run="a", on_step=read.append)
    assert len(written) == len(files)
    assert written[0] < len(files)


@pytest.mark.medium
def test_many_small_files_become_few(files, tmp_path):
    for file in files:
        assert main(["export", file, "--to", "parquet", str(tmp_path / "many"), "--run", "a"]) == 0
    assert main(["export", str(tmp_path / "many"), "--to", "parquet", str(tmp_path / "few")]) == 0
    many, few = Dataset(tmp_path / "many"), Dataset(tmp_path / "few")
    assert few.keys == many.keys
    assert [len(each.files.of("kernels")) for each in (many, few)] == [4, 2]
    assert (
        few.table("kernels")
        .sort_by([("rank", "ascending"), ("step", "ascending"), ("id", "ascending")])
        .equals(many.table("kernels").sort_by([("rank", "ascending"), ("step", "ascending"), ("id", "ascending")]))
    )


def _steps_and_names(dataset):
    rows = dataset.table("kernels")
    return sorted(zip(rows["run"].to_pylist(), rows["step"].to_pylist(), rows["name"].to_pylist(), strict=True))


@pytest.mark.medium
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("run", ["", "monday", "tuesday"])
def test_the_run_and_number_of_a_file_do_not_depend_on_a_dataset_beside_it(build, tmp_path, run, order):
    file, runs = tmp_path / "step_7.gpurec", tmp_path / "runs"
    build.kernel("old", 0)
    with DatasetWriter(runs, run="monday") as writer:
        writer.write(build.recording())
    build.rows["kernels"].clear()
    build.kernel("new", 0).recording().save(file)
    own = run or run_at(build.clock["wall_start_ns"])
    target, inputs = tmp_path / "out", [str(file), str(runs)]
    assert main(["export", *inputs[::order], "--to", "parquet", str(target), *(["--run", run] if run else [])]) == 0
    assert _steps_and_names(Dataset(target)) == sorted([("monday", 0, "old"), (own, 7, "new")])


@pytest.mark.medium
def test_packing_keeps_what_a_dataset_says_of_its_runs_ranks_and_steps(example, tmp_path):
    many, few = tmp_path / "many", tmp_path / "few"
    copied = {"trace_events": drawn_events(Step(RecordingSource(example)))}
    for rank in (1, 0):
        known = {"runs": {"world_size": 2}, "ranks": {"clock_offset_ns": 7, "aligned": True}}
        with DatasetWriter(many, run="a", rank=rank, label="baseline", known=known) as writer:
            writer.write(example, name="warm-up")
        with DatasetWriter(many, run="a", rank=rank) as writer:
            writer.write(example, name="measured", copied=copied)
    assert main(["export", str(many), "--to", "parquet", str(few)]) == 0
    before, after = Dataset(many), Dataset(few)
    for table in ("runs", "ranks", "steps", "step_rows", "trace_events"):
        assert after.table(table).sort_by(_ORDER[table]).equals(before.table(table).sort_by(_ORDER[table])), table
    assert set(after.table("trace_events")["step"].to_pylist()) == {1}
    assert after.table("steps", rank=0)["name"].to_pylist() == ["warm-up", "measured"]
    assert after.table("runs").to_pylist()[0]["label"] == "baseline"
    assert after.table("runs").to_pylist()[0]["world_size"] == 2


_ORDER = {
    "runs": "run",
    "ranks": "rank",
    "steps": [("rank", "ascending"), ("step", "ascending")],
    "step_rows": [("rank", "ascending"), ("step", "ascending"), ("table", "ascending")],
    "trace_events": [("rank", "ascending"), ("step", "ascending"), ("index", "ascending")],
}


@pytest.mark.medium
def test_rows_that_were_set_apart_stay_counted_when_a_dataset_is_packed(build, tmp_path):
    build.kernel("k", 10).kernel("k", 2_000_000_000_000)
    recording = build.recording()
    assert recording.ledger.losses()
    with DatasetWriter(tmp_path / "many", run="a") as writer:
        writer.write(recording)
    assert main(["export", str(tmp_path / "many"), "--to", "parquet", str(tmp_path / "few")]) == 0
    before, after = Dataset(tmp_path / "many"), Dataset(tmp_path / "few")
    for table in ("step_rows", "ledger"):
        assert after.table(table).equals(before.table(table))


@pytest.mark.medium
def test_the_label_of_a_run_is_that_of_its_first_recording_unless_another_is_given(build, tmp_path):
    build.kernel("k", 0).environment |= {"label": "nightly", "git_revision": "abc"}
    build.recording().save(tmp_path / "step.gpurec")
    for options, label in (([], "nightly"), (["--label", "mine"], "mine")):
        folder = tmp_path / label
        assert main(["export", str(tmp_path / "step.gpurec"), "--to", "parquet", str(folder), *options]) == 0
        assert Dataset(folder).table("runs")["label"].to_pylist() == [label]
        assert Dataset(folder)[0].recording.environment["git_revision"] == "abc"


@pytest.mark.medium
def test_the_number_of_ranks_is_what_a_trace_of_pytorch_states(shared, tmp_path):
    trace = shared / "data" / "gpu_traces" / "hta" / "a100_rank0of2_nccl_metadata.json.gz"
    assert main(["export", str(trace), "--to", "parquet", str(tmp_path / "runs")]) == 0
    assert Dataset(tmp_path / "runs").table("runs")["world_size"].to_pylist() == [2]


@pytest.mark.medium
def test_sqlite_holds_every_table(files, tmp_path, capsys):
    target = tmp_path / "out"
    assert main(["export", *files, "--to", "sqlite", str(target)]) == 0
    with sqlite3.connect(target / "trace.sqlite") as connection:
        found = connection.execute("select rank, count(*), sum(duration_ns) from kernels group by rank").fetchall()
    connection.close()
    assert found == [(0, 14, 1420), (1, 14, 1420)]
    assert main(["export", *files, "--to", "sqlite", str(target)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.medium
def test_lines_are_not_written_over_a_step(files, tmp_path, capsys):
    step = tmp_path / "kernels.ndjson"
    content = Path(files[0]).read_bytes()
    step.write_bytes(content)
    assert main(["export", str(step), "--to", "ndjson", str(tmp_path)]) == 2
    assert f"cannot write {step}: it is an input" in capsys.readouterr().err
    assert step.read_bytes() == content


@pytest.mark.medium
def test_lines_of_another_export_are_kept(files, tmp_path, capsys):
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "kernels.ndjson").write_text("other lines")
    assert main(["export", *files, "--to", "ndjson", str(folder)]) == 2
    told = capsys.readouterr().err
    assert told == f"collector: {folder / 'kernels.ndjson'} exists already. Name another folder, or remove it\n"
    assert [each.read_text() for each in folder.iterdir()] == ["other lines"]


@pytest.mark.medium
def test_ndjson_has_one_schema_beside_each_table(files, tmp_path):
    assert main(["export", *files, "--to", "ndjson", str(tmp_path / "lines")]) == 0
    for schema in (tmp_path / "lines").glob("*.schema.json"):
        fields = {each["name"]: each["type"] for each in json.loads(schema.read_text())}
        assert set(fields.values()) <= {"INTEGER", "FLOAT", "STRING", "BOOLEAN"}
        with (tmp_path / "lines" / schema.name.replace(".schema.json", ".ndjson")).open() as file:
            for line in file:
                assert list(json.loads(line)) == list(fields)
    kernels = (tmp_path / "lines" / "kernels.ndjson").read_text().splitlines()
    assert len(kernels) == 28


def test_lines_are_those_of_pythons_json():
    names = ["a", None, 'said "b" \\ \n', "Grün \U0001f600 \x7f\u2028", "", "a"]
    table = pa.table(
        {
            "unsigned": pa.array([0, 1, None, 2**64 - 1, 5, 5], pa.uint64()),
            "signed": pa.array([-(2**63), -1, 0, None, 7, 7], pa.int64()),
            "small": pa.array([1, 2, 3, 4, None, 255], pa.uint8()),
            "real": pa.array([0.0, -0.0, 1e16, 1e-7, None, 0.1]),
            "is so": pa.array([True, False, None, True, True, False]),
            'a "name"': pa.array(names),
            "coded": pa.array(names).dictionary_encode(),
            "none": pa.array([None] * 6, pa.string()),
        }
    )
    plain = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in table.to_pylist())
    assert b"".join(map(lines_of, table.to_batches())).decode() == plain
    assert b"".join(map(lines_of, table.to_batches(max_chunksize=4))).decode() == plain


def test_lines_have_no_number_that_json_has_not():
    (batch,) = pa.table({"real": [1.0, float("nan")]}).to_batches()
    with pytest.raises(ValueError, match="JSON compliant"):
        lines_of(batch)


@pytest.mark.medium
def test_adbc_takes_every_table(example_dataset, tmp_path):
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with adbc.connect(str(tmp_path / "warehouse.sqlite")) as connection:
        ingest(example_dataset, connection)
    with sqlite3.connect(tmp_path / "warehouse.sqlite") as connection:
        assert connection.execute("select count(*) from kernels").fetchall() == [(28,)]
    connection.close()


@pytest.mark.medium
def test_sql_and_export_name_the_parquet_files_of_others(files, tmp_path, capsys):
    assert main(["export", files[0], "--to", "parquet", str(tmp_path / "runs"), "--run", "a"]) == 0
    foreign = tmp_path / "runs" / "kernels" / "mine.parquet"
    foreign.write_bytes(b"PAR1")
    capsys.readouterr()
    runs = str(tmp_path / "runs")
    for words in (["sql", runs, "select 1"], ["export", runs, "--to", "ndjson", str(tmp_path / "lines")]):
        assert main(words) == 0
        assert "1 Parquet file is not of the dataset and left alone: kernels/mine.parquet" in capsys.readouterr().err
    assert foreign.read_bytes() == b"PAR1"


_ODD = 'a "quoted", it\'s\nname\twith \u2028, \\ and \U0001f600'


@pytest.mark.medium
@pytest.mark.parametrize("kernels", [0, 1])
def test_every_target_takes_odd_names_large_ids_and_steps_of_no_rows_or_one(build, tmp_path, kernels):
    for _ in range(kernels):
        build.kernel(_ODD, 0, graph_id=2**32 - 1, graph_node_id=2**63 + 5)
    build.recording().save(tmp_path / "step.gpurec")
    for kind in ("parquet", "duckdb", "sqlite", "ndjson"):
        assert main(["export", str(tmp_path / "step.gpurec"), "--to", kind, str(tmp_path / kind)]) == 0
    expected = [(_ODD, 2**32 - 1, 5 - 2**63)] * kernels
    query = "select name, graph_id, graph_node_id from kernels"
    for path in (tmp_path / "parquet", tmp_path / "duckdb" / "trace.duckdb"):
        with Database.of([path]) as database:
            assert [tuple(row.values()) for row in database.sql(query)] == expected
    with sqlite3.connect(tmp_path / "sqlite" / "trace.sqlite") as connection:
        assert connection.execute(query).fetchall() == expected
    connection.close()
    lines = (tmp_path / "ndjson" / "kernels.ndjson").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    assert [(row["name"], row["graph_id"], row["graph_node_id"]) for row in rows] == expected


@pytest.mark.medium
def test_a_nul_in_a_name_reaches_every_target(build, tmp_path):
    pytest.importorskip("duckdb")
    build.kernel("a\0b", 0).recording().save(tmp_path / "step.gpurec")
    for kind in ("parquet", "duckdb", "sqlite", "ndjson"):
        assert main(["export", str(tmp_path / "step.gpurec"), "--to", kind, str(tmp_path / kind)]) == 0
    for path in (tmp_path / "parquet", tmp_path / "duckdb" / "trace.duckdb"):
        with Database.of([path]) as database:
            assert database.sql("select name from kernels")["name"].tolist() == ["a\0b"]
    with sqlite3.connect(tmp_path / "sqlite" / "trace.sqlite") as connection:
        assert connection.execute("select name from kernels").fetchall() == [("a\0b",)]
    connection.close()
    assert json.loads((tmp_path / "ndjson" / "kernels.ndjson").read_text())["name"] == "a\0b"


@pytest.mark.parametrize("name", [_ODD, "a\0b"])
def test_adbc_takes_odd_names_and_large_ids(build, tmp_path, name):
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi")
    build.kernel(name, 0, graph_node_id=2**63 + 5)
    with DatasetWriter(tmp_path / "runs", run="a") as writer:
        writer.write(build.recording())
    with adbc.connect(str(tmp_path / "warehouse.sqlite")) as connection:
        ingest(Dataset(tmp_path / "runs"), connection)
    with sqlite3.connect(tmp_path / "warehouse.sqlite") as connection:
        found = connection.execute("select name, graph_node_id from kernels").fetchall()
    connection.close()
    assert found == [(name, 5 - 2**63)]


def test_an_unknown_target_is_refused(files, tmp_path, capsys):
    assert main(["export", *files, "--to", "excel", str(tmp_path / "x")]) == 2
    assert "choose one of parquet, duckdb, sqlite, ndjson" in capsys.readouterr().err


@pytest.mark.medium
def test_sql_prints_answers_and_lists_tables(files, tmp_path, capsys):
    assert main(["sql", *files, "select rank, count(*) as kernels from kernels group by rank order by 1", "--csv"]) == 0
    assert capsys.readouterr().out == "rank,kernels\n0,14\n1,14\n"
    assert main(["sql", files[0], "--tables", "--csv"]) == 0
    assert 'kernels,"run, rank, step, id, start_ns' in capsys.readouterr().out
    assert main(["sql", files[0]]) == 2
    assert "a query needs a dataset or a file, and comes last" in capsys.readouterr().err
    assert main(["sql", files[0], "select x"]) == 2
    assert "line 1, column 8: x" in capsys.readouterr().err


@pytest.mark.medium
def test_an_answer_whose_values_are_all_unknown_is_printed(files, capsys):
    assert main(["sql", files[0], "select label, world_size from runs"]) == 0
    assert "label" in capsys.readouterr().out
    assert main(["sql", files[0], "select null as nothing"]) == 0
    assert "nothing" in capsys.readouterr().out


@pytest.mark.medium
def test_timelines_become_one_table_of_events(example, tmp_path, capsys):
    for step in (1, 2):
        (tmp_path / f"timeline-{step}.json").write_text(
            collector.Timeline(collector.load(_saved(example, tmp_path)).step_stats).generate_chrome_trace_format()
        )
    query = "select step, ph, count(*) as events from trace_events where ph = 'X' group by all order by 1"
    paths = [str(tmp_path / f"timeline-{step}.json") for step in (1, 2)]
    assert main(["sql", *paths, query, "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert [row[:2] for row in answer["rows"]] == [[1, "X"], [2, "X"]]
    assert answer["rows"][0][2] == answer["rows"][1][2] > 8


@pytest.mark.medium
def test_events_of_a_recording_are_those_of_the_trace_that_is_drawn_of_it(example, tmp_path, capsys):
    example.save(tmp_path / "step.gpurec")
    example.save(tmp_path / "step.json")
    query = "select * exclude (run, step) from trace_events"
    drawn, read = (
        _answer(["sql", str(tmp_path / f"step.{suffix}"), query], capsys)["rows"] for suffix in ("gpurec", "json")
    )
    assert drawn == read
    assert sum(row[3] == "X" for row in drawn) > 8


@pytest.mark.slow
def test_events_are_stored_on_request_and_else_drawn_when_a_query_asks_for_them(files, tmp_path, capsys):
    query = "select rank, step, count(*) from trace_events group by all order by all"
    answers = []
    for folder, options in (("without", []), ("with", ["--events"])):
        assert main(["export", *files, "--to", "parquet", str(tmp_path / folder), "--run", "a", *options]) == 0
        assert bool(Dataset(tmp_path / folder).files.of("trace_events")) == bool(options)
        capsys.readouterr()
        answers.append(_answer(["sql", str(tmp_path / folder), query], capsys)["rows"])
    assert answers[0] == answers[1]
    assert [row[:2] for row in answers[0]] == [[0, 9], [0, 10], [1, 9], [1, 10]]
    assert Dataset(tmp_path / "without").sql(query)["rank"].tolist() == [0, 0, 1, 1]


@pytest.mark.medium
def test_files_are_named_by_a_pattern_or_their_folder(files, tmp_path, capsys):
    for given in (tmp_path, tmp_path / "rank*.gpurec"):
        assert _answer(["sql", str(given), "select count(*) from steps"], capsys)["rows"] == [[4]]


NOT_UTF8 = os.fsdecode(b"\xff")


def test_the_name_of_a_file_that_is_not_utf8_is_escaped(example, tmp_path, capsys):
    file = tmp_path / f"{NOT_UTF8}.gpurec"
    example.save(file)
    assert _answer(["sql", str(file), "select name from steps"], capsys)["rows"] == [["\\udcff.gpurec"]]


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_a_folder_whose_name_is_not_utf8_is_refused(files, tmp_path, capsys, kind):
    """pyarrow and DuckDB take paths as text."""
    named, renamed = tmp_path / "runs", tmp_path / NOT_UTF8
    assert main(["export", files[0], "--to", kind, str(renamed)]) == 2
    told = capsys.readouterr().err
    assert "its path is not UTF-8, which libraries of Parquet and SQL require. Name another folder\n" in told
    assert main(["export", files[0], "--to", kind, str(named)]) == 0
    shutil.rmtree(renamed, ignore_errors=True)
    named.rename(renamed)
    capsys.readouterr()
    assert main(["sql", str(renamed), "select 1"]) == 2
    assert (
        "its path is not UTF-8, which libraries of Parquet and SQL require. Rename its folders\n"
        in capsys.readouterr().err
    )


def test_a_dataset_below_a_folder_whose_name_is_not_utf8_is_refused(example, tmp_path, monkeypatch, capsys):
    (tmp_path / NOT_UTF8).mkdir()
    example.save(tmp_path / "step.gpurec")
    assert main(["export", str(tmp_path / "step.gpurec"), "--to", "parquet", str(tmp_path / "runs")]) == 0
    (tmp_path / "runs").rename(tmp_path / NOT_UTF8 / "runs")
    monkeypatch.chdir(tmp_path / NOT_UTF8)
    capsys.readouterr()
    for command in (["sql", "runs", "select 1"], ["export", "../step.gpurec", "--to", "parquet", "others"]):
        assert main(command) == 2
        assert "its path is not UTF-8" in capsys.readouterr().err
    assert not Path("others").exists()


def test_a_query_that_is_not_utf8_is_refused(files, capsys):
    assert main(["sql", files[0], f"select '{NOT_UTF8}'"]) == 2
    assert "the query is refused (it is not UTF-8). Only one SELECT" in capsys.readouterr().err


def _answer(words, capsys):
    assert main([*words, "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    return answer


def _saved(recording, folder):
    recording.save(folder / "step.pb")
    return folder / "step.pb"


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "ndjson"])
def test_a_full_disk_is_one_line_and_leaves_no_part_of_an_export(kind, build, tmp_path):
    """A part would also be refused at the next attempt, as a file that exists."""
    pytest.importorskip("duckdb")
    for number in range(3000):
        build.kernel(f"kernel_{number}", number, 1)
    build.recording().save(tmp_path / "step.gpurec")
    limit = 200_000  # enough for the dataset that the files are made of
    program = (
        "import resource, signal, sys; from collector.cli import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); sys.exit(main(sys.argv[1:]))"
    )
    words = ["export", str(tmp_path / "step.gpurec"), "--to", kind, str(tmp_path / "made")]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    name = "kernels" if kind == "ndjson" else "trace"
    assert done.stderr.startswith(f"collector: cannot write {tmp_path / 'made' / name}.{kind}: ")
    assert done.stderr.count("\n") == 1
    assert list((tmp_path / "made").iterdir()) == []
