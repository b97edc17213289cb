"""Assigns unique numbers: the wanted number, or the next free one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class FreeNumbers:
    """The numbers that are taken. Taking n numbers takes O(n) time, even if all want the same one."""

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._taken = set(taken)
        self._following: dict[int, int] = {}
        """Wanted number -> the smallest number that may be free when it is wanted again."""

    def take(self, wanted: int) -> int:
        """Take the wanted number, or the next free one, and return it."""
        number = self._following.get(wanted, wanted)
        while number in self._taken:
            number += 1
        self._taken.add(number)
        self._following[wanted] = number + 1
        return number
