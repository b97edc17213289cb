"""Numbers of records that were seen, kept, set apart and lost: ``collector.analysis.ledger(step)``."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.named_question import named_question
from collector.recording.capture_tables import ROWS_CUT
from collector.recording.schema import Tables

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTIONS = {
    "table": Question(
        "ledger",
        "Rows of each table. The rows seen are the rows kept and the rows set apart, which have impossible times or "
        "lie before or after the step. Lost records have no row: see the ledger's figures.",
        (
            Column("table", "text", "Table of the recording."),
            Column("seen", "count", "Number of rows that were recorded."),
            Column("kept", "count", "Number of rows of the step."),
            Column("invalid", "count", "Number of rows set apart because a time is 0 or the end is before the start."),
            Column("early", "count", "Number of rows set apart because they begin before the step."),
            Column("late", "count", "Number of rows set apart because they end after the step."),
        ),
        summed=("seen", "kept", "invalid", "early", "late"),
        tables=(),
        otherwise="No row was recorded.",
    ),
    "figure": Question(
        "ledger",
        "Every figure of the ledger that is not 0, and of a part of a recording the number of rows left out "
        "(rows_cut). Launches seen are the sum of launches matched, failed, captured and without kernel.",
        (
            Column("figure", "text", "Name of the figure."),
            Column("value", "number", "A count, or bytes or ns if the name says so."),
            Column("loss", "text", "The loss that it stands for; empty: no loss."),
        ),
        tables=(),
        otherwise="Every figure is 0.",
    ),
}


@named_question(QUESTIONS)
def ledger(steps: Asked, *, by: str = "table") -> Answer:
    """Rows seen, kept and set apart by table, or every figure of the ledger with the loss that it stands for.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``table`` or ``figure``.

    Raises:
        ValueError: ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "the rows of the ledger are")
    return question.ask(steps, _by_table if by == "table" else _by_figure)


def _by_table(recording: Recording) -> Part:
    rows, evidence = [], []
    for table in fields(Tables):
        kept, apart = len(getattr(recording, table.name)), recording.counts_apart(table.name)
        if kept or any(apart):
            rows.append((table.name, kept + sum(apart), kept, *apart))
            evidence.append({table.name: np.arange(kept)})
    return Part(rows, (), evidence)


def _by_figure(recording: Recording) -> Part:
    own = recording.ledger
    lost = dict(own.explained_losses())
    rows = [(name, value, lost.get(name, "")) for name, value in own.as_dict().items() if value or name == ROWS_CUT]
    unread = dict(zip(sorted(own.unread), own.unread_lines(), strict=True))
    rows += [(f"unread: {what}", own.unread[what], line) for what, line in unread.items()]
    return Part(rows)
