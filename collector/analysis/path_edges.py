"""The dependencies of a recording's critical path: launches, waits of streams for events, waits of the host."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, WorkClass
from collector.analysis.process_rows import threads_of_calls
from collector.analysis.stream_numbers import StreamNumbers
from collector.recording.api_functions import ApiRole, have_role, plain_api_name
from collector.recording.cupti_enums import SYNC_TYPES
from collector.recording.first_rows import first_rows, look_up

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

NONE = -1
_EVENT, _STREAM_WAIT, _STREAM, _CONTEXT = (
    SYNC_TYPES.index(name)
    for name in ("Event Synchronize", "Stream Wait Event", "Stream Synchronize", "Context Synchronize")
)


class StreamWaits(NamedTuple):
    """Waits of streams for events; a wait that concerns several streams has a row for each."""

    streams: Numbers
    """Stream that waited: all work that was launched into it later waited."""
    called_ns: Numbers
    sources: Numbers
    """Stream for which it waited; -1: not known."""
    recorded_ns: Numbers
    """Time of the call that recorded the event: the wait is for work launched into the source before this time."""


class HostWaits(NamedTuple):
    """Calls in which the host waited, in order of threads and of ends."""

    threads: Numbers
    start_ns: Numbers
    end_ns: Numbers
    activities: Numbers
    """Index of the awaited activity; -1: the work of a set of streams was awaited."""
    stream_sets: Numbers
    """Index of this set in `PathEdges.stream_sets`."""
    launched_until_ns: Numbers
    """The wait is for work launched into these streams before this time."""
    api_rows: Numbers


class PathEdges:
    """A recording's activities in order of time, with everything that each of them may have waited for."""

    def __init__(self, recording: Recording) -> None:
        """Determine the launches of all activities, and all waits."""
        self._recording = recording
        calls = recording.api_calls
        self.work = Activities.with_graphs(recording).in_order_of_time()
        self.streams, self.stream_numbers = StreamNumbers.of(recording, self.work)
        self.launches = self.work.launch_rows()
        """Row in ``api_calls`` of the call of each activity; -1: unknown."""
        is_known = self.launches >= 0
        self.called_ns = np.where(is_known, np.append(calls.start_ns, 0)[self.launches], 0)
        self.call_threads = np.where(is_known, np.append(threads_of_calls(recording), 0)[self.launches], NONE)
        self.stream_sets: list[Numbers] = [np.arange(len(self.streams))]
        """Sets of streams for which the host waited; the first is the set of all streams."""
        self._set_places: dict[tuple[int, ...], int] = {tuple(range(len(self.streams))): 0}
        self.stream_waits, self.unknown_events = self._waits_of_streams()
        self.host_waits = self._waits_of_host()

    @cached_property
    def graphs(self) -> Numbers:
        """Correlation id of each activity's graph launch; -1: it is not a node of a graph, or its launch is unknown."""
        is_graph_call = _of_calls(self._recording, lambda name: name.endswith("GraphLaunch"))
        is_node = self.work.column("graph_id") != 0
        is_node |= (self.launches >= 0) & np.append(is_graph_call, False)[self.launches]
        ids = self.work.correlation_id.astype(np.int64)
        return np.where(is_node & (ids != 0), ids, NONE)

    @cached_property
    def _by_context(self) -> dict[tuple[int, ...], list[int]]:
        """Numbers of the streams of each (context, stream), each (context,), and each (-1, stream)."""
        found: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number, stream in enumerate(self.streams):
            for key in ((stream.context, stream.stream), (stream.context,), (NONE, stream.stream)):
                found[key].append(number)
        return found

    def _streams_of(self, context: int, stream: int) -> list[int]:
        """Numbers of the streams with these ids; if there are none, of any context, because some tools renumber it."""
        return self._by_context.get((context, stream)) or self._by_context.get((NONE, stream), [])

    def _set_of(self, numbers: list[int]) -> int:
        key = tuple(numbers)
        if key not in self._set_places:
            self._set_places[key] = len(self.stream_sets)
            self.stream_sets.append(np.array(numbers, np.int64))
        return self._set_places[key]

    @cached_property
    def _records(self) -> tuple[npt.NDArray[np.uint64], Numbers]:
        """Sorted ids of the event records whose time is known, and their rows in ``cuda_events``."""
        events = self._recording.cuda_events
        rows = np.flatnonzero((events.event_sync_id != 0) & (self._recorded_ns != NONE))
        ids, first, index = np.unique(events.event_sync_id[rows], return_index=True, return_inverse=True)
        # Several processes of one recording may use the same id; then it is unknown which record was meant.
        differs = events.correlation_id[rows] != events.correlation_id[rows[first]][index]
        is_clear = np.bincount(index[differs], minlength=len(ids)) == 0
        return ids[is_clear], rows[first[is_clear]]

    @cached_property
    def _recorded_ns(self) -> Numbers:
        """Time of the call that recorded each event; -1: unknown."""
        rows = self._recording.launch_rows(self._recording.cuda_events.correlation_id)
        return np.where(rows >= 0, np.append(self._recording.api_calls.start_ns, 0)[rows], NONE)

    def _waits_of_streams(self) -> tuple[StreamWaits, int]:
        """The waits, and the number of waits for an event whose record is unknown."""
        waits = self._recording.synchronizations.where(sync_type=_STREAM_WAIT)
        records = look_up(waits.event_sync_id, *self._records)
        events = self._recording.cuda_events
        call_rows = self._recording.launch_rows(waits.correlation_id)
        calls = np.where(call_rows >= 0, np.append(self._recording.api_calls.start_ns, 0)[call_rows], waits.start_ns)
        found: list[tuple[int, int, int, int]] = []
        columns = (waits.context_id, waits.stream_id, calls, records)
        for context, stream, called_ns, record in zip(*(each.tolist() for each in columns), strict=True):
            targets = self._streams_of(context, stream)
            if record < 0:
                found += [(target, called_ns, NONE, NONE) for target in targets]
                continue
            sources = self._streams_of(int(events.context_id[record]), int(events.stream_id[record]))
            found += [
                (target, called_ns, source, int(self._recorded_ns[record]))
                for target in targets
                for source in sources
                if len(targets) == 1 or self.streams[target].device == self.streams[source].device
            ]
        return StreamWaits(*np.array(found, np.int64).reshape(-1, 4).T.copy()), int((records < 0).sum())

    def _waits_of_host(self) -> HostWaits:
        """The synchronising calls, and the calls of copies that returned after their copy."""
        recording, calls = self._recording, self._recording.api_calls
        rows = np.flatnonzero(have_role(calls.name_id, recording.strings, ApiRole.WAIT))
        sets, until_ns = self._waited_for(rows)
        copies = self._copies_waited_for()
        api_rows = np.concatenate([rows, self.launches[copies]])
        found = HostWaits(
            threads_of_calls(recording)[api_rows],
            calls.start_ns[api_rows],
            calls.end_ns[api_rows],
            np.concatenate([np.full(len(rows), NONE), copies]),
            np.concatenate([sets, np.zeros(len(copies), np.int64)]),
            np.concatenate([until_ns, calls.start_ns[self.launches[copies]]]),
            api_rows,
        )
        order = np.lexsort((found.end_ns, found.threads))
        return HostWaits(*(column[order] for column in found))

    def _copies_waited_for(self) -> Numbers:
        """The copies whose call waited for them: the call is synchronous, and returned after their end."""
        calls = self._recording.api_calls
        is_waiting = np.append(_of_calls(self._recording, lambda name: "Memcpy" in name and "Async" not in name), False)
        places = np.flatnonzero((self.work.work_class == WorkClass.COPY) & (self.launches >= 0))
        own = self.launches[places]
        ends = self.work.end_ns[places]
        return places[is_waiting[own] & (ends > calls.start_ns[own]) & (ends <= calls.end_ns[own])]

    def _waited_for(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """The set of streams for which each call waited, and the time until which launched work was awaited."""
        recording = self._recording
        until_ns = recording.api_calls.start_ns[rows].astype(np.int64)
        sets = np.zeros(len(rows), np.int64)
        waits = recording.synchronizations
        of_host = np.flatnonzero(np.isin(waits.sync_type, (_EVENT, _STREAM, _CONTEXT)))
        ids, first = first_rows(waits.correlation_id[of_host])
        wait_rows = look_up(recording.api_calls.correlation_id[rows], ids, of_host[first])
        kinds = np.where(wait_rows >= 0, np.append(waits.sync_type, 0)[wait_rows], 0)
        events = recording.cuda_events
        for kind in (_EVENT, _STREAM, _CONTEXT):
            own = np.flatnonzero(kinds == kind)
            table, places = waits, wait_rows[own]
            if kind == _EVENT:
                records = look_up(waits.event_sync_id[places], *self._records)
                own, table, places = own[records >= 0], events, records[records >= 0]
                until_ns[own] = self._recorded_ns[places]
            # The ids of contexts and streams have 32 bits.
            keys = table.context_id[places].astype(np.uint64) << np.uint64(32) | table.stream_id[places]
            distinct, index = np.unique(keys, return_inverse=True)
            found = []
            for key in distinct.tolist():
                context, stream = key >> 32, key & 0xFFFFFFFF
                is_context = kind == _CONTEXT and (context,) in self._by_context
                numbers = self._by_context[(context,)] if is_context else self._streams_of(context, stream)
                found.append(0 if kind == _CONTEXT and not is_context else self._set_of(numbers))
            sets[own] = np.array(found, np.int64)[index] if found else sets[own]
        return sets, until_ns


def _of_calls(recording: Recording, is_wanted: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Whether the name of each call's function, without its version suffix, is wanted."""
    wanted = np.array([is_wanted(plain_api_name(text)) for text in recording.strings] or [False], bool)
    chosen: npt.NDArray[np.bool_] = wanted[recording.api_calls.name_id]
    return chosen
