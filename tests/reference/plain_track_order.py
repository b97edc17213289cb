"""The order of a trace's processes and rows: the readable twin of native/draw/track_order.cpp."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from reference.plain_activities import DeviceName, parse_device_name

MEMORY = "memory"
"""The process of tracks that belong to no device: the allocators' memory."""
_FIRST_TID = 1_000_000
_ROWS_OF_A_DEVICE = 1000
_DIGITS = re.compile(rb"([0-9]+)")


def shown_key(name: DeviceName, device: str) -> tuple[Any, ...]:
    """A device is shown before another if its key is less."""
    process, track = name.process.encode(), name.track.encode()
    return name.process_kind, _natural(process), process, name.kind, _natural(track), device.encode()


def _natural(text: bytes) -> list[Any]:
    """Numbers by value, other text by bytes."""
    pieces: list[Any] = _DIGITS.split(text)
    for at in range(1, len(pieces), 2):
        digits = pieces[at].lstrip(b"0")
        pieces[at] = len(digits), digits
    return pieces


class TrackOrder:
    """Numbers of processes and rows, by which viewers order them."""

    def __init__(self, devices: Iterable[str]) -> None:
        names = {device: parse_device_name(device) for device in devices}
        ordered = sorted(names, key=lambda device: shown_key(names[device], device))
        processes = dict.fromkeys(names[device].process for device in ordered)
        self._pids = {process: number for number, process in enumerate(processes, 1)}
        first = max(_FIRST_TID, len(processes) + 1)
        self._next_tids = {device: first + at * _ROWS_OF_A_DEVICE for at, device in enumerate(ordered)}
        self._end_tids = {device: tid + _ROWS_OF_A_DEVICE for device, tid in self._next_tids.items()}
        self._next_tid = first + len(ordered) * _ROWS_OF_A_DEVICE

    def pid(self, process: str) -> int:
        """The pid of a process, by `DeviceName`'s process name."""
        return self._pids[process]

    def take_tid(self, device: str) -> int:
        """The number of a device's next row."""
        tid = self._next_tids[device]
        if tid < self._end_tids[device]:
            self._next_tids[device] += 1
            return tid
        self._next_tid += 1
        return self._next_tid - 1
