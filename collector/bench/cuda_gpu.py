"""A real GPU through cuda-python's driver bindings, and its sensors through NVML."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

from collector.bench.environment import loaded_torch
from collector.bench.gpu import CardState
from collector.bench.roofline import Ceilings, matrix_product_rate
from collector.errors import DriverNotFoundError, UnavailableError, error_of_kind, not_installed
from collector.sources import open_source
from collector.sources.nvml_card import THROTTLING, answer, open_card, throttling_mask, uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.bench.gpu import Gpu

_FLUSHES = 2  # times the cache's size; once would suffice with perfect replacement
_OVERHEAD_ROUNDS = 11
_THROTTLING_EVERY_S = 0.002  # the driver takes tens of microseconds to answer, and more if it is busy
_SENSORS_EVERY_S = 0.05  # some take milliseconds
_PROCESSES_EVERY_S = 1.0


def find_gpu() -> Gpu:
    """Return the GPU on which this process computes: the current CUDA device.

    Raises:
        collector.DriverNotFoundError: there is no driver, or it has no GPU.
        collector.UnavailableError: cuda-python is not installed, or the GPU cannot be used.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        _check_driver()  # without a GPU, cuda-python would be of no use
        raise UnavailableError(*not_installed("cuda-python", "gpu")) from error
    try:
        call = functools.partial(_checked, driver)
        call("cuInit", 0)
        if int(call("cuCtxGetCurrent")) == 0:
            call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", 0)))
        context = int(call("cuCtxGetCurrent"))
    except UnavailableError:
        _check_driver()
        raise
    except Exception as error:  # without a driver, the bindings raise errors of their own
        _check_driver()
        raise UnavailableError(f"no GPU can be used ({error})", "Check that nvidia-smi works") from error
    return _gpu_of_context(context)


def _check_driver() -> None:
    """Raise `collector.DriverNotFoundError` if there is no driver, or if it has no GPU."""
    try:
        found = open_source("native").probe()
    except UnavailableError:  # our own library cannot be loaded, so that the caller's error is all that is known
        return
    error = error_of_kind(found.get("error", ""), found.get("cause", ""), found.get("remedy", ""))
    if isinstance(error, DriverNotFoundError):
        raise error


@functools.cache  # its memory for emptying the cache is allocated once
def _gpu_of_context(context: int) -> CudaGpu:
    from cuda.bindings import driver

    return CudaGpu(driver)


def _checked(driver: Any, function: str, *arguments: Any) -> Any:
    """Call a function of cuda-python's driver bindings; return its values after the result code."""
    code, *values = getattr(driver, function)(*arguments)
    if int(code) != 0:
        raise UnavailableError(f"{function} failed with CUDA error {int(code)} ({code!r})")
    return values[0] if values else None


