"""The sentences from which the page makes its notes on answers about a part of a step, as `collector.analysis` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.analysis.empty_answers import why_missing
from collector.analysis.questions import QUESTIONS
from collector.analysis.step_marks import CUT_STEPS
from collector.analysis.tracing_cost import note_on_part
from collector.analysis.whole_graphs import COUNTED, NOT_COUNTED
from collector.web.answer_commands import answer_keys

if TYPE_CHECKING:
    from collector.recording.recording import Recording


def part_notes(recording: Recording) -> dict[str, Any]:
    """The sentences for the parts of a recording; see ``web/src/part/notes.js``.

    A sentence with a count has the form that `collector.text.wording.counted` takes.
    """
    asked = {
        key: question.questions[by]
        for name, question in QUESTIONS.items()
        if not question.of_ranks
        for key, by in answer_keys(name).items()
    }
    return {
        "questions": {
            key: {
                "tables": list(question.tables),
                "counts_graphs": question.counts_graphs,
                "otherwise": question.otherwise,
            }
            for key, question in asked.items()
        },
        "missing": {
            ",".join(tables): why_missing([recording], tables, is_part=True)
            for tables in dict.fromkeys(question.tables for question in asked.values())
            if tables
        },
        "graphs_counted": COUNTED,
        "graphs_not_counted": NOT_COUNTED,
        "cut_steps": CUT_STEPS,
        "tracing_cost": note_on_part(recording),
    }
