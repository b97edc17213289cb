"""Traces of PyTorch's profiler that a script has merged from the traces of several processes.

Each process counts its launches, contexts and GPUs by itself. Rows of the host state their process. That of a row of a
GPU follows from the names of both, as in ``[TP00] 0`` and ``[TP00] 1234``, or from the order of the file, if the traces
stand in it one after the other. Otherwise it is not known what launched the work, which the step states.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.formats.free_numbers import FreeNumbers
from collector.formats.profiler_dialect import CALL, KERNEL, MEMCPY, MEMSET, OP, ProfilerDialect, row_numbers
from collector.recording.first_rows import distinct_rows
from collector.recording.process_numbers import ProcessNumbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import numpy.typing as npt

    from collector.formats.chrome_events import ChromeEvents, Numbers

    _Read: TypeAlias = "Callable[[MergedDialect, Numbers], Numbers]"

_UNKNOWN = "GPU work of an unknown process, where several use the same correlation ids"
_NUMBER_AT_END = re.compile(r"\d+$")


def profile_dialect(found: ChromeEvents) -> ProfilerDialect:
    """The dialect of a trace of PyTorch's profiler, or of any program with timed events."""
    plain = ProfilerDialect(found)
    rows = found.rows("X")
    kinds = plain.kinds(rows)
    calls, hosts = rows[kinds == CALL], rows[(kinds == CALL) | (kinds == OP)]
    processes = _Processes(found, hosts)
    if len(processes.first_rows) < 2 or not _share(plain.correlations(calls), processes.of(calls)):
        return plain
    work = processes.of(rows[np.isin(kinds, (KERNEL, MEMCPY, MEMSET))])
    if unknown := int((work == processes.unknown).sum()):
        found.skipped[_UNKNOWN] += unknown
    return MergedDialect(found, processes)


def _share(ids: Numbers, processes: Numbers) -> bool:
    """Whether two processes use an id."""
    own = np.unique(np.stack([ids, processes])[:, ids > 0], axis=1)[0]
    return bool((own[1:] == own[:-1]).any())


class _Processes:
    """The processes of the host, numbered from 0 on in the order of the file, and the events of each."""

    def __init__(self, found: ChromeEvents, hosts: Numbers) -> None:
        """Number the processes of these events."""
        self._found = found
        tracks = found.track_numbers(hosts)
        first, _ = distinct_rows([tracks])
        numbers: dict[str, int] = {}
        for track in tracks[np.sort(first)].tolist():
            numbers.setdefault(str(found.tracks[track][0]), len(numbers))
        self.unknown = len(numbers)
        """The number for events of a process that is not known."""
        labels = [_NUMBER_AT_END.sub("", process) for process in numbers]
        by_label = {label: place for place, label in enumerate(labels) if label and labels.count(label) == 1}
        self._of_tracks = np.array(
            [
                numbers.get(str(process), by_label.get(_NUMBER_AT_END.sub("", str(process)), self.unknown))
                for process, _ in found.tracks
            ],
            np.int64,
        )
        self._are_hosts = np.array([str(process) in numbers for process, _ in found.tracks], bool)
        of_hosts = self._of_tracks[tracks]
        last = [int(hosts[of_hosts == place][-1]) for place in range(self.unknown)]
        self.first_rows = np.array([int(hosts[of_hosts == place][0]) for place in range(self.unknown)], np.int64)
        self._stand_apart = bool((self.first_rows[1:] > last[:-1]).all())

    def are_of_hosts(self, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Whether each event is of a process that makes calls or runs ops."""
        return self._are_hosts[self._found.track_numbers(rows)]

    def of(self, rows: Numbers) -> Numbers:
        """The process of each event."""
        found = self._of_tracks[self._found.track_numbers(rows)]
        if not self._stand_apart:
            return found
        before = np.maximum(np.searchsorted(self.first_rows, rows, side="right") - 1, 0)
        own: Numbers = np.where(found == self.unknown, before, found)
        return own


class MergedDialect(ProfilerDialect):
    """A trace in which several processes use the same correlation ids."""

    def __init__(self, found: ChromeEvents, processes: _Processes) -> None:
        """Hold the events and their processes."""
        super().__init__(found)
        self.process_rows = processes
        self._numbers: dict[str, ProcessNumbers] = {}

    def _unique(self, kind: str, read: _Read, rows: Numbers) -> Numbers:
        """The ids of events, which `read` returns, as numbers that no other process uses."""
        if kind not in self._numbers:
            events = self.found.rows_without("")
            processes = self.process_rows.of(events)
            ids = [(processes, each(self, events)) for each in _READ[kind]]
            self._numbers[kind] = ProcessNumbers(ids, shared=(-1,) if kind == "device" else (-1, 0))
        return self._numbers[kind].of(self.process_rows.of(rows), read(self, rows))

    @cached_property
    def _process_numbers(self) -> list[int]:
        """The number at the end of a process's name, which no other process has."""
        numbers = FreeNumbers()
        names = [str(process) for process, _ in self.found.tracks]
        stated = {name: found[0] if (found := _NUMBER_AT_END.search(name)) else name for name in names}
        number_of = {
            name: numbers.take(number) for name, number in zip(stated, row_numbers(stated.values()), strict=True)
        }
        return [number_of[name] for name in names]

    def correlations(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("correlation", ProfilerDialect.correlations, rows)

    def recorded_by(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("correlation", ProfilerDialect.recorded_by, rows)

    def external_ids(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("external id", ProfilerDialect.external_ids, rows)

    def op_sequences(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("op", ProfilerDialect.op_sequences, rows)

    def devices(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("device", _devices, rows)

    def memory_devices(self, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        return self._unique("device", ProfilerDialect.memory_devices, rows)

    def figures(self, figure: str, rows: Numbers) -> Numbers:
        """See `ProfilerDialect`."""
        if figure in _KINDS:
            return self._unique(_KINDS[figure], _of_figure(figure), rows)
        return super().figures(figure, rows)


def _devices(dialect: MergedDialect, rows: Numbers) -> Numbers:
    """The stated numbers of GPUs; of a row without one the number of its process is taken only if it makes no calls."""
    is_stated = dialect.stated_devices(rows) >= 0
    return np.where(dialect.process_rows.are_of_hosts(rows) & ~is_stated, 0, ProfilerDialect.devices(dialect, rows))


def _of_figure(figure: str) -> _Read:
    return lambda dialect, rows: ProfilerDialect.figures(dialect, figure, rows)


_KINDS = {
    "context": "context",
    "fromContext": "context",
    "toContext": "context",
    "fromDevice": "device",
    "toDevice": "device",
    "graph id": "graph id",
}
"""Figure that is an id -> the kind of ids."""
_READ: dict[str, tuple[_Read, ...]] = {
    "correlation": (ProfilerDialect.correlations, ProfilerDialect.recorded_by),
    "external id": (ProfilerDialect.external_ids,),
    "op": (ProfilerDialect.op_sequences,),
    "device": (_devices, ProfilerDialect.memory_devices, _of_figure("fromDevice"), _of_figure("toDevice")),
    "context": (_of_figure("context"), _of_figure("fromContext"), _of_figure("toContext")),
    "graph id": (_of_figure("graph id"),),
}
"""Kind of ids -> all that reads ids of it from events."""
