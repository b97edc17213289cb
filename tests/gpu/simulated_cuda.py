"""The parts of ``cuda.bindings.driver`` and ``nvrtc`` that `cuda_program` uses, on the simulator.

With COLLECTOR_GPU_TESTS_SIMULATED=1 the GPU tests run on this module, so that their own logic is tested without a GPU.
Its functions return the bindings' tuples of a result and values. With the value ``bindings`` the real cuda.bindings and
NVRTC are used, and only the driver below them is simulated: see `stand_in_libcuda`.
"""

# ruff: noqa: N802  (the driver's own names)
from __future__ import annotations

import ctypes
import enum
import itertools
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from collector.testing import SimulatedGpu

VARIABLE = "COLLECTOR_GPU_TESTS_SIMULATED"


class CUresult(enum.IntEnum):
    """Results, which print like the bindings' results."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_ILLEGAL_STATE = 401
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_FAILED = 719


_OK = CUresult.CUDA_SUCCESS
_MEMORY_BYTES = 1 << 37
_DURATION_NS = 1_000
_DEFAULT_STREAM = 7
_kept: list[Any] = []


class _Driver:
    """The driver functions; stream 0 is CUPTI's stream 7."""

    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=75,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=76,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE=38,
    )
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)
    CUDA_KERNEL_NODE_PARAMS = SimpleNamespace

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu
        self._pinned: dict[int, tuple[Any, int]] = {}
        self._streams = itertools.count(13)
        self._events: dict[int, int] = {}
        self._current = 0
        self._captures: dict[int, tuple[Any, Any]] = {}

    def cuInit(self, flags):
        return (_OK,)

    def cuDriverGetVersion(self):
        return _OK, 13000

    def cuDeviceGetCount(self):
        return _OK, 1

    def cuDeviceGet(self, ordinal):
        return _OK, ordinal

    def cuDeviceGetName(self, length, device):
        return _OK, b"Simulated GPU".ljust(length, b"\0")

    def cuDeviceGetAttribute(self, attribute, device):
        return _OK, {75: 9, 76: 0, 38: 50 << 20}[attribute]

    def cuDeviceGetUuid(self, device):
        return _OK, SimpleNamespace(bytes=bytes(range(16)))

    def cuDeviceGetPCIBusId(self, length, device):
        return _OK, b"0000:1B:00.0".ljust(length, b"\0")

    def cuCtxGetCurrent(self):
        return _OK, self._current

    def cuCtxGetDevice(self):
        return _OK, 0

    def cuDevicePrimaryCtxRetain(self, device):
        return _OK, 1

    def cuCtxSetCurrent(self, context):
        self._current = context
        return (_OK,)

    def cuCtxSynchronize(self):
        self._gpu.synchronize(launch="driver")
        return (CUresult(self._gpu.context_error),)

    def cuModuleLoadData(self, image):
        return _OK, image

    def cuModuleGetFunction(self, module, name):
        return _OK, name.decode()

    def cuStreamCreate(self, flags):
        return _OK, next(self._streams)

    def cuLaunchKernel(self, name, gx, gy, gz, bx, by, bz, shared_bytes, stream, arguments, extra):
        duration_ns = _DURATION_NS
        if name == "spin":
            duration_ns = ctypes.c_longlong.from_address(ctypes.c_uint64.from_address(arguments).value).value
        error = self._gpu.context_error
        if name == "write_to":  # to an address that is nobody's
            self._gpu.inject("failed_kernel", value=700)
        static_shared_bytes = 1024 if "axpy_pair" in name else 0
        self._gpu.launch(
            name, stream=stream or _DEFAULT_STREAM, duration_ns=duration_ns, grid=(gx, gy, gz), block=(bx, by, bz),
            static_shared_bytes=static_shared_bytes, dynamic_shared_bytes=shared_bytes, launch="driver",
        )  # fmt: skip
        return (CUresult(error),)

    def cuMemAlloc(self, num_bytes):
        if num_bytes > _MEMORY_BYTES:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        return _OK, self._gpu.malloc(num_bytes, launch="driver")

    def cuMemFree(self, address):
        self._gpu.free(address, launch="driver")
        return (_OK,)

    def cuMemAllocAsync(self, num_bytes, stream):
        return _OK, self._gpu.malloc(num_bytes, stream=stream, launch="driver")

    def cuMemFreeAsync(self, address, stream):
        self._gpu.free(address, stream=stream, launch="driver")
        return (_OK,)

    def cuMemHostAlloc(self, num_bytes, flags):
        memory = (ctypes.c_char * num_bytes)()
        address = ctypes.addressof(memory)
        self._pinned[address] = memory, self._gpu.malloc(num_bytes, kind="pinned", launch="driver")
        return _OK, address

    def cuMemFreeHost(self, address):
        _, simulated = self._pinned.pop(address)
        self._gpu.free(simulated, launch="driver")
        return (_OK,)

    def cuMemcpyHtoDAsync(self, device, host, num_bytes, stream):
        self._gpu.memcpy("HtoD", num_bytes, stream=stream, src=self._kind(host), launch="driver")
        return (_OK,)

    def cuMemcpyDtoHAsync(self, host, device, num_bytes, stream):
        self._gpu.memcpy("DtoH", num_bytes, stream=stream, dst=self._kind(host), launch="driver")
        return (_OK,)

    def cuMemcpyDtoDAsync(self, target, source, num_bytes, stream):
        self._gpu.memcpy("DtoD", num_bytes, stream=stream or _DEFAULT_STREAM, launch="driver")
        return (_OK,)

    def cuMemcpyHtoD(self, device, host, num_bytes):
        self._gpu.memcpy("HtoD", num_bytes, stream=_DEFAULT_STREAM, launch="driver")
        return (_OK,)

    def cuMemcpyDtoH(self, host, device, num_bytes):
        self._gpu.memcpy("DtoH", num_bytes, stream=_DEFAULT_STREAM, launch="driver")
        return (_OK,)

    def _kind(self, host):
        return "pinned" if host in self._pinned else "pageable"

    def cuMemsetD8Async(self, device, value, num_bytes, stream):
        self._gpu.memset(num_bytes, value=value, stream=stream or _DEFAULT_STREAM, launch="driver")
        return (_OK,)

    def cuMemGetInfo(self):
        return _OK, _MEMORY_BYTES, _MEMORY_BYTES

    def cuEventCreate(self, flags):
        event = len(self._events) + 1
        self._events[event] = 0
        return _OK, event

    def cuEventRecord(self, event, stream):
        self._gpu.synchronize(launch="driver")
        self._events[event] = self._gpu.now_ns
        return (_OK,)

    def cuEventSynchronize(self, event):
        return (_OK,)

    def cuEventElapsedTime(self, start, end):
        return _OK, (self._events[end] - self._events[start]) / 1e6

    def cuEventDestroy(self, event):
        return (_OK,)

    def cuStreamBeginCapture(self, stream, mode):
        capture = self._gpu.capture(stream=int(stream))
        self._captures[int(stream)] = capture, capture.__enter__()
        return (_OK,)

    def cuStreamDestroy(self, stream):
        return (_OK,)

    def cuStreamEndCapture(self, stream):
        if int(stream) not in self._captures:
            return CUresult.CUDA_ERROR_ILLEGAL_STATE, None
        capture, graph = self._captures.pop(int(stream))
        capture.__exit__()
        return _OK, graph

    def cuGraphInstantiate(self, graph, flags):
        return _OK, graph.instantiate()

    def cuGraphCreate(self, flags):
        with self._gpu.capture() as graph:
            pass
        return _OK, graph

    def cuGraphAddChildGraphNode(self, graph, before, num_before, child):
        graph.add_child(child)
        return _OK, child

    def cuGraphClone(self, graph):
        return _OK, graph.clone()

    def cuGraphExecUpdate(self, executable, graph):
        executable.update(graph)
        return (_OK,)

    def cuGraphGetRootNodes(self, graph, num_nodes):
        return _OK, [_FirstNode(graph)], 1

    def cuGraphExecKernelNodeSetParams(self, executable, node, parameters):
        executable.set_kernel(node.graph, 0, parameters.func, duration_ns=_DURATION_NS)
        return (_OK,)

    def cuGraphDestroy(self, graph):
        graph.destroy()
        return (_OK,)

    def cuGraphExecDestroy(self, executable):
        executable.destroy()
        return (_OK,)

    def cuGraphLaunch(self, executable, stream):
        executable.launch(stream=int(stream) or _DEFAULT_STREAM)
        return (_OK,)


