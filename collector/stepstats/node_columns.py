"""Many NodeExecStats at once.

Making a message of each node from Python costs a microsecond or more and an object that the garbage collector then
walks; a step can have millions. So nodes are given by columns, and become wire bytes without a message between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collector.protos import NodeExecStats
from collector.runtime.extension import convert_extension
from collector.stepstats import varint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt


@dataclass(frozen=True)
class TextColumn:
    """A text for each node, many of which are the same: node ``n`` has ``texts[index[n]]``."""

    texts: Sequence[str]
    index: npt.NDArray[np.int64]

    def mapped(self, form: Callable[[str], str]) -> TextColumn:
        """The column of what ``form`` makes of each text."""
        return TextColumn([form(text) for text in self.texts], self.index)

    def take(self, rows: npt.NDArray[np.int64]) -> TextColumn:
        """The column whose node ``n`` has the text of this one's ``rows[n]``."""
        return TextColumn(self.texts, self.index[rows])

    @staticmethod
    def concatenated(columns: Sequence[TextColumn]) -> TextColumn:
        """The nodes of all columns, one column after another."""
        texts: list[str] = []
        indices = [np.empty(0, np.int64)]
        for column in columns:
            indices.append(column.index + len(texts))
            texts += column.texts
        return TextColumn(texts, np.concatenate(indices))


@dataclass(frozen=True)
class MessageColumn:
    """For node ``n`` the one message that ``messages[index[n]]`` is in wire format; ``b""`` for none."""

    messages: Sequence[bytes]
    index: npt.NDArray[np.int64]


Column: TypeAlias = "TextColumn | MessageColumn | npt.NDArray[Any]"


def text_column(make: Callable[..., str], *keys: npt.NDArray[Any]) -> TextColumn:
    """The column whose node ``n`` has ``make(*(key[n] for key in keys))``; asked once for each distinct combination.

    Args:
        make: makes a text of one Python integer per key.
        keys: integers, all arrays equally long.
    """
    firsts, index = _distinct(keys)
    rows = zip(*(key[firsts].tolist() for key in keys), strict=True)
    return TextColumn([make(*row) for row in rows], index)


def encode_nodes(columns: Mapping[str, Column], rows: npt.NDArray[np.int64] | None = None) -> bytes:
    """Return nodes in wire format, as the elements of ``DeviceStepStats.node_stats``, to the byte as protobuf does.

    Args:
        columns: fields of NodeExecStats by name, all equally long; integers fit into int64.
        rows: the nodes that are wanted, in this order; None: all.

    Raises:
        IndexError: there is no such row, or no such text.
    """
    fields = NodeExecStats.DESCRIPTOR.fields_by_name
    ordered = sorted(columns.items(), key=lambda column: fields[column[0]].number)
    if rows is None:
        first = next(iter(columns.values()))
        rows = np.arange(len(first.index if isinstance(first, (TextColumn, MessageColumn)) else first))
    given = [(fields[name].number, *_indexed(column)) for name, column in ordered]
    encoded: bytes = convert_extension().encode_nodes(given, rows.astype(np.int64, copy=False))
    return encoded


def field_head(field: int, num_bytes: int) -> bytes:
    """Return what stands before a message or text of ``num_bytes`` in the message whose field it is."""
    length_delimited = 2
    return varint.encode(field << 3 | length_delimited) + varint.encode(num_bytes)


def _indexed(column: Column) -> tuple[npt.NDArray[np.int64], list[str] | list[bytes] | None]:
    """Values; or places and what is there: a text and a message look the same on the wire."""
    if isinstance(column, TextColumn):
        return column.index, list(column.texts)
    if isinstance(column, MessageColumn):
        return column.index, list(column.messages)
    return column.astype(np.int64, copy=False), None


def _distinct(keys: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A row of each distinct combination of keys, and for each row the place of its combination among these."""
    codes, count = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        num_places, places = _places(key)
        codes, count = codes * num_places + places, count * num_places
        if count > len(codes):  # so that the codes never outgrow their type
            count, codes = _places(codes)
    count, places = _places(codes)
    firsts = np.empty(count, np.int64)
    firsts[places[::-1]] = np.arange(len(places))[::-1]
    return firsts, places


def _places(values: npt.NDArray[Any]) -> tuple[int, npt.NDArray[np.int64]]:
    """How many distinct values there are, and for each value its place among them in order."""
    if not len(values):
        return 0, np.empty(0, np.int64)
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest > 4 * len(values):
        distinct, places = np.unique(values, return_inverse=True)
        return len(distinct), places.astype(np.int64, copy=False).reshape(-1)
    shifted = (values - values.dtype.type(lowest)).astype(np.int64)  # few enough to mark each, which needs no sorting
    is_there = np.zeros(highest - lowest + 1, bool)
    is_there[shifted] = True
    ranks = np.cumsum(is_there)
    return int(ranks[-1]), (ranks - 1)[shifted]
