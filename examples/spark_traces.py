"""Answer questions about the traces of many ranks on Spark: the native code runs on each file, SQL on what it found.

    spark-submit examples/spark_traces.py 'traces/rank*_step*.gpurec'

Every file is one step of one rank, and is read by one task; nothing but the small facts leaves it. The same works with
the master of a cluster where all workers see the files and have cupti-collector[arrow] installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TABLE = "step_devices"
"""The facts that are made: busy time, overlap and exposed communication of each device."""
_TASKS_PER_CORE = 4
"""So that cores whose files are small are not idle while others work."""


def device_facts(spark: Any, paths: Sequence[str]) -> Any:
    """The table ``step_devices`` of a dataset as a data frame of Spark, of files instead of a dataset.

    Args:
        spark: the session.
        paths: files of steps, whose names have a rank and a step (``rank3_step12.gpurec``).
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(_facts_of([]).schema)
    files = spark.createDataFrame([(path,) for path in paths], "path string")
    tasks = max(min(len(paths), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism), 1)
    return files.repartition(tasks).mapInArrow(_map, schema)


def _map(batches: Iterator[Any]) -> Iterator[Any]:
    """The facts of the files that a task was given, file by file."""
    for batch in batches:
        for path in batch.column("path").to_pylist():
            yield from _facts_of([path]).to_batches()


def _facts_of(paths: Sequence[str]) -> Any:
    import pyarrow as pa

    import collector
    from collector.dataset.dataset import empty_table
    from collector.dataset.step_facts import step_facts
    from collector.merging.rank_numbers import rank_number, step_number

    found = [empty_table(TABLE)]
    for path in paths:
        name = Path(path).name
        facts = step_facts(collector.load(path).recording, step_number(name) or 0, {TABLE}).get(TABLE)
        if facts is not None:
            rank = pa.array([rank_number(set(), None, name) or 0] * len(facts), pa.int32())
            named = facts.add_column(0, "rank", rank).add_column(0, "run", pa.array([""] * len(facts), pa.string()))
            found.append(named.cast(found[0].schema))
    return pa.concat_tables(found)


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("traces").getOrCreate()
    device_facts(
        session, sorted(map(str, Path(sys.argv[1]).parent.glob(Path(sys.argv[1]).name)))
    ).createOrReplaceTempView(TABLE)
    session.sql(
        """
        SELECT rank, count(*) AS steps, avg(busy_ns) AS busy_ns, max(exposed_communication_ns) AS exposed_ns
        FROM step_devices GROUP BY rank ORDER BY rank
        """
    ).show(10_000)
