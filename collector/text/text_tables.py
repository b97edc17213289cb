"""Tables for a terminal, whose lines are no wider than it.

Figures are never cut. Long names are shortened in the middle to one line each, so that different names remain
different. If the columns do not fit side by side, the table is divided into several parts below each other, each of
which begins with the columns that name the rows.
"""

from __future__ import annotations

import textwrap
from itertools import accumulate
from typing import TYPE_CHECKING

from collector.text.terminal import as_written, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

_BETWEEN = 2
"""Spaces between two columns."""
_SHORTEST_NAMES = (20, 12)
"""Minimum characters of a column of names: the first number, or the second if the table then fits in one part."""
_SHORTEST_CUT = 8
"""Characters to which a name is cut at least, however narrow the terminal is."""


def table_text(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    is_name: Sequence[bool],
    width: int,
    *,
    whole_names: bool = False,
    color: bool = False,
) -> str:
    """The table as lines that end without spaces.

    Args:
        heads: the headings of the columns.
        rows: a printable cell for each column.
        is_name: whether each column holds names, which are aligned to the left and may be cut; others are to the right.
        width: characters of a line.
        whole_names: do not cut names and do not divide the table, however wide the lines become.
        color: with terminal colours.
    """
    columns = [
        _Column(as_written(head), [as_written(row[place]) for row in rows], is_name[place])
        for place, head in enumerate(heads)
    ]
    fitting = next((shortest for shortest in _SHORTEST_NAMES if _least_width(columns, shortest) <= width), None)
    shortest = fitting or _SHORTEST_NAMES[0]
    parts = [columns] if whole_names or fitting else _parts(columns, width, shortest)
    return "\n\n".join(_part_text(part, None if whole_names else width, shortest, color=color) for part in parts)


def folded(text: str, width: int) -> list[str]:
    """A sentence as lines of whole words."""
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False)


def text_width(text: str) -> int:
    """Columns of a terminal that the text takes: some East Asian characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


class _Column:
    """The cells of one column and how wide it can be."""

    def __init__(self, head: str, cells: list[str], is_name: bool) -> None:
        self.head, self.cells, self.is_name = head, cells, is_name
        widest = max(map(text_width, cells), default=0)
        self.whole = max(widest, max(map(text_width, head.split()), default=0))
        """The width at which neither a cell nor a word of the head is cut."""
        self.with_head = max(self.whole, text_width(head))
        """The width at which the head fits into one line, too."""

    def least(self, shortest: int) -> int:
        """The minimum width if names keep this many characters."""
        return min(self.whole, shortest) if self.is_name else self.whole

    def aligned(self, text: str, width: int) -> str:
        spaces = " " * max(width - text_width(text), 0)
        return text + spaces if self.is_name else spaces + text


def _parts(columns: list[_Column], width: int, shortest: int) -> list[list[_Column]]:
    """The columns of each part; those that name the rows, up to the first with names, stand in all of them."""
    names = next((place + 1 for place, column in enumerate(columns) if column.is_name), 1)
    naming, parts = columns[:names], [columns[:names]]
    for column in columns[names:]:
        if len(parts[-1]) > len(naming) and _least_width([*parts[-1], column], shortest) > width:
            parts.append([*naming])
        parts[-1].append(column)
    return parts


def _least_width(columns: Sequence[_Column], shortest: int) -> int:
    return 1 + sum(column.least(shortest) for column in columns) + _BETWEEN * (len(columns) - 1)


def _part_text(columns: list[_Column], width: int | None, shortest: int, *, color: bool) -> str:
    """Columns side by side; without a width each has its full width."""
    widths = [column.with_head for column in columns] if width is None else _widths(columns, width, shortest)
    heads = [folded(column.head, each) for column, each in zip(columns, widths, strict=True)]
    deepest = max(map(len, heads))
    heads = [[""] * (deepest - len(head)) + head for head in heads]
    cells = [
        cut_names(column.cells, each) if column.is_name else column.cells
        for column, each in zip(columns, widths, strict=True)
    ]

    def line(texts: Sequence[str]) -> str:
        aligned = (column.aligned(text, each) for column, text, each in zip(columns, texts, widths, strict=True))
        return f" {(' ' * _BETWEEN).join(aligned)}".rstrip()

    rule = " " + "─" * (sum(widths) + _BETWEEN * (len(widths) - 1))
    head_lines = [styled(line(each), "bold", color=color) for each in zip(*heads, strict=True)]
    return "\n".join([*head_lines, rule, *map(line, zip(*cells, strict=True))])


def _widths(columns: list[_Column], width: int, shortest: int) -> list[int]:
    """The width of each column: names share the free space, and heads the rest of it."""
    widths = [column.least(shortest) for column in columns]
    free = width - _least_width(columns, shortest)
    names = [place for place, column in enumerate(columns) if column.is_name]
    if free < 0 and names:  # a terminal that is too narrow for two columns
        longest = max(names, key=widths.__getitem__)
        widths[longest] = max(widths[longest] + free, min(widths[longest], _SHORTEST_CUT))
    for wanted in ([column.whole for column in columns], [column.with_head for column in columns]):
        lacking = [max(want - have, 0) for want, have in zip(wanted, widths, strict=True)]
        given = _shared(lacking, max(free, 0))
        widths = [have + more for have, more in zip(widths, given, strict=True)]
        free -= sum(given)
    return widths


def _shared(wanted: Sequence[int], free: int) -> list[int]:
    """The share of the free space that each gets: equal shares, up to what each wants."""
    given = [0] * len(wanted)
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for number, place in enumerate(order):
        given[place] = min(wanted[place], free // (len(order) - number))
        free -= given[place]
    return given


def cut_names(names: Sequence[str], width: int) -> list[str]:
    """Names of at most this many characters, shortened in the middle; different names remain different where possible.

    A path keeps more of its end, which distinguishes it best; another name more of its beginning.
    """
    distinct = dict.fromkeys(names)
    shown = {name: _cut(name, width) for name in distinct}
    alike: dict[str, list[str]] = {}
    for name, text in shown.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            before = _common_length(min(group), max(group))
            shown.update({name: _cut(name, width, around=before) for name in group})
    return [shown[name] for name in names]


def _common_length(one: str, other: str) -> int:
    """The length of the common beginning of two different texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(name: str, width: int, around: int | None = None) -> str:
    """The name without its middle, or its beginning and the text around a place in it."""
    if text_width(name) <= width:
        return name
    room = max(width - 1, 2)
    if around is None:
        tail = room * 3 // 4 if "/" in name else room // 3
        return f"{_begin(name, room - tail)}…{_end(name, tail)}"
    room = max(width - 2, 2)
    head = room // 3
    rest = name[max(around - 2, len(_begin(name, head))) :]
    if text_width(rest) <= room + 1 - head:
        return f"{_begin(name, width - 1 - text_width(rest))}…{rest}"
    return f"{_begin(name, head)}…{_begin(rest, room - head)}…"


def _begin(text: str, width: int) -> str:
    """As much of the beginning as fits."""
    if text.isascii():
        return text[:width]
    fitting = sum(reach <= width for reach in accumulate(map(text_width, text)))
    return text[:fitting]


def _end(text: str, width: int) -> str:
    """As much of the end as fits."""
    return _begin(text[::-1], width)[::-1]
