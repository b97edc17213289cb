"""Selection of the rows of an answer for a page, if there are more than a page takes.

They are the first ones, except where the rows are a tree (``path``, ``depth`` and a total): of a tree they are the rows
with the largest totals and those around them, in the order of the tree. What is left out of it is counted and summed up
by the row that it is inside of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.tree_rows import largest_rows, left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.tree_rows import LeftOut

    Numbers = npt.NDArray[np.int64]

MOST_ROWS = 5000
"""The maximum number of rows of an answer in the page; the answer also has the total number."""


@dataclass(frozen=True)
class GivenRows:
    """Rows of an answer."""

    places: Numbers
    chosen_by: str = ""
    """The column by whose largest figures the rows were chosen; ``""``: they are the first ones, or all."""
    left_out: Sequence[LeftOut] = ()
    """The rows of a tree that are not given."""


def given_rows(answer: Answer, most: int = MOST_ROWS) -> GivenRows:
    """The rows of an answer that a page is given."""
    total = next((column.name for column in answer.columns if column.name.startswith("total_")), "")
    if len(answer) <= most or not total or not {"path", "depth"} <= answer.values.keys():
        return GivenRows(np.arange(min(len(answer), most)))
    depths, totals = answer["depth"], answer[total]
    places = largest_rows(depths, totals, most)
    return GivenRows(places, total, left_out(depths, totals, places))
