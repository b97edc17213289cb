"""The GPUs of the machine, and whether a test can run on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.testing.plugin import driver
from collector.testing.plugin.limits import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.testing.plugin.markers import Requirement

_PATIENCE_S = 120


@dataclass(frozen=True)
class Device:
    """One GPU, as the driver describes it."""

    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]


SIMULATED = Device("Simulated GPU", 80 << 30, (9, 0))
"""The properties of each simulated device."""


@dataclass(frozen=True)
class Found:
    """The devices of this machine that this process may use."""

    devices: tuple[Device, ...] = ()
    reason: str = ""
    """The reason why there are none."""
    simulated: bool = False


def find_devices(simulated: bool) -> Found:
    """Ask the driver; once, and in another process unless the devices are simulated.

    Args:
        simulated: whether the devices are those of the simulated GPU that is open in this process.
    """
    if not simulated:
        return _find_elsewhere(tuple(map(os.environ.get, _DECISIVE)))
    return _found(lambda: driver.list_devices(driver.load_driver()), simulated=True)


_DECISIVE = ("COLLECTOR_LIBCUDA", "CUDA_VISIBLE_DEVICES", "COLLECTOR_SIMULATED_DEVICES")
"""Environment variables that determine the result."""


@lru_cache
def _find_elsewhere(environment: tuple[str | None, ...]) -> Found:
    return _found(_ask_elsewhere, simulated=False)


def _found(ask: Callable[[], list[dict[str, Any]]], *, simulated: bool) -> Found:
    try:
        return Found(tuple(map(_device, ask())), simulated=simulated)
    except driver.DriverError as error:
        return Found(reason=str(error), simulated=simulated)


def _ask_elsewhere() -> list[dict[str, Any]]:
    program = [sys.executable, "-I", "-S", str(Path(driver.__file__))]
    try:
        done = subprocess.run(program, capture_output=True, encoding="utf-8", timeout=_PATIENCE_S, check=False)
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise driver.DriverError(f"the NVIDIA driver did not answer within {_PATIENCE_S} s") from None
    except (OSError, ValueError):
        raise driver.DriverError("the NVIDIA driver ended the process that asked it for devices") from None
    if "error" in answer:
        raise driver.DriverError(answer["error"])
    rows: list[dict[str, Any]] = answer["devices"]
    return rows


def _device(row: dict[str, Any]) -> Device:
    major, minor = row["compute_capability"]
    return Device(row["name"], row["memory_bytes"], (major, minor))


def why_not(requirement: Requirement, found: Found, *, simulating: bool) -> str | None:
    """The reason why a test with ``requirement`` cannot run on these devices, in one line; None if it can."""
    if simulating and not requirement.simulate:
        return "needs a real GPU: it is not marked simulate=True, and this run simulates its GPUs"
    if not found.devices:
        return f"needs a GPU: {found.reason}"
    if len(found.devices) < requirement.count:
        return f"needs {requirement.count} GPUs, there {_are(len(found.devices))}"
    # The test's devices are the first ones; see `collector.testing.plugin.device_sharing`.
    for ordinal, device in enumerate(found.devices[: requirement.count]):
        if requirement.compute_capability is not None and device.compute_capability < requirement.compute_capability:
            return (
                f"needs compute capability {_dotted(requirement.compute_capability)}, "
                f"device {ordinal} ({device.name}) has {_dotted(device.compute_capability)}"
            )
        if requirement.memory is not None and device.memory_bytes < requirement.memory:
            return (
                f"needs {show(requirement.memory, 'bytes')} of device memory, "
                f"device {ordinal} ({device.name}) has {show(device.memory_bytes, 'bytes')}"
            )
    return None


def _are(count: int) -> str:
    return f"is {count}" if count == 1 else f"are {count}"


def _dotted(capability: Sequence[int]) -> str:
    return ".".join(map(str, capability))
