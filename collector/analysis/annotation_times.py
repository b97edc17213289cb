"""Time of the host in annotations: ``collector.analysis.annotation_times(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.annotation_paths import annotation_paths
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.named_question import named_question

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

_KEYS = {
    "name": Column("name", "text", "Name of the annotation; for annotations of `collector.annotate` its path."),
    "path": Column(
        "path", "text", "Names of the enclosing annotations on its thread and its own name, joined by slashes."
    ),
}
QUESTIONS = {
    by: Question(
        "annotation_times",
        f"Annotations counted by {by}: time of the host from entering to leaving them, whatever the device did.",
        (
            column,
            Column("count", "count", "Number of times that it was entered."),
            Column("total_ns", "ns", "Sum of the times in it."),
            Column("min_ns", "ns", "Shortest time."),
            Column("median_ns", "ns", "Median of the times; of an even number of times the lower middle one."),
            Column("max_ns", "ns", "Longest time."),
        ),
        summed=("count", "total_ns"),
        tables=("annotations",),
    )
    for by, column in _KEYS.items()
}


@named_question(QUESTIONS, aliases={"nvtx_sum": "name", "nvtx_pushpop_sum": "name"})
def annotation_times(steps: Asked, *, by: str = "name") -> Answer:
    """Annotations and the time that the host spent in them, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``name`` or ``path``.

    Raises:
        ValueError: ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "annotations are")
    return question.ask(steps, lambda recording: _part(recording, by))


def _part(recording: Recording, by: str) -> Part:
    table = recording.annotations
    if by == "name":
        keys = Keys.of(table.name_id, table.text)
    else:
        paths, index = annotation_paths(recording)
        keys = Keys.of(index[: len(table)], paths.__getitem__)  # the step's own annotations come first
    groups = DurationGroups([keys], np.maximum(table.duration_ns, 0))
    return Part(groups.named_keys([_KEYS[by]]) | groups.figures(), (), groups.evidence("annotations"))
