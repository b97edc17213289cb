"""Limits of a test's GPU work: their notation and evaluation. Pure functions.

To add a limit: one row in `LIMITS` with a figure of `collector.testing.plugin.figures.Figures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from collector.text.quantities import SIZE_UNITS, TIME_UNITS, number_and_unit, time_text
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.testing.plugin.figures import Figures

Unit = Literal["count", "bytes", "time"]


MEMORY_OPERATIONS = "memory_operations"
"""The kind of records of allocations and releases."""


@dataclass(frozen=True)
class Kind:
    """One quantity that can be limited."""

    unit: Unit
    figure: str
    """The field of `Figures` that is compared with the limit; its times are in ns."""
    what: str
    record_kind: str = ""
    """The kind of `collector.options.KINDS_ON_REQUEST` that it needs, recorded only for it; ``""``: none."""


LIMITS: dict[str, Kind] = {
    "kernels": Kind("count", "kernels", "kernels that ran"),
    "launches": Kind("count", "launches", "calls that launch a kernel or a graph"),
    "memcpys": Kind("count", "memcpys", "copies of any direction"),
    "memcpy_bytes": Kind("bytes", "memcpy_bytes", "bytes copied in any direction"),
    "memcpy_htod_bytes": Kind("bytes", "memcpy_htod_bytes", "bytes copied from host to device"),
    "memcpy_dtoh_bytes": Kind("bytes", "memcpy_dtoh_bytes", "bytes copied from device to host"),
    "memcpy_dtod_bytes": Kind("bytes", "memcpy_dtod_bytes", "bytes copied within a device"),
    "memcpy_ptop_bytes": Kind("bytes", "memcpy_ptop_bytes", "bytes copied between devices", "peer_copies"),
    "memsets": Kind("count", "memsets", "memsets"),
    "memset_bytes": Kind("bytes", "memset_bytes", "bytes set"),
    "device_time": Kind("time", "device_time_ns", "time in which a device did anything, summed over devices"),
    "kernel_time": Kind("time", "kernel_time_ns", "durations of all kernels together"),
    "synchronizations": Kind("count", "synchronizations", "waits of the host for an event, a stream or a device"),
    "allocations": Kind("count", "allocations", "allocations of device memory", MEMORY_OPERATIONS),
    "streams": Kind("count", "streams", "streams on which anything ran"),
    "devices": Kind("count", "devices", "devices on which anything ran"),
}

_UNITS: dict[Unit, tuple[dict[str, int], str, str]] = {
    "time": (TIME_UNITS, "ns, us, ms, s", '"250us"'),
    "bytes": (SIZE_UNITS, "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB", '4096 or "16MiB"'),
}


class LimitError(ValueError):
    """An invalid limit: unknown, with an unknown unit, or negative. One line."""


@dataclass(frozen=True)
class Limit:
    """One parsed limit."""

    name: str
    maximum: int
    """A count, bytes or ns."""

    @property
    def kind(self) -> Kind:
        """The limited figure."""
        return LIMITS[self.name]

    def shown(self, value: int) -> str:
        """``value`` with this limit's unit, for display."""
        return show(value, self.kind.unit)


@dataclass(frozen=True)
class Excess:
    """A limit that was exceeded."""

    limit: Limit
    measured: int

    @property
    def over(self) -> int:
        """The difference, in the limit's own unit."""
        return self.measured - self.limit.maximum


def parse_limits(limits: Mapping[str, object]) -> tuple[Limit, ...]:
    """Return ``limits``, the arguments of a marker or of `gpu_trace`, in the order of `LIMITS`.

    Raises:
        LimitError: a name or unit is unknown, or a value is negative or no number.
    """
    unknown = [name for name in limits if name not in LIMITS]
    if unknown:
        raise LimitError(f"unknown limit {unknown[0]!r}: choose from {', '.join(LIMITS)}")
    return tuple(Limit(name, parse_value(name, limits[name], LIMITS[name].unit)) for name in LIMITS if name in limits)


def parse_value(name: str, value: object, unit: Unit) -> int:
    """Return ``value`` as a count, as bytes or as ns.

    Counts are whole numbers. Bytes are whole numbers or text with a unit; times are text with a unit.

    Raises:
        LimitError: ``value`` is none of these, or negative.
    """
    if isinstance(value, str) and unit != "count":
        number = _with_unit(name, value, unit)
    elif unit == "time" or isinstance(value, bool) or not isinstance(value, int):
        wanted = "a whole number" if unit == "count" else f"written as {_UNITS[unit][2]}"
        raise LimitError(f"{name}={value!r}: it must be {wanted}")
    else:
        number = value
    if number < 0:
        raise LimitError(f"{name}={value!r}: it must not be negative")
    return number


def _with_unit(name: str, text: str, unit: Unit) -> int:
    factors, units, example = _UNITS[unit]
    found = number_and_unit(text)
    if found is None:
        raise LimitError(f"{name}={text!r}: it must be written as {example}")
    number, written = found
    if not written:
        raise LimitError(f"{name}={text!r} has no unit: use one of {units}")
    if written not in factors:
        raise LimitError(f"{name}={text!r}: unknown unit {written!r}, use one of {units}")
    return round(number * factors[written])


def judge(limits: tuple[Limit, ...], figures: Figures) -> list[Excess]:
    """Return the limits that ``figures`` exceed, in the order of ``limits``."""
    measured = [(limit, int(getattr(figures, limit.kind.figure))) for limit in limits]
    return [Excess(limit, value) for limit, value in measured if value > limit.maximum]


def show(value: int, unit: Unit) -> str:
    """``value`` for display: ``12``, ``4,096 bytes``, ``250 µs``."""
    if unit == "count":
        return f"{value:,}"
    if unit == "bytes":
        return counted("{:,} byte[|s]", value)
    return time_text(value)
