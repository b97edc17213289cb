"""Trees as columns: rows in depth-first order, so that the subtree of a row is contiguous.

Sums over subtrees and over ancestors are then differences of running sums, without a Python object or call per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collector.profiler.node_fields import Ints

Mask = NDArray[np.bool_]


class Preorder:
    """The shape of a tree, or of several trees side by side.

    Args:
        ends: for each row in depth-first order, the row after its subtree.
    """

    def __init__(self, ends: Ints) -> None:
        self.ends = ends

    @classmethod
    def of_depths(cls, depths: Sequence[int]) -> Preorder:
        """The tree whose rows have these depths: 0 in the first row, at most 1 more than in the previous row."""
        ends = [len(depths)] * len(depths)
        open_: list[int] = []
        for row, depth in enumerate(depths):
            while len(open_) > depth:
                ends[open_.pop()] = row
            open_.append(row)
        return cls(np.array(ends, np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def above(self, values: Ints) -> Ints:
        """For each row the sum of ``values`` over its ancestors."""
        rows = np.flatnonzero(values)
        changes = np.zeros(len(self) + 1, np.int64)
        changes[rows + 1] = values[rows]
        np.subtract.at(changes, self.ends[rows], values[rows])
        return np.cumsum(changes)[:-1]

    def below(self, values: Ints) -> Ints:
        """For each row the sum of ``values`` over it and all rows below it; rows are along the last axis.

        Sums beyond 64 bits wrap around, as tfprof's do.
        """
        sums = np.zeros((*values.shape[:-1], len(self) + 1), np.int64)
        np.cumsum(values, axis=-1, out=sums[..., 1:])
        return sums[..., self.ends] - sums[..., :-1]

    @cached_property
    def depths(self) -> Ints:
        """The number of ancestors of each row."""
        return self.above(np.ones(len(self), np.int64))

    @cached_property
    def parents(self) -> Ints:
        """The row above each row, -1 for none."""
        count = len(self)
        rows = np.arange(count)
        by_depth = np.sort(self.depths * count + rows)
        before = np.searchsorted(by_depth, (self.depths - 1) * count + rows) - 1
        return np.where(self.depths > 0, by_depth[before] % max(count, 1), -1)

    @cached_property
    def ranks(self) -> Ints:
        """The number of siblings before each row."""
        order = np.argsort(self.parents, kind="stable")
        firsts = np.flatnonzero(np.diff(self.parents[order], prepend=-2))
        ranks = np.empty(len(self), np.int64)
        ranks[order] = np.arange(len(self)) - np.repeat(firsts, np.diff(firsts, append=len(self)))
        return ranks

    def part(self, rows: Mask) -> Preorder:
        """The tree of some rows: the parent of each is its nearest ancestor among them."""
        places = np.concatenate([[0], np.cumsum(rows)])
        return Preorder(places[self.ends[rows]])

    def sorted_by(self, key: Ints) -> Ints:
        """The rows in a depth-first order with siblings sorted by ascending keys (stable)."""
        order = np.lexsort((key, self.parents))
        parents, sizes = self.parents[order], (self.ends - np.arange(len(self)))[order]
        before = np.cumsum(sizes) - sizes
        firsts = np.flatnonzero(np.diff(parents, prepend=-2))
        offsets = np.empty(len(self), np.int64)
        offsets[order] = before - np.repeat(before[firsts], np.diff(firsts, append=len(order))) + (parents >= 0)
        places = offsets + self.above(offsets)
        found = np.empty(len(self), np.int64)
        found[places] = np.arange(len(self))
        return found
