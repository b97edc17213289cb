"""The sensors of one card, read through nvidia-ml-py. Nothing is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

THROTTLING = {
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SwThermalSlowdown": "thermal slowdown",
    "HwThermalSlowdown": "hardware thermal slowdown",
    "HwPowerBrakeSlowdown": "power brake",
}
"""NVML's names of the reasons for which a card lowers its clocks -> the words for them in outputs."""


def uuid_text(raw: bytes) -> str:
    """A UUID in NVML's form, from the 16 bytes that the driver returns."""
    digits = raw.hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def open_card(nvml: Any, uuid: str, bus_id: str = "") -> Any:
    """NVML's handle of the card with this uuid, or at this PCI address. NVML must be initialised, and may raise."""
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except Exception:  # a part of a card (MIG) has a uuid of its own in CUDA
        return nvml.nvmlDeviceGetHandleByPciBusId(bus_id)


def answer(ask: Callable[..., Any], *arguments: Any) -> Any:
    """The value of a sensor; None if the card has no such sensor or does not answer."""
    try:
        return ask(*arguments)
    except Exception:  # NVML creates its error classes at run time
        return None


def throttling_mask(nvml: Any, name: str) -> int:
    """The bit of a reason of `THROTTLING`; 0 if this nvidia-ml-py does not know it."""
    return int(getattr(nvml, f"nvmlClocksThrottleReason{name}", 0))
