"""The input of checkers: each device's activities as columns, with the derived values that most checkers need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collector.analysis.activities import WorkClass, communicates
from collector.analysis.device_times import DeviceTimes, swept_times
from collector.profiler.advised_devices import AdvisedDevice
from collector.profiler.gpu_work import ActivityColumns, gpu_work
from collector.profiler.node_fields import Ints
from collector.protos import Activity as RecordedActivity
from collector.recording.cupti_enums import COPY_KINDS
from collector.recording.distinct import distinct_codes
from collector.recording.first_rows import distinct_rows
from collector.recording.idle_causes import IdleTimes, idle_times
from collector.recording.intervals import Union
from collector.recording.ledger import Ledger
from collector.stepstats.labels import op_and_kernel, stream_device, unit_of

Mask = NDArray[np.bool_]

_PEER_COPY = COPY_KINDS.index("PtoP")


class Device:
    """The activities of one device, sorted by start; times in nanoseconds since the epoch.

    They are nodes or rows of a recording, and not the `Activities` of `collector.analysis`: TensorFlow's StepStats
    state when each activity was scheduled, but hold no call that launched it. A recording made of them therefore has no
    launches, and idle time could not be divided by its causes. Sums and causes are computed by the functions of
    `collector.analysis`.

    CUDA graphs that were recorded as a whole are among them: their times count, and nothing else is known of them.

    Args:
        advised: the device's activities, its whole graphs, and the host that launched them.
        window: begin and end of the step; if None, or if some activities lie outside it: from the first start to the
            last end.
        streams: gives the number of each activity's stream without the graphs; -1: not known.
    """

    def __init__(
        self,
        advised: AdvisedDevice,
        window: tuple[int, int] | None,
        streams: Callable[[], Ints],
    ) -> None:
        columns, graphs, host = advised
        starts, ends = (
            np.concatenate(each) for each in ((columns.start_ns, graphs.start_ns), (columns.end_ns, graphs.end_ns))
        )
        order = np.lexsort((ends, starts))
        self.name = unit_of(columns.device)
        self.start = starts[order]
        self.end = ends[order]
        self.scheduled = np.concatenate([columns.scheduled_ns, host.graphs_called_ns])[order]
        names, index = columns.names
        self.names = [*names, *graphs.names]
        self.name_id = np.concatenate([index, graphs.name_ids + len(names)])[order]
        self.is_graph: Mask = order >= len(columns)
        self._own = order[~self.is_graph]
        self.kernel_names = [op_and_kernel(name)[1] for name in self.names]
        """For each of `names`, the kernel or the kind of copy."""
        self.work = gpu_work(columns, self._own).among(~self.is_graph)
        self.is_copy: Mask = self.work.kind == RecordedActivity.MEMCPY
        self.is_peer_copy: Mask = self.is_copy & (self.work.copy_kind == _PEER_COPY)
        self.is_kernel: Mask = ~self.work.is_copy_or_memset & ~self.is_graph
        self.runs_kernels: Mask = self.is_kernel | self.is_graph
        """Kernels, and graphs, which hold some."""
        is_named_so = np.array([communicates(kernel) for kernel in self.kernel_names], bool)
        self.work_class = np.where(is_named_so[self.name_id], WorkClass.COMMUNICATION, WorkClass.COMPUTE)
        self.work_class[~self.is_kernel] = WorkClass.MEMSET
        self.work_class[self.is_copy] = WorkClass.COPY
        self.work_class[self.is_graph] = WorkClass.GRAPH
        self.is_communication: Mask = self.work_class == WorkClass.COMMUNICATION
        self.is_compute: Mask = self.work_class == WorkClass.COMPUTE
        span = (int(self.start.min()), int(self.end.max())) if len(self) else (0, 0)
        whole = window is not None and window[0] <= span[0] and span[1] <= window[1]
        self.window = window if window is not None and whole else span
        """The total time for shares of busy and idle time."""
        self.window_name = "the step" if whole else "the time from its first to its last activity"
        self.waits = host.waits
        self._launch_threads, self._streams = host.threads[order], streams

    def __len__(self) -> int:
        return len(self.start)

    @property
    def window_ns(self) -> int:
        """Length of the window."""
        return self.window[1] - self.window[0]

    def union(self, rows: Mask) -> Union:
        """The times in which at least one of ``rows`` runs."""
        return Union.of(self.start[rows], self.end[rows])

    @cached_property
    def times(self) -> DeviceTimes:
        """The busy time of the device by classes of activities, as `collector.analysis` computes it."""
        device = np.zeros(len(self), np.uint32)
        (times,) = swept_times(
            [(self.start, self.end, device, self.work_class.astype(np.uint8))], self.window_name, self.window
        )
        return times

    @cached_property
    def idle(self) -> IdleTimes:
        """The times in the window without any activity, with their causes, as `collector.analysis` has them."""

        def launched(rows: Ints) -> tuple[Ints, Ints]:
            return self.scheduled[rows], self._launch_threads[rows]

        return idle_times(self.start, self.end, self.window, launched, self.waits.times)

    @cached_property
    def stream(self) -> Ints:
        """The number of each activity's stream; -1: not known."""
        found = np.full(len(self), -1, np.int64)
        found[~self.is_graph] = self._streams()[self._own]
        return found

    @cached_property
    def is_in_graph(self) -> Mask:
        """Whether one call launched an activity together with others, as the nodes of a CUDA graph, or a whole one."""
        _, places, counts = np.unique(self.scheduled, return_inverse=True, return_counts=True)
        together: Mask = (self.scheduled > 0) & (counts[places.reshape(-1)] > 1)
        return together | self.is_graph

    def time_without(self, rows: Mask, others: Mask) -> int:
        """The time in which at least one of ``rows`` runs and none of ``others`` does."""
        union = self.union(rows)
        return union.length - union.overlap(self.union(others))

    def time_singly(self, rows: Mask, among: Mask) -> int:
        """The time in which exactly one of ``among`` runs, and it is one of ``rows``."""
        times = np.concatenate([self.start[among], self.end[among]])
        order = np.argsort(times, kind="stable")
        change = np.repeat(np.array([1, -1], np.int64), int(among.sum()))
        own = np.concatenate([rows[among], rows[among]])
        running = np.cumsum(change[order])
        running_own = np.cumsum(np.where(own, change, 0)[order])
        lengths = np.diff(times[order])
        return int(lengths[(running[:-1] == 1) & (running_own[:-1] == 1)].sum())

    @property
    def copied_bytes(self) -> Ints:
        """Bytes of each copy or memset; -1 for unknown sizes and for kernels."""
        return self.work.num_bytes

    @property
    def grid_blocks(self) -> Ints:
        """Thread blocks of each kernel, 0 if unknown."""
        return self.work.num_blocks

    @cached_property
    def duration(self) -> Ints:
        """Duration of each activity, in nanoseconds."""
        return self.end - self.start

    def by_name(self, rows: Mask) -> list[tuple[str, int, int]]:
        """(kernel or copy, number, nanoseconds) over all ops that launched it, longest first."""
        time = np.bincount(self.name_id[rows], self.duration[rows], len(self.names))
        count = np.bincount(self.name_id[rows], minlength=len(self.names))
        totals: dict[str, tuple[int, int]] = {}
        for kind, spent, times in zip(self.kernel_names, time.tolist(), count.tolist(), strict=True):
            if times:
                before = totals.get(kind, (0, 0))
                totals[kind] = (before[0] + times, before[1] + int(spent))
        return sorted(((kind, *total) for kind, total in totals.items()), key=lambda row: (-row[2], row[0]))

    def busiest_op(self, rows: Mask, kind: str) -> tuple[str, float]:
        """The op that launched most of ``kind`` among ``rows`` by time, and its share of that time."""
        time = np.bincount(self.name_id[rows], self.duration[rows], len(self.names)).tolist()
        spent = [(-time[each], name) for each, name in enumerate(self.names) if self.kernel_names[each] == kind]
        most, name = min(spent)
        return op_and_kernel(name)[0], most / (sum(each for each, _ in spent) or -1)

    def op_of(self, row: int) -> str:
        """The activity's op and kernel, as ``op:kernel``."""
        return self.names[int(self.name_id[row])]


