"""The driver and the libcupti of this process, called through ctypes: for sources without a native extension."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any, NamedTuple

from collector.sources.nvml_card import uuid_text


def _libcuda() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(os.environ.get("COLLECTOR_LIBCUDA") or "libcuda.so.1")
    except OSError:
        return None


def synchronize_devices() -> None:
    """Wait for the current context and for every device's primary context that is in use."""
    cuda = _libcuda()
    if cuda is None:
        return
    cuda.cuCtxSynchronize()
    for device in range(_device_count(cuda)):
        flags, active, context = ctypes.c_uint(0), ctypes.c_int(0), ctypes.c_void_p()
        if cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)) != 0 or not active.value:
            continue
        if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) != 0:
            continue
        if cuda.cuCtxPushCurrent_v2(context) == 0:
            cuda.cuCtxSynchronize()
            cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
        cuda.cuDevicePrimaryCtxRelease_v2(device)


def device_names() -> dict[int, str]:
    """The devices' names by ordinal; empty until the program has initialised CUDA."""
    cuda = _libcuda()
    if cuda is None:
        return {}
    names = {}
    for ordinal in range(_device_count(cuda)):
        name = ctypes.create_string_buffer(256)
        if cuda.cuDeviceGetName(name, len(name), ordinal) == 0:
            names[ordinal] = name.value.decode(errors="replace")
    return names


class DeviceAddress(NamedTuple):
    """The identifiers of a device outside of CUDA."""

    uuid: str
    """``GPU-…`` of the whole card, also where the device is a part of it."""
    bus_id: str
    """PCI address, such as ``0000:3B:00.0``."""


def device_addresses() -> dict[int, DeviceAddress]:
    """The devices by ordinal; empty until the program has initialised CUDA."""
    cuda = _libcuda()
    if cuda is None:
        return {}
    found = {}
    for ordinal in range(_device_count(cuda)):
        raw, bus_id = ctypes.create_string_buffer(16), ctypes.create_string_buffer(64)
        if cuda.cuDeviceGetUuid(raw, ordinal) == 0:
            with contextlib.suppress(AttributeError):  # only parts of a card (MIG) need it
                cuda.cuDeviceGetPCIBusId(bus_id, len(bus_id), ordinal)
            found[ordinal] = DeviceAddress(uuid_text(raw.raw), bus_id.value.decode(errors="replace"))
    return found


def library_versions() -> dict[str, Any]:
    """driver_version, cupti_path and cupti_api_version, as far as they are known, as in the result of native ``probe``.

    libcupti is called only if the process has already mapped it: the code that mapped it needs a driver too.
    """
    found: dict[str, Any] = {}
    version = ctypes.c_int(0)
    cuda = _libcuda()
    if cuda is not None and cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
        found["driver_version"] = version.value
    path = _mapped("libcupti.so")
    if cuda is not None and path:
        api_version = ctypes.c_uint32(0)
        if ctypes.CDLL(path).cuptiGetVersion(ctypes.byref(api_version)) == 0:
            found |= {"cupti_path": path, "cupti_api_version": api_version.value}
    return found


def _device_count(cuda: ctypes.CDLL) -> int:
    count = ctypes.c_int(0)
    return count.value if cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def _mapped(library: str) -> str:
    """The path of a library mapped by this process whose file name begins with ``library``; "" if there is none."""
    with contextlib.suppress(OSError):
        for line in os.fsdecode(Path("/proc/self/maps").read_bytes()).split("\n"):
            path = line.partition("/")[2]
            if path.rpartition("/")[2].startswith(library):
                return "/" + path
    return ""
