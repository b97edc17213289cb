"""The devices of the host in the StepStats of a recording, and the rows that each of them shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import DeviceStepStats
from collector.recording.distinct import distinct_codes
from collector.recording.first_rows import distinct_rows
from collector.stepstats.labels import HOST_DEVICE

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Places = npt.NDArray[np.uint32]


class HostDevices:
    """``/cpu:0``, and in files of other programs the devices of further processes and rows.

    The environment's ``thread_devices`` names the devices of threads whose annotations and calls are not those of
    ``/cpu:0``; rows of ``other_ranges`` name their device themselves.
    """

    def __init__(self, recording: Recording) -> None:
        environment = recording.environment
        self._recording = recording
        self._thread_names = {int(thread): str(name) for thread, name in environment.get("thread_names", {}).items()}
        self._devices: dict[str, int] = {HOST_DEVICE: 0}
        stated = environment.get("thread_devices", {})
        self._of_threads = {int(thread): self._place(str(device)) for thread, device in stated.items()}
        ranges = recording.other_ranges
        ids, codes = distinct_codes(ranges.device_name_id)
        self._of_ranges = np.array([self._place(recording.strings[id_]) for id_ in ids.tolist()], np.uint32)[codes]

    def _place(self, device: str) -> int:
        return self._devices.setdefault(device, len(self._devices))

    @property
    def is_single(self) -> bool:
        """Whether ``/cpu:0`` is the only one."""
        return len(self._devices) == 1

    def places(self) -> dict[str, Places]:
        """Table -> the index of each row's device; a table that is missing has all its rows on the first device."""
        found = {"other_ranges": self._of_ranges} if len(self._of_ranges) else {}
        if self._of_threads:
            for table in ("annotations", "api_calls"):
                threads, codes = distinct_codes(getattr(self._recording, table).thread_id)
                places = [self._of_threads.get(thread, 0) for thread in threads.tolist()]
                found[table] = np.array(places, np.uint32)[codes]
        return found

    def named(self) -> list[tuple[str, bytes]]:
        """The name of each device, and the names of its threads in the wire format of ``DeviceStepStats``."""
        names: list[dict[int, str]] = [{} for _ in self._devices]
        columns = (self._recording.annotations.thread_id, self._recording.api_calls.thread_id)
        for thread in {thread for column in columns for thread in _distinct(column)}:
            names[self._of_threads.get(thread, 0)][thread] = self._name_of(thread)
        for place, thread, stated in self._threads_of_ranges():
            name = stated or (self._name_of(thread) if place == 0 else "")
            if name:
                names[place].setdefault(thread, name)
        return [
            (device, DeviceStepStats(thread_names=threads).SerializeToString(deterministic=True))
            for device, threads in zip(self._devices, names, strict=True)
        ]

    def _name_of(self, thread: int) -> str:
        return self._thread_names.get(thread, f"thread {thread}")

    def _threads_of_ranges(self) -> list[tuple[int, int, str]]:
        """Index of the device, number and name of each thread that other ranges have."""
        ranges, strings = self._recording.other_ranges, self._recording.strings
        if not len(ranges):
            return []
        first, _ = distinct_rows([ranges.device_name_id, ranges.thread_id, ranges.thread_name_id])
        first.sort()  # of several names of one thread the first one counts
        columns: tuple[npt.NDArray[Any], ...] = (self._of_ranges, ranges.thread_id, ranges.thread_name_id)
        rows = zip(*(column[first].tolist() for column in columns), strict=True)
        return [(place, thread, strings[name]) for place, thread, name in rows]


def _distinct(values: npt.NDArray[Any]) -> list[int]:
    """The distinct values of a column in which most values equal the previous one."""
    changes = np.flatnonzero(values[1:] != values[:-1])
    return sorted({*values[:1].tolist(), *values[changes + 1].tolist()})
