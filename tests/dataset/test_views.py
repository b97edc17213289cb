"""The views of datasets: one definition, the same rows on every engine and in `collector.analysis`."""

from __future__ import annotations

from random import Random

import pytest

import collector
from collector.cli import main
from collector.errors import CollectorError

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from random_steps import random_step
from sql_engines import datafusion_rows, duckdb_rows, duckdb_view, native_rows, native_steps, sorted_rows

from collector.analysis.questions import QUESTIONS
from collector.dataset import Dataset, DatasetWriter
from collector.dataset.fact_tables import FILE
from collector.dataset.step_facts import FACTS
from collector.dataset.view_definitions import view_names, view_text
from collector.dataset.view_files import DIALECTS, FOLDER, view_texts
from collector.recording.cupti_enums import DEGREE_CAPTURED


@pytest.fixture
def annotated_dataset(example_builder, tmp_path):
    """The worked example with an annotation, twice, on two ranks, of which the clock of the second one is ahead."""
    example_builder.annotation("layer", 0, 120, 1, 1, 2)
    for rank in (0, 1):
        for moment in ("wall_start_ns", "wall_stop_ns"):
            example_builder.clock[moment] += 5_000 * rank
        with DatasetWriter(tmp_path / "runs", run="a", rank=rank) as writer:
            writer.write(example_builder.recording())
            writer.write(example_builder.recording())
    return Dataset(tmp_path / "runs")


def test_the_table_that_a_view_reads_has_the_rows_of_its_question_without_options():
    read = dict(reversed(FACTS.values()))
    assert read == {question: next(iter(QUESTIONS[question].by), "") for question in read}


def rows_as_native(dataset):
    """The rows of each view on DuckDB, after those of questions were compared with the native answers."""
    rows, columns = duckdb_rows(dataset)
    native = native_rows(dataset, columns) | native_steps(dataset, columns)
    of_questions = {view for view in view_names() if view.startswith(("answer_", "computed_"))}
    assert native.keys() == of_questions - {"answer_ranks"}
    assert {view: rows[view] for view in native} == native
    return rows


@pytest.mark.slow
def test_native_answers_and_both_engines_agree(annotated_dataset):
    rows = rows_as_native(annotated_dataset)
    assert {view for view in rows if not rows[view]} == {
        "answer_backward",
        "answer_code_loading",
        "answer_graphs",
        "answer_memory",
        "answer_memory_growth",
        "answer_tracing_cost",
        "CUPTI_ACTIVITY_KIND_MEMORY2",
        "CUPTI_ACTIVITY_KIND_MEMSET",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        "TARGET_INFO_GPU",
    }
    assert rows == datafusion_rows(annotated_dataset)


@pytest.mark.slow
def test_native_answers_and_both_engines_agree_about_recorded_traces(recorded_traces, tmp_path):
    with DatasetWriter(tmp_path, run="a") as writer:
        for trace in recorded_traces:
            writer.write(trace.recording)
    dataset = Dataset(tmp_path)
    assert rows_as_native(dataset) == datafusion_rows(dataset)


@pytest.mark.medium
def test_the_worked_example_has_its_figures(example, tmp_path):
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(example)
    dataset = Dataset(tmp_path)
    for view in ("answer_devices", "computed_devices"):
        (devices,) = dataset.sql(f"select * from {view}")
        assert (devices["busy_ns"], devices["idle_ns"], devices["overlap_ns"]) == (690, 310, 10)
    assert (devices["busy_ns"], devices["idle_ns"], devices["compute_ns"]) == (690, 310, 540)
    assert (devices["communication_ns"], devices["overlap_ns"]) == (160, 10)
    assert (devices["exposed_communication_ns"], devices["exposed_copy_ns"]) == (150, 0)
    assert [row["busy_ns"] for row in dataset.sql("select busy_ns from busy")] == [690]
    concurrency = dataset.sql("select running, duration_ns from computed_concurrency order by running")
    assert concurrency["duration_ns"].tolist() == [310, 570, 120]
    (idle,) = dataset.sql("select * from answer_idle")
    assert (idle["launch_latency_ns"], idle["host_ns"], idle["synchronize_ns"], idle["tail_ns"]) == (150, 50, 10, 70)
    delays = dataset.sql("select delay_ns from answer_launch_delays where api_row = 7 order by delay_ns")
    assert delays["delay_ns"].tolist() == [85, 115]
    for view in ("answer_idle_gaps", "computed_idle_gaps"):
        gaps = dataset.sql(f"select start_ns, idle_ns from {view} order by start_ns")
        assert gaps["idle_ns"].tolist() == [100, 20, 110, 10, 70]
    causes = dataset.sql("select synchronize_ns, host_ns, tail_ns from answer_idle_gaps order by start_ns")
    assert [tuple(row.values()) for row in causes][2:] == [(10, 50, 0), (0, 0, 0), (0, 0, 70)]


