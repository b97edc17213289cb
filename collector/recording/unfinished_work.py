"""Activities that had not ended when the recording ended: CUPTI hands out their records without an end.

The record of an activity that was running has a start and no end, and that of one that waited has neither. Under load
CUPTI loses times of activities that have ended, too (tensorflow#20750, parcagpu#23). So a record counts as unfinished
only if no later activity of its stream has times, and one without a start only if another activity was running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.recording.first_rows import distinct_rows
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.schema import Tables


def unfinished_rows(kept: Tables, invalid: Tables) -> dict[str, npt.NDArray[np.bool_]]:
    """For each table of launched work whether each row with impossible times had not ended.

    Args:
        kept: the rows of the step.
        invalid: the rows that are set apart because of impossible times.
    """
    apart = [getattr(invalid, name) for name in LAUNCHED_TABLES]
    parts = [*apart, *(getattr(kept, name) for name in LAUNCHED_TABLES)]
    num_apart = sum(map(len, apart))
    found = np.zeros(num_apart, bool)
    if num_apart:

        def joined(column: str) -> npt.NDArray[np.int64]:
            return np.concatenate([getattr(part, column).astype(np.int64) for part in parts])

        streams = distinct_rows([joined(column) for column in ("device_id", "context_id", "stream_id")])[1]
        correlations = joined("correlation_id")  # in the order of the calls
        last = np.full(int(streams.max()) + 1, -1, np.int64)
        np.maximum.at(last, streams[num_apart:], correlations[num_apart:])
        starts, ends = joined("start_ns")[:num_apart], joined("end_ns")[:num_apart]
        own = correlations[:num_apart]
        found = (ends == 0) & (own > 0) & (own >= last[streams[:num_apart]])
        if not (found & (starts > 0)).any():
            found[:] = False
    bounds = np.cumsum([len(part) for part in apart])[:-1]
    return dict(zip(LAUNCHED_TABLES, np.split(found, bounds), strict=True))
