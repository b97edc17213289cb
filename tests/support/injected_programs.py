"""The programs of `tests/inject`, and the environment in which our library is loaded into them."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from nvcc import find_nvcc
from nvtx_headers import include_folder, write_cuda_types
from timed_programs import COMPILING_SECONDS, run_timed

from collector.recording.schema import KINDS
from collector.runtime.extension import capture_library
from collector.testing.simulator.simulator_library import library_path

SOURCES = Path(__file__).resolve().parents[1] / "inject"
INJECTION_VARIABLE = "CUDA_INJECTION64_PATH"
_FOLDERS: list[TemporaryDirectory[str]] = []  # removed when the tests end


@cache
def launching_program(*, is_linked: bool = True) -> Path:
    """A program that knows nothing of ours; its libcuda is the simulator, linked or loaded when it runs."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("PROGRAMS THAT IMPORT NOTHING NOT TESTED: there is no C compiler")
    _FOLDERS.append(TemporaryDirectory(prefix="launching-program-"))
    folder = Path(_FOLDERS[-1].name)
    program, driver = folder / "program", library_path()
    link = [f"-L{driver.parent}", f"-l:{driver.name}", f"-Wl,-rpath,{driver.parent}"]
    if not is_linked:
        link = [f'-DDRIVER="{driver}"', "-ldl"]
    command = [compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCES / "launching_program.c"]
    command += [*link, "-lpthread"]
    subprocess.run(command, check=True)
    return program


@cache
def range_program() -> Path:
    """A program that does what its arguments say, linked to the simulator; see its source, `range_program.c`."""
    compiler, include = shutil.which("cc"), include_folder("nvToolsExtCuda.h")
    if compiler is None or include is None:
        pytest.skip("RANGES OF PROGRAMS NOT TESTED: a compiler or nvtx3/nvToolsExtCuda.h is missing")
    _FOLDERS.append(TemporaryDirectory(prefix="range-program-"))
    folder = Path(_FOLDERS[-1].name)
    write_cuda_types(folder)
    program, driver = folder / "program", library_path()
    link = [f"-L{driver.parent}", f"-l:{driver.name}", f"-Wl,-rpath,{driver.parent}", "-ldl", "-lpthread"]
    command = [compiler, "-std=gnu11", "-Wall", f"-I{folder}", f"-I{include}", "-o", program]
    subprocess.run([*command, SOURCES / "range_program.c", *link], check=True)
    return program


@cache
def range_program_of_the_runtime(architecture: str) -> Path:
    """The same program with CUDA's runtime in it, which loads the driver itself: for a GPU such as ``sm_90``.

    Raises:
        RuntimeError: there is no nvcc, where a GPU is required; elsewhere the test is skipped.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        missing = "nvcc is neither on PATH nor in CUDA_HOME or /usr/local/cuda"
        if os.environ.get("COLLECTOR_REQUIRE_GPU") == "1":
            raise RuntimeError(f"COLLECTOR_REQUIRE_GPU is set, but {missing}")
        pytest.skip(f"PROGRAMS WITH A STATIC RUNTIME NOT TESTED: {missing}")
    _FOLDERS.append(TemporaryDirectory(prefix="runtime-program-"))
    program = Path(_FOLDERS[-1].name) / "program"
    command = [nvcc, "-x", "cu", f"-arch={architecture}", "-cudart=static", "-o", program]
    run_timed([*command, SOURCES / "range_program.c", "-lpthread"], seconds=COMPILING_SECONDS).check_returncode()
    return program


def simulator_environment() -> dict[str, str]:
    """The environment in which the simulator is the machine's CUDA, and no tool is loaded."""
    without = {name: value for name, value in os.environ.items() if not name.startswith(("COLLECTOR_RUN", "CUDA_INJ"))}
    return without | {"COLLECTOR_LIBCUPTI": str(library_path()), "COLLECTOR_LIBCUDA": str(library_path())}


def injected_environment(folder: Path, **variables: str) -> dict[str, str]:
    """The environment of a program whose records go into journals in ``folder``."""
    return {
        **simulator_environment(),
        INJECTION_VARIABLE: str(capture_library()),
        "COLLECTOR_RUN_FOLDER": str(folder),
        "COLLECTOR_RUN_KINDS": ",".join(KINDS),
        **variables,
    }
