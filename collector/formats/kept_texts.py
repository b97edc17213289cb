"""Values of rows for which there is no column, kept as text in bounded memory; values left out are counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.row_arguments import ArgumentColumn
from collector.text.library_path import without_home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

_LONGEST = 1 << 12
"""Characters of a value; longer ones, such as binary payloads, are not kept."""
_MOST_CHARACTERS = 1 << 25
"""The maximum number of characters of all distinct values of a file together."""
_MOST_OF_COLUMN = 1 << 23
"""The maximum for one column, so that numbers that differ in each row leave room for other columns."""
_CHARACTERS_PER_VALUE = 100
"""The memory that a value needs besides its characters, as characters."""


class TextRoom:
    """The memory for distinct values that is left, for all columns of a file together."""

    def __init__(self, characters: int = _MOST_CHARACTERS) -> None:
        """Begin with room for this many characters."""
        self._left = characters

    def take(self, text: str) -> bool:
        """Whether there is room for a value; if so, the room is reduced by it."""
        needed = room_of(text)
        if len(text) > _LONGEST or needed > self._left:
            return False
        self._left -= needed
        return True


def room_of(text: str) -> int:
    """The memory for a distinct value, in characters."""
    return len(text) + _CHARACTERS_PER_VALUE


class KeptTexts:
    """The values of one argument for rows that come piece by piece: a number for each row, each distinct text once."""

    def __init__(self, room: TextRoom) -> None:
        """Share the room with other columns."""
        self._room = room
        self._taken = 0
        self._numbers: dict[str, int] = {}
        """Text -> its number, from 1 on; 0 stands for no value."""
        self._texts: list[str] = []
        self._codes: list[npt.NDArray[np.unsignedinteger]] = []
        self.left_out = 0
        """Values that were not kept."""

    def add(self, values: Sequence[object]) -> None:
        """The values of the next rows; None where a row has none."""
        known = {value: self._number(value) for value in dict.fromkeys(values)}
        self._add_codes(np.fromiter(map(known.__getitem__, values), np.int64, len(values)))

    def add_same(self, value: object, num_rows: int) -> None:
        """The one value of the next rows."""
        self._add_codes(np.full(num_rows, self._number(value), np.int64))

    def _add_codes(self, codes: npt.NDArray[np.int64]) -> None:
        self.left_out += int((codes < 0).sum())
        codes = np.maximum(codes, 0)
        self._codes.append(codes.astype(np.min_scalar_type(int(codes.max(initial=0)))))

    def _number(self, value: object) -> int:
        """The number of a value; -1 where it is not kept."""
        if value is None:
            return 0
        if isinstance(value, bytes):
            return -1
        if isinstance(value, str):
            text = without_home(value)
        else:
            text = str(value) if isinstance(value, int) else json.dumps(value)
        if text not in self._numbers:
            if self._taken > _MOST_OF_COLUMN or not self._room.take(text):
                return -1
            self._taken += room_of(text)
            self._texts.append(text)
            self._numbers[text] = len(self._texts)
        return self._numbers[text]

    def look_up(self, known: Mapping[int, str]) -> None:
        """Put texts in place of their numbers in the file."""
        self._texts = [known.get(int(text), text) if text.isdecimal() else text for text in self._texts]

    @property
    def num_values(self) -> int:
        """The number of rows that have a value, kept or not."""
        return sum(int(np.count_nonzero(codes)) for codes in self._codes) + self.left_out

    def column(self, order: npt.NDArray[np.int64]) -> ArgumentColumn | None:
        """The values of these rows; None where none has any. Places beyond the rows have no value."""
        codes = np.append(np.concatenate(self._codes), np.uint8(0)) if self._codes else np.zeros(1, np.uint8)
        codes = codes[np.minimum(order, len(codes) - 1)]
        rows = np.flatnonzero(codes)
        if not len(rows):
            return None
        return ArgumentColumn(rows.astype(np.uint32), codes[rows].astype(np.uint32) - 1, self._texts)