def dataset_of(folder, *builders):
    with DatasetWriter(folder, run="a") as writer:
        for build in builders:
            writer.write(build.recording())
    return Dataset(folder)


def check_computed(dataset, question):
    """The figures that a view computes from rows are those that were stored, which are the native ones."""
    computed, stored = (duckdb_view(dataset, f"{kind}_{question}") for kind in ("computed", "answer"))
    assert computed
    assert sorted_rows(computed) == sorted_rows({name: row[name] for name in computed[0]} for row in stored)
    return computed


@pytest.mark.medium
def test_copies_of_kinds_that_a_later_cupti_may_add_count_under_their_numbers(build, tmp_path):
    build.memcpy(10, copy_kind=77).memcpy(20, src_kind=9).memcpy(30, dst_kind=9).memset(40, memory_kind=44)
    found = check_computed(dataset_of(tmp_path, build), "copies")
    assert {(row["kind"], row["source"], row["target"], row["num_bytes"]) for row in found} == {
        ("kind 77", "Pageable", "Device", 4096),
        ("HtoD", "kind 9", "Device", 4096),
        ("HtoD", "Pageable", "kind 9", 4096),
        ("memset", "", "kind 44", 4096),
    }


@pytest.mark.medium
def test_copies_of_impossible_sizes_have_unknown_ones(build, tmp_path):
    build.memcpy(10, num_bytes=2**64 - 1).memcpy(20, num_bytes=2**60).memcpy(30).memset(40, num_bytes=2**63)
    found = check_computed(dataset_of(tmp_path, build), "copies")
    assert {(row["kind"], row["unknown_sizes"], row["num_bytes"]) for row in found} == {
        ("HtoD", 2, 4096),
        ("memset", 1, 0),
    }


@pytest.mark.medium
def test_an_activity_that_began_before_its_call_was_never_queued(build, tmp_path):
    build.call("cudaLaunchKernel_v7000", 100, 10, correlation_id=1).kernel("k", 90, correlation_id=1)
    build.call("cudaLaunchKernel_v7000", 200, 10, correlation_id=2).kernel("k", 290, correlation_id=2, stream_id=8)
    found = check_computed(dataset_of(tmp_path, build), "queue")
    assert {(row["stream_id"], row["window_ns"], row["max_depth"]) for row in found} == {(8, 90, 1)}


@pytest.mark.medium
@pytest.mark.parametrize("question", ["devices", "overlap", "concurrency"])
def test_a_device_whose_activities_have_no_duration_was_idle(build, tmp_path, question):
    build.kernel("k", 10, 0).memset(10, 0).kernel("k", 10, 30, device_id=1).kernel("k", 20, 0, device_id=1)
    found = check_computed(dataset_of(tmp_path, build), question)
    assert {row["device_id"] for row in found} == {0, 1}


@pytest.mark.medium
@pytest.mark.parametrize("question", ["devices", "overlap", "concurrency", "idle_gaps", "launches", "queue"])
def test_graphs_recorded_as_a_whole_are_activities(build, tmp_path, question):
    build.call("cudaGraphLaunch_v10000", 5, 10, correlation_id=1).whole_graph(20, 50, correlation_id=1)
    build.kernel("gemm", 40, 60, stream_id=8).kernel("ncclDevKernel_AllReduce", 60, 90, stream_id=9).memcpy(10, 15)
    build.whole_graph(10, 30, device_id=1)
    build.whole_graph(300, 90, graph_degree=DEGREE_CAPTURED, num_nodes=2, device_id=2)
    found = check_computed(dataset_of(tmp_path, build), question)
    devices = {row["device_id"]: row for row in found if "device_id" in row}
    if question in ("devices", "overlap"):
        figures = ("busy_ns", "graph_ns", "exposed_graph_ns", "exposed_communication_ns", "exposed_copy_ns")
        assert [devices[0][name] for name in figures] == [140, 50, 20, 50, 10]
        assert [devices[1][name] for name in figures] == [30, 30, 30, 0, 0]
    assert devices.keys() == {"launches": set(), "queue": {0}}.get(question, {0, 1})


