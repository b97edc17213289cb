"""Facts about one step: the native code's answers, stored as small tables when the step is written.

Questions about intervals, gaps and paths are answered once, exactly, where the rows are at hand; SQL reads the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.questions import QUESTIONS
from collector.analysis.shared_values import shared_values
from collector.analysis.units import UNITS
from collector.dataset.dataset_arrow import table_of
from collector.dataset.dataset_tables import DOUBLE, INT64, LEDGER, STEP, STEP_ROWS, TEXT
from collector.dataset.fact_tables import fact_tables
from collector.recording.capture import empty_capture
from collector.recording.recording import Recording
from collector.runtime.optional_packages import optional_package

if TYPE_CHECKING:
    from collections.abc import Container

    import pyarrow as pa

    from collector.analysis.answer import Answer

FACTS: Mapping[str, tuple[str, str]] = {
    "step_devices": ("devices", ""),
    "step_overlap": ("overlap", "device"),
    "step_concurrency": ("concurrency", ""),
    "step_streams": ("streams", ""),
    "step_idle": ("idle", ""),
    "step_idle_ops": ("idle_ops", ""),
    "step_gaps": ("idle_gaps", ""),
    "step_path": ("critical_path", "kind"),
    "step_kernel_names": ("kernels", "name"),
    "step_kernels": ("kernels", "shape"),
    "step_ops": ("ops", ""),
    "step_backward": ("backward", ""),
    "step_copies": ("copies", ""),
    "step_launches": ("launches", ""),
    "step_graphs": ("graphs", ""),
    "step_calls": ("calls", ""),
    "step_annotations": ("annotation_times", "name"),
    "step_queue": ("queue", "stream"),
    "step_memory": ("memory", "pool"),
    "step_memory_growth": ("memory_growth", "step"),
    "step_occupancy": ("occupancy", ""),
    "step_tensor_core_uses": ("tensor_cores", "use"),
    "step_tensor_cores": ("tensor_cores", "name"),
    "step_marks": ("steps", ""),
    "step_code_loading": ("code_loading", ""),
    "step_cost": ("tracing_cost", ""),
    STEP_ROWS: ("ledger", "table"),
    LEDGER: ("ledger", "figure"),
}
"""Table -> the question that it answers, and what its rows are counted by; of a question's tables the first is the one
that its view reads, and has the rows that `collector stats` shows unless it is asked to count by something else."""


def answer_of(table: str, recording: Recording) -> Answer:
    """The answer that a table of facts stores."""
    question, by = FACTS[table]
    return QUESTIONS[question].answer(recording, by)


NUMBER = Column("number", "number", "Place among the rows of the step.")


def columns_of_facts() -> dict[str, dict[str, str]]:
    """The columns of the tables of `FACTS` with their types: those of their answers.

    `make views` keeps them in a file, so that readers of datasets need not load every question.
    """
    nothing = Recording.from_capture(empty_capture())
    stored = {name: _stored(answer_of(name, nothing)) for name in FACTS}
    return {name: {each.name: _TYPES[UNITS[each.unit].dtype] for each in columns} for name, columns in stored.items()}


def step_facts(recording: Recording, step: int, names: Container[str]) -> dict[str, pa.Table]:
    """The tables of facts about a step that have rows; NaN, which stands for what is not known, is NULL.

    Args:
        recording: the recording of one step.
        step: the step's number.
        names: the names of the tables that are made.
    """
    pa = optional_package("pyarrow")
    found = {}
    with shared_values():
        for table in fact_tables():
            if table.name not in names:
                continue
            answer = answer_of(table.name, recording)
            if len(answer):
                columns: dict[str, Any] = {
                    each.name: pa.array(answer[each.name], from_pandas=True)
                    if answer[each.name].dtype == np.float64
                    else answer[each.name]
                    for each in _stored(answer)
                    if each is not NUMBER
                }
                columns[STEP.name] = np.full(len(answer), step, np.int64)
                columns[NUMBER.name] = np.arange(len(answer), dtype=np.int64)
                found[table.name] = table_of(table, columns)
    return found


_OF_SEVERAL_STEPS = ("z", "verdict", "op", "op_excess_ns", "op_z")
"""Columns about a step among others, of which each is written without knowing the others."""


def _stored(answer: Answer) -> list[Column]:
    """The columns of an answer about one step that are stored."""
    if answer.question != "steps":
        return list(answer.columns)
    kept = [each for each in answer.columns if each.name not in (STEP.name, *_OF_SEVERAL_STEPS)]
    return [NUMBER, *kept]


_TYPES = {np.int64: INT64, np.float64: DOUBLE, object: TEXT}
