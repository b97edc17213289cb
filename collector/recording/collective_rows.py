"""The kernels of the collectives that a recording states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.recording.distinct import are_among
from collector.recording.schema import ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording

    Columns = Mapping[str, npt.NDArray[np.integer]]


def collective_rows(recording: Recording) -> npt.NDArray[np.int64]:
    """For each kernel the row of ``collectives`` that describes it; -1: there is none."""
    return matching_rows(recording.kernels.columns, recording.collectives.columns, ORDER["collectives"])


def matching_rows(wanted: Columns, known: Columns, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """For each wanted row the row of the known ones with the same values, the last of several; -1: there is none.

    Args:
        wanted: columns of kernels or of collectives.
        known: columns of the other table.
        names: the columns that match, one of which is ``correlation_id``.
    """
    found = np.full(len(wanted["correlation_id"]), -1, np.int64)
    rows = np.flatnonzero(are_among(wanted["correlation_id"], known["correlation_id"]))
    known_rows = np.flatnonzero(are_among(known["correlation_id"], wanted["correlation_id"]))
    places = dict(zip(_keys(known, names, known_rows), known_rows.tolist(), strict=True))
    found[rows] = [places.get(key, -1) for key in _keys(wanted, names, rows)]
    return found


def _keys(columns: Columns, names: Sequence[str], rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    return zip(*(columns[name][rows].tolist() for name in names), strict=True)
