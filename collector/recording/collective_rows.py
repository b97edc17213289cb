"""Which kernel ran each collective that a recording states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.recording.distinct import are_among
from collector.recording.schema import ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from collector.recording.recording import Recording
    from collector.recording.table import Table


def collective_rows(recording: Recording) -> npt.NDArray[np.int64]:
    """For each kernel the row of ``collectives`` about it; -1: none is stated."""
    found = np.full(len(recording.kernels), -1, np.int64)
    table = recording.collectives
    if not len(table):
        return found
    stated = {key: row for row, key in enumerate(_keys(table))}
    kernels = np.flatnonzero(are_among(recording.kernels.correlation_id, table.correlation_id))
    found[kernels] = [stated.get(key, -1) for key in _keys(recording.kernels[kernels])]
    return found


def _keys(table: Table) -> Iterator[tuple[int, ...]]:
    """For each row of kernels or of collectives the values by which a collective is matched with its kernel."""
    return zip(*(table[name].tolist() for name in ORDER["collectives"]), strict=True)
