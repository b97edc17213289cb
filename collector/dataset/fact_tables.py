"""The tables of facts about steps, with the columns that `collector.dataset.step_facts` fills."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from collector.dataset.dataset_tables import INT64, STEP, DatasetColumn, DatasetTable

FILE = Path(__file__).parent / "fact_tables.json"
"""Table -> column -> type; `make views` writes it."""


@cache
def fact_tables() -> tuple[DatasetTable, ...]:
    """The tables of facts."""
    found = json.loads(FILE.read_bytes())
    return tuple(
        DatasetTable(
            name, (STEP, *(DatasetColumn(column, kind, is_known=kind == INT64) for column, kind in columns.items()))
        )
        for name, columns in found.items()
    )
