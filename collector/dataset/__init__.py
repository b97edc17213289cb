"""Datasets: the steps of many ranks and runs in Parquet files, for questions in SQL and for `collector.analysis`.

>>> from collector.dataset import Dataset, DatasetWriter
>>> with DatasetWriter("runs", run="tuesday") as writer:  # doctest: +SKIP
...     writer.write(step.recording)
>>> Dataset("runs").sql("select name, sum(duration_ns) from kernels group by name")  # doctest: +SKIP
"""

from collector.dataset.dataset import Dataset
from collector.dataset.dataset_writer import DatasetWriter

__all__ = ["Dataset", "DatasetWriter"]
