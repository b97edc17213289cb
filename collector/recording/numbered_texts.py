"""Texts that rows refer to by number; one text may have several numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

_MOST_IN_TABLE = 1 << 22
"""Numbers below this are looked up in a table; larger ones are searched for, which takes longer."""


class NumberedTexts:
    """The distinct texts, and for each number the index of its text among them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._place_of: dict[str, int] = {}
        self._numbers: list[int] = []
        self._places: list[int] = []
        self._next = 0

    def add(self, number: int, text: str) -> None:
        """Let ``text`` have this number, whichever text had it before."""
        place = self._place_of.setdefault(text, len(self.texts))
        if place == len(self.texts):
            self.texts.append(text)
        self._numbers.append(number)
        self._places.append(place)

    def append(self, texts: Iterable[str]) -> None:
        """Give ``texts`` the numbers that follow those of the last call; the first number is 0."""
        for text in texts:
            self.add(self._next, text)
            self._next += 1

    def count_from(self, number: int) -> None:
        """Let the next call of `append` begin with ``number``."""
        self._next = number

    def places(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The indices in ``texts`` of the texts with these numbers; -1: there is none."""
        known = np.array(self._numbers, "i8")
        most = int(known.max(initial=-1))
        if most < _MOST_IN_TABLE:
            table = np.full(most + 2, -1, "i8")
            table[known] = self._places  # of equal numbers the last one counts
            found: npt.NDArray[np.int64] = table[np.minimum(numbers, most + 1)]  # the last is that of -1, too
            return found
        order = np.argsort(known, kind="stable")
        last = np.searchsorted(known, numbers, side="right", sorter=order) - 1
        at = order[last]  # of the last number where `last` is -1
        return np.where((last >= 0) & (known[at] == numbers), np.array(self._places, "i8")[at], -1)
