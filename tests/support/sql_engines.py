"""The views of a dataset on every engine that tests run, and native answers, as sorted rows that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from collector.analysis.questions import QUESTIONS
from collector.dataset.database import Database
from collector.dataset.dataset import Dataset
from collector.dataset.dataset_folder import tables
from collector.dataset.dataset_tables import ENUMS
from collector.dataset.exports import enum_table
from collector.dataset.view_files import view_texts

Rows = dict[str, list[tuple[Any, ...]]]
"""View -> its rows in order, with columns in order of their names."""


def arrow_tables(dataset: Dataset) -> dict[str, Any]:
    """Every table that views read, as Arrow tables."""
    found = {name: dataset.table(name) for name in tables()}
    return found | {name: enum_table(name) for name in ENUMS}


def duckdb_rows(dataset: Dataset) -> tuple[Rows, dict[str, list[str]]]:
    """The rows of each view, and the names of its columns."""
    found, columns = {}, {}
    with Database.of_dataset(dataset) as database:
        for view in view_texts("duckdb"):
            cursor = database._connection.execute(f'SELECT * FROM "{view}"')
            columns[view] = sorted(each[0] for each in cursor.description)
            names = [each[0] for each in cursor.description]
            found[view] = sorted_rows(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return found, columns


def duckdb_view(dataset: Dataset, view: str) -> list[dict[str, Any]]:
    """The rows of one view by the names of its columns, in no order."""
    query = f'SELECT * FROM "{view}"'
    with Database.of_dataset(dataset, query=query) as database:
        cursor = database._connection.execute(query)
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def datafusion_rows(dataset: Dataset) -> Rows:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    for name, rows in arrow_tables(dataset).items():
        batches = rows.combine_chunks().to_batches()
        if batches:
            context.register_record_batches(name, [batches])
        else:
            context.from_arrow(rows, name=name)
    return {
        view: sorted_rows(context.sql(text).to_arrow_table().to_pylist())
        for view, text in view_texts("datafusion").items()
    }


def sorted_rows(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows as tuples in the order of the names of their columns, sorted; figures with a fraction to nine digits."""
    # Rows can be hundreds of thousands. Equal ones have equal texts, and texts of any types can be sorted.
    return sorted([tuple([_plain(row[name]) for name in sorted(row)]) for row in rows], key=repr)


_PLAIN = {bool, int, str, type(None)}


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else int(value)  # no zero has a sign


def native_rows(dataset: Dataset, columns: Mapping[str, list[str]]) -> Rows:
    """The answers of `collector.analysis` with the columns that the views of questions have.

    Args:
        dataset: to ask about.
        columns: of each view.
    """
    found: Rows = {}
    recordings = [step.recording for step in dataset]
    for name, question in QUESTIONS.items():
        if question.of_ranks or name == "steps":
            continue
        rows = []
        for key, recording in zip(dataset.keys, recordings, strict=True):
            rows += [{**key._asdict(), **row} for row in question.ask(recording)]
        for view in {f"answer_{name}", f"computed_{name}"} & columns.keys():
            found[view] = sorted_rows({column: _known(row[column]) for column in columns[view]} for row in rows)
    return found


def native_steps(dataset: Dataset, columns: Mapping[str, list[str]]) -> Rows:
    """The answer about the steps of each rank, as the view of it has them."""
    rows = []
    for run, rank in sorted({key[:2] for key in dataset.keys}):
        own = [place for place, key in enumerate(dataset.keys) if key[:2] == (run, rank)]
        numbers = Counter[int]()
        for row in QUESTIONS["steps"].ask([dataset[place].recording for place in own]):
            place = row["step"]
            rows.append(
                {**row, "run": run, "rank": rank, "step": dataset.keys[own[place]].step, "number": numbers[place]}
            )
            numbers[place] += 1
    return {"answer_steps": sorted_rows({each: _known(row[each]) for each in columns["answer_steps"]} for row in rows)}


def _known(value: Any) -> Any:
    return None if value != value else value