class CudaGpu:
    """A real GPU, through cuda-python's driver bindings and, for its state, nvidia-ml-py."""

    simulated = False

    def __init__(self, driver: Any) -> None:
        """Take the device of the current context; ``driver`` is `cuda.bindings.driver`."""
        self._driver = driver
        device = self._call("cuCtxGetDevice")
        self.name = bytes(self._call("cuDeviceGetName", 256, device)).split(b"\0")[0].decode()
        self.uuid = uuid_text(bytes(self._call("cuDeviceGetUuid", device).bytes))
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
        self.l2_bytes = int(self._call("cuDeviceGetAttribute", attribute, device)) or 4 << 20
        self._flush_bytes = _FLUSHES * self.l2_bytes
        self._flush_memory = self._call("cuMemAlloc", self._flush_bytes)
        self._touch_bytes = self.l2_bytes // 4
        self._touch_memory = self._call("cuMemAlloc", 2 * self._touch_bytes)
        self._events = (self._call("cuEventCreate", 0), self._call("cuEventCreate", 0))
        bus_id = bytes(self._call("cuDeviceGetPCIBusId", 64, device)).split(b"\0")[0].decode()
        self._nvml = _Nvml.open(self.uuid, bus_id)

    def synchronize(self) -> None:
        """See `collector.bench.gpu.Gpu.synchronize`."""
        self._call("cuCtxSynchronize")

    def flush_l2(self) -> None:
        """See `collector.bench.gpu.Gpu.flush_l2`."""
        self._call("cuMemsetD8Async", self._flush_memory, 0, self._flush_bytes, 0)

    def touch(self) -> None:
        """See `collector.bench.gpu.Gpu.touch`."""
        source = int(self._touch_memory)
        self._call("cuMemcpyDtoDAsync", source + self._touch_bytes, source, self._touch_bytes, 0)

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """See `collector.bench.gpu.Gpu.event_ns`.

        The events and the launch are queued while the GPU is still busy with ``before`` (emptying the cache takes long
        enough), so that the time between the events contains no launch latency.
        """
        begin, end = self._events
        if before is not None:
            before()
        self._call("cuEventRecord", begin, 0)
        call()
        self._call("cuEventRecord", end, 0)
        self._call("cuEventSynchronize", end)
        return float(self._call("cuEventElapsedTime", begin, end)) * 1e6

    def event_overhead_ns(self) -> float:
        """See `collector.bench.gpu.Gpu.event_overhead_ns`."""

        def next_to_nothing() -> None:
            self._call("cuMemsetD8Async", self._touch_memory, 0, 4, 0)

        def busy() -> None:
            self.flush_l2()
            self.flush_l2()

        return statistics.median(self.event_ns(next_to_nothing, before=busy) for _ in range(_OVERHEAD_ROUNDS))

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """See `collector.bench.gpu.Gpu.graph`.

        If ``call`` has a parameter ``stream``, it is passed the stream for the launches. Otherwise torch's graphs,
        which need no parameter, are used if torch is loaded; without torch, the stream is the first argument.
        """
        parameters, torch = _parameters(call), loaded_torch()
        if torch is not None and "stream" not in parameters:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(calls):
                    call()
            return lambda: graph.replay()
        if not parameters:
            raise TypeError("a call in a graph takes the stream to launch on (or use torch, whose graphs need none)")
        handing: Any = call  # passes the stream
        launch = (lambda stream: handing(stream=stream)) if "stream" in parameters else handing
        stream = self._call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call("cuStreamBeginCapture", stream, mode)
        try:
            for _ in range(calls):
                launch(int(stream))
        except BaseException:
            self._driver.cuStreamEndCapture(stream)  # may fail after the call's error, which is the one reported
            raise
        captured = self._call("cuStreamEndCapture", stream)
        executable = self._call("cuGraphInstantiate", captured, 0)
        self._call("cuGraphDestroy", captured)
        self._call("cuStreamDestroy", stream)
        return lambda: self._call("cuGraphLaunch", executable, 0)

    def state(self) -> CardState | None:
        """See `collector.bench.gpu.Gpu.state`."""
        return self._nvml.state() if self._nvml else None

    def measure_ceilings(self) -> Ceilings:
        """See `collector.bench.roofline.MeasuresCeilings`."""
        num_bytes = 1 << 30
        memory = self._call("cuMemAlloc", 2 * num_bytes)

        def copy() -> None:
            self._call("cuMemcpyDtoDAsync", int(memory) + num_bytes, memory, num_bytes, 0)

        best = min(self.event_ns(copy) for _ in range(13))
        self._call("cuMemFree", memory)
        flop_per_s, library = matrix_product_rate(self)
        return Ceilings(bytes_per_s=2 * num_bytes / best * 1e9, flop_per_s=flop_per_s, measured_with=library)

    def _call(self, function: str, *arguments: Any) -> Any:
        return _checked(self._driver, function, *arguments)


def _parameters(call: Callable[..., Any]) -> list[str]:
    """The parameters of ``call`` that accept an argument; none if that is unknown."""
    try:
        return [name for name, each in inspect.signature(call).parameters.items() if each.kind != each.VAR_KEYWORD]
    except (TypeError, ValueError):
        return []


class _Nvml:
    """One card's sensors, through nvidia-ml-py. Reads only."""

    def __init__(self, module: Any, handle: Any) -> None:
        self._nvml = module
        self._handle = handle
        self._sensors: dict[str, Any] = {}
        self._others: tuple[int, ...] = ()
        self._answer: CardState | None = None
        self._asked = self._asked_sensors = self._asked_for_others = float("-inf")

    @classmethod
    def open(cls, uuid: str, bus_id: str = "") -> _Nvml | None:
        """The card with this uuid, or at this PCI address; None if NVML is not installed or does not answer."""
        try:
            import pynvml

            pynvml.nvmlInit()
            return cls(pynvml, open_card(pynvml, uuid, bus_id))
        except Exception:  # no error of NVML should stop a measurement
            return None

    def state(self) -> CardState | None:
        """The sensors' values, read now or shortly before; None if throttling is unknown."""
        now = time.monotonic()
        if now - self._asked >= _THROTTLING_EVERY_S:
            self._asked, self._answer = now, self._ask(now)
        return self._answer

    def _ask(self, now: float) -> CardState | None:
        nvml, handle = self._nvml, self._handle
        try:
            reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        except Exception:
            return None
        if now - self._asked_sensors >= _SENSORS_EVERY_S:
            self._asked_sensors = now
            power_mw = answer(nvml.nvmlDeviceGetPowerUsage, handle)
            self._sensors = {
                "sm_clock_mhz": answer(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
                "memory_clock_mhz": answer(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
                "temperature_c": answer(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
                "power_w": None if power_mw is None else power_mw / 1000,
            }
        return CardState(
            **self._sensors,
            throttled_by=tuple(name for name in THROTTLING if reasons & throttling_mask(nvml, name)),
            other_processes=self._other_processes(now),
        )

    def _other_processes(self, now: float) -> tuple[int, ...]:
        if now - self._asked_for_others >= _PROCESSES_EVERY_S:
            self._asked_for_others = now
            with contextlib.suppress(Exception):  # not permitted in some containers
                running = {each.pid for each in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)}
                # In a container the driver may know this process by another number; if there is only one, it is this
                # process.
                alone = len(running) == 1
                self._others = () if alone else tuple(sorted(running - {os.getpid()}))
        return self._others
