"""Activities without times, and the reasons why CUPTI delivered their records without an end.

Of those that had not ended when the recording did, the record of work that waited has neither a start nor an end. Nor
has that of running work from libcupti 13.0.85, which was seen on an H100; other versions may give the start. Under load
CUPTI loses times of activities that have ended, too (tensorflow#20750, parcagpu#23). So a record counts as unfinished
only

* if no later activity of its stream has times, and no later wait for its stream or context has succeeded;
* and if nothing waited for the devices at the end (`NOT_AWAITED`), or another activity has a start and no end.

After an error that makes a context unusable, 13.0.85 gives no times of any record that it still holds, also of work
that had ended and been waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.recording.context_errors import failed_calls
from collector.recording.cupti_enums import SYNC_TYPES
from collector.recording.distinct import are_among
from collector.recording.first_rows import distinct_rows
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.recording.schema import Tables

NOT_AWAITED = "work_not_awaited"
"""The counter of a source that is 1 if the recording ended without a successful wait for the devices."""


class TimelessRows(NamedTuple):
    """For each table of launched work whether a cause is known for each row with impossible times."""

    unfinished: dict[str, npt.NDArray[np.bool_]]
    """The activity had not ended."""
    lost_with_context: dict[str, npt.NDArray[np.bool_]]
    """An error made its context unusable."""

    def unexplained(self, table: str) -> npt.NDArray[np.bool_]:
        """The other rows of a table."""
        return ~(self.unfinished[table] | self.lost_with_context[table])


def timeless_rows(kept: Tables, invalid: Tables, counters: Mapping[str, int]) -> TimelessRows:
    """Find out why rows have impossible times.

    Args:
        kept: the rows of the step.
        invalid: the rows that are set apart because of impossible times.
        counters: those of the source.
    """
    apart = [getattr(invalid, name) for name in LAUNCHED_TABLES]
    parts = [*apart, *(getattr(kept, name) for name in LAUNCHED_TABLES)]
    num_apart = sum(map(len, apart))
    unfinished, lost = np.zeros((2, num_apart), bool)
    if num_apart:

        def joined(column: str) -> npt.NDArray[np.int64]:
            return np.concatenate([getattr(part, column).astype(np.int64) for part in parts])

        streams = distinct_rows([joined(column) for column in ("device_id", "context_id", "stream_id")])[1]
        correlations = joined("correlation_id")  # in the order of the calls
        last = np.full(int(streams.max()) + 1, -1, np.int64)
        np.maximum.at(last, streams[num_apart:], correlations[num_apart:])
        starts, ends = joined("start_ns")[:num_apart], joined("end_ns")[:num_apart]
        own = correlations[:num_apart]
        waits = _last_waits(kept, joined("context_id")[:num_apart], joined("stream_id")[:num_apart])
        is_last = (ends == 0) & (own > 0) & (own >= last[streams[:num_apart]])
        failed = kept.api_calls.correlation_id[failed_calls(kept.api_calls)]
        lost = is_last & (starts == 0) & (own < failed.max(initial=0))
        unfinished = is_last & ~lost & (own > waits)
        if not counters.get(NOT_AWAITED) and not (unfinished & (starts > 0)).any():
            unfinished[:] = False
    bounds = np.cumsum([len(part) for part in apart])[:-1]
    return TimelessRows(
        *(dict(zip(LAUNCHED_TABLES, np.split(rows, bounds), strict=True)) for rows in (unfinished, lost))
    )


def _last_waits(kept: Tables, contexts: npt.NDArray[np.int64], streams: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each stream of a context the correlation id of the last successful wait of the host for it, or -1.

    Before 12.8 the records of queries that found work unfinished are like those of waits: the result of the call
    decides.
    """
    calls, waits = kept.api_calls, kept.synchronizations
    succeeded, failed = (calls.correlation_id[mask] for mask in (calls.return_value == 0, calls.return_value != 0))
    waits = waits[are_among(waits.correlation_id, succeeded) & ~are_among(waits.correlation_id, failed)]
    last = np.full(len(contexts), -1, np.int64)
    for name, is_of_stream in (("Context Synchronize", False), ("Stream Synchronize", True)):
        chosen = waits.where(sync_type=SYNC_TYPES.index(name))
        parts = [(chosen.context_id, contexts), *([(chosen.stream_id, streams)] if is_of_stream else [])]
        keys = [np.concatenate([waited.astype(np.int64), asked]) for waited, asked in parts]
        numbers = distinct_rows(keys)[1]
        newest = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
        np.maximum.at(newest, numbers[: len(chosen)], chosen.correlation_id.astype(np.int64))
        last = np.maximum(last, newest[numbers[len(chosen) :]])
    return last
