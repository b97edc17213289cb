"""Attributes of devices as PyTorch's traces state them, for the columns of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.chrome_events import text

if TYPE_CHECKING:
    from collector.formats.capture_builder import CaptureBuilder

_COLUMNS = {
    "id": "device_id",
    "totalGlobalMem": "memory_bytes",
    "computeMajor": "compute_major",
    "computeMinor": "compute_minor",
    "maxThreadsPerBlock": "max_threads_per_block",
    "regsPerBlock": "max_registers_per_block",
    "regsPerMultiprocessor": "max_registers_per_multiprocessor",
    "warpSize": "threads_per_warp",
    "sharedMemPerBlock": "max_shared_bytes_per_block",
    "sharedMemPerMultiprocessor": "max_shared_bytes_per_multiprocessor",
    "numSms": "num_multiprocessors",
}
"""Member of ``deviceProperties`` -> column of ``devices``."""


def add_devices(built: CaptureBuilder, stated: Any) -> None:
    """Add the devices that a trace states under ``deviceProperties``; entries that are not devices are left out."""
    listed = stated if isinstance(stated, list) else []
    devices = [each for each in listed if isinstance(each, dict) and _number(each, "id") >= 0]
    columns = {
        own: np.array([max(_number(device, theirs), 0) for device in devices], np.int64)
        for theirs, own in _COLUMNS.items()
    }
    threads = np.array([max(_number(device, "maxThreadsPerMultiprocessor"), 0) for device in devices], np.int64)
    columns["max_warps_per_multiprocessor"] = threads // np.maximum(columns["threads_per_warp"], 1)
    columns["name_id"] = built.name_ids([text(device.get("name", "")) for device in devices])
    built.add("devices", **columns)


def _number(device: dict[str, Any], member: str) -> int:
    """A member that is a whole number; -1 for any other value."""
    value = device.get(member)
    return value if type(value) is int and 0 <= value < 1 << 63 else -1
