"""The interface to the card under test: waiting, cache control, timing by events, sensors."""

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
    """The card's state at one time. None: the sensor has no value, e.g. on a part of a card."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttled_by: tuple[str, ...] = ()
    """Reasons why its clocks are reduced; empty if they are not."""
    other_processes: tuple[int, ...] = ()
    """Ids of other processes that compute on it."""


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
        """Copy memory that fits into half the L2 cache: slow if it is not in the cache, else fast."""

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """Time of ``call`` between two CUDA events on the default stream, after ``before``; ns."""

    def event_overhead_ns(self) -> float:
        """The time between two events with no work between them, in ns: the part of `event_ns` that is overhead."""

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """Return a function that replays a CUDA graph of ``calls`` calls of ``call``."""

    def state(self) -> CardState | None:
        """The card's clocks, temperature, power and throttling; None if they cannot be read.

        If a reading is expensive, the last answer may be returned again for some milliseconds: the same object.
        """


def processor_name() -> str:
    """The processor's name according to Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


class Host:
    """A machine without GPU, for comparing work on the host by the wall clock."""

    simulated = False
    l2_bytes = 0
    uuid = ""

    def __init__(self) -> None:
        """Determine the machine's name."""
        self.name = processor_name()

    def synchronize(self) -> None:
        """Does nothing: there is no GPU to wait for."""

    def flush_l2(self) -> None:
        """Does nothing: there is no GPU cache."""

    def touch(self) -> None:
        """Does nothing: there is no GPU memory."""

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """Not available without a GPU."""
        raise UnavailableError("CUDA events need a GPU")

    def event_overhead_ns(self) -> float:
        """Not available without a GPU."""
        raise UnavailableError("CUDA events need a GPU")

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """Not available without a GPU."""
        raise UnavailableError("CUDA graphs need a GPU")

    def state(self) -> CardState | None:
        """None: there are no sensors."""
        return None