class AdvisedStep(Protocol):
    """The data of a step that checkers need."""

    @property
    def accelerators(self) -> Sequence[ActivityColumns]:
        """The activities of each device."""

    @property
    def advised_devices(self) -> Sequence[AdvisedDevice]:
        """The devices that did anything."""

    @property
    def streams(self) -> Sequence[ActivityColumns]:
        """The activities of each stream, where those of devices do not state their streams."""

    @property
    def window(self) -> tuple[int, int] | None:
        """Start and end of the step, in nanoseconds since the epoch; None: not known."""

    @property
    def ledger(self) -> Ledger:
        """The tracer's counts."""


class Activity:
    """One step in the form for checkers."""

    def __init__(self, step: AdvisedStep) -> None:
        self.step = step

    @cached_property
    def devices(self) -> list[Device]:
        """The devices that did anything."""
        # Devices refer to the step and not to this object: a cycle would keep all columns until the garbage collector
        # runs, which few objects with large arrays hardly ever cause.
        return [
            Device(each, self.step.window, partial(_streams_of, each.activities, self.step.streams))
            for each in self.step.advised_devices
        ]

    @property
    def kernel_count(self) -> int:
        """Kernels on all devices."""
        return sum(int(device.is_kernel.sum()) for device in self.devices)

    @cached_property
    def stream_loads(self) -> dict[str, tuple[int, int]]:
        """Stream device -> (activities, nanoseconds)."""
        loads: dict[str, tuple[int, int]] = {}
        for columns in self.step.accelerators:
            if columns.is_typed.all():
                loads.update(_stream_loads(columns))
            else:
                unit = f"{unit_of(columns.device)}/"
                streams = (stream for stream in self.step.streams if stream.device.startswith(unit))
                loads.update({each.device: (len(each), int(each.duration_ns.sum())) for each in streams})
        return loads


