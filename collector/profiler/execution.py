"""The execution of one node in one step: times per device, memory, runs."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.profiler.stats import int64
from collector.protos import AllocationRecord, ExecMemory, ExecProfile, NodeExecStats

log = logging.getLogger("collector.profiler")

_HOST_CLASS = re.compile(r".*/(device:gpu|gpu|device:cpu|cpu|device:sycl):\d+")


def is_accelerator_stream(device: str) -> bool:
    """Whether times of ``device`` (lower case) are accelerator time: only of the stream with every kernel once."""
    return "stream:all" in device


def is_canonical(device: str) -> bool:
    """Whether ``device`` (lower case) runs ops. Its times are CPU time; for a GPU, that is the time for scheduling."""
    return _HOST_CLASS.fullmatch(device) is not None


def is_on_accelerator(device: str) -> bool:
    """Whether ``device`` (lower case) is, or belongs to, an accelerator."""
    return "gpu" in device or "sycl" in device


Times = list[tuple[int, int]] | NDArray[np.int64]
"""(start, duration) in microseconds, in recorded order; an array of two columns if there are many."""


class Runs(NamedTuple):
    """Some runs of a node on one device, and their total duration, in microseconds."""

    times: NDArray[np.int64]
    """(start, duration), in recorded order."""
    first_start: int
    last_end: int
    total: int
    """Sum of the durations."""


def runs_by(
    key: NDArray[np.int64], starts: NDArray[np.int64], durations: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.int64], Runs]]:
    """(key, rows with it, their runs) for each distinct key, ascending; rows keep their order.

    All sums are computed together: a step of a million kernels may have thousands of names.
    """
    order, firsts = grouped(key)
    if not len(order):
        return []
    times = np.stack([starts, durations], axis=1)[order]
    rows, parts = (np.split(array, firsts[1:]) for array in (order, times))
    begun = np.minimum.reduceat(times[:, 0], firsts).tolist()
    ended = np.maximum.reduceat(times.sum(axis=1), firsts).tolist()
    spent = np.add.reduceat(times[:, 1], firsts).tolist()
    return list(zip(key[order[firsts]].tolist(), rows, map(Runs, parts, begun, ended, spent), strict=True))


def grouped(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows sorted by key (stable), and the position in that order at which each distinct key begins."""
    if not len(key):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lowest = int(key.min())
    # numpy sorts 16-bit numbers without comparisons.
    narrow = (key - lowest).astype(np.uint16) if int(key.max()) - lowest < 1 << 16 else key
    order = np.argsort(narrow, kind="stable")
    ordered = narrow[order]
    firsts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return order, np.concatenate([[0], firsts])


def pairs_of(times: Times) -> list[tuple[int, int]]:
    """Times as a list."""
    return times if isinstance(times, list) else [(start, duration) for start, duration in times.tolist()]


