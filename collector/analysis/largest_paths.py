"""The paths that a summary shows: those with the largest figures of an answer."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer


def largest_paths(answer: Answer, column: str, most: int) -> npt.NDArray[np.int64]:
    """The places of the rows with the largest figures, the largest first; equal ones are in the order of their paths.

    Args:
        answer: an answer with a column ``path``.
        column: the column of the figures.
        most: the maximum number of rows.
    """
    paths, figures = answer["path"].tolist(), answer[column].tolist()
    places = nsmallest(most, range(len(paths)), key=lambda place: (-figures[place], paths[place]))
    return np.array(places, np.int64)
