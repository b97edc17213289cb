"""A real GPU for the demo's step: kernels compiled by NVRTC, all through cuda-python's ``cuda.core``."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from collector.demo.demo_step import BUFFERS, KERNELS, STREAMS
from collector.errors import UnavailableError, not_installed

_BLOCK = 256
_ELEMENTS_PER_BLOCK = 4096

_BODIES = {
    "convolve": "0.25f * data[i] + 0.5f * data[(i + 1) % count] + 0.25f * data[(i + 2) % count]",
    "relu": "data[i] > 0 ? data[i] : T(0)",
    "softmax_loss": "logf(1 + expf(data[i]))",
    "convolve_gradient": "0.5f * data[i] - 0.25f * data[(i + 1) % count]",
    "relu_gradient": "data[i] > 0 ? T(1) : T(0)",
    "sgd_momentum": "0.9f * data[i] - 0.01f",
}
"""Kernel -> its new value of the element ``data[i]``."""

SOURCE = "\n".join(
    f"""
namespace demo {{
template <typename T>
__global__ void {name}(T* data, unsigned long long count, int passes) {{
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (int pass = 0; pass < passes; ++pass)
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step)
      data[i] = {body};
}}
}}"""
    for name, body in _BODIES.items()
)
"""The kernels in CUDA C++. Neighbouring elements may be read before or after they change: any value is fine."""


class CudaDemoGpu:
    """A `collector.demo.demo_step.DemoGpu` on device 0."""

    def __init__(self) -> None:
        """Compile the kernels and allocate the buffers.

        Raises:
            collector.UnavailableError: cuda-python, the driver, a device, NVRTC, or enough memory is missing.
        """
        core = _import_core()
        try:
            self._open(core)
        except Exception as error:  # cuda.core's errors have no common base class
            raise UnavailableError(f"no usable NVIDIA GPU ({error})") from error

    def _open(self, core: Any) -> None:
        self._device = core.Device(0)
        self._device.set_current()
        self.description = str(self._device.name)
        self._launch, self._config = core.launch, core.LaunchConfig
        self._streams = {name: self._device.create_stream() for name in STREAMS}
        self._kernels = self._compile(core)
        stream, pinned = self._streams["compute"], core.LegacyPinnedMemoryResource()
        self._buffers = {name: self._device.allocate(size, stream=stream) for name, size in BUFFERS.items()}
        self._host = {name: pinned.allocate(size, stream=stream) for name, size in BUFFERS.items()}
        self.synchronize()

    def close(self) -> None:
        """Free memory and streams."""
        self.synchronize()
        for buffer in (*self._buffers.values(), *self._host.values()):
            buffer.close(self._streams["compute"])
        self.synchronize()
        for stream in self._streams.values():
            stream.close()

    def launch(self, kernel: str, buffer: str, *, passes: int, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        count = BUFFERS[buffer] // 4
        config = self._config(grid=-(-count // _ELEMENTS_PER_BLOCK), block=_BLOCK)
        arguments = (self._buffers[buffer], np.uint64(count), np.int32(passes))
        self._launch(self._streams[stream], config, self._kernels[kernel], *arguments)

    def upload(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._host[buffer].copy_to(self._buffers[buffer], stream=self._streams[stream])

    def download(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._buffers[buffer].copy_to(self._host[buffer], stream=self._streams[stream])

    def clear(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        driver: Any = importlib.import_module("cuda.bindings.driver")
        (result,) = driver.cuMemsetD8Async(
            int(self._buffers[buffer].handle), 0, BUFFERS[buffer], self._streams[stream].handle
        )
        if int(result) != 0:
            raise UnavailableError(f"cuMemsetD8Async failed ({result})")

    def wait(self, stream: str, *, after: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._streams[stream].wait(self._streams[after])

    def synchronize(self) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        for stream in self._streams.values():
            stream.sync()

    def _compile(self, core: Any) -> dict[str, Any]:
        architecture = "".join(str(part) for part in self._device.compute_capability)
        code = compile_kernels(core, f"sm_{architecture}")
        return {name: code.get_kernel(f"demo::{name}<float>") for name in KERNELS}


def compile_kernels(core: Any, architecture: str) -> Any:
    """Compile `SOURCE` for an architecture such as ``sm_90``; ``core`` is the module cuda.core. Needs no GPU."""
    options = core.ProgramOptions(std="c++17", arch=architecture)
    expressions = tuple(f"demo::{name}<float>" for name in KERNELS)
    return core.Program(SOURCE, code_type="c++", options=options).compile("cubin", name_expressions=expressions)


def _import_core() -> Any:
    for name in ("cuda.core", "cuda.core.experimental"):  # the second up to cuda-core 0.4
        try:
            core = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(core, "Device"):
            return core
    raise UnavailableError(*not_installed("cuda-python", "gpu"))
