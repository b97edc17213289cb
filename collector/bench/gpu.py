"""The interface to the card under test: idle it, empty its cache, time by events, read its sensors."""

from __future__ import annotations

import contextlib
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from collector.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class CardState:
    """The card's state at one moment. None: the sensor does not answer, as some do not on a part of a card."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttled_by: tuple[str, ...] = ()
    """Reasons why its clocks were held down, empty when they were not."""
    other_processes: tuple[int, ...] = ()
    """Process ids of others that compute on it."""


class Gpu(Protocol):
    """The card under test."""

    name: str
    uuid: str
    l2_bytes: int
    simulated: bool

    def synchronize(self) -> None:
        """Wait until the card is idle."""

    def flush_l2(self) -> None:
        """Fill the L2 cache with other data."""

    def touch(self) -> None:
        """Copy a piece of memory that fits into half the L2 cache: slow when that is not in it, else quick."""

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """Time of ``call`` between two CUDA events on the default stream, after ``before``; ns."""

    def event_overhead_ns(self) -> float:
        """The time between two events with no work between them, in ns: the part of `event_ns` that is overhead."""

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """Return a function that replays a CUDA graph of ``calls`` calls of ``call``."""

    def state(self) -> CardState | None:
        """The card's clocks, temperature, power and throttling; None where that cannot be asked.

        Where asking costs much, the last answer may be given again for some milliseconds: the same object.
        """


def processor_name() -> str:
    """The processor's name, as Linux tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


class Host:
    """No GPU at all: for comparing work on the host by the wall clock."""

    simulated = False
    l2_bytes = 0
    uuid = ""

    def __init__(self) -> None:
        """Name the machine."""
        self.name = processor_name()

    def synchronize(self) -> None:
        """Nothing runs anywhere else."""

    def flush_l2(self) -> None:
        """There is no GPU's cache."""

    def touch(self) -> None:
        """There is no GPU's memory."""

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """Not without a GPU."""
        raise UnavailableError("CUDA events need a GPU")

    def event_overhead_ns(self) -> float:
        """Not without a GPU."""
        raise UnavailableError("CUDA events need a GPU")

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """Not without a GPU."""
        raise UnavailableError("CUDA graphs need a GPU")

    def state(self) -> CardState | None:
        """Nothing is known."""
        return None