@dataclass(slots=True)
class Memory:
    """Memory of one run of a node, in bytes."""

    at_micros: int = 0
    """End of the run."""
    host_temp: int = 0
    host_persistent: int = 0
    accelerator_temp: int = 0
    accelerator_persistent: int = 0
    requested: int = 0
    peak: int = 0
    residual: int = 0
    output: int = 0
    in_use: int = 0
    """Total bytes held by the accelerator's allocator."""
    outputs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Output slot -> (bytes, address)."""

    @classmethod
    def of(cls, device: str, stats: NodeExecStats) -> Memory:
        """Adds up the memory that ``stats`` records on ``device``."""
        run = cls(at_micros=stats.all_start_micros + stats.op_end_rel_micros)
        for used in stats.memory:
            if "GPU" in used.allocator_name:
                run.in_use = max(run.in_use, used.allocator_bytes_in_use)
        for output in stats.output:
            if output.HasField("tensor_description") and output.tensor_description.HasField("allocation_description"):
                allocation = output.tensor_description.allocation_description
                num_bytes = max(allocation.allocated_bytes, allocation.requested_bytes)
                run.output += num_bytes
                run.outputs[output.slot] = (num_bytes, allocation.ptr)
        temp, persistent = stats.memory_stats.temp_memory_size, stats.memory_stats.persistent_memory_size
        if is_on_accelerator(device):
            run.accelerator_temp, run.accelerator_persistent = temp, persistent
        else:
            run.host_temp, run.host_persistent = temp, persistent
        run.requested = sum(used.total_bytes for used in stats.memory) + persistent + temp
        run.peak = sum(used.peak_bytes for used in stats.memory) + persistent + temp
        run.residual = sum(used.live_bytes for used in stats.memory) + persistent
        return run

    def to_proto(self) -> ExecMemory:
        """As ``ExecMemory``."""
        figures: dict[str, Any] = {name: int64(getattr(self, attribute)) for name, attribute in _MEMORY_FIELDS}
        proto = ExecMemory(**figures)
        for slot, (num_bytes, address) in self.outputs.items():
            proto.output_memory[slot].bytes = num_bytes
            proto.output_memory[slot].ptr = address
        return proto

    @classmethod
    def from_proto(cls, proto: ExecMemory) -> Memory:
        """The inverse of ``to_proto``."""
        run = cls(**{attribute: getattr(proto, name) for name, attribute in _MEMORY_FIELDS})
        run.outputs = {slot: (output.bytes, output.ptr) for slot, output in proto.output_memory.items()}
        return run


_MEMORY_FIELDS = (
    ("memory_micros", "at_micros"),
    ("host_temp_bytes", "host_temp"),
    ("host_persistent_bytes", "host_persistent"),
    ("accelerator_temp_bytes", "accelerator_temp"),
    ("accelerator_persistent_bytes", "accelerator_persistent"),
    ("requested_bytes", "requested"),
    ("peak_bytes", "peak"),
    ("residual_bytes", "residual"),
    ("output_bytes", "output"),
    ("allocator_bytes_in_use", "in_use"),
)
"""(field of ExecMemory, attribute of Memory)."""


class Execution:
    """One node in one step."""

    __slots__ = (
        "accelerator",
        "accelerator_micros",
        "allocations",
        "cpu",
        "cpu_micros",
        "devices",
        "last_end_micros",
        "memory",
        "run_count",
        "start_micros",
    )

    def __init__(self) -> None:
        self.run_count = 0
        self.start_micros = 0
        """Earliest start on any device; 0 if there is none."""
        self.last_end_micros = 0
        self.accelerator: dict[str, Times] = {}
        self.cpu: dict[str, Times] = {}
        self.accelerator_micros = 0
        self.cpu_micros = 0
        self.devices: set[str] = set()
        self.memory: list[Memory] = []
        self.allocations: list[tuple[int, int]] = []
        """(time in microseconds, bytes; negative for a free)."""

    def add_times(self, device: str, start: int, duration: int) -> None:
        """Adds one record. A ``start`` of 0 means no time; a duration of 0 counts as 1 (microseconds)."""
        self.devices.add(device)
        if start <= 0:
            return
        self.start_micros = min(self.start_micros, start) if self.start_micros > 0 else start
        duration = duration or 1
        self.last_end_micros = max(self.last_end_micros, start + duration)
        if is_accelerator_stream(device):
            _append(self.accelerator, device, start, duration)
            self.accelerator_micros += duration
        if is_canonical(device):
            _append(self.cpu, device, start, duration)
            self.cpu_micros += duration
            self.run_count += 1

    def add_accelerator_runs(self, device: str, runs: Runs) -> None:
        """Adds activities of an accelerator's stream; here each is a run."""
        self._add_runs(self.accelerator, device, runs)
        self.accelerator_micros += runs.total

    def add_accelerator_sum(self, device: str, count: int, micros: int) -> None:
        """Adds runs of which only the number and the total time are known: one time that starts at 0, which is none."""
        self.devices.add(device)
        self.accelerator[device] = [*pairs_of(self.accelerator.get(device, [])), (0, micros)]
        self.accelerator_micros += micros
        self.run_count += count

    def add_host_runs(self, device: str, runs: Runs) -> None:
        """Adds runs on the host."""
        self._add_runs(self.cpu, device, runs)
        self.cpu_micros += runs.total

    def _add_runs(self, kept: dict[str, Times], device: str, runs: Runs) -> None:
        self.devices.add(device)
        first = runs.first_start
        self.start_micros = min(self.start_micros, first) if self.start_micros > 0 else first
        self.last_end_micros = max(self.last_end_micros, runs.last_end)
        known = kept.get(device)
        kept[device] = runs.times if known is None else np.concatenate([np.array(known, np.int64), runs.times])
        self.run_count += len(runs.times)

    def add_memory(self, device: str, stats: NodeExecStats) -> None:
        """Adds the memory of one record of the node's own device."""
        if stats.all_start_micros <= 0:
            log.info("%s has no start time, skipping", stats.node_name)
            return
        on_gpu = [used for used in stats.memory if "GPU" in used.allocator_name]
        if len(on_gpu) > 1:
            log.info("found %d gpu allocator for 1 node", len(on_gpu))
        for used in on_gpu:
            self.allocations.extend((record.alloc_micros, record.alloc_bytes) for record in used.allocation_records)
        self.memory.append(Memory.of(device, stats))

    @property
    def exec_micros(self) -> int:
        """The sum of accelerator and CPU time."""
        return self.accelerator_micros + self.cpu_micros

    def op_times(self) -> dict[str, list[tuple[int, int]]]:
        """Every recorded (start, duration) by device, devices in name order."""
        merged: dict[str, list[tuple[int, int]]] = {}
        for times in (self.accelerator, self.cpu):
            for device, pairs in times.items():
                merged.setdefault(device, []).extend(pairs_of(pairs))
        return dict(sorted(merged.items()))

    def to_proto(self) -> ExecProfile:
        """As ``ExecProfile``."""
        proto = ExecProfile(
            run_count=self.run_count,
            all_start_micros=int64(self.start_micros),
            latest_end_micros=int64(self.last_end_micros),
            devices=sorted(self.devices),
            memory_execs=[run.to_proto() for run in self.memory],
            allocations=[AllocationRecord(alloc_micros=at, alloc_bytes=size) for at, size in self.allocations],
        )
        for times, target in ((self.accelerator, proto.accelerator_execs), (self.cpu, proto.cpu_execs)):
            for device, pairs in times.items():
                for pair in pairs_of(pairs):
                    target[device].times.add(int64_values=pair)
        return proto

    @classmethod
    def from_proto(cls, proto: ExecProfile) -> Execution:
        """The inverse of ``to_proto``."""
        execution = cls()
        execution.run_count = proto.run_count
        execution.start_micros = proto.all_start_micros
        execution.last_end_micros = proto.latest_end_micros
        execution.devices = set(proto.devices)
        execution.accelerator = _times(proto.accelerator_execs)
        execution.cpu = _times(proto.cpu_execs)
        execution.accelerator_micros = _total(execution.accelerator)
        execution.cpu_micros = _total(execution.cpu)
        execution.memory = [Memory.from_proto(run) for run in proto.memory_execs]
        execution.allocations = [(record.alloc_micros, record.alloc_bytes) for record in proto.allocations]
        return execution


def _append(kept: dict[str, Times], device: str, start: int, duration: int) -> None:
    times = kept.setdefault(device, [])
    if not isinstance(times, list):
        times = kept[device] = pairs_of(times)
    times.append((start, duration))


def _times(execs: object) -> dict[str, Times]:
    return {
        device: [(pair.int64_values[0], pair.int64_values[1]) for pair in times.times]
        for device, times in sorted(execs.items())  # type: ignore[attr-defined]
    }


def _total(times: dict[str, Times]) -> int:
    return sum(duration for pairs in times.values() for _, duration in pairs_of(pairs))
