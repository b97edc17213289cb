"""A stand-in for the C library behind nvidia-ml-py."""

from __future__ import annotations

import ctypes

UNKNOWN_DEVICE, NOT_SUPPORTED = 6, 3
"""NVML's results for a card that it does not know, and for a sensor that a card does not have."""


class FakeNvml:
    """Fills what it is handed by reference. `cards`: UUID -> clock of the card in MHz; None: any card, 1980 MHz."""

    def __init__(self, reasons=0, pids=(), cards=None):
        self.reasons, self.pids, self.asked = reasons, list(pids), []
        self.cards = cards
        self.missing = set()

    def install(self, monkeypatch, module):
        """Let nvidia-ml-py call this library."""
        monkeypatch.setattr(module, "_nvmlGetFunctionPointer", self.function)
        monkeypatch.setattr(module, "nvmlInitWithFlags", lambda flags: None)
        monkeypatch.setattr(module, "nvmlShutdown", lambda: None)
        return self

    def function(self, name):
        def call(*arguments):
            self.asked.append(name)
            return self._answer(name, arguments)

        return call

    def _answer(self, name, arguments):
        if name in self.missing:
            return NOT_SUPPORTED
        references = [each._obj for each in arguments if hasattr(each, "_obj")]
        if name == "nvmlDeviceGetComputeRunningProcesses_v3":
            (count,) = references
            if arguments[2] is None or count.value < len(self.pids):
                count.value = len(self.pids)
                return 7 if self.pids else 0  # insufficient size
            for slot, pid in zip(arguments[2], self.pids, strict=False):
                slot.pid = pid
            count.value = len(self.pids)
            return 0
        if name == "nvmlDeviceGetHandleByPciBusId_v2" and self.cards is not None:
            return UNKNOWN_DEVICE
        if name == "nvmlDeviceGetHandleByUUID":
            uuid = ctypes.cast(arguments[0], ctypes.c_char_p).value.decode()
            if self.cards is None:
                return 0
            if uuid not in self.cards:
                return UNKNOWN_DEVICE
            handle = ctypes.cast(ctypes.byref(references[-1]), ctypes.POINTER(ctypes.c_void_p))
            handle[0] = 1 + list(self.cards).index(uuid)
            return 0
        if name == "nvmlDeviceGetMemoryInfo":
            references[-1].used = 5 << 30
            return 0
        values = {
            "nvmlDeviceGetCurrentClocksThrottleReasons": self.reasons,
            "nvmlDeviceGetTemperature": 55,
            "nvmlDeviceGetPowerUsage": 345_600,
            "nvmlDeviceGetClockInfo": self._clock(arguments[0]) if name == "nvmlDeviceGetClockInfo" else 0,
        }
        for each in references:
            if name in values:
                each.value = values[name]
        return 0

    def _clock(self, handle):
        if self.cards is None:
            return 1_980
        return list(self.cards.values())[ctypes.cast(handle, ctypes.c_void_p).value - 1]