@pytest.mark.slow
def test_answers_of_views_are_the_native_ones_for_any_steps(tmp_path_factory):
    hypothesis = pytest.importorskip("hypothesis")
    from properties import examples

    st = hypothesis.strategies

    # The seeds say nothing about the size of a step, so that smaller ones are no simpler.
    @hypothesis.settings(max_examples=examples(3), phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
    @hypothesis.given(st.lists(st.integers(0, 1 << 32), min_size=8, max_size=8))
    def check(seeds):
        rows_as_native(dataset_of(tmp_path_factory.mktemp("runs"), *(random_step(Random(seed)) for seed in seeds)))

    check()


@pytest.mark.medium
def test_a_slow_step_is_an_outlier_with_the_z_of_the_definition(build, tmp_path):
    with DatasetWriter(tmp_path, run="a") as writer:
        for length in (90, 10, 12, 11, 13, 50):
            own = type(build)()
            own.kernel("k", 0, length)
            own.clock["cupti_stop_ns"] = own.clock["cupti_start_ns"] + length
            writer.write(own.recording())
    answer = Dataset(tmp_path).sql("select step, round(z, 4) as z, verdict from answer_steps order by step")
    assert answer["verdict"].tolist() == ["first", *["usual"] * 4, "outlier"]
    assert answer["z"].tolist()[-1] == 25.6310


@pytest.mark.medium
def test_collectives_of_ranks_name_the_straggler(build, tmp_path):
    for rank, (start, end) in enumerate(((10, 50), (12, 51), (40, 50))):
        own = type(build)()
        own.kernel("ncclDevKernel_AllReduce", 1000 * rank + start, end - start)
        with DatasetWriter(tmp_path, run="a", rank=rank) as writer:
            writer.write(own.recording())
    (found,) = Dataset(tmp_path).sql("select straggler, skew_ns, cost_ns, transfer_ns from answer_ranks")
    assert tuple(found.values()) == (2, 30, 59, 10)
    clocks = Dataset(tmp_path).sql("select clock_offset_ns, clock from clocks order by rank")
    assert [tuple(row.values()) for row in clocks] == [(0, "reference"), (1001, "estimated"), (2000, "estimated")]


@pytest.mark.medium
def test_waits_are_those_of_the_native_answer_where_the_clocks_of_ranks_differ(build, tmp_path):
    ahead = {0: 0, 1: 5_000, 2: -7_000}
    arrivals = ((0, 40, 10), (0, 0, 90), (30, 0, 0), (0, 60, 20), (5, 0, 70))  # of each collective, each rank
    for rank, offset in ahead.items():
        own = type(build)()
        for number, starts in enumerate(arrivals):
            start, end = 10_000 * (number + 1) + starts[rank], 10_000 * (number + 1) + 100 + max(starts)
            own.kernel("ncclDevKernel_AllReduce", start + offset, end - start)
        own.clock["cupti_stop_ns"] = own.clock["cupti_start_ns"] + 100_000
        with DatasetWriter(tmp_path, run="a", rank=rank) as writer:
            writer.write(own.recording())
    dataset = Dataset(tmp_path)
    clocks = dataset.sql("select rank, clock_offset_ns, clock_error_ns, clock from clocks order by rank")
    native = QUESTIONS["ranks"].ask(dataset, by="rank")
    offsets = {row["rank"]: (row["clock_offset_ns"], row["clock_error_ns"]) for row in native}
    assert {row["rank"]: (row["clock_offset_ns"], row["clock_error_ns"]) for row in clocks} == offsets
    found = dataset.sql("select ordinal, straggler, skew_ns, cost_ns, transfer_ns from answer_ranks order by ordinal")
    by_collective = QUESTIONS["ranks"].ask(dataset, by="collective")
    expected = [tuple(row[name] for name in found.values) for row in by_collective]
    assert [tuple(row.values()) for row in found] == sorted(expected)


@pytest.mark.medium
def test_collectives_that_ordinals_do_not_pair_have_no_figures(shared, tmp_path):
    folder = shared / "data" / "gpu_traces" / "hta" / "sampled_of128"
    for rank in (0, 1):  # two sampled of 128 ranks, which have few collectives in common
        with DatasetWriter(tmp_path, run="a", rank=rank) as writer:
            writer.write(collector.load(folder / f"rank{rank}.json.gz").recording)
    dataset = Dataset(tmp_path)
    # The two estimate the offset of a clock differently, and one that is given has no error.
    clocks = list(dataset.sql("select * from clocks"))
    offsets = {row["rank"]: int(row["clock_offset_ns"]) for row in clocks}
    error_ns = sum(int(row["clock_error_ns"]) for row in clocks)
    native = {
        (
            row["name"].partition(" ")[2],
            row["ordinal"],
            row["straggler"],
            row["skew_ns"],
            row["cost_ns"] if row["skew_ns"] > error_ns else 0,
            row["transfer_ns"],
        )
        for row in QUESTIONS["ranks"].ask(dataset, by="collective", clock_offsets=offsets)
    }
    rows = list(dataset.sql("select * from answer_ranks"))
    paired = [row for row in rows if row["pairing"] == "by ordinal"]
    figures = ("ordinal", "straggler", "skew_ns", "cost_ns", "transfer_ns")
    assert len(paired) == 2
    for row in paired:
        shape = f"grid:{row['grid']} block:{row['block']}"
        (own,) = (each for each in native if each[0].endswith(shape) and each[1] == row["ordinal"])
        assert own[1:] == tuple(row[name] for name in figures)
    assert {(row["pairing"], str(row["cost_ns"])) for row in rows if row not in paired} == {("unknown", "nan")}


@pytest.mark.medium
def test_collectives_that_some_ranks_did_not_record_have_no_figures(build, tmp_path):
    for rank, first in ((0, 0), (1, 1)):
        own = type(build)()
        for number in range(first, 3):
            own.kernel("ncclDevKernel_AllReduce", 1000 * number, 900)
        own.kernel("ncclDevKernel_AllGather", 5000 + rank, 100)
        for number in range(20):  # they relate the clocks
            own.kernel("ncclDevKernel_Broadcast", 100_000 + 10_000 * number + 77 * number**2, 100)
        with DatasetWriter(tmp_path, run="a", rank=rank) as writer:
            writer.write(own.recording())
    query = "select name, pairing, cost_ns from answer_ranks where name like '%_All%' order by name, ordinal"
    found = Dataset(tmp_path).sql(query)
    assert found["pairing"].tolist() == ["by ordinal", "unknown", "unknown"]
    assert found["cost_ns"].tolist()[0] == 1


@pytest.mark.medium
def test_queries_for_nsys_databases_run(annotated_dataset):
    answer = annotated_dataset.sql(
        """
        SELECT s.value AS name, COUNT(*) AS instances, SUM(k."end" - k.start) AS total_ns
        FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName
        GROUP BY s.value ORDER BY total_ns DESC LIMIT 2
        """
    )
    assert [tuple(row.values()) for row in answer] == [
        ("D", 4, 1080),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4, 640),
    ]
    answer = annotated_dataset.sql(
        """
        SELECT COUNT(*) AS launches FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId
          AND r.globalTid // 16777216 = k.globalPid // 16777216 AND r.rank = k.rank AND r.step = k.step
        JOIN NVTX_EVENTS AS n ON n.rank = k.rank AND n.step = k.step AND r.start BETWEEN n.start AND n."end"
          AND n.globalTid = r.globalTid
        """
    )
    assert answer["launches"].tolist() == [12]


