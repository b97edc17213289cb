"""The queries that stand beside tables: in SQL they give the rows of the answer, digit for digit."""

from __future__ import annotations

import shlex

import pytest
from many_annotations import many_annotations

import collector
from collector import analysis
from collector.analysis.questions import QUESTIONS
from collector.web.answer_commands import answer_keys, sql_command
from collector.web.report_data import step_data

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
                answer = named.answer(step, by)
                if command := sql_command(answer, "step.pb"):
                    found.add(key)
                    *_, query = shlex.split(command)
                    names = [column.name for column in answer.columns]
                    assert rows_of(database.sql(query), names) == rows_of(answer, names), key
    assert found >= ASKED


@pytest.mark.medium
def test_the_largest_annotations_of_a_page_are_those_of_a_query(build, tmp_path):
    from collector.dataset.database import Database

    path = tmp_path / "step.gpurec"
    many_annotations(build).recording().save(path)
    ops = step_data(collector.load(path), "step.gpurec").described["answers"]["ops"]
    with Database.of([path]) as database:
        found = database.sql("select * from step_ops order by self_ns desc, path limit 8")
    names = [column["name"] for column in ops["columns"]]
    assert ops["largest"] == [found[name].tolist() for name in names]
    assert ops["largest"][0][0] == "validate"


def test_an_answer_without_a_table_of_its_own_has_no_query(example):
    assert sql_command(analysis.kernels(example, by="stream"), "step.pb") == ""
