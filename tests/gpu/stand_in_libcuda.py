"""A libcuda.so.1 on the simulator, which the real ``cuda.bindings`` load: their arguments, results and types.

Each function has the C prototype of cuda.h and calls `simulated_cuda`. Objects (kernels, graphs) are passed as numbers.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SOURCE = Path(__file__).with_suffix(".cpp")

PROTOTYPES = {
    "cuInit": "i", "cuDriverGetVersion": "I", "cuDeviceGetCount": "I", "cuDeviceGet": "Ii", "cuDeviceGetName": "pii",
    "cuDeviceGetUuid": "pi", "cuDeviceGetAttribute": "Iii", "cuDeviceGetPCIBusId": "pii", "cuCtxGetCurrent": "P",
    "cuCtxGetDevice": "I", "cuDevicePrimaryCtxRetain": "Pi", "cuCtxSetCurrent": "p", "cuCtxSynchronize": "",
    "cuModuleLoadData": "Op", "cuModuleGetFunction": "Oos", "cuStreamCreate": "Pi", "cuStreamDestroy": "p",
    "cuLaunchKernel": "oiiiiiiippp", "cuMemAlloc": "Pp", "cuMemFree": "p", "cuMemAllocAsync": "Ppp",
    "cuMemFreeAsync": "pp", "cuMemHostAlloc": "Ppi", "cuMemFreeHost": "p", "cuMemcpyHtoDAsync": "pppp",
    "cuMemcpyDtoHAsync": "pppp", "cuMemcpyDtoDAsync": "pppp", "cuMemcpyHtoD": "ppp", "cuMemcpyDtoH": "ppp",
    "cuMemsetD8Async": "pbpp", "cuMemGetInfo": "PP", "cuEventCreate": "Pi", "cuEventRecord": "pp",
    "cuEventSynchronize": "p", "cuEventElapsedTime": "Fpp", "cuEventDestroy": "p", "cuStreamBeginCapture": "pi",
    "cuGraphCreate": "Oi", "cuGraphAddChildGraphNode": "Ooppo",
    "cuStreamEndCapture": "pO", "cuGraphInstantiate": "Oop", "cuGraphClone": "Oo", "cuGraphExecUpdate": "oop",
    "cuGraphGetRootNodes": "opp", "cuGraphExecKernelNodeSetParams": "oop", "cuGraphDestroy": "o",
    "cuGraphExecDestroy": "o", "cuGraphLaunch": "op",
}  # fmt: skip
"""Function -> its parameters: i int, b byte, p pointer-sized, s text, o an object's number; capitals are written
through a pointer (F: float)."""
_EXPORTED = {"cuGraphInstantiate": "cuGraphInstantiateWithFlags"}
"""The bindings' name -> the library's, where cuda.h redefines it."""
_SIZES = {"i": ctypes.c_int, "b": ctypes.c_ubyte, "p": ctypes.c_size_t, "s": ctypes.c_char_p, "o": ctypes.c_size_t}
_WRITTEN: dict[str, Any] = {"I": ctypes.c_int, "P": ctypes.c_size_t, "O": ctypes.c_size_t, "F": ctypes.c_float}
_FILLING = ("cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetPCIBusId")
"""Functions that fill the memory of their first argument."""


class StandInLibcuda:
    """The library, loaded under the name that the bindings search for. It must be kept as long as they are used."""

    def __init__(self, driver: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libcuda.so.1"
            command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-fPIC", "-shared", str(SOURCE)]
            subprocess.run([*command, "-Wl,-soname,libcuda.so.1", "-o", str(library)], check=True)
            self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(0x1000)
        self._driver = driver
        self._functions = {name: self._function(name, types) for name, types in PROTOTYPES.items()}
        for name, function in self._functions.items():
            exported = _EXPORTED.get(name, name)
            self._library.stand_in_register(exported.encode(), ctypes.cast(function, ctypes.c_void_p))

    def _function(self, name: str, types: str) -> Any:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(_SIZES.get(each, ctypes.c_size_t) for each in types))
        answer: Callable[..., tuple[Any, ...]] = getattr(self._driver, name)

        def filling(address: int, *given: int) -> int:
            code, value = answer(*given)
            data = bytes(getattr(value, "bytes", value))
            ctypes.memmove(address, data, len(data))
            return int(code)

        def root_nodes(graph: int, nodes: int, count: int) -> int:
            code, found, total = answer(self._objects[graph], ctypes.c_size_t.from_address(count).value)
            for place, node in enumerate(found if nodes else ()):
                ctypes.c_size_t.from_address(nodes + place * ctypes.sizeof(ctypes.c_size_t)).value = self._number(node)
            ctypes.c_size_t.from_address(count).value = total
            return int(code)

        def update(executable: int, graph: int, result: int) -> int:
            (code,) = answer(self._objects[executable], self._objects[graph])
            return int(code)

        def set_kernel(executable: int, node: int, parameters: int) -> int:
            kernel = self._objects[ctypes.c_size_t.from_address(parameters).value]  # the first field
            (code,) = answer(self._objects[executable], self._objects[node], SimpleNamespace(func=kernel))
            return int(code)

        def call(*given: Any) -> int:
            taken = [
                self._objects[value] if kind == "o" else value
                for kind, value in zip(types, given, strict=True) if kind.islower()
            ]  # fmt: skip
            code, *values = answer(*taken)
            places = [(kind, address) for kind, address in zip(types, given, strict=True) if kind.isupper()]
            for (kind, address), value in zip(places, values, strict=True):
                _WRITTEN[kind].from_address(address).value = self._number(value) if kind == "O" else value or 0
            return int(code)

        if name in _FILLING:
            return prototype(filling)
        own = {
            "cuGraphGetRootNodes": root_nodes,
            "cuGraphExecUpdate": update,
            "cuGraphExecKernelNodeSetParams": set_kernel,
        }
        return prototype(own.get(name, call))

    def _number(self, value: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = value
        return number