class _FirstNode(NamedTuple):
    graph: Any


class _Nvrtc:
    def nvrtcCreateProgram(self, source, name, num_headers, headers, names):
        return _OK, source

    def nvrtcCompileProgram(self, program, num_options, options):
        assert len(options) == num_options
        return (_OK,)

    def nvrtcGetCUBINSize(self, program):
        return _OK, len(program)

    def nvrtcGetCUBIN(self, program, cubin):
        assert len(cubin) == len(program)
        return (_OK,)


def install() -> None:
    """Install the stand-ins for ``import cuda.bindings``, once. The simulated GPU stays open until the end."""
    if _kept:
        return
    gpu = SimulatedGpu(real_time=True, api_call_ns=500).__enter__()
    _kept.append(gpu)
    if os.environ.get(VARIABLE) == "bindings":
        from stand_in_libcuda import StandInLibcuda

        _kept.append(StandInLibcuda(_Driver(gpu)))
        return
    bindings, package = ModuleType("cuda.bindings"), ModuleType("cuda")
    vars(bindings).update(driver=_Driver(gpu), nvrtc=_Nvrtc())
    vars(package).update(bindings=bindings)
    sys.modules |= {"cuda": package, "cuda.bindings": bindings}


def asked_for() -> bool:
    """Whether the tests must run on the simulator."""
    return os.environ.get(VARIABLE) in ("1", "bindings")
