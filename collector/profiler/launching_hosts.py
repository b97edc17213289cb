"""The host as the cause of a device's idle time: the threads that launched its work, and their waits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.protos import Activity
from collector.recording.api_functions import ApiRole, role_of
from collector.recording.distinct import distinct_values
from collector.recording.first_rows import first_rows, look_up
from collector.recording.thread_waits import UNKNOWN_THREAD, ThreadWaits, thread_numbers
from collector.stepstats.device_prefixes import task_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.profiler.device_columns import DeviceColumns
    from collector.profiler.node_fields import Ints

_UNKNOWN_PROCESS = -1


class HostWaits(NamedTuple):
    """The calls in which the host waited for a device or a stream, by start."""

    times: ThreadWaits
    names: list[str]
    """Distinct names of functions."""
    name_ids: Ints
    """The place among them of each call's name."""

    @classmethod
    def of(cls, names: list[str], name_ids: Ints, threads: Ints, starts: Ints, ends: Ints) -> HostWaits:
        """Calls in any order; see `ThreadWaits` for the numbers of threads."""
        in_order = np.argsort(np.argsort(np.array(names, object)))
        order = np.lexsort((in_order[name_ids], ends, starts))
        return cls(ThreadWaits(threads[order], starts[order], ends[order]), names, name_ids[order])


class LaunchingHost(NamedTuple):
    """The host that launched the work of a device."""

    threads: Ints
    """The number of the thread that launched each activity, and each graph behind them, as ``waits`` has it."""
    graphs_called_ns: Ints
    """Start of the call that launched each graph that was recorded as a whole; 0: not known."""
    waits: HostWaits
    """The waits of the processes that launched any of it; of all processes if these are not known."""


def launching_hosts(
    devices: Sequence[DeviceColumns], graphs: Sequence[Ints], hosts: Sequence[DeviceColumns]
) -> list[LaunchingHost]:
    """The host of each of some devices; a device has the hosts of its own task.

    Only nodes with columns state processes and threads.

    Args:
        devices: the activities of each device.
        graphs: for each device the correlation ids of the graphs that were recorded as a whole.
        hosts: the calls of the host.
    """
    tasks = task_numbers(columns.device for columns in (*devices, *hosts))
    of_devices, of_hosts = tasks[: len(devices)], tasks[len(devices) :]
    calls = {
        task: _Calls([host for host, own in zip(hosts, of_hosts, strict=True) if own == task]) for task in {*of_devices}
    }
    return [
        calls[task].host_of(device, of_graphs)
        for device, of_graphs, task in zip(devices, graphs, of_devices, strict=True)
    ]


class _Calls:
    """The calls of the hosts of one task."""

    def __init__(self, hosts: Sequence[DeviceColumns]) -> None:
        self._hosts = hosts
        self._waits: dict[tuple[int, ...], HostWaits] = {}  # devices of the same processes share them

    def host_of(self, device: DeviceColumns, graphs: Ints) -> LaunchingHost:
        """The host that launched the work of a device, and graphs with these correlation ids."""
        called_ns, threads = self._calls_of(graphs)
        threads = np.concatenate([device.activity_threads, threads])
        if self._launches is None:
            return LaunchingHost(threads, called_ns, self._waits_of(()))
        processes = look_up(np.concatenate([device.correlation_id, graphs]), *self._launches)
        beside = distinct_values(processes[processes != _UNKNOWN_PROCESS])
        return LaunchingHost(_numbers(processes, threads), called_ns, self._waits_of(tuple(beside.tolist())))

    def _calls_of(self, correlations: Ints) -> tuple[Ints, Ints]:
        """Start and thread of the first call with each of these correlation ids; 0: not known."""
        if not len(correlations):
            return correlations, correlations
        none = np.zeros(0, np.int64)
        found = [(none, none, none)]
        for host in self._hosts:
            typed = np.flatnonzero(host.is_typed)
            calls = typed[host.activity_columns(("kind",), typed)["kind"] == Activity.API_CALL]
            found.append((host.correlation_id[calls], host.start_ns[calls], host.activity_threads[calls]))
        ids, starts, threads = (np.concatenate(each) for each in zip(*found, strict=True))
        in_time = np.argsort(starts, kind="stable")
        known, first = first_rows(ids[in_time])
        rows = look_up(correlations, known, in_time[first])
        return np.append(starts, 0)[rows], np.append(threads, 0)[rows]

    def _waits_of(self, processes: tuple[int, ...]) -> HostWaits:
        """The waits of some processes and of unknown ones; none are named: of all."""
        if processes not in self._waits:
            waits = self._waiting
            own = slice(None) if not processes else np.isin(waits.processes, (_UNKNOWN_PROCESS, *processes))
            threads = waits.threads if self._launches is None else _numbers(waits.processes, waits.threads)
            columns = (each[own] for each in (waits.name_ids, threads, waits.starts, waits.ends))
            self._waits[processes] = HostWaits.of(waits.names, *columns)
        return self._waits[processes]

    @cached_property
    def _launches(self) -> tuple[Ints, Ints] | None:
        """The correlation ids of calls, sorted, and the process of each; None: there are no two processes."""
        none = np.zeros(0, np.int64)
        found = [(none, none)]
        for host in self._hosts:
            typed = np.flatnonzero(host.is_typed)
            of = host.activity_columns(("kind", "process_id"), typed)
            is_call = of["kind"] == Activity.API_CALL
            found.append((host.correlation_id[typed[is_call]], of["process_id"][is_call]))
        correlations, processes = (np.concatenate(each) for each in zip(*found, strict=True))
        if not len(processes) or processes.min() == processes.max():
            return None
        ids, first = first_rows(correlations)
        return ids, processes[first]

    @cached_property
    def _waiting(self) -> _Waiting:
        """The waits of all processes."""
        none = np.zeros(0, np.int64)
        parts = [_Waiting([], none, none, none, none, none)]
        for host in self._hosts:
            names, index = host.names
            waits = np.array([role_of(name) is ApiRole.WAIT for name in names], bool)
            rows = np.flatnonzero(waits[index]) if waits.any() else none
            of, is_typed = host.activity_columns(("kind", "process_id"), rows), host.is_typed[rows]
            is_call = ~is_typed | (of["kind"] == Activity.API_CALL)
            rows, processes = rows[is_call], np.where(is_typed, of["process_id"], _UNKNOWN_PROCESS)[is_call]
            times = (host.start_ns[rows], host.end_ns[rows])
            parts.append(_Waiting(names, index[rows], *times, processes, host.activity_threads[rows]))
        firsts = np.cumsum([0, *(len(part.names) for part in parts)])
        name_ids = [part.name_ids + first for part, first in zip(parts, firsts.tolist(), strict=False)]
        columns = (np.concatenate(each) for each in zip(*(part[2:] for part in parts), strict=True))
        return _Waiting([name for part in parts for name in part.names], np.concatenate(name_ids), *columns)


class _Waiting(NamedTuple):
    """The waits of some hosts."""

    names: list[str]
    name_ids: Ints
    starts: Ints
    ends: Ints
    processes: Ints
    threads: Ints
    """Id of the thread within its process; 0: not known."""


def _numbers(processes: Ints, threads: Ints) -> Ints:
    """The numbers of threads of several processes, as `ThreadWaits` takes them."""
    is_known = (processes != _UNKNOWN_PROCESS) & (threads != 0)
    return np.where(is_known, thread_numbers(processes, threads), UNKNOWN_THREAD)
