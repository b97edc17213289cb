"""One answer about a step or a part of it, as it is sent to the page on request."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.between import between
from collector.analysis.questions import QUESTIONS
from collector.text.natural_order import natural_order
from collector.text.shell_words import file_argument
from collector.web.answer_commands import (
    answer_keys,
    python_expression,
    sql_command,
    stats_command,
)
from collector.web.given_rows import MOST_ROWS, GivenRows
from collector.web.opened_runs import Latest, RefusedError
from collector.web.report_data import answer_data
from collector.web.text_search import matching_texts

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.formats.step import TracedStep


@dataclass(frozen=True)
class AskedAnswer:
    """The question of a page."""

    key: str
    """Name of a question, and behind a ``/`` what its rows are counted by, where there is a choice."""
    part: tuple[int, int] | None = None
    """Start and end of the part of the step that is asked about, ns since it began; None: all of it."""
    search: str = ""
    """Only rows with a text that matches this regular expression; for answers with more rows than a page gets."""
    sort: str = ""
    """``COLUMN.asc`` or ``COLUMN.desc``: the order of the rows, before the first ones are taken."""


def keys() -> list[str]:
    """The keys of all questions about one step."""
    return [key for name, question in QUESTIONS.items() if not question.of_ranks for key in answer_keys(name)]


def single_answer(step: TracedStep, name: str, asked: AskedAnswer, latest: Latest | None = None) -> dict[str, Any]:
    """An answer, with the Python expression and the command that give the same.

    Args:
        step: the step.
        name: the name of its file.
        asked: the question.
        latest: what it returned last about this step is kept here: who searches or sorts asks for other rows of it.

    Raises:
        RefusedError: there is no such question, or its options are wrong.
    """
    if asked.key not in keys():
        raise RefusedError(f"there is no question {asked.key!r}")
    question, _, by = asked.key.partition("/")
    argument, cli = "step", stats_command(question, by, file_argument(name))
    if asked.part is not None:
        start_ns, end_ns = asked.part
        argument = f"analysis.between(step, {start_ns}, {end_ns})"
        cli += f" --window {start_ns}ns..{end_ns}ns"
    latest = {} if latest is None else latest
    known = latest.get((asked.key, asked.part))
    if known is None:
        part = step if asked.part is None else between(step, *asked.part)
        known = part, QUESTIONS[question].answer(part, by)
        latest.clear()
    part, answer = known
    if len(answer) > MOST_ROWS:
        latest[asked.key, asked.part] = known
    rows = _rows(answer, asked)
    data = answer_data(
        answer,
        None if rows is None else GivenRows(rows[:MOST_ROWS]),
        recording=part.recording,
        began_ns=step.recording.clock.cupti_start_ns,
    )
    if rows is not None and len(rows) < len(answer):
        data["totals"] = {}  # which are those of all rows
    return {
        **data,
        "rows": len(answer) if rows is None else len(rows),
        "part": None if asked.part is None else {"start": asked.part[0], "end": asked.part[1]},
        "python": python_expression(question, by, argument),
        "cli": cli,
        "sql": sql_command(answer, file_argument(name)) if asked.part is None else "",
    }


def _rows(answer: Answer, asked: AskedAnswer) -> npt.NDArray[np.int64] | None:
    """The rows to give, where the page cannot search and sort by itself because it is not given all of them."""
    if len(answer) <= MOST_ROWS or not (asked.search or asked.sort):
        return None
    kept = np.arange(len(answer))
    if asked.search:
        texts = [answer[column.name].tolist() for column in answer.columns if column.unit == "text"]
        found = matching_texts(asked.search, chain.from_iterable(texts))
        kept = kept[[any(each[row] in found for each in texts) for row in range(len(answer))]]
    column, _, order = asked.sort.rpartition(".")
    if column in answer.values:
        values = answer[column][kept]
        is_known = values == values  # what is not known comes last
        distinct, ranks = np.unique(values[is_known], return_inverse=True)
        if any(each.name == column and each.unit == "text" for each in answer.columns):
            parts = [natural_order(text) for text in distinct.tolist()]
            ranks = np.argsort(sorted(range(len(parts)), key=parts.__getitem__))[ranks]
        places = np.full(len(values), len(values))
        places[is_known] = -ranks if order == "desc" else ranks
        kept = kept[np.argsort(places, kind="stable")]
    return kept