def _streams_of(columns: ActivityColumns, all_streams: Sequence[ActivityColumns]) -> Ints:
    """The number of the stream of each activity of a device, among all streams of the step; -1: not known."""
    if columns.is_typed.all():
        of = columns.activity_columns(("stream_id", "context_id"), np.arange(len(columns)))
        return distinct_rows([of["stream_id"], of["context_id"]])[1]
    unit = f"{unit_of(columns.device)}/"
    streams = [each for each in all_streams if each.device.startswith(unit)]
    number_of: dict[str, int] = {}
    keys = []
    for each in (columns, *streams):
        names, index = each.names
        numbers = np.array([number_of.setdefault(name, len(number_of)) for name in names], np.int64)
        keys.append(np.stack([each.start_ns, each.end_ns, numbers[index]]))
    codes = distinct_rows(list(np.concatenate(keys, axis=1)))[1]
    stream_of = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    stream_of[codes[len(columns) :]] = np.repeat(np.arange(len(streams)), [len(each) for each in streams])
    found: Ints = stream_of[codes[: len(columns)]]
    return found


def _stream_loads(columns: ActivityColumns) -> Iterator[tuple[str, tuple[int, int]]]:
    """See `Activity.stream_loads`, by the streams and contexts of a device's activities."""
    of = columns.activity_columns(("stream_id", "context_id"), np.arange(len(columns)))
    streams, stream_codes = distinct_codes(of["stream_id"])
    contexts, context_codes = distinct_codes(of["context_id"])
    pairs, index = distinct_codes(stream_codes * max(len(contexts), 1) + context_codes)
    which_stream, which_context = np.divmod(pairs, max(len(contexts), 1))
    counts = np.bincount(index, minlength=len(pairs))
    spent = np.zeros(len(pairs), np.int64)
    np.add.at(spent, index, columns.duration_ns)
    ids = (streams[which_stream].tolist(), contexts[which_context].tolist())
    before = -1
    for stream, context, count, nanos in zip(*ids, counts.tolist(), spent.tolist(), strict=True):
        device = stream_device(unit_of(columns.device), stream, context if stream == before else None)
        before = stream
        yield device, (count, nanos)
