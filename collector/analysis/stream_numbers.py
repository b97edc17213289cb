"""Streams of a recording, numbered from 0, because CUPTI's stream ids are only unique within a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.analysis.answer import Column
from collector.analysis.duration_groups import Keys
from collector.analysis.shared_values import shared
from collector.recording.first_rows import distinct_rows
from collector.recording.schema import ACTIVITY_TABLES
from collector.recording.stream_names import stream_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]


STREAM_NAME = Column("stream_name", "text", "Name that the program gave the stream, for example by NVTX; empty: none.")
STREAM_COLUMNS = (
    Column("device_id", "number", "CUDA device ordinal."),
    Column("context_id", "number", "CUPTI's context id."),
    Column("stream_id", "number", "CUPTI's stream id."),
    STREAM_NAME,
)


class Stream(NamedTuple):
    """One stream of a recording."""

    device: int
    context: int
    stream: int


def streams_of_rows(table: Table) -> tuple[list[Stream], Numbers]:
    """The rows of a table at which another stream than that of the row before begins, and their streams.

    Rows are in order of their streams, so these rows are few.
    """
    columns = _places(table)
    is_first = np.ones(len(table), bool)
    is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    first = np.flatnonzero(is_first)
    return _streams(column[first] for column in columns), first


def stream_name_keys(recording: Recording, devices: Numbers, contexts: Numbers, streams: Numbers) -> Keys:
    """The name of the stream of each row; empty: none, or no stream."""
    first, codes = distinct_rows((devices, contexts, streams))
    names = stream_names(recording)
    places = zip(*(column[first].tolist() for column in (devices, contexts, streams)), strict=True)
    return Keys.of_values([names.get(place, "") for place in places], codes)


class StreamNumbers(NamedTuple):
    """Streams in order, and for each activity the index of its stream."""

    streams: list[Stream]
    numbers: Numbers

    @classmethod
    def of(cls, recording: Recording, work: Activities) -> StreamNumbers:
        """The streams of a recording, and the stream of each of these activities."""
        streams, numbers = _numbers_of_rows(recording)
        return cls(streams, work.of_rows(numbers))


@shared
def _numbers_of_rows(recording: Recording) -> tuple[list[Stream], list[Numbers]]:
    """The streams of a recording in order, and the index of the stream of each row of each table of activities.

    The last table is that of launches of graphs, of which those count that were recorded as a whole; -1 for the others.
    """
    tables = [getattr(recording, name) for name in ACTIVITY_TABLES]
    begun = [streams_of_rows(table) for table in tables]
    graphs = whole_graph_rows(recording)
    on_streams = [column[graphs] for column in _places(recording.graph_launches)]
    graph_first, graph_codes = distinct_rows(on_streams)
    of_graphs = _streams(column[graph_first] for column in on_streams)
    streams = sorted({*of_graphs, *(stream for own, _ in begun for stream in own)})
    places = {stream: place for place, stream in enumerate(streams)}
    graph_numbers = np.full(len(recording.graph_launches), -1, np.int64)
    graph_numbers[graphs] = np.array([places[stream] for stream in of_graphs], np.int64)[graph_codes]
    return streams, [
        *(
            np.repeat(np.array([places[stream] for stream in own], np.int64), np.diff(first, append=len(table)))
            for table, (own, first) in zip(tables, begun, strict=True)
        ),
        graph_numbers,
    ]


def _places(table: Table) -> list[npt.NDArray[Any]]:
    """The columns that identify a stream."""
    return [table.device_id, table.context_id, table.stream_id]


def _streams(columns: Iterable[npt.NDArray[Any]]) -> list[Stream]:
    return [Stream(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]
