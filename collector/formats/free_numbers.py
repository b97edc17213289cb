"""Numbers that are given once: the wanted one, or the next free one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class FreeNumbers:
    """The numbers that are taken. Taking many costs as much as there are, even if all want the same one."""

    def __init__(self, taken: Iterable[int] = ()) -> None:
        self._taken = set(taken)
        self._following: dict[int, int] = {}
        """Wanted number -> the least number that may be free for the next one that wants it."""

    def take(self, wanted: int) -> int:
        """The wanted number, or the next one that nobody has."""
        number = self._following.get(wanted, wanted)
        while number in self._taken:
            number += 1
        self._taken.add(number)
        self._following[wanted] = number + 1
        return number
