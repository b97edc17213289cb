"""The views on a real Spark in local mode: `make test-sql`."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("pyspark", reason="THE VIEWS WERE NOT RUN ON SPARK: pyspark is not installed (make test-sql)")
if shutil.which("java") is None:
    pytest.skip("THE VIEWS WERE NOT RUN ON SPARK: there is no Java runtime", allow_module_level=True)

from sql_engines import arrow_tables, duckdb_rows, sorted_rows

from collector.dataset import Dataset, DatasetWriter
from collector.dataset.view_files import view_texts

pytestmark = pytest.mark.slow


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
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def spark_dataset(example_builder, tmp_path):
    example_builder.annotation("layer", 0, 120, 1, 1, 2)
    with DatasetWriter(tmp_path / "runs", run="a") as writer:
        writer.write(example_builder.recording())
    return Dataset(tmp_path / "runs")


def test_spark_gives_the_same_rows(spark, spark_dataset):
    for name, rows in arrow_tables(spark_dataset).items():
        if name in spark_dataset.files.by_table:  # as a user reads it: the folder, with its partitions
            spark.read.option("basePath", str(spark_dataset.folder / name)).parquet(
                str(spark_dataset.folder / name)
            ).createOrReplaceTempView(name)
        else:
            spark.createDataFrame(rows).createOrReplaceTempView(name)
    expected, _ = duckdb_rows(spark_dataset)
    for view, text in view_texts("spark").items():
        found = sorted_rows(row.asDict() for row in spark.sql(text).collect())
        assert found == expected[view], view