@pytest.mark.medium
def test_ranges_have_the_process_and_the_thread_of_their_calls(build, tmp_path):
    build.call("cudaLaunchKernel", 100, 10, process_id=77, correlation_id=1)
    build.annotation("called", 50, 100, 1).annotation("without a call", 50, 100, 2)
    build.rows["annotations"][-1]["thread_id"] = 12
    with DatasetWriter(tmp_path, run="a") as writer:
        writer.write(build.recording())
    found = Dataset(tmp_path).sql(
        "select globalTid from CUPTI_ACTIVITY_KIND_RUNTIME union all (select globalTid from NVTX_EVENTS order by text)"
    )
    assert found["globalTid"].tolist() == [77 * 2**24 + 11, 77 * 2**24 + 11, 77 * 2**24 + 12]


def test_every_question_has_a_view_in_every_dialect():
    for dialect in DIALECTS:
        assert sorted(view_texts(dialect)) == sorted(view_names()), "run make views"
    assert {f"answer_{question}" for question in QUESTIONS} <= set(view_names())


@pytest.mark.medium
def test_the_kept_columns_of_facts_follow_from_the_questions(load_script):
    pytest.importorskip("ibis", reason="THE COLUMNS WERE NOT GENERATED AGAIN: ibis-framework is not installed")
    assert load_script("generate_views").fact_columns() == FILE.read_text(), "run make views"


