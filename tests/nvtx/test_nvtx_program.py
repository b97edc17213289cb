"""A C program that was compiled with NVIDIA's own header, which looks for the handler by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from collector.runtime.extension import capture_library
from collector.tracing.nvtx import NEXT_TOOL_VARIABLE, VARIABLE
from tests.support.nvtx_headers import include_folder

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

PROGRAM = """
import ctypes, sys
import collector
from collector.testing import SimulatedGpu
library = ctypes.CDLL(sys.argv[1])
with SimulatedGpu() as gpu:
    launch = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda kernel: gpu.launch(kernel.decode()) and None)
    for _ in range(2):
        with collector.trace() as step:
            library.name_everything(launch)
    for kernel in step.recording.kernels:
        print(kernel.name, "=", kernel.annotation)
print(step.ledger.losses(), [state for library, state in collector.nvtx.copies() if library == sys.argv[1]])
"""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program_with_nvidias_header_names_its_launches(tmp_path, root, language):
    compiler, include = shutil.which("cc" if language == "c" else "c++"), include_folder()
    if compiler is None or include is None:
        pytest.skip("NVIDIA'S HEADER NOT TESTED: a compiler or nvtx3/nvToolsExt.h is missing")
    library = tmp_path / "program.so"
    source = root / "tests/nvtx/nvtx_program.c"
    export = [] if language == "c" else ["-include", tmp_path / "export.h"]
    (tmp_path / "export.h").write_text('extern "C" void name_everything(void (*)(const char*));\n')
    command = [compiler, "-x", language, "-shared", "-fPIC", f"-I{include}", *export, "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, NEXT_TOOL_VARIABLE)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library],
        env={**kept, "COLLECTOR_NVTX": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ascii = ascii",
        "wide = wide é",
        "registered = registered/registered",
        "other domain = registered/registered",
        "[] ['handled']",
    ]


def test_a_library_that_is_loaded_while_the_next_tool_attaches(tmp_path, root):
    """Its constructor calls NVTX, and holds the dynamic linker's lock, which the loading of the tool needs."""
    compiler, include = shutil.which("cc"), include_folder()
    if compiler is None or include is None:
        pytest.skip("LOADING BESIDE A TOOL NOT TESTED: a compiler or nvtx3/nvToolsExt.h is missing")
    parts = {"program": [], "library": ["-shared", "-fPIC", "-DLIBRARY"], "tool": ["-shared", "-fPIC", "-DTOOL"]}
    source = root / "tests/nvtx/loading_program.c"
    for name, options in parts.items():
        command = [compiler, "-std=gnu11", f"-I{include}", *options, "-o", tmp_path / name, source]
        subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    environment = {**os.environ, VARIABLE: str(capture_library()), NEXT_TOOL_VARIABLE: str(tmp_path / "tool")}
    # ThreadSanitizer does not see the linker's lock, and takes what constructors wrote for written by two threads.
    environment["TSAN_OPTIONS"] = f"{os.environ.get('TSAN_OPTIONS', '')}:report_bugs=0"
    command = [tmp_path / "program", tmp_path / "library"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended well\n", "")
