"""What checkers look at: each device's activities as columns, with the answers most of them need."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collector.profiler.columns import DeviceColumns
from collector.profiler.node_fields import Ints
from collector.profiler.recorded import RecordedStep

Mask = NDArray[np.bool_]

_BYTES = re.compile(r"\b(\d{1,18}) bytes\b")
_GRID = re.compile(r"\bgrid:(\d+),(\d+),(\d+)")


class Device:
    """The activities of one device, by start; times in nanoseconds since the epoch."""

    def __init__(self, columns: DeviceColumns) -> None:
        order = np.lexsort((columns.end_ns, columns.start_ns))
        self.name = columns.device.partition("/stream:")[0]
        self.start = columns.start_ns[order]
        self.end = columns.end_ns[order]
        self.scheduled = columns.scheduled_ns[order]
        self.names, index = columns.names
        self.name_id = index[order]
        self.labels, index = columns.labels
        self.label_id = index[order]
        kinds = [name.partition(":")[2] or name for name in self.names]
        self.is_copy: Mask = np.array([kind.startswith("MEMCPY") for kind in kinds], bool)[self.name_id]
        self.is_peer_copy: Mask = np.array([kind == "MEMCPYPtoP" for kind in kinds], bool)[self.name_id]
        not_kernel = np.array([kind.startswith(("MEMCPY", "MEMSET")) for kind in kinds], bool)
        self.is_kernel: Mask = ~not_kernel[self.name_id]

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def span_ns(self) -> int:
        """From the first start to the last end."""
        return int(self.end.max() - self.start.min()) if len(self) else 0

    @cached_property
    def gaps(self) -> tuple[Ints, Ints]:
        """Row after each idle gap, and its length: nothing at all runs on the device meanwhile."""
        if len(self) < 2:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        busy_until = np.maximum.accumulate(self.end)[:-1]
        idle = self.start[1:] - busy_until
        rows = np.flatnonzero(idle > 0) + 1
        return rows, idle[rows - 1]

    @cached_property
    def copied_bytes(self) -> Ints:
        """Bytes of each copy or memset, 0 for kernels."""
        of_label = [int(found[1]) if (found := _BYTES.search(label)) else 0 for label in self.labels]
        return np.array([*of_label, 0], np.int64)[self.label_id]

    @cached_property
    def grid_blocks(self) -> Ints:
        """Thread blocks of each kernel, 0 where not known."""
        of_label = [
            int(found[1]) * int(found[2]) * int(found[3]) if (found := _GRID.search(label)) else 0
            for label in self.labels
        ]
        return np.array([*of_label, 0], np.int64)[self.label_id]

    @cached_property
    def duration(self) -> Ints:
        """Of each activity, in nanoseconds."""
        return self.end - self.start

    def by_name(self, rows: Mask) -> list[tuple[str, int, int]]:
        """(kernel or copy, times, nanoseconds) over the ops that launched it, longest first."""
        time = np.bincount(self.name_id[rows], self.duration[rows], len(self.names))
        count = np.bincount(self.name_id[rows], minlength=len(self.names))
        totals: dict[str, tuple[int, int]] = {}
        for name, spent, times in zip(self.names, time.tolist(), count.tolist(), strict=True):
            if times:
                kind = name.partition(":")[2] or name
                before = totals.get(kind, (0, 0))
                totals[kind] = (before[0] + times, before[1] + int(spent))
        return sorted(((kind, *total) for kind, total in totals.items()), key=lambda row: (-row[2], row[0]))

    def busiest_op(self, rows: Mask, kind: str) -> tuple[str, float]:
        """The op that launched most of ``kind`` among ``rows``, and its share of that time."""
        time = np.bincount(self.name_id[rows], self.duration[rows], len(self.names)).tolist()
        spent = [
            (-time[each], name) for each, name in enumerate(self.names) if (name.partition(":")[2] or name) == kind
        ]
        most, name = min(spent)
        return name.partition(":")[0], most / (sum(each for each, _ in spent) or -1)

    def op_of(self, row: int) -> str:
        """The activity's op and kernel, as ``op:kernel``."""
        return self.names[int(self.name_id[row])]

    def covered_ns(self, rows: Mask, cover: Mask) -> int:
        """How long ``rows`` run while at least one of ``cover`` runs."""
        marks = np.concatenate([self.start[cover], self.end[cover]])
        steps = np.concatenate([np.ones(int(cover.sum()), np.int64), -np.ones(int(cover.sum()), np.int64)])
        if not len(marks):
            return 0
        order = np.lexsort((-steps, marks))
        marks, running = marks[order], np.cumsum(steps[order])
        held = np.concatenate([[0], np.cumsum(np.diff(marks) * (running[:-1] > 0))])
        covered = np.interp(self.end[rows] - marks[0], marks - marks[0], held)
        return int((covered - np.interp(self.start[rows] - marks[0], marks - marks[0], held)).sum())


class Activity:
    """One step, as checkers see it."""

    def __init__(self, step: RecordedStep) -> None:
        self.step = step

    @cached_property
    def devices(self) -> list[Device]:
        """Accelerators that did anything."""
        return [Device(columns) for columns in self.step.accelerators if len(columns)]

    @property
    def kernel_count(self) -> int:
        """Kernels on all devices."""
        return sum(int(device.is_kernel.sum()) for device in self.devices)

    @cached_property
    def synchronizations(self) -> list[tuple[int, int, str]]:
        """(start, end, name) of each call that waited for a device or a stream, by start."""
        calls: list[tuple[int, int, str]] = []
        for columns in self.step.host:
            names, index = columns.names
            waits = np.array(["Synchronize" in name for name in names], bool)
            if waits.any():
                rows = np.flatnonzero(waits[index])
                texts = [names[each] for each in index[rows].tolist()]
                calls += zip(columns.start_ns[rows].tolist(), columns.end_ns[rows].tolist(), texts, strict=True)
        return sorted(calls)

    @cached_property
    def stream_loads(self) -> dict[str, tuple[int, int]]:
        """Stream device -> (activities, nanoseconds)."""
        return {columns.device: (len(columns), int(columns.duration_ns.sum())) for columns in self.step.streams}
