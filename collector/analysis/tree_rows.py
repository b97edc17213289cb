"""Selection of the rows of a tree to be shown: those with the largest totals, and their parents.

The rows of a tree are in its order: each row is followed by those inside it, whose depths are larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

ROOT = -1
"""The parent of the outermost rows."""


class LeftOut(NamedTuple):
    """The rows inside a row that are left out."""

    place: int
    """The place of that row among the chosen rows; `ROOT`: rows that no chosen row is around."""
    rows: int
    """The number of rows that are left out, at any depth."""
    total: int
    """The sum of the totals of the outermost of them, which include what is inside these."""


def largest_rows(depths: Numbers, totals: npt.NDArray[np.generic], most: int) -> Numbers:
    """The places of the rows with the largest totals, in the order of the tree; of equal ones the first.

    A row whose total is smaller than that of a row inside it counts as that row does, so that the rows around a chosen
    row are chosen as well.

    Args:
        depths: the number of rows around each row.
        totals: the figure of each row that includes the rows inside it.
        most: the number of rows to choose.
    """
    if len(depths) <= most:
        return np.arange(len(depths))
    largest = totals.tolist()
    parents = _parents(depths).tolist()
    for place in range(len(parents) - 1, -1, -1):
        if (parent := parents[place]) != ROOT:
            largest[parent] = max(largest[parent], largest[place])
    # A parent is before the rows inside it, and its figure is not smaller: in a stable order it stays before them.
    order = sorted(range(len(largest)), key=largest.__getitem__, reverse=True)
    return np.array(sorted(order[:most]), np.int64)


def left_out(depths: Numbers, totals: npt.NDArray[np.generic], chosen: Numbers) -> list[LeftOut]:
    """The rows that are left out, by the innermost chosen row around them, in the order of the tree.

    Args:
        depths: the number of rows around each row.
        totals: the figure of each row that includes the rows inside it.
        chosen: places of rows, in the order of the tree, with the rows around each of them.
    """
    place_of = dict(zip(chosen.tolist(), range(len(chosen)), strict=True))
    owners: list[int] = []
    rows: dict[int, int] = {}
    sums: dict[int, int] = {}
    for place, (parent, total) in enumerate(zip(_parents(depths).tolist(), totals.tolist(), strict=True)):
        is_outermost = parent == ROOT or parent in place_of
        owner = place_of.get(parent, ROOT) if is_outermost else owners[parent]
        owners.append(owner)
        if place not in place_of:
            rows[owner] = rows.get(owner, 0) + 1
            sums[owner] = sums.get(owner, 0) + (total if is_outermost else 0)
    return [LeftOut(owner, rows[owner], sums[owner]) for owner in sorted(rows)]


def _parents(depths: Numbers) -> Numbers:
    """The place of the row around each row; `ROOT`: there is none."""
    around: list[int] = []
    parents = []
    for place, depth in enumerate(depths.tolist()):
        parents.append(around[depth - 1] if depth else ROOT)
        around[depth:] = [place]
    return np.array(parents, np.int64)
