"""Streams of a recording, numbered from 0, because CUPTI's stream ids are only unique within a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]


class Stream(NamedTuple):
    """One stream of a recording."""

    device: int
    context: int
    stream: int


def streams_of_rows(table: Table) -> tuple[list[Stream], Numbers]:
    """The rows of a table at which another stream than that of the row before begins, and their streams.

    Rows are in order of their streams, so these rows are few.
    """
    columns = (table.device_id, table.context_id, table.stream_id)
    is_first = np.ones(len(table), bool)
    is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    first = np.flatnonzero(is_first)
    return [Stream(*each) for each in zip(*(column[first].tolist() for column in columns), strict=True)], first


class StreamNumbers(NamedTuple):
    """Streams in order, and for each activity the index of its stream."""

    streams: list[Stream]
    numbers: Numbers

    @classmethod
    def of(cls, recording: Recording, work: Activities) -> StreamNumbers:
        """The streams of a recording, and the stream of each of these activities."""
        found: dict[Stream, int] = {}
        parts = []
        for name in ACTIVITY_TABLES:
            table = getattr(recording, name)
            streams, first = streams_of_rows(table)
            numbers = np.array([found.setdefault(stream, len(found)) for stream in streams], np.int64)
            parts.append(np.repeat(numbers, np.diff(first, append=len(table))))
        streams_in_order = sorted(found)
        places = np.empty(len(found), np.int64)
        places[[found[stream] for stream in streams_in_order]] = np.arange(len(found))
        return cls(streams_in_order, places[work.of_rows(parts)])
