"""Queries over datasets and files in DuckDB: what they answer, what is refused, and where an error is."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging.version import Version

import collector.analysis.answer as answer_module
from collector.cli import main
from collector.errors import CollectorError, InvalidFileError

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from collector.dataset import Dataset, DatasetWriter, step_facts, step_tables
from collector.dataset.database import Database
from collector.dataset.dataset_folder import tables
from collector.dataset.interrupted_queries import answered_in_thread
from collector.dataset.view_files import view_texts
from tests.support.signal_actions import default_action


def rows(answer):
    return [tuple(row.values()) for row in answer]


@pytest.mark.medium
def test_a_query_over_all_ranks_and_steps(example_dataset):
    answer = example_dataset.sql(
        'select run, rank, step, sum(duration_ns) as total_ns, "class" from kernels group by all order by all'
    )
    assert rows(answer) == [
        ("a", rank, step, total_ns, name)
        for rank in (0, 1)
        for step in (0, 1)
        for total_ns, name in ((160, "communication"), (550, "compute"))
    ]
    assert [column.unit for column in answer.columns] == ["text", "number", "number", "ns", "text"]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("sum(duration_ns) * 0.001", "value", 2.840),
        ("avg(duration_ns)", "value", 710 / 7),
        ("null::double", "value", None),
        ("null::bigint", "value", None),
        ("null::decimal(5, 2)", "value", None),
        ("sum(null::bigint)", "value", None),
        ("2.5::decimal(5, 2)", "value", 2.5),
        ("null::varchar", "text", ""),
        ("count(*)", "number", 28),
        ("sum(duration_ns)", "number", 2840),
    ],
)
def test_a_column_of_numbers_is_one_whatever_its_rows_are(example_dataset, value, unit, expected):
    answer = example_dataset.sql(f"select {value} as it from kernels limit 1")
    assert answer.columns[0].unit == unit
    assert answer.to_json()["rows"] == [[expected]]


@pytest.mark.medium
def test_the_json_of_a_query_fits_the_schema_of_answers(example_dataset):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(answer_module.__file__).with_name("answer.schema.json").read_text())
    answer = example_dataset.sql("select avg(duration_ns), count(*), name as Name from kernels group by name")
    assert [column.unit for column in answer.columns] == ["value", "number", "text"]
    jsonschema.validate(json.loads(json.dumps(answer.to_json(), allow_nan=False)), schema)


@pytest.mark.medium
def test_a_query_needs_the_tables_and_views_that_it_names_and_no_others(example_dataset):
    query = "select sum(busy_ns) from Computed_Devices"
    with Database.of_dataset(example_dataset, query=query) as database:
        made = database._connection.execute("select view_name from duckdb_views() where not internal").fetchall()
        answer = database.sql(query)
    with Database.of_dataset(example_dataset) as database:
        everything = database._connection.execute("select view_name from duckdb_views() where not internal").fetchall()
        assert rows(database.sql(query)) == rows(answer)
    assert {"computed_devices", "kernels"} < set(sum(made, ())) < set(sum(everything, ()))
    assert {"answer_kernels", "CUPTI_ACTIVITY_KIND_KERNEL"} < set(sum(everything, ())) - set(sum(made, ()))
    listed = example_dataset.sql("select table_name from information_schema.tables")
    assert set(listed["table_name"]) == set(sum(everything, ()))


@pytest.mark.slow
def test_every_view_alone_answers_as_among_all(example_dataset):
    with Database.of_dataset(example_dataset) as database:
        for view in view_texts("duckdb"):
            query = f'select * from "{view}" order by all'
            with Database.of_dataset(example_dataset, query=query) as own:
                assert repr(rows(own.sql(query))) == repr(rows(database.sql(query))), view  # NULL may be NaN there


@pytest.mark.medium
def test_values_are_exact_and_what_is_not_known_is_empty(example_dataset):
    answer = example_dataset.sql(
        "select 9007199254740993 as a, 1.5 as b, null::varchar as c, 18446744073709551616 as d, true as e, 2 as a"
    )
    assert rows(answer) == [(9007199254740993, 1.5, "", "18446744073709551616", "True", 2)]
    answer = example_dataset.sql("select graph_id, 0.1::double as x from kernels limit 1")
    assert answer.to_json()["rows"] == [[None, 0.1]]


def test_a_table_without_rows_has_its_columns(example_dataset):
    assert len(example_dataset.sql("select step, num_bytes from memory_ops")) == 0


@pytest.mark.parametrize(
    "query",
    [
        "copy kernels to '{tmp}/x.csv'",
        "create table x as select 1",
        "insert into kernels values (1)",
        "drop view kernels",
        "attach '{tmp}/x.duckdb'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma threads = 4",
        "export database '{tmp}/x'",
        "select 1; select 2",
        "",
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/hostname')",
        "select * from 'https://example.com/x.parquet'",
        "select * from glob('/*')",
        "explain analyze copy (select 1) to '{tmp}/runs/x.parquet' (format parquet)",
        "explain (analyze) copy (select 1) to '{tmp}/runs/x.parquet' (format parquet)",
        "explain analyze select 1",
        "explain copy (select 1) to '{tmp}/runs/x.parquet' (format parquet)",
        "/* x */ explain -- y\n analyze create table x as select 1",
        "explain create table x as select 1",
        "explain select 1; create table x as select 1",
        "explain explain analyze copy (select 1) to '{tmp}/runs/x.parquet' (format parquet)",
        "prepare p as select 1",
        "execute p",
        "call pragma_version()",
        "with x as (copy (select 1) to '{tmp}/runs/x.parquet') select 1",
        "explain with x as (copy (select 1) to '{tmp}/runs/x.parquet') select 1",
        "with x as (insert into kernels select * from kernels) from x",
        "from (copy (select 1) to '{tmp}/runs/x.parquet')",
        "select * from query('create table x as select 1')",
        "vacuum",
        "checkpoint",
        "use memory",
        "begin transaction",
    ],
)
def test_a_query_that_would_write_or_reach_out_is_refused_in_one_line(example_dataset, tmp_path, query):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CollectorError) as refused:
        example_dataset.sql(query.format(tmp=tmp_path))
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_error_says_where_it_is(example_dataset):
    with pytest.raises(CollectorError, match=r"line 2, column 7: nome"):
        example_dataset.sql("select name,\n      nome from kernels")
    import duckdb

    place = r" \(line 1, column 1: selec" if Version(duckdb.__version__) >= Version("1.4") else ""
    with pytest.raises(CollectorError, match=r'Parser Error: syntax error at or near "selec"' + place):
        example_dataset.sql("selec name from kernels")


@pytest.mark.parametrize(
    ("query", "remedy"),
    [
        ("select * from kernel", "Did you mean kernels? `collector sql DIR_OR_FILE --tables` lists all tables "),
        ("select * from nonsense", "nonsense). `collector sql DIR_OR_FILE --tables` lists all tables "),
        ("select * from 'x.pftrace'", "'x.pftrace'). `collector sql DIR_OR_FILE --tables` lists all tables "),
        ("select nme from kernels", '. Similar names are "name"'),
        ("select k.nme from kernels as k", "). `collector sql DIR_OR_FILE --tables` lists all tables "),
        ('select * from kernels where name = "relu"', ". A text is written in single quotes. Similar names are "),
        ("select name, sum(duration_ns) from kernels", ". Either add it to the GROUP BY list, or use "),
        ("select flor(duration_ns) from kernels", '. Did you mean "floor"?'),
    ],
)
def test_an_error_names_a_remedy(example_dataset, query, remedy):
    with pytest.raises(CollectorError) as wrong:
        example_dataset.sql(query)
    assert remedy in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_variables_of_python_are_no_tables(example_dataset):
    secret = example_dataset.table("kernels")
    assert secret.num_rows
    with pytest.raises(CollectorError, match="secret"):
        example_dataset.sql("select * from secret")


@pytest.mark.medium
def test_files_of_steps_are_asked_without_a_dataset(example, tmp_path):
    for number in (2, 10):
        example.save(tmp_path / f"step_{number}.gpurec")
    with Database.of([tmp_path / "step_2.gpurec", tmp_path / "step_10.gpurec"]) as database:
        found = database.sql("select step, count(*) from kernels group by step order by step")
    assert rows(found) == [(2, 7), (10, 7)]


@pytest.mark.medium
def test_a_query_over_files_makes_nothing_that_it_does_not_read(example, tmp_path, monkeypatch):
    example.save(path := tmp_path / "step.gpurec")
    answered, built = [], []
    answer_of, table_of = step_facts.answer_of, step_tables.table_of
    monkeypatch.setattr(step_facts, "answer_of", lambda name, *of: answered.append(name) or answer_of(name, *of))
    monkeypatch.setattr(step_tables, "table_of", lambda table, *of: built.append(table.name) or table_of(table, *of))
    query = "select count(*) from answer_overlap, copies"
    with Database.of([path], query=query, draw_events=False) as database:
        database.sql(query)
    assert answered == ["step_overlap"]
    assert built == ["copies", "steps"]


@pytest.mark.slow
def test_every_table_and_view_of_a_file_alone_is_as_among_all(example, tmp_path):
    example.save(path := tmp_path / "step.gpurec")
    with Database.of([path]) as database:
        for name in (*tables(), *view_texts("duckdb")):
            query = f'select * from "{name}" order by all'
            with Database.of([path], query=query) as own:
                assert repr(rows(own.sql(query))) == repr(rows(database.sql(query))), name


@pytest.mark.parametrize(
    "query",
    [
        "from kernels",
        "table kernels",
        "with k as (from kernels) select * from k",
        "values (1)",
        "explain select * from kernels",
        "/* why */ -- so\n EXPLAIN\tfrom kernels",
        "explain (select 1)",
        "select count(*) as copy from kernels where name <> 'delete'",
        "describe kernels",
        "summarize kernels",
        "show tables",
    ],
)
def test_every_query_that_only_reads_is_answered(example_dataset, query):
    assert len(example_dataset.sql(query))


def test_infinite_values_are_null_in_json(example_dataset):
    answer = example_dataset.sql("select 1e0 / 0e0 as up, -1e0 / 0e0 as down, 'x' as name, 2.5e0 as half")
    assert json.loads(json.dumps(answer.to_json(), allow_nan=False))["rows"] == [[None, None, "x", 2.5]]


@pytest.mark.medium
def test_a_database_file_holds_all_tables(example_dataset, tmp_path):
    Database.save(example_dataset, tmp_path / "trace.duckdb")
    with Database.of([tmp_path / "trace.duckdb"]) as database:
        assert rows(database.sql("select count(*) from kernels")) == [(28,)]
        with pytest.raises(CollectorError, match="refused"):
            database.sql("delete from kernels")
    (tmp_path / "damaged.duckdb").write_bytes((tmp_path / "trace.duckdb").read_bytes()[:3000])
    with pytest.raises(InvalidFileError, match=r"damaged\.duckdb"):
        Database.of([tmp_path / "damaged.duckdb"])


def test_odd_names_are_values_and_no_sql(build, tmp_path):
    folder = tmp_path / 'it\'s a "folder"'
    odd = "'; drop table kernels; --\n\0"
    build.annotation(odd, 0, 10, 1)
    with DatasetWriter(folder, run="a") as writer:
        writer.write(build.recording())
    assert rows(Dataset(folder).sql("select name from annotations")) == [(odd,)]


@pytest.mark.medium
@pytest.mark.parametrize(
    "endless",
    [
        "select sum(range) from range(100000000000000)",
        "select sum(a.range * b.range) from range(1000000000) a, range(1000000000) b",
    ],
)
def test_an_interrupt_ends_a_query_quietly(example, tmp_path, monkeypatch, capsys, endless):
    """In the main thread DuckDB 2.0 would wait for the end of the query."""
    checked = Database._read_only

    def begin(database, query):
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
        return checked(database, query)

    monkeypatch.setattr(Database, "_read_only", begin)
    example.save(tmp_path / "step.gpurec")
    with default_action(signal.SIGINT):
        assert main(["sql", str(tmp_path / "step.gpurec"), endless]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_before_the_answer_is_awaited_ends_the_query_too(monkeypatch):
    is_interrupted = threading.Event()
    found = []

    class Connection:
        interrupt = is_interrupted.set

    def endless() -> None:
        found.append(is_interrupted.wait(60))

    submit = ThreadPoolExecutor.submit

    def submit_and_interrupt(pool, function):
        submitted = submit(pool, function)
        if function is endless:
            raise KeyboardInterrupt
        return submitted

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        answered_in_thread(Connection, endless)
    assert found == [True]
