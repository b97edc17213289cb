"""The times of the longest kernel, copy or call behind each row of an answer, to which a click on the row leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.recording.recording import Recording


def longest_rows(answer: Answer, recording: Recording, places: npt.NDArray[np.int64], began_ns: int) -> list[list[int]]:
    """Starts and ends of the longest ones, of equal ones of the earliest; empty: the answer does not count such rows.

    Args:
        answer: to a question about the recording.
        recording: a step, or a part of it.
        places: the indices of the rows of the answer.
        began_ns: the begin of the step, from which starts and ends are counted.
    """
    tables = QUESTIONS[answer.question].counts
    if not tables or not answer.evidence:
        return []
    found = [_longest(recording, tables, answer.evidence[place]) for place in places.tolist()]
    return [[start - began_ns for start, _ in found], [end - began_ns for _, end in found]]


def _longest(
    recording: Recording, tables: Iterable[str], evidence: Mapping[str, npt.NDArray[np.int64]]
) -> tuple[int, int]:
    [(name, rows)] = [(name, evidence[name]) for name in tables if name in evidence]
    table = getattr(recording, name)
    starts, lengths = table.start_ns[rows], table.end_ns[rows] - table.start_ns[rows]
    length = int(lengths.max())
    start = int(starts[lengths == length].min())
    return start, start + length
