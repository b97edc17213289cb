"""The memory of PyTorch's allocator as counters: bytes allocated to tensors, and bytes reserved from CUDA."""

from __future__ import annotations

import threading
import time
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.adapters.installed_hooks import InstalledHooks, SharedHooks
from collector.checked_arguments import whole_number
from collector.tracing.stated_counters import state_counters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ALLOCATED, RESERVED = "allocated (torch)", "reserved (torch)"
_CHANGES: Mapping[str, tuple[str, int]] = {
    "alloc": (ALLOCATED, 1),
    "free_requested": (ALLOCATED, -1),
    "segment_alloc": (RESERVED, 1),
    "segment_map": (RESERVED, 1),
    "segment_free": (RESERVED, -1),
    "segment_unmap": (RESERVED, -1),
}
"""Action of PyTorch's history -> the counter that it changes, and in which direction. Others change neither."""


class MemorySeries(NamedTuple):
    """One counter of one device; see `collector.recording.counter_rows.SampledSeries`."""

    device: int
    name: str
    times: array[int]
    """Wall time in ns, ascending."""
    values: array[int]
    unit: str = "bytes"


def record_torch_memory(*, max_entries: int = 100_000) -> InstalledHooks:
    """Add counters of PyTorch's allocator to each trace: the memory allocated to tensors, and the reserved memory.

    PyTorch itself writes the history of its allocator, without stacks, and keeps its newest entries; this replaces the
    settings of an earlier ``torch.cuda.memory._record_memory_history``. A trace that ends reads the history as
    ``torch.cuda.memory._snapshot`` returns it.

    Args:
        max_entries: the number of allocations and releases that PyTorch keeps. If a trace has more, its counters begin
            later. Of several calls the largest number counts; a call that raises it begins the history anew.

    Returns:
        The hooks, which can be removed. They are those of the whole process, also if several calls install them, and
        the removal of the last ones ends the history.

    Raises:
        TypeError: ``max_entries`` is not a whole number.
        ValueError: ``max_entries`` is below 1.
    """
    max_entries = whole_number("max_entries", max_entries, least=1)
    hooks = _hooks.installed()
    try:
        _history.keep(max_entries)
    except BaseException:
        hooks.remove()
        raise
    return hooks


class _History:
    """The history that PyTorch writes; a process has one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._max_entries = 0
        """The entries that PyTorch keeps; 0: it writes no history."""
        self._since_ns = 0

    def keep(self, max_entries: int) -> None:
        """Let PyTorch keep at least this many entries of each device."""
        with self._lock:
            if max_entries <= self._max_entries:
                return
            if self._max_entries:  # PyTorch would append to entries that it has begun to overwrite
                _set_history(enabled=None)
            _set_history(enabled="all", context=None, stacks="python", max_entries=max_entries)
            self._max_entries, self._since_ns = max_entries, time.time_ns()

    def end(self) -> None:
        """Let PyTorch write no history."""
        with self._lock:
            if self._max_entries:
                _set_history(enabled=None)
            self._max_entries = 0

    def series(self) -> list[MemorySeries]:
        """The counters up to now."""
        import torch
        from torch.cuda import memory

        if not torch.cuda.is_initialized():
            return []
        return memory_series(memory._snapshot(), self._since_ns, self._max_entries)


def _set_history(**options: Any) -> None:
    from torch.cuda import memory

    memory._record_memory_history(**options)


_history = _History()
_hooks = SharedHooks(lambda: [_history.end, state_counters(_history.series)])


def memory_series(snapshot: Mapping[str, Any], since_ns: int, max_entries: int) -> list[MemorySeries]:
    """The counters of a snapshot of PyTorch, each going back from its value in the snapshot.

    Args:
        snapshot: the result of ``torch.cuda.memory._snapshot``. The allocated bytes are the requested sizes, as the
            history states them; ``torch.cuda.memory_allocated`` rounds them up.
        since_ns: wall time at which the history began, in ns.
        max_entries: entries of each device that PyTorch keeps. With fewer of them the history is whole, and a counter
            has a value from ``since_ns`` on; otherwise from the earliest entry on.
    """
    found = []
    for device, entries in enumerate(snapshot["device_traces"]):
        segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
        if not entries and not segments:
            continue
        held = {ALLOCATED: sum(map(_requested, segments)), RESERVED: sum(each["total_size"] for each in segments)}
        begins_ns = since_ns if len(entries) < max_entries else None
        found += [_series(device, name, entries, value, begins_ns) for name, value in held.items()]
    return found


def _requested(segment: Mapping[str, Any]) -> int:
    """The bytes that tensors requested in a segment."""
    blocks: Iterable[Mapping[str, Any]] = segment["blocks"]
    return sum(block["requested_size"] for block in blocks if block["state"] == "active_allocated")


def _series(
    device: int, name: str, entries: Iterable[Mapping[str, Any]], value: int, begins_ns: int | None
) -> MemorySeries:
    changes = []
    for entry in entries:
        counter, sign = _CHANGES.get(entry["action"], ("", 0))
        if counter == name:
            changes.append((int(entry["time_us"]) * 1000, sign * int(entry["size"])))
    held = value - sum(change for _, change in changes)
    series = MemorySeries(device, name, array("q"), array("q"))
    if begins_ns is not None and (not changes or begins_ns < changes[0][0]):
        series.times.append(begins_ns)
        series.values.append(held)
    for at_ns, change in changes:
        held += change
        if series.times and at_ns <= series.times[-1]:  # of changes in one microsecond the last counts
            series.values[-1] = held
        else:
            series.times.append(at_ns)
            series.values.append(held)
    return series
