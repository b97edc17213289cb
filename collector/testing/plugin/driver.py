"""The NVIDIA driver through ctypes: devices, used memory, and the state of contexts.

Needs only the standard library, and is also a program, which prints the devices as JSON. A query in a separate process
leaves CUDA uninitialised in the test process, which may want to fork.
"""

from __future__ import annotations

import ctypes
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class DriverError(Exception):
    """The driver cannot be loaded, or a call failed. One line."""


class Driver:
    """A loaded libcuda."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, function: str, *arguments: object) -> None:
        """Call a function; raise `DriverError` unless it succeeds."""
        result = self._result(function, *arguments)
        if result != 0:
            raise DriverError(f"{function} failed: {self._error_name(result)}")

    def device_count(self) -> int:
        """The number of devices that this process may use; initialises the driver."""
        count = ctypes.c_int()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def describe(self, ordinal: int) -> dict[str, object]:
        """Name, memory (bytes) and compute capability of one device."""
        device, num_bytes, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        self.call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(num_bytes), device)
        capability = []
        for attribute in (_MAJOR, _MINOR):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(attribute), device)
            capability.append(value.value)
        return {
            "name": name.value.decode(errors="replace"),
            "memory_bytes": num_bytes.value,
            "compute_capability": capability,
        }

    def synchronize(self) -> int:
        """Wait for the work of every context of the program; return the first result that is not success."""
        results = self._in_each_context(lambda: self._result("cuCtxSynchronize"))
        return next(filter(None, results.values()), 0)

    def used_bytes(self) -> dict[int, int]:
        """Bytes in use by any process on each device that this program uses, by the device's number.

        Raises:
            DriverError: the driver does not report it.
        """
        return self._in_each_context(self._used_here)

    def _used_here(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def _in_each_context(self, ask: Callable[[], int]) -> dict[int, int]:
        """The result of ``ask`` in the primary context of each device that the program uses."""
        count = ctypes.c_int()
        if self._result("cuDeviceGetCount", ctypes.byref(count)) != 0:  # CUDA was never initialised in this process
            return {}
        answers: dict[int, int] = {}
        for ordinal in range(count.value):
            device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
            context, popped = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
            self.call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
            if not active.value:  # retaining it would create it
                continue
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            try:
                self.call("cuCtxPushCurrent_v2", context)
                try:
                    answers[ordinal] = ask()
                finally:
                    self._result("cuCtxPopCurrent_v2", ctypes.byref(popped))
            finally:
                self._result("cuDevicePrimaryCtxRelease_v2", device)
        return answers

    def _result(self, function: str, *arguments: object) -> int:
        return int(getattr(self._library, function)(*arguments))

    def _error_name(self, result: int) -> str:
        text = ctypes.c_char_p()
        with suppress(AttributeError):
            self._result("cuGetErrorName", ctypes.c_int(result), ctypes.byref(text))
        return f"{text.value.decode()} ({result})" if text.value else f"error {result}"


def load_driver(path: str = "") -> Driver:
    """Load ``path``, or the library that COLLECTOR_LIBCUDA names, or the system's driver.

    Raises:
        DriverError: it cannot be loaded.
    """
    path = path or os.environ.get("COLLECTOR_LIBCUDA") or "libcuda.so.1"
    try:
        return Driver(ctypes.CDLL(path))
    except OSError as error:
        raise DriverError(f"there is no NVIDIA driver ({error})") from None


def mapped_driver() -> Driver | None:
    """The driver, if this process has already loaded it, else None; this function never loads it."""
    path = os.environ.get("COLLECTOR_LIBCUDA") or "libcuda.so.1"
    try:
        return Driver(ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW))
    except (OSError, ImportError):  # ImportError: a test has set `os.name` to that of another system
        return None


def list_devices(driver: Driver) -> list[dict[str, object]]:
    """Every device in the form of `Driver.describe`.

    Raises:
        DriverError: there is no device, or a call failed.
    """
    count = driver.device_count()
    if count == 0:
        raise DriverError("the driver lists no GPU")
    return [driver.describe(ordinal) for ordinal in range(count)]


def _main() -> None:
    try:
        print(json.dumps({"devices": list_devices(load_driver())}))
    except DriverError as error:
        print(json.dumps({"error": str(error)}))


if __name__ == "__main__":
    _main()