@pytest.mark.slow
def test_kept_texts_follow_from_the_definitions(load_script, tmp_path):
    pytest.importorskip("ibis", reason="THE VIEWS WERE NOT GENERATED AGAIN: ibis-framework is not installed")
    load_script("generate_views").generate(tmp_path)
    for kept in FOLDER.rglob("*.sql"):
        assert (tmp_path / kept.relative_to(FOLDER)).read_text() == kept.read_text(), f"run make views: {kept}"


def test_views_keep_to_what_all_engines_agree_on():
    for dialect in DIALECTS:
        for view, text in view_texts(dialect).items():
            words = text.upper()
            for trap in (
                "FILTER(",
                "FILTER (",
                "QUALIFY",
                "//",
                "GROUP BY ALL",
                "QUANTILE",
                "PERCENTILE",
                "ASOF",
                "STRUCT",
            ):
                assert trap not in words, f"{trap} in {dialect}/{view}"


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_sqlglot_parses_every_text(dialect):
    sqlglot = pytest.importorskip("sqlglot", reason="THE TEXTS WERE NOT PARSED: sqlglot is not installed")
    for text in view_texts(dialect).values():
        sqlglot.parse_one(text, dialect={"datafusion": "postgres"}.get(dialect, dialect))


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", ["snowflake", "databricks", "trino", "clickhouse", "postgres"])
def test_sqlglot_parses_what_ibis_writes_in_other_dialects(dialect):
    pytest.importorskip("ibis", reason="THE VIEWS WERE NOT WRITTEN IN OTHER DIALECTS: ibis-framework is not installed")
    sqlglot = pytest.importorskip("sqlglot")
    for view in view_names():
        sqlglot.parse_one(view_text(view, dialect), dialect=dialect)


def test_sql_prints_a_view(capsys):
    assert main(["sql", "--dialect", "bigquery", "--print", "answer_overlap"]) == 0
    assert "`step_overlap`" in capsys.readouterr().out
    assert main(["sql", "--print", ""]) == 2
    assert "there is no view ''" in capsys.readouterr().err
    assert main(["sql", "--print", "answer_overlap", "--dialect", ""]) == 2
    assert "the name of the dialect is empty" in capsys.readouterr().err
    assert main(["sql", "--print", "nonsense"]) == 2
    assert "there is no view 'nonsense'" in capsys.readouterr().err
    assert main(["sql", "--print", "answer_kernel"]) == 2
    assert "there is no view 'answer_kernel'; did you mean answer_kernels? Choose one of " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--dialect", "bigquery", "runs", "select 1"], "--dialect is that of --print"),
        (["--print", "answer_overlap", "runs", "select 1"], "--print prints the query of a view"),
        (["--print", "answer_overlap", "--tables"], "--print prints the query of a view"),
    ],
)
def test_options_of_sql_that_would_do_nothing_are_refused(words, why, capsys):
    assert main(["sql", *words]) == 2
    found = capsys.readouterr()
    assert (found.out, found.err.count("\n")) == ("", 1)
    assert why in found.err


@pytest.mark.medium
def test_other_dialects_are_compiled_by_ibis():
    pytest.importorskip("ibis")
    assert "SELECT" in view_text("answer_kernels", "snowflake")
    with pytest.raises(CollectorError, match="there is no dialect 'snowflak'; did you mean snowflake") as refused:
        view_text("answer_kernels", "snowflak")
    assert {"bigquery", "duckdb", "spark", "trino"} <= set(
        refused.value.remedy.removeprefix("Choose one of ").split(", ")
    )
