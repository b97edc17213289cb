"""Ask a dataset on Spark: its tables, and the views of `collector sql`, as temporary views.

    spark-submit examples/spark_dataset.py s3a://bucket/runs 'SELECT * FROM answer_kernels ORDER BY total_ns DESC'

The folder may be in any storage that Spark reads. Only the driver needs cupti-collector, for the texts of the views.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from collector.dataset.view_files import view_texts

_TYPES = {"int64": "BIGINT", "int32": "INT", "string": "STRING", "bool": "BOOLEAN", "double": "DOUBLE"}


def create_views(spark: Any, folder: str) -> None:
    """Make a temporary view for each table and each view of a dataset.

    The types are those of schema.json, because Spark takes a run that is called ``1234`` for a number. A table that has
    no rows yet has no files, and becomes an empty one. The files of ``steps`` are listed first: whatever is added
    meanwhile, other tables have all rows of these steps.

    Args:
        spark: the session.
        folder: of the dataset; a path or an address.
    """
    from pyspark.errors import AnalysisException

    ((_, text),) = spark.sparkContext.wholeTextFiles(f"{folder}/schema.json").collect()
    document = json.loads(text)
    for name, table in sorted(document["tables"].items(), key=lambda each: each[0] != "steps"):
        partitions = {"run": "STRING", "rank": "INT"}
        columns = [f"`{each['name']}` {_TYPES[each['type']]}" for each in table["columns"]]
        schema = ", ".join([*columns, *(f"{place} {partitions[place]}" for place in table["partitions"])])
        try:
            rows = spark.read.schema(schema).option("basePath", f"{folder}/{name}").parquet(f"{folder}/{name}")
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            rows = spark.createDataFrame([], schema)
        rows.createOrReplaceTempView(name)
    for name, labels in document["enums"].items():
        pairs = [(int(number), label) for number, label in labels.items()]
        spark.createDataFrame(pairs, "id INT, label STRING").createOrReplaceTempView(name)
    for name, query in view_texts("spark").items():
        spark.sql(query).createOrReplaceTempView(name)


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("dataset").getOrCreate()
    create_views(session, sys.argv[1])
    session.sql(sys.argv[2]).show(1000, truncate=False)
