"""A thread that samples the clocks, the power, the memory and the throttling of GPUs during a step.

NVML counts the cards of the machine, and CUDA those that the program may use, in an order of its own. They are matched
by UUID as soon as the program has initialised CUDA, which the thread never does itself.
"""

from __future__ import annotations

import threading
import time
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.runtime.optional_packages import optional_package
from collector.sources.loaded_libraries import DeviceAddress, device_addresses
from collector.sources.nvml_card import THROTTLING, answer, open_card, throttling_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PERIOD_S = 0.05
"""Time between two samples of a card."""
_LONGEST_END_S = 2.0
"""The maximum time that the end of a step waits for a sensor that does not answer."""


class Series(NamedTuple):
    """The samples of one figure of one device."""

    device: int
    """CUDA's ordinal of the device."""
    name: str
    unit: str
    times: array[int]
    """Wall time in ns, ascending."""
    values: array[int]


class CounterSampler:
    """Samples from `start` to `stop`, on a thread of its own. Errors, also of its start, end in `trouble`."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.trouble = ""
        """The reason why there are no samples; empty: there are some, or the program did not use CUDA."""
        self._period_s = period_s
        self._cards: list[_Card] = []
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector counters", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        try:
            self._thread.start()
        except RuntimeError as error:  # the process may have no more threads
            self.trouble = f"no thread can be started ({error})"

    def stop(self) -> list[Series]:
        """End the thread, and return the samples. A second call returns the same."""
        self._is_ending.set()
        if self._thread.ident is not None:
            self._thread.join(_LONGEST_END_S)
        if self._thread.is_alive():
            self.trouble = self.trouble or f"NVML did not answer within {_LONGEST_END_S:.0f} s"
        return [series for card in list(self._cards) for series in card.series()]

    def _run(self) -> None:
        try:
            nvml = optional_package("pynvml")
            nvml.nvmlInit()
        except Exception as error:  # NVML creates its error classes at run time
            self.trouble = f"NVML cannot be used ({error})"
            return
        try:
            self._sample(nvml)
        except Exception as error:
            self.trouble = f"sampling ended early ({type(error).__name__}: {error})"
        finally:
            answer(nvml.nvmlShutdown)

    def _sample(self, nvml: Any) -> None:
        is_last = False
        while True:
            if not self._cards and (addresses := device_addresses()):
                self._cards, self.trouble = _cards(nvml, addresses)
                if not self._cards:
                    return
            now = time.time_ns()
            for card in self._cards:
                card.sample(now)
            if is_last:
                return
            is_last = self._is_ending.wait(self._period_s)


class _Card:
    """One device, and the samples of its sensors."""

    def __init__(self, nvml: Any, handle: Any, device: int) -> None:
        self._device = device
        clock, memory = nvml.nvmlDeviceGetClockInfo, nvml.nvmlDeviceGetMemoryInfo
        self._sensors: list[tuple[str, str, Callable[[], Any]]] = [
            ("SM clock", "MHz", lambda: clock(handle, nvml.NVML_CLOCK_SM)),
            ("memory clock", "MHz", lambda: clock(handle, nvml.NVML_CLOCK_MEM)),
            ("power", "mW", lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
            ("temperature", "°C", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            ("memory used", "bytes", lambda: memory(handle).used),
        ]
        self._reasons: Callable[[], Any] = lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        self._masks = {f"throttled: {words}": throttling_mask(nvml, name) for name, words in THROTTLING.items()}
        self._series: dict[str, Series] = {}
        self._began_ns = 0

    def sample(self, now_ns: int) -> None:
        """Ask each sensor that the card has."""
        self._began_ns = self._began_ns or now_ns
        for name, unit, ask in list(self._sensors):
            value = answer(ask)
            if type(value) is int:
                self._add(name, unit, now_ns, value)
            elif name not in self._series:
                self._sensors = [each for each in self._sensors if each[0] != name]  # the card does not have it
        reasons = answer(self._reasons)
        if type(reasons) is int:
            for name, mask in self._masks.items():
                if reasons & mask and name not in self._series:
                    self._add(name, "", self._began_ns, 0)  # a reason that never holds has no series
                if name in self._series:
                    self._add(name, "", now_ns, int(bool(reasons & mask)))

    def _add(self, name: str, unit: str, now_ns: int, value: int) -> None:
        series = self._series.get(name)
        if series is None:
            series = self._series[name] = Series(self._device, name, unit, array("q"), array("q"))
        if series.values and series.times[-1] == now_ns:
            series.values[-1] = value
        elif not series.values or series.values[-1] != value:  # until the next sample it stays as it is
            series.times.append(now_ns)
            series.values.append(value)

    def series(self) -> Iterable[Series]:
        """The sampled series."""
        return list(self._series.values())


def _cards(nvml: Any, addresses: Mapping[int, DeviceAddress]) -> tuple[list[_Card], str]:
    """The cards of CUDA's devices, and a line about devices that NVML does not know."""
    cards, unknown = [], []
    for device, (uuid, bus_id) in addresses.items():
        handle = answer(open_card, nvml, uuid, bus_id)
        if handle is None:
            unknown.append(f"device {device} ({uuid})")
        else:
            cards.append(_Card(nvml, handle, device))
    return cards, f"NVML does not know {', '.join(unknown)}" if unknown else ""
