"""A recording in the form that checkers read, made from its columns: a message of all its nodes would cost more."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.host_waits import launches_by_thread, wait_rows, waiting_threads
from collector.analysis.process_rows import processes_beside
from collector.analysis.whole_graphs import graph_labels
from collector.profiler.advised_devices import AdvisedDevice, WholeGraphs
from collector.profiler.launching_hosts import HostWaits, LaunchingHost
from collector.recording.api_functions import plain_api_name
from collector.recording.distinct import distinct_codes
from collector.recording.kernel_names import short_name
from collector.recording.kind_names import copy_kind_name
from collector.recording.schema import ACTIVITY_KINDS, ACTIVITY_TABLES
from collector.stepstats.labels import op_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from collector.profiler.node_fields import Ints
    from collector.recording.ledger import Ledger
    from collector.recording.recording import Recording

_LONGEST_NS = 10**15
"""Longer durations, 11 days, are impossible, and count as 0."""


class RecordingStep(NamedTuple):
    """The step of a recording, which gets the same advice as its StepStats."""

    accelerators: list[RecordedWork]
    advised_devices: list[AdvisedDevice]
    streams: tuple[()]
    """Activities state their streams."""
    window: tuple[int, int]
    ledger: Ledger

    @classmethod
    def of(cls, recording: Recording, device_prefix: str = "") -> RecordingStep:
        """The step; ``device_prefix`` is put before every device's name, such as ``/job:worker/replica:0/task:3``."""
        clock = recording.clock
        waits: dict[tuple[int, ...], HostWaits] = {}  # devices of the same processes share them
        works, advised = [], []
        for device, own in Activities.with_graphs(recording).by_device():
            is_graph = own.table == len(ACTIVITY_TABLES)
            work = RecordedWork(f"{device_prefix}/gpu:{device}/stream:all", recording, own.where(~is_graph))
            graphs = own.where(is_graph)
            called_ns, threads = launches_by_thread(recording, graphs.launch_rows())
            processes = processes_beside(recording, own)
            if processes not in waits:
                waits[processes] = _host_waits(recording, processes)
            host = LaunchingHost(np.concatenate([work.launch_threads, threads]), called_ns, waits[processes])
            if len(work):
                works.append(work)
            advised.append(AdvisedDevice(work, _whole_graphs(recording, graphs), host))
        return cls(works, advised, (), (clock.cupti_start_ns, clock.cupti_stop_ns), recording.ledger)


def _whole_graphs(recording: Recording, graphs: Activities) -> WholeGraphs:
    labels = graph_labels(recording)
    ids, index = distinct_codes(recording.graph_launches.graph_id[graphs.row])
    times = _Rows("", graphs.start_ns, graphs.end_ns)
    return WholeGraphs(times.start_ns, times.end_ns, [labels[each] for each in ids.tolist()], index)


def _host_waits(recording: Recording, processes: tuple[int, ...]) -> HostWaits:
    """The waits of the processes that `processes_beside` gives."""
    calls, rows = recording.api_calls, wait_rows(recording, processes)
    ids, index = distinct_codes(calls.name_id[rows])
    names = [plain_api_name(recording.strings[name_id]) for name_id in ids.tolist()]
    return HostWaits.of(names, index, waiting_threads(recording)[rows], calls.start_ns[rows], calls.end_ns[rows])


class _Rows:
    """Rows of a recording; times are CUPTI's, which are never 0."""

    def __init__(self, device: str, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> None:
        self.device = device
        self.start_ns = starts
        durations = ends - starts
        self.duration_ns = np.where(durations > _LONGEST_NS, 0, durations)

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Ints:
        """The end of each row, in ns."""
        return self.start_ns + self.duration_ns

    @property
    def is_typed(self) -> npt.NDArray[np.bool_]:
        """Every row has columns."""
        return np.ones(len(self), bool)


class RecordedWork(_Rows):
    """The activities of a device."""

    def __init__(self, device: str, recording: Recording, work: Activities) -> None:
        super().__init__(device, work.start_ns, work.end_ns)
        self._recording, self._work = recording, work

    @property
    def scheduled_ns(self) -> Ints:
        """Start of the call that launched each; 0: not known."""
        return self._launches[0]

    @property
    def launch_threads(self) -> Ints:
        """The number of the thread that launched each; see `ThreadWaits`."""
        return self._launches[1]

    @cached_property
    def _launches(self) -> tuple[Ints, Ints]:
        return launches_by_thread(self._recording, self._work.launch_rows())

    @cached_property
    def names(self) -> tuple[list[str], Ints]:
        """Distinct texts ``op:kernel``, and each activity's place among them."""
        recording, work = self._recording, self._work
        kernels, copies, memsets = ACTIVITY_TABLES
        annotations = work.annotation_ids()
        places: dict[str, int] = {}
        index = np.zeros(len(work), np.int64)
        tables: tuple[tuple[str, npt.NDArray[Any], Callable[[int], str]], ...] = (
            (kernels, recording.kernels.name_id, lambda name_id: short_name(recording.strings[name_id])),
            (copies, recording.memcpys.copy_kind, lambda kind: f"MEMCPY{copy_kind_name(kind)}"),
            (memsets, np.zeros(len(recording.memsets), np.int64), lambda _: "MEMSET"),
        )
        for table, ids, name_of in tables:
            own = np.flatnonzero(work.table == ACTIVITY_TABLES.index(table))
            distinct, codes = distinct_codes(ids[work.row[own]])
            pairs, pair_of = distinct_codes((annotations[own] + 1) * max(len(distinct), 1) + codes)
            made = []
            for pair in pairs.tolist():
                annotation, code = divmod(pair, max(len(distinct), 1))
                name = name_of(distinct[code].item())
                op = op_of(recording.strings[annotation - 1]) if annotation else name
                made.append(places.setdefault(f"{op}:{name}", len(places)))
            index[own] = np.array(made, np.int64)[pair_of]
        return list(places), index

    def activity_columns(self, columns: Sequence[str], rows: Ints) -> dict[str, Ints]:
        """Columns of some activities; 0 where their tables lack a column. ``kind`` is their ``Activity.Kind``."""
        found = {}
        table_of, row_of = self._work.table[rows], self._work.row[rows]
        kinds = np.array([ACTIVITY_KINDS[name] for name in ACTIVITY_TABLES], np.int64)
        of_tables = [np.flatnonzero(table_of == place) for place in range(len(ACTIVITY_TABLES))]
        own = [slice(None) if len(chosen) == len(rows) else chosen for chosen in of_tables]
        for column in columns:
            values = kinds[table_of] if column == "kind" else np.zeros(len(rows), np.int64)
            for name, chosen in zip(ACTIVITY_TABLES, own, strict=True):
                table = getattr(self._recording, name)
                if column in table.columns:
                    values[chosen] = getattr(table, column)[row_of[chosen]]
            found[column] = values
        return found
