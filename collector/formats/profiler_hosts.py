"""The devices of the host in a profiler's trace: its processes, and the names of their threads."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.chrome_events import text
from collector.formats.free_numbers import FreeNumbers
from collector.recording.first_rows import distinct_rows
from collector.stepstats.labels import HOST_DEVICE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.formats.chrome_events import Numbers
    from collector.formats.profiler_dialect import ProfilerDialect

_PROFILERS_OWN = ("Spans", "Traces", "-1")
"""Process ids under which PyTorch's profiler states its own running time."""
_DEVICE = "/device:"
"""The first letters of the processes of XProf's traces that are no hosts."""
_GPU = re.compile(r"GPU ?[0-9]{1,9}")
"""The name of a process that other programs give to a GPU."""


class HostTracks:
    """The device and the name of each track, which is one thread of one process."""

    def __init__(self, dialect: ProfilerDialect, rows: Numbers, with_columns: Numbers) -> None:
        """Name the devices of processes.

        Args:
            dialect: the trace.
            rows: the events that happened on the host, in their order.
            with_columns: the ops and calls among them.
        """
        self._dialect = dialect
        found = dialect.found
        tracks = found.track_numbers(rows)
        first, _ = distinct_rows([tracks])
        named: dict[int | str, str] = {}
        self.devices = [""] * len(found.tracks)
        """The device of each track; empty for tracks without such events."""
        for track in tracks[np.sort(first)].tolist():
            process = found.tracks[track][0]
            key = process if isinstance(process, (int, str)) else str(process)
            if key not in named:
                named[key] = _device(key, found.process_names, HOST_DEVICE not in named.values())
            row = dialect.host_rows[track]
            self.devices[track] = f"{named[key]}/{row}" if row else named[key]

        self._with_columns = np.unique(found.track_numbers(with_columns)).tolist()

    @cached_property
    def names(self) -> list[str]:
        """The name of each track's thread; empty where there is none."""
        known = {(str(process), str(thread)): name for process, thread, name in self._dialect.thread_names()}
        return [known.get((str(process), str(thread)), "") for process, thread in self._dialect.found.tracks]

    @cached_property
    def thread_numbers(self) -> list[int]:
        """The number of each track's thread, which no other process has; those of ``/cpu:0`` keep theirs."""
        own = self._dialect.thread_numbers
        numbers = FreeNumbers()
        taken: dict[tuple[str, int], int] = {}
        for track in sorted(self._with_columns, key=lambda track: self.devices[track] != HOST_DEVICE):
            key = self.devices[track], own[track]
            if key not in taken:
                taken[key] = numbers.take(own[track])
        return [taken.get(key, key[1]) for key in zip(self.devices, own, strict=True)]

    def _threads(self) -> dict[int, int]:
        """Number of a thread -> its first track."""
        return {self.thread_numbers[track]: track for track in reversed(self._with_columns)}

    def environment(self) -> Mapping[str, Mapping[int, str]]:
        """The entries of a recording's environment about the threads of annotations and calls."""
        threads = self._threads()
        names = {thread: self.names[track] for thread, track in threads.items() if self.names[track]}
        devices = {thread: self.devices[track] for thread, track in threads.items()}
        others = {thread: device for thread, device in devices.items() if device != HOST_DEVICE}
        return {"thread_names": names} | ({"thread_devices": others} if others else {})


def _device(process: int | str, names: Mapping[Any, str], is_first: bool) -> str:
    """``/cpu:0`` for the first process of a host, its number or name for others."""
    name = text(names.get(process, process))
    if is_device(name):
        return name
    if _GPU.fullmatch(name):
        return f"/{name}"
    # A profiler's own rows have a word or a negative number for a process id.
    is_ordinary = process >= 0 if isinstance(process, int) else process.isdecimal()
    if is_ordinary:
        return HOST_DEVICE if is_first else f"/process:{process}"
    if isinstance(process, int) or process in _PROFILERS_OWN:
        return "/profiler"
    return f"/{name}"


def is_device(process: str) -> bool:
    """Whether a process with this name is a device, such as ``/device:TPU:0``."""
    return process.startswith(_DEVICE)
