"""The streams that activities ran on, counted from 0: CUPTI's stream ids are numbers within a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]


class Stream(NamedTuple):
    """One stream of a recording."""

    device: int
    context: int
    stream: int


class StreamNumbers(NamedTuple):
    """Streams in order, and which of them each activity ran on."""

    streams: list[Stream]
    numbers: Numbers

    @classmethod
    def of(cls, recording: Recording, work: Activities) -> StreamNumbers:
        """The streams of a recording and those of these activities of it.

        Rows are in order of their streams, so that only the first of each stream is looked at.
        """
        found: dict[Stream, int] = {}
        parts = []
        for name in ACTIVITY_TABLES:
            table = getattr(recording, name)
            columns = (table.device_id, table.context_id, table.stream_id)
            is_first = np.ones(len(table), bool)
            is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
            first = np.flatnonzero(is_first)
            streams = zip(*(column[first].tolist() for column in columns), strict=True)
            numbers = np.array([found.setdefault(Stream(*stream), len(found)) for stream in streams], np.int64)
            parts.append(np.repeat(numbers, np.diff(first, append=len(table))))
        streams_in_order = sorted(found)
        places = np.empty(len(found), np.int64)
        places[[found[stream] for stream in streams_in_order]] = np.arange(len(found))
        return cls(streams_in_order, places[work.of_rows(parts)])
