"""A CUDA program with known work: kernels, copies, memsets, events and graphs through ``cuda.bindings``.

Only plain allocations of a few megabytes. Every driver call's result is checked.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

SOURCE = r"""
extern "C" __global__ void empty_kernel() {}

extern "C" __global__ void other_empty_kernel() {}

extern "C" __global__ void spin(long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

extern "C" __global__ void write_to(int* address) { *address = 1; }

__global__ void axpy_pair(float* x, int n) {
  __shared__ float tile[256];
  extern __shared__ float more[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  if (threadIdx.x == 0) more[0] = tile[0];
  __syncthreads();
  if (i < n) x[i] = 2.0f * tile[threadIdx.x] + more[0];
}

namespace house {
template <typename T>
__global__ void scale(T* x, T factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
template __global__ void scale<float>(float*, float, int);
}  // namespace house
"""

MANGLED = {
    "empty_kernel": "empty_kernel",
    "other_empty_kernel": "other_empty_kernel",
    "spin": "spin",
    "write_to": "write_to",
    "axpy_pair": "_Z9axpy_pairPfi",
    "scale": "_ZN5house5scaleIfEEvPT_S1_i",
}
"""The tests' name of a kernel -> the name that CUPTI records."""


class CudaError(RuntimeError):
    """A driver or NVRTC call failed."""


def checked(answer: tuple[Any, ...]) -> Any:
    """Return the values of a ``cuda.bindings`` call after its result: nothing, one value, or a tuple."""
    result, *values = answer
    if int(result) != 0:
        raise CudaError(f"{result!r}")
    return values[0] if len(values) == 1 else tuple(values)


def numbers_of(kernels: Any) -> list[int]:
    """The numbers of kernels that `CudaProgram.launch_numbered` has launched, in the order of their table."""
    return [
        (blocks - 1 << 10) + threads - 1
        for blocks, threads in zip(kernels.grid_x.tolist(), kernels.block_x.tolist(), strict=True)
    ]


def why_no_gpu() -> str:
    """The reason why no GPU can be used here; ``""`` if one can."""
    try:
        from cuda.bindings import driver, nvrtc  # noqa: F401
    except ImportError as error:
        return f"cuda-python is not installed ({error})"
    try:
        checked(driver.cuInit(0))
        return "" if checked(driver.cuDeviceGetCount()) else "the driver lists no GPU"
    except Exception as error:
        return f"the NVIDIA driver cannot be used ({error})".replace("\n", " ")


def compile_kernels(arch: str, source: str = SOURCE) -> bytes:
    """Return the cubin of ``source`` for ``arch`` (such as ``sm_90``), by NVRTC."""
    from cuda.bindings import nvrtc

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"cuda_program.cu", 0, [], []))
    options = [f"--gpu-architecture={arch}".encode()]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(result) != 0:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise CudaError(log.decode(errors="replace"))
    cubin = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin


class CudaProgram:
    """The first GPU's primary context with the kernels of `SOURCE` loaded, current in the thread that made it."""

    def __init__(self, ordinal: int = 0) -> None:
        from cuda.bindings import driver

        self.driver = driver
        checked(driver.cuInit(0))
        self.device = checked(driver.cuDeviceGet(ordinal))
        self.context = checked(driver.cuDevicePrimaryCtxRetain(self.device))
        self.use()
        attribute = driver.CUdevice_attribute
        self.capability = tuple(
            checked(driver.cuDeviceGetAttribute(which, self.device))
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.cubin = compile_kernels("sm_{}{}".format(*self.capability))
        self.module = checked(driver.cuModuleLoadData(self.cubin))
        self.kernels = {
            name: checked(driver.cuModuleGetFunction(self.module, mangled.encode()))
            for name, mangled in MANGLED.items()
        }

    def use(self) -> None:
        """Make the context current in this thread."""
        checked(self.driver.cuCtxSetCurrent(self.context))

    def name(self) -> str:
        """Return the card's name."""
        return checked(self.driver.cuDeviceGetName(100, self.device)).split(b"\0")[0].decode()

    def driver_version(self) -> int:
        """Return the CUDA version of the driver, 13000 for 13.0."""
        return checked(self.driver.cuDriverGetVersion())

    def stream(self) -> Any:
        """Return a new stream that does not wait for the default one."""
        return checked(self.driver.cuStreamCreate(1))

    def launch(
        self, kernel: str, *arguments: Any, grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (1, 1, 1), shared_bytes: int = 0, stream: Any = 0,
    ) -> None:  # fmt: skip
        """Launch ``kernel``; ``arguments`` are ctypes values."""
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(one) for one in arguments))
        checked(
            self.driver.cuLaunchKernel(
                self.kernels[kernel], *grid, *block, shared_bytes, stream, ctypes.addressof(pointers), 0
            )
        )

    def launch_empty(self, count: int, stream: Any = 0) -> None:
        """Launch the empty kernel ``count`` times, as fast as Python can."""
        launch, kernel = self.driver.cuLaunchKernel, self.kernels["empty_kernel"]
        for _ in range(count):
            (result,) = launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0)
            if int(result) != 0:
                raise CudaError(f"{result!r}")

    def launch_numbered(self, numbers: Iterable[int], stream: Any = 0) -> None:
        """Launch the empty kernel once for each number below 2^20, which `numbers_of` finds in the records.

        A number is not a number of blocks: a kernel of 500,000 blocks takes as long as 500 small ones.
        """
        launch, kernel = self.driver.cuLaunchKernel, self.kernels["empty_kernel"]
        for number in numbers:
            (result,) = launch(kernel, 1 + (number >> 10), 1, 1, 1 + (number & 1023), 1, 1, 0, stream, 0, 0)
            if int(result) != 0:
                raise CudaError(f"{result!r}")

    def allocate(self, num_bytes: int) -> int:
        """Return the address of new device memory; `free` releases it."""
        return int(checked(self.driver.cuMemAlloc(num_bytes)))

    def free(self, address: int) -> None:
        """Release device memory."""
        checked(self.driver.cuMemFree(address))

    def allocate_in_order(self, num_bytes: int, stream: Any) -> int:
        """Return the address of memory of the device's pool, allocated in the stream's order."""
        return int(checked(self.driver.cuMemAllocAsync(num_bytes, stream)))

    def free_in_order(self, address: int, stream: Any) -> None:
        """Release memory to the device's pool in the stream's order."""
        checked(self.driver.cuMemFreeAsync(address, stream))

    @contextlib.contextmanager
    def pinned(self, num_bytes: int) -> Iterator[int]:
        """Yield the address of page-locked host memory."""
        address = int(checked(self.driver.cuMemHostAlloc(num_bytes, 0)))
        try:
            yield address
        finally:
            checked(self.driver.cuMemFreeHost(address))

    def copy_to_device(self, device: int, host: int, num_bytes: int, stream: Any) -> None:
        """Copy asynchronously; addresses."""
        checked(self.driver.cuMemcpyHtoDAsync(device, host, num_bytes, stream))

    def copy_to_host(self, host: int, device: int, num_bytes: int, stream: Any) -> None:
        """Copy asynchronously; addresses."""
        checked(self.driver.cuMemcpyDtoHAsync(host, device, num_bytes, stream))

    def copy_on_device(self, target: int, source: int, num_bytes: int, stream: Any) -> None:
        """Copy asynchronously; addresses."""
        checked(self.driver.cuMemcpyDtoDAsync(target, source, num_bytes, stream))

    def fill(self, device: int, value: int, num_bytes: int, stream: Any) -> None:
        """Set bytes asynchronously."""
        checked(self.driver.cuMemsetD8Async(device, value, num_bytes, stream))

    def synchronize(self) -> None:
        """Wait for all work of this context."""
        checked(self.driver.cuCtxSynchronize())

    def timed_ms(self, launch: Any, stream: Any) -> float:
        """Return the milliseconds between two CUDA events around ``launch()``."""
        start, end = (checked(self.driver.cuEventCreate(0)) for _ in range(2))
        checked(self.driver.cuEventRecord(start, stream))
        launch()
        checked(self.driver.cuEventRecord(end, stream))
        checked(self.driver.cuEventSynchronize(end))
        elapsed = checked(self.driver.cuEventElapsedTime(start, end))
        for event in (start, end):
            checked(self.driver.cuEventDestroy(event))
        return float(elapsed)

    @contextlib.contextmanager
    def captured(self, stream: Any) -> Iterator[list[Any]]:
        """Capture the work given to ``stream`` in a graph; afterwards the yielded list contains its executable."""
        executables: list[Any] = []
        with self.captured_graph(stream) as graphs:
            yield executables
        executables.append(self.instantiate(graphs[0]))
        self.destroy_graph(graphs[0])

    @contextlib.contextmanager
    def captured_graph(self, stream: Any) -> Iterator[list[Any]]:
        """Capture the work given to ``stream``; afterwards the yielded list contains the graph."""
        graphs: list[Any] = []
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked(self.driver.cuStreamBeginCapture(stream, mode))
        try:
            yield graphs
        finally:
            graphs.append(checked(self.driver.cuStreamEndCapture(stream)))

    def instantiate(self, graph: Any) -> Any:
        """Return an executable of a graph."""
        return checked(self.driver.cuGraphInstantiate(graph, 0))

    def graph_with_children(self, children: list[Any]) -> Any:
        """Return a graph of graphs that run one after the other."""
        graph = checked(self.driver.cuGraphCreate(0))
        self.add_children(graph, children)
        return graph

    def add_children(self, graph: Any, children: list[Any]) -> None:
        """Add copies of graphs to a graph, which run one after the other beside its other nodes."""
        before: list[Any] = []
        for child in children:
            before = [checked(self.driver.cuGraphAddChildGraphNode(graph, before, len(before), child))]

    def add_conditional(self, graph: Any, num_bodies: int = 1) -> list[Any]:
        """Add an IF node whose condition is true; returns its bodies. A real GPU's driver only."""
        driver = self.driver
        parameters = driver.CUgraphNodeParams()
        parameters.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        parameters.conditional.ctx = context = checked(driver.cuCtxGetCurrent())
        parameters.conditional.handle = checked(driver.cuGraphConditionalHandleCreate(graph, context, 1, 1))
        parameters.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF
        parameters.conditional.size = num_bodies
        checked(driver.cuGraphAddNode(graph, None, None, 0, parameters))
        return list(parameters.conditional.phGraph_out)

    @contextlib.contextmanager
    def captured_into(self, stream: Any, graph: Any) -> Iterator[None]:
        """Capture the work given to ``stream`` in an existing graph. A real GPU's driver only."""
        mode = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked(self.driver.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, mode))
        try:
            yield
        finally:
            checked(self.driver.cuStreamEndCapture(stream))

    def add_host_node(self, graph: Any) -> None:
        """Add a node in which the host calls the C library's ``free(NULL)``. A real GPU's driver only."""
        parameters = self.driver.CUDA_HOST_NODE_PARAMS()
        parameters.fn = self.driver.CUhostFn(ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value)
        checked(self.driver.cuGraphAddHostNode(graph, [], 0, parameters))

    def clone_graph(self, graph: Any) -> Any:
        """Return a copy of a graph."""
        return checked(self.driver.cuGraphClone(graph))

    def update_graph(self, executable: Any, graph: Any) -> None:
        """Let the nodes of an executable graph have the parameters of another graph's."""
        checked(self.driver.cuGraphExecUpdate(executable, graph))

    def set_first_kernel(self, executable: Any, graph: Any, kernel: str) -> None:
        """Let the first node of ``graph`` be another kernel without arguments in ``executable``."""
        nodes, _ = checked(self.driver.cuGraphGetRootNodes(graph, 1))
        parameters = self.driver.CUDA_KERNEL_NODE_PARAMS()
        parameters.func = self.kernels[kernel]
        parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1
        parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1
        checked(self.driver.cuGraphExecKernelNodeSetParams(executable, nodes[0], parameters))

    def destroy_graph(self, graph: Any) -> None:
        """Destroy a graph; its executables remain."""
        checked(self.driver.cuGraphDestroy(graph))

    def destroy_executable(self, executable: Any) -> None:
        """Destroy an executable graph."""
        checked(self.driver.cuGraphExecDestroy(executable))

    def launch_graph(self, executable: Any, stream: Any) -> None:
        """Launch an executable graph."""
        checked(self.driver.cuGraphLaunch(executable, stream))

    def free_memory(self) -> int:
        """Return the card's free bytes."""
        free, _total = checked(self.driver.cuMemGetInfo())
        return int(free)
