"""The card that is asked, or the simulator in its place, with a small program that does a little of everything."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raw_cupti import SUCCESS, CallFailedError, RawCupti, RawDriver

if TYPE_CHECKING:
    from cuda_program import CudaProgram

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1 << 20
LIBCUPTI = "COLLECTOR_QUESTIONS_LIBCUPTI"
"""The environment variable with the libcupti to use instead of the one that the collector finds."""


@dataclass(frozen=True)
class Card:
    """What a question needs; each thing is made when it is first used, because the order matters to CUPTI."""

    is_simulated: bool
    libraries: Path | None
    """The folder with other libcuptis."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="gpu-questions-")))
    """For files of the question, removed after it."""

    def prepare(self) -> None:
        """Make the modules of the GPU tests importable and, where asked for, put the simulator in the card's place."""
        for folder in ("tests/gpu", "tests/support", "benchmarks"):
            sys.path.insert(0, str(ROOT / folder))
        if self.is_simulated:
            import simulated_cuda

            os.environ.setdefault(simulated_cuda.VARIABLE, "1")
            simulated_cuda.install()
        if os.environ.get(LIBCUPTI):
            os.environ["COLLECTOR_LIBCUPTI"] = os.environ[LIBCUPTI]

    def leave(self) -> list[str]:
        """End the direct use of libcupti, and remove the folder; returns the calls that failed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        results = self.cupti.end() if "cupti" in vars(self) else {}
        return [f"{call} {self.cupti.name_of(result)}" for call, result in results.items() if result != SUCCESS]

    @cached_property
    def probe(self) -> dict[str, Any]:
        """What the collector's own search finds."""
        from collector.sources.native import NativeSource

        return NativeSource().probe()

    @property
    def cupti_path(self) -> str:
        """The file of libcupti.

        Raises:
            CallFailedError: the collector finds none that it can use.
        """
        found = os.environ.get(LIBCUPTI) or self.probe.get("cupti_path")
        if not found:
            raise CallFailedError(f"there is no libcupti: {self.probe.get('cause')}")
        return str(found)

    @cached_property
    def cupti(self) -> RawCupti:
        """Libcupti, directly. No context exists when it is first used, unless `cuda` was used before."""
        return RawCupti(self.cupti_path)

    @cached_property
    def driver(self) -> RawDriver:
        """Libcuda, directly."""
        return RawDriver(str(self.probe["driver_path"]))

    @cached_property
    def cuda(self) -> CudaProgram:
        """The program of the GPU tests; its first use makes the context, compiles and loads the kernels."""
        from cuda_program import CudaProgram

        return CudaProgram()

    def stream(self) -> int:
        """The handle of a new stream that does not wait for the default one."""
        return int(self.cuda.stream())

    def function(self, kernel: str) -> ctypes.c_void_p:
        """A kernel's handle for `driver`, with the context current in this thread."""
        if not self.is_simulated:
            return ctypes.c_void_p(int(self.cuda.kernels[kernel]))
        context, handle = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.driver.must("cuCtxSetCurrent", context)
        self.driver.must("cuModuleGetFunction", ctypes.byref(handle), None, kernel.encode())
        return handle

    def work(self) -> None:
        """Kernels, copies, sets, allocations, an event and a captured graph, each once or a few times, and wait."""
        cuda = self.cuda
        stream = cuda.stream()
        memory = cuda.allocate(MEGABYTE)
        with cuda.pinned(MEGABYTE) as host:
            cuda.copy_to_device(memory, host, 4096, stream)
            cuda.launch_empty(5, stream)
            cuda.copy_on_device(memory + 65536, memory, 4096, stream)
            cuda.copy_to_host(host, memory, 4096, stream)
            cuda.fill(memory, 0, 4096, stream)
            cuda.timed_ms(lambda: cuda.launch_empty(2, stream), stream)
            cuda.free_in_order(cuda.allocate_in_order(MEGABYTE, stream), stream)
            with cuda.captured(stream) as graphs:
                cuda.launch_empty(3, stream)
            cuda.launch_graph(graphs[0], stream)
            cuda.synchronize()
        cuda.free(memory)


def compiled(source: str, library: Path, *options: str) -> str:
    """Compile a C file of this folder into a library; returns why that is impossible, or an empty text."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "there is no C compiler"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name(source))]
    done = subprocess.run([*command, *options, "-ldl"], capture_output=True, text=True, check=False)
    return f"{source} cannot be compiled: {done.stderr.strip().splitlines()[0]}" if done.returncode else ""
