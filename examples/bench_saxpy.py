"""Three ways to compute z = a x + y, compared: ``collector bench examples/bench_saxpy.py``.

With an NVIDIA GPU and cuda-python the kernels are compiled by NVRTC and run; otherwise they are simulated, which the
report states. `saxpy` compares them one call at a time, `tiny` by replays of a graph of a hundred calls, the method for
kernels of a microsecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from collector import bench
from collector.errors import UnavailableError

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* z, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) z[i] = a * x[i] + y[i];
}
extern "C" __global__ void saxpy4(float a, const float4* x, const float4* y, float4* z, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n / 4) {
    const float4 u = x[i], v = y[i];
    z[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
  }
}
extern "C" __global__ void scale(float a, const float* x, float* z, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) z[i] = a * x[i];
}
extern "C" __global__ void add(const float* y, float* z, unsigned long long n) {
  const unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) z[i] = z[i] + y[i];
}
"""
BLOCK = 256
A = 2.0


@bench.benchmark
@bench.parametrize("n", [1 << 16, 1 << 20, 1 << 24])
def saxpy(n: int) -> Iterator[bench.Case]:
    """A kernel with one element per thread, one with four, and a pair of kernels."""
    yield from compared(n, flops=2 * n, bytes=12 * n)


@bench.benchmark(graph_calls=100, cache="hot")
def tiny() -> Iterator[bench.Case]:
    """The same kernels for so few elements that a launch takes longer than a kernel."""
    yield from compared(4096)


def compared(n: int, **options: Any) -> Iterator[bench.Case]:
    """The arms, on the GPU if there is one."""
    try:
        gpu = bench.find_gpu()
    except UnavailableError:
        yield from simulated(n, options)
        return
    cuda = Cuda()
    x, y = (np.random.default_rng(seed).random(n, np.float32) for seed in (0, 1))
    on_gpu = [cuda.put(x), cuda.put(y), cuda.allocate(x.nbytes)]
    try:
        yield bench.case(arms(cuda, n, *on_gpu), gpu=gpu, check=bench.allclose(rtol=1e-5), **options)
    finally:
        gpu.synchronize()
        for address in on_gpu:
            cuda.free(address)


def simulated(n: int, options: dict[str, Any]) -> Iterator[bench.Case]:
    """Kernels with the durations of 4 TB/s and 2 us of latency."""
    with bench.SimulatedCard(seed=n) as card:
        time_ns = 2_000 + 12 * n / 4_000
        scale, add = card.kernel("scale", time_ns * 0.7), card.kernel("add", time_ns * 0.95)
        calls = {
            "one kernel": card.kernel("saxpy", time_ns),
            "float4": card.kernel("saxpy4", time_ns * 0.97),
            "two kernels": lambda: (scale(), add()),
        }
        yield bench.case(calls, gpu=card, **options)


def arms(cuda: Cuda, n: int, x: int, y: int, z: int) -> dict[str, Callable[..., Any]]:
    """Calls that launch on the given stream, and return their result, which is copied when it is read."""
    a, count = ctypes.c_float(A), ctypes.c_ulonglong(n)
    at_x, at_y, at_z = (ctypes.c_void_p(address) for address in (x, y, z))
    result = OnGpu(cuda, z, n)

    def one_kernel(stream: int = 0) -> OnGpu:
        cuda.launch("saxpy", n, stream, a, at_x, at_y, at_z, count)
        return result

    def float4(stream: int = 0) -> OnGpu:
        cuda.launch("saxpy4", n // 4, stream, a, at_x, at_y, at_z, count)
        return result

    def two_kernels(stream: int = 0) -> OnGpu:
        cuda.launch("scale", n, stream, a, at_x, at_z, count)
        cuda.launch("add", n, stream, at_y, at_z, count)
        return result

    return {"one kernel": one_kernel, "float4": float4, "two kernels": two_kernels}


class Cuda:
    """The parts of the driver API that this example needs, in the current context."""

    def __init__(self) -> None:
        """Compile the kernels."""
        from cuda.bindings import driver, nvrtc

        self.driver = driver
        device = checked(driver.cuCtxGetDevice())
        version = [
            checked(driver.cuDeviceGetAttribute(which, device))
            for which in (
                driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        ]
        program = checked(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"saxpy.cu", 0, [], []))
        options = [f"--gpu-architecture=sm_{version[0]}{version[1]}".encode()]
        checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
        cubin = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
        checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        module = checked(driver.cuModuleLoadData(cubin))
        self.kernels = {
            name: checked(driver.cuModuleGetFunction(module, name.encode()))
            for name in ("saxpy", "saxpy4", "scale", "add")
        }

    def allocate(self, num_bytes: int) -> int:
        """The address of new memory on the GPU."""
        return int(checked(self.driver.cuMemAlloc(num_bytes)))

    def put(self, array: np.ndarray[Any, Any]) -> int:
        """Copy to new memory on the GPU."""
        address = self.allocate(array.nbytes)
        checked(self.driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        return address

    def get(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copy back."""
        checked(self.driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))

    def free(self, address: int) -> None:
        """Free memory."""
        checked(self.driver.cuMemFree(address))

    def launch(self, kernel: str, threads: int, stream: int, *arguments: Any) -> None:
        """Launch with ``arguments``, ctypes values."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        checked(
            self.driver.cuLaunchKernel(
                self.kernels[kernel], -(-threads // BLOCK), 1, 1, BLOCK, 1, 1, 0, stream, ctypes.addressof(pointers), 0
            )
        )


class OnGpu:
    """Floats on the GPU, which are copied to the host when numpy reads them."""

    def __init__(self, cuda: Cuda, address: int, n: int) -> None:
        """Store the address and the number of floats."""
        self.cuda, self.address, self.n = cuda, address, n

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Convert to a numpy array; numpy calls this."""
        found = np.zeros(self.n, np.float32)
        self.cuda.get(self.address, found)
        return found if dtype is None else found.astype(dtype)


def checked(answer: tuple[Any, ...]) -> Any:
    """The values of a cuda-python call after its result, which must be success."""
    code, *values = answer
    if int(code) != 0:
        raise RuntimeError(f"CUDA says {code!r}")
    return values[0] if values else None
