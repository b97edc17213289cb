"""The sentences from which the page makes notes on answers about a part of a step, and their losses, as Python does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.analysis.activities import REPETITIONS
from collector.analysis.backward import AMBIGUOUS_OPS, UNRECORDED_OPS
from collector.analysis.empty_answers import why_missing
from collector.analysis.memory import ADDRESSES_IN_USE, ODD_OPERATIONS, UNKNOWN_FREES
from collector.analysis.questions import QUESTIONS
from collector.analysis.queue_depth import BEFORE_CALL, WITHOUT_CALL
from collector.analysis.step_marks import CUT_STEPS
from collector.analysis.tracing_cost import note_on_part
from collector.analysis.whole_graphs import COUNTED, NOT_COUNTED
from collector.web.answer_commands import answer_keys

if TYPE_CHECKING:
    from collector.recording.recording import Recording


def part_notes(recording: Recording) -> dict[str, Any]:
    """The sentences for the parts of a recording; see ``notes.js`` and ``losses.js`` in ``web/src/part``.

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
        "losses": {
            "repetitions": REPETITIONS,
            "without_call": WITHOUT_CALL,
            "before_call": BEFORE_CALL,
            "unknown_frees": UNKNOWN_FREES,
            "addresses_in_use": ADDRESSES_IN_USE,
            "odd_operations": ODD_OPERATIONS,
            "unrecorded_ops": UNRECORDED_OPS,
            "ambiguous_ops": AMBIGUOUS_OPS,
        },
    }
