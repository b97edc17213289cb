"""Assigns activities to lanes (rows): each to the first lane whose last activity has ended. A readable lanes.h."""

from __future__ import annotations

from collections.abc import Iterable

_NEVER_FREE = float("inf")


class Lanes:
    """The ends of the lanes' last activities in a tournament tree, which finds the first free lane in O(log lanes).

    A complete binary tree with the ends as leaves; each inner node is the minimum of its children. Ends are exact,
    however large.

    Args:
        ends: the ends of the lanes that exist from the start.
    """

    def __init__(self, ends: Iterable[int] = ()) -> None:
        self._capacity = 1
        self._tree: list[float] = [_NEVER_FREE, _NEVER_FREE]  # [1] is the root, [capacity + i] is lane i
        self._number = 0
        for end in ends:
            self._add(end)

    def place(self, before: int, end: int) -> int:
        """Add an activity that ends at ``end`` to the first lane whose end is below ``before``, or to a new lane."""
        if not self._tree[1] < before:
            return self._add(end)
        at = 1
        while at < self._capacity:
            at = 2 * at if self._tree[2 * at] < before else 2 * at + 1
        self._set(at, end)
        return at - self._capacity

    def _add(self, end: int) -> int:
        if self._number == self._capacity:
            ends = self._tree[self._capacity :]
            self._capacity *= 2
            self._tree = [_NEVER_FREE] * self._capacity + ends + [_NEVER_FREE] * len(ends)
            for at in range(self._capacity - 1, 0, -1):
                self._tree[at] = min(self._tree[2 * at], self._tree[2 * at + 1])
        lane = self._number
        self._number += 1
        self._set(self._capacity + lane, end)
        return lane

    def _set(self, at: int, end: int) -> None:
        self._tree[at] = end
        while at > 1:
            at //= 2
            self._tree[at] = min(self._tree[2 * at], self._tree[2 * at + 1])
