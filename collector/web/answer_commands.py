"""The keys of answers on a page, and the Python expression and the commands that give the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.questions import QUESTIONS
from collector.dataset.fact_tables import fact_tables

if TYPE_CHECKING:
    from collector.analysis.answer import Answer

_STEP_COLUMNS = ("run", "rank", "step")
"""Columns of a table of facts that identify the step of a row."""


def answer_keys(question: str) -> dict[str, str]:
    """Key of each answer to a question -> what its rows are counted by; ``""`` where there is no choice."""
    return {f"{question}/{by}" if by else question: by for by in QUESTIONS[question].questions}


def python_expression(question: str, by: str, argument: str) -> str:
    """The expression that asks the question about ``argument``."""
    return f"analysis.{question}({argument}, by={by!r})" if by else f"analysis.{question}({argument})"


def stats_command(question: str, by: str, files: str) -> str:
    """The command that asks the question about ``files``, which are written as arguments of a shell's command."""
    return f"collector stats {files} --question {question}" + (f" --by {by}" if by else "")


def sql_command(answer: Answer, files: str) -> str:
    """The command that asks for the same rows in SQL; ``""`` where no table of facts has just these columns."""
    names = [column.name for column in answer.columns]
    for table in fact_tables():
        if [column.name for column in table.columns if column.name not in _STEP_COLUMNS] == names:
            return f'collector sql {files} "select * from {table.name}"'
    return ""
