"""Three ways to compute y = a x + y, compared: ``collector bench examples/bench_saxpy.py``.

With an NVIDIA GPU and cuda-python the kernels are compiled by NVRTC and run; else they are simulated, and the report
says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collector import bench
from collector.errors import UnavailableError

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void saxpy4(float a, const float4* x, float4* y, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n / 4) {
    const float4 u = x[i];
    float4 v = y[i];
    v.x += a * u.x; v.y += a * u.y; v.z += a * u.z; v.w += a * u.w;
    y[i] = v;
  }
}
extern "C" __global__ void scale(float a, const float* x, float* t, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) t[i] = a * x[i];
}
extern "C" __global__ void add(const float* t, float* y, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = t[i] + y[i];
}
"""
BLOCK = 256


@bench.benchmark
@bench.parametrize("n", [1 << 16, 1 << 20, 1 << 24])
def saxpy(n: int) -> Iterator[bench.Case]:
    """One kernel an element, one for four elements at once, and two kernels."""
    try:
        gpu = bench.find_gpu()
    except UnavailableError:
        yield from simulated(n)
        return
    yield from on_gpu(n, gpu)


def simulated(n: int) -> Iterator[bench.Case]:
    """Durations as 4 TB/s and 2 us of latency would have them."""
    with bench.SimulatedCard(seed=n) as card:
        time_ns = 2_000 + 12 * n / 4_000
        scale, add = card.kernel("scale", time_ns * 0.7), card.kernel("add", time_ns * 0.95)
        arms = {
            "one kernel": card.kernel("saxpy", time_ns),
            "float4": card.kernel("saxpy4", time_ns * 0.97),
            "two kernels": lambda: (scale(), add()),
        }
        yield bench.case(arms, gpu=card, flops=2 * n, bytes=12 * n)


def on_gpu(n: int, gpu: Any) -> Iterator[bench.Case]:
    """The real kernels. Every call begins with the same y only in its first round: values grow, times do not mind."""
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.default_stream  # where CUDA events, which check the figures, are recorded
    architecture = "".join(map(str, device.compute_capability))
    code = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{architecture}")).compile("cubin")
    kernels = {name: code.get_kernel(name) for name in ("saxpy", "saxpy4", "scale", "add")}
    buffers = [device.allocate(4 * n, stream=stream) for _ in range(3)]
    x, y, t = buffers
    count, a = np.uint64(n), np.float32(2.0)

    def start(kernel: str, threads: int, *arguments: Any) -> None:
        launch(stream, LaunchConfig(grid=-(-threads // BLOCK), block=BLOCK), kernels[kernel], *arguments)

    def two_kernels() -> None:
        start("scale", n, a, x, t, count)
        start("add", n, t, y, count)

    arms = {
        "one kernel": lambda: start("saxpy", n, a, x, y, count),
        "float4": lambda: start("saxpy4", n // 4, a, x, y, count),
        "two kernels": two_kernels,
    }
    try:
        yield bench.case(arms, gpu=gpu, flops=2 * n, bytes=12 * n)
    finally:
        gpu.synchronize()
        for buffer in buffers:
            buffer.close(stream)
