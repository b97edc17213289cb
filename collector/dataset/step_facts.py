"""Facts about one step: the native code's answers, stored as small tables when the step is written.

Questions about intervals, gaps and paths are answered once, exactly, where the rows are at hand; SQL reads the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.questions import QUESTIONS
from collector.dataset.dataset_tables import DOUBLE, INT64, STEP, TEXT, DatasetColumn, DatasetTable
from collector.dataset.step_tables import table_of
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.analysis.answer import Answer

FACTS: Mapping[str, tuple[str, str]] = {
    "step_devices": ("devices", ""),
    "step_overlap": ("overlap", "device"),
    "step_concurrency": ("concurrency", ""),
    "step_streams": ("streams", ""),
    "step_idle": ("idle", ""),
    "step_path": ("critical_path", "kind"),
    "step_kernels": ("kernels", "shape"),
    "step_ops": ("ops", ""),
    "step_queue": ("queue", "stream"),
    "step_memory": ("memory", "pool"),
    "step_occupancy": ("occupancy", ""),
    "step_tensor_cores": ("tensor_cores", "name"),
    "step_cost": ("tracing_cost", ""),
    "step_rows": ("ledger", "table"),
    "ledger": ("ledger", "figure"),
}
"""Table -> the question that it answers, and what its rows are counted by."""


def answer_of(table: str, recording: Recording) -> Answer:
    """The answer that a table of facts stores."""
    question, by = FACTS[table]
    return QUESTIONS[question].ask(recording, **({"by": by} if by else {}))


@cache
def fact_tables() -> tuple[DatasetTable, ...]:
    """The tables of `FACTS`, with the columns of their answers after the step."""
    nothing = Recording.from_capture(empty_capture())
    return tuple(
        DatasetTable(name, (STEP, *(DatasetColumn(each.name, _type(each.unit)) for each in answer.columns)))
        for name, answer in ((name, answer_of(name, nothing)) for name in FACTS)
    )


def step_facts(recording: Recording, step: int) -> dict[str, pa.Table]:
    """The tables of facts about a step that have rows; NaN, which stands for what is not known, is NULL."""
    pa = optional_package("pyarrow")
    found = {}
    for table in fact_tables():
        answer = answer_of(table.name, recording)
        if len(answer):
            columns = {
                name: pa.array(values, from_pandas=True) if values.dtype == np.float64 else values
                for name, values in answer.values.items()
            }
            found[table.name] = table_of(table, {STEP.name: np.full(len(answer), step, np.int64), **columns})
    return found


def _type(unit: str) -> str:
    return TEXT if unit == "text" else DOUBLE if unit in ("share", "ratio", "bytes/s") else INT64
