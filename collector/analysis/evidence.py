"""The rows of a recording behind each row of an answer. They are many, so they are determined on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from collector.recording.recording import Recording

    Rows = Mapping[str, npt.NDArray[np.int64]]


class Evidence(Sequence["Rows"]):
    """For each row of an answer: table -> rows of the recording."""

    def __init__(self, length: int, rows_of: Callable[[int], Rows]) -> None:
        """Evidence for ``length`` rows; ``rows_of`` takes the index of a row."""
        self._places, self._rows_of = range(length), rows_of

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Rows: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Rows]: ...
    def __getitem__(self, index: int | slice) -> Rows | Sequence[Rows]:
        places = self._places[index]
        if isinstance(places, range):
            return Evidence(len(places), lambda place: self._rows_of(places[place]))
        return self._rows_of(places)


def one_row_of_each(tables: Sequence[str], table: npt.NDArray[np.integer], row: npt.NDArray[np.integer]) -> Evidence:
    """Evidence of one row of one table for each row of an answer.

    Args:
        tables: names of tables.
        table: for each row of the answer the index of its table in ``tables``.
        row: the row in that table; -1: there is no evidence.
    """

    def rows_of(place: int) -> Rows:
        found = int(row[place])
        return {} if found < 0 else {tables[int(table[place])]: np.array([found])}

    return Evidence(len(row), rows_of)


def activities_of(recording: Recording, places: Sequence[Mapping[str, int]]) -> Evidence:
    """For each row of an answer the activities and whole graphs with these values, as of a device or stream."""

    def rows_of(place: int) -> Rows:
        found = {}
        for name in LAUNCHED_TABLES:
            table = getattr(recording, name)
            is_there = [getattr(table, column) == value for column, value in places[place].items()]
            if name not in ACTIVITY_TABLES:
                is_there.append(table.graph_degree == DEGREE_WHOLE_GRAPH)
            found[name] = np.flatnonzero(np.logical_and.reduce(is_there))
        return {name: rows for name, rows in found.items() if len(rows)}

    return Evidence(len(places), rows_of)
