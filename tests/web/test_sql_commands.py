"""The queries that stand beside tables: in SQL they give the rows of the answer, digit for digit."""

from __future__ import annotations

import shlex

import pytest

import collector
from collector import analysis
from collector.analysis.questions import QUESTIONS
from collector.web.answer_commands import answer_keys, answer_options, sql_command

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

ASKED = {"devices", "idle", "idle_gaps", "kernels/name", "kernels/shape", "ops", "calls", "launches", "streams"}
"""Answers that have a query whatever else has one."""


def rows_of(answer, names):
    """The rows of an answer as texts, in order; what is not known is empty."""
    columns = [answer[name].tolist() for name in names]
    return sorted(str(tuple("" if value != value else value for value in row)) for row in zip(*columns, strict=True))


@pytest.mark.medium
@pytest.mark.parametrize("name", ["torch_tutorial/h100_transformer_before.json.gz", "hta/a100_alexnet.json.gz"])
def test_the_queries_give_the_answers(shared, name):
    from collector.dataset.database import Database

    path = shared / "data" / "gpu_traces" / name
    step, found = collector.load(path), set()
    with Database.of([path]) as database:
        for question, named in QUESTIONS.items():
            for key, by in answer_keys(question).items() if not named.of_ranks else ():
                answer = named.ask(step, **answer_options(by))
                if command := sql_command(answer, "step.pb"):
                    found.add(key)
                    *_, query = shlex.split(command)
                    names = [column.name for column in answer.columns]
                    assert rows_of(database.sql(query), names) == rows_of(answer, names), key
    assert found >= ASKED


def test_an_answer_without_a_table_of_its_own_has_no_query(example):
    assert sql_command(analysis.kernels(example, by="stream"), "step.pb") == ""
