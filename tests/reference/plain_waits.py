"""What waits waited for: the readable twin of waits.cpp, event_waits.cpp and event_records.cpp of native/draw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from collector.protos import Activity

_EVENT, _STREAM_FOR_EVENT, _STREAM, _CONTEXT = 1, 2, 3, 4
"""``CUpti_ActivitySynchronizationType``. A stream that waits for an event does not hold up the host."""
_SHORTEST_SOURCE_NS = 2


@dataclass(frozen=True)
class EventRecord:
    """A call that recorded a CUDA event into a stream."""

    correlation_id: int
    event_id: int
    event_sync_id: int
    context_id: int
    stream_id: int


@dataclass(frozen=True)
class Timed:
    """A wait or an activity, with its rank and node."""

    columns: Any
    """The columns of the wait, or of any activity of the stream."""
    correlation_id: int
    rank: int
    ordinal: int
    start: int
    end: int


def waited_for(records: Iterable[EventRecord], wait: Timed) -> EventRecord | None:
    """The recording of the event: the one with that id or, without an id, the last one before the wait's own call."""
    ordered = sorted(records, key=lambda record: record.correlation_id)
    columns = wait.columns
    same = [record for record in ordered if columns.event_sync_id and record.event_sync_id == columns.event_sync_id]
    if same:
        return same[0]
    earlier = [
        record
        for record in ordered
        if record.event_id == columns.event_id and record.correlation_id < wait.correlation_id
    ]
    return earlier[-1] if earlier else None


def sources_of(waits: Iterable[Timed], activities: Iterable[Timed], records: Iterable[EventRecord]) -> dict[int, int]:
    """Ordinal of a wait -> ordinal of the activity that held it up."""
    records, activities = list(records), list(activities)
    found = {}
    for wait in waits:
        columns = wait.columns
        if columns.kind != Activity.SYNCHRONIZATION or columns.sync_type not in (_EVENT, _STREAM, _CONTEXT):
            continue
        context, stream, before = columns.context_id, columns.stream_id, 0
        if columns.sync_type == _EVENT:
            record = waited_for(records, wait)
            if record is None:
                continue
            context, stream, before = record.context_id, record.stream_id, record.correlation_id
        candidates = [
            (activity.end, activity.ordinal)
            for activity in activities
            if activity.rank == wait.rank
            and activity.columns.context_id == context
            and (columns.sync_type == _CONTEXT or activity.columns.stream_id == stream)
            and (not before or activity.correlation_id < before)
            and wait.start <= activity.end <= wait.end
            and activity.end - activity.start >= _SHORTEST_SOURCE_NS
        ]
        if candidates:
            found[wait.ordinal] = max(candidates)[1]
    return found


def recording_calls(waits: Iterable[Timed], calls: Iterable[Timed], records: Iterable[EventRecord]) -> dict[int, int]:
    """Ordinal of a stream's wait for an event -> ordinal of the first call that recorded it."""
    records, calls = list(records), list(calls)
    found = {}
    for wait in waits:
        if wait.columns.kind != Activity.SYNCHRONIZATION or wait.columns.sync_type != _STREAM_FOR_EVENT:
            continue
        record = waited_for(records, wait)
        if record is None:
            continue
        candidates = [
            call.ordinal
            for call in calls
            if call.columns.kind == Activity.API_CALL
            and call.rank == wait.rank
            and call.correlation_id == record.correlation_id
            and call.start <= wait.start
        ]
        if candidates:
            found[wait.ordinal] = candidates[0]
    return found
