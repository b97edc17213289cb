"""The views on a real Spark in local mode, and the example that makes facts of many ranks there: `make test-sql`."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("pyspark", reason="THE VIEWS WERE NOT RUN ON SPARK: pyspark is not installed (make test-sql)")
if shutil.which("java") is None:
    pytest.skip("THE VIEWS WERE NOT RUN ON SPARK: there is no Java runtime", allow_module_level=True)

from sql_engines import duckdb_rows, sorted_rows

from collector.dataset import Dataset, DatasetWriter
from collector.dataset.view_files import view_texts

pytestmark = [
    pytest.mark.slow,
    # Spark warns of versions of pandas that it was not tested with.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def spark():
    """One thread on this machine alone, without a page."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        # For a few rows Spark spends its time on compiling queries, and its memory on tables that it broadcasts.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def spark_dataset(example_builder, tmp_path):
    example_builder.annotation("layer", 0, 120, 1, 1, 2)
    with DatasetWriter(tmp_path / "runs", run="1234") as writer:  # the name of a job, which is no number
        writer.write(example_builder.recording())
    return Dataset(tmp_path / "runs")


@pytest.fixture
def create_views(root):
    """The function of the example that users begin with."""
    return runpy.run_path(str(root / "examples" / "spark_dataset.py"))["create_views"]


def check_views(spark, dataset, create_views):
    """Every view of Spark has the rows of DuckDB's, which other tests hold equal to the native answers."""
    create_views(spark, str(dataset.folder))
    expected, _ = duckdb_rows(dataset)
    for view in view_texts("spark"):
        found = sorted_rows(spark.table(view).toArrow().to_pylist())
        assert found == expected[view], view


def test_spark_gives_the_same_rows_about_a_small_dataset(spark, spark_dataset, create_views):
    check_views(spark, spark_dataset, create_views)


def test_spark_gives_the_same_rows_about_recorded_traces(spark, recorded_traces, tmp_path, create_views):
    with DatasetWriter(tmp_path / "runs", run="a") as writer:
        for trace in recorded_traces:
            writer.write(trace.recording)
    check_views(spark, Dataset(tmp_path / "runs"), create_views)


def test_the_example_makes_the_facts_of_every_rank(example, tmp_path, root):
    example.save(tmp_path / "rank0_step0.gpurec")
    content = (tmp_path / "rank0_step0.gpurec").read_bytes()
    for rank in range(64):
        for step in range(20):
            (tmp_path / f"rank{rank}_step{step}.gpurec").write_bytes(content)
    options = "--master local[1] --conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
    done = subprocess.run(
        [sys.executable, str(root / "examples" / "spark_traces.py"), str(tmp_path / "rank*_step*.gpurec")],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": options,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [[each.strip() for each in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    assert rows[0] == ["rank", "steps", "busy_ns", "exposed_ns"]
    assert [row[:3] for row in rows[1:]] == [[str(rank), "20", "690.0"] for rank in range(64)]
