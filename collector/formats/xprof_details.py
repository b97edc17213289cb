"""Details of GPU work that XProf's profiles hold as one text: a kernel's launch shape, a copy's size and ends.

The text is words ``key:value`` (``regs:38 shm:0 grid:160,1,1``), of which each version and vendor writes others.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.formats.chrome_events import LARGEST_ID, per_place, text
from collector.formats.kind_numbers import is_copy_kind, is_memory_kind
from collector.formats.profile_stats import KERNEL_DETAILS, MEMCPY_DETAILS, MEMSET_DETAILS
from collector.recording.row_arguments import ArgumentColumn
from collector.text.library_path import without_home

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from collector.formats.chrome_events import ChromeEvents, Numbers

ARGUMENTS = (MEMSET_DETAILS, MEMCPY_DETAILS, KERNEL_DETAILS)
"""The arguments of events that have these texts; of several the first one counts."""
TABLES = ("kernels", "memcpys", "memsets")
"""The tables of the work that has such details."""
_WORD = re.compile(r"(\w+):(\S+)")
_NUMBER = re.compile(r"[0-9]{1,16}")
_SIZES = re.compile(r"[0-9]{1,10},[0-9]{1,10},[0-9]{1,10}")
_LARGEST_SIZE = (1 << 31) - 1
_LARGEST_COUNT = (1 << 53) - 1
_LARGEST = {
    "kernels": {
        "regs": (1 << 16) - 1,
        **dict.fromkeys(("shm", "static_shared", "dynamic_shared"), _LARGEST_SIZE),
        "occ_pct": 0,  # an occupancy that is not known
    },
    "memcpys": {"size": _LARGEST_COUNT, "num_bytes": _LARGEST_COUNT, "dest": LARGEST_ID, "async": 1},
    "memsets": {
        "size": _LARGEST_COUNT,
        "num_bytes": _LARGEST_COUNT,
        "async": 1,
        "dest": 0,  # of early profiles of ours, which had it of copies
    },
}
"""Table -> word that is a number -> the largest one that is read."""
_KINDS: Mapping[str, Mapping[str, Callable[[str], bool]]] = {
    "kernels": {},
    "memcpys": {"kind": is_copy_kind, "kind_src": is_memory_kind, "kind_dst": is_memory_kind},
    "memsets": {"kind": is_memory_kind},
}
"""Table -> word that is a name -> whether the name is known."""
_MOST_WORDS = 100
"""The maximum number of words that become separate arguments; further words stay together."""

Words = dict[str, str]


class WorkDetails(NamedTuple):
    """The distinct texts of some events as words, and the place of each event's among them; -1: it has none."""

    words: list[Words]
    rests: list[tuple[str, str]]
    """For each text its argument, and the part of it that is not words."""
    places: Numbers

    def numbers(self, number_of: Callable[[Words], int]) -> Numbers:
        """A number for each event; -1 where it has no text."""
        return per_place(self.words, number_of)[self.places]

    def unread(self, table: str, taken: Container[str]) -> dict[str, ArgumentColumn]:
        """The words of the rows of a table that no column takes, as further arguments of these rows.

        A word whose name is ``taken`` stays in the argument that has it.
        """
        unread = [[word for word in words.items() if not _is_read(table, *word)] for words in self.words]
        counts = Counter(key for words in unread for key, _ in words if key not in taken)
        single = set(sorted(counts, key=lambda key: (-counts[key], key))[:_MOST_WORDS])
        stated: dict[str, dict[int, str]] = {}
        for place, (words, (argument, rest)) in enumerate(zip(unread, self.rests, strict=True)):
            for key, value in words:
                if key in single:
                    stated.setdefault(key, {})[place] = value
            others = [rest, *(f"{key}:{value}" for key, value in words if key not in single)]
            if any(others):
                stated.setdefault(argument, {})[place] = " ".join(filter(None, others))
        return {key: self._column(stated[key]) for key in sorted(stated)}

    def _column(self, stated: Mapping[int, str]) -> ArgumentColumn:
        texts = {value: code for code, value in enumerate(dict.fromkeys(stated.values()))}
        of_place = np.full(len(self.words) + 1, -1, np.int64)
        of_place[list(stated)] = [texts[value] for value in stated.values()]
        codes = of_place[self.places]
        rows = np.flatnonzero(codes >= 0)
        return ArgumentColumn(rows.astype(np.uint32), codes[rows].astype(np.uint32), list(map(without_home, texts)))


def work_details(found: ChromeEvents, rows: Numbers) -> WorkDetails:
    """The details of these events."""
    words: list[Words] = []
    rests: list[tuple[str, str]] = []
    index = np.full(len(rows), -1, np.int64)
    for argument in reversed(ARGUMENTS):
        values, places = found.values(argument, rows)
        index = np.where(places >= 0, places + len(words), index)
        for value in map(text, values):
            words.append(dict(_WORD.findall(value)))
            rests.append((argument, " ".join(_WORD.sub(" ", value).split())))
    return WorkDetails(words, rests, index)


def number_in(words: Words, key: str, table: str) -> int:
    """A word that is a number; -1: it is missing, or no column of the table can hold it."""
    return _number(words.get(key, ""), _LARGEST[table][key])


def num_bytes_in(words: Words) -> int:
    """The size of a copy or memset; -1 where it is not stated."""
    return number_in(words, "size" if "size" in words else "num_bytes", "memcpys")


def shared_bytes_in(words: Words) -> int:
    """The shared memory of a kernel; -1 where it is not stated."""
    stated = [number_in(words, key, "kernels") for key in ("shm", "static_shared", "dynamic_shared")]
    known = [number for number in stated if number >= 0]
    return sum(known) if known else -1


def shape_in(words: Words, key: str) -> list[int]:
    """The three sizes of ``grid`` or ``block``; none where they are not stated."""
    value = words.get(key, "")
    sizes = [int(size) for size in value.split(",")] if _SIZES.fullmatch(value) else []
    return sizes if all(size <= _LARGEST_SIZE for size in sizes) else []


def _is_read(table: str, key: str, value: str) -> bool:
    """Whether a column of the table takes a word."""
    if key in _LARGEST[table]:
        return _number(value, _LARGEST[table][key]) >= 0
    if key in _KINDS[table]:
        return _KINDS[table][key](value)
    return table == "kernels" and key in ("grid", "block") and bool(shape_in({key: value}, key))


def _number(value: str, largest: int) -> int:
    return int(value) if _NUMBER.fullmatch(value) and int(value) <= largest else -1
