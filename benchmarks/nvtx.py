"""The cost of an NVTX range (one push and one pop) to the program that names it, in a loop in C.

Each row is a process of its own, because a copy of NVTX looks for a tool once: without a tool; with our handler while
nothing is traced; in a trace; in a trace that leaves the domain out; with NVIDIA's libcupti as the tool, without a
driver and with nothing enabled, from an installed wheel or the cache of the tests. In the traces a stand-in for
libcupti does nothing but read the clock, so that the cost of CUPTI's correlation calls is left out. A range needs two
time stamps: the ratios are to two ``clock_gettime`` calls of the same process. Both are the lowest of all rounds, which
take turns.

The goals: a range in a trace costs at most 2.5 of two time stamps, in a domain that is left out 0.7, and while nothing
is traced no more than with libcupti as the tool.

    nvtx.py [--turns=N] [--rounds=N]
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))
from nvtx_headers import include_folder  # noqa: E402

MODES = (
    "no tool",
    "handler, nothing traced",
    "traced",
    "traced, registered in a domain",
    "traced, with category, colour and payload",
    "domain left out",
    "libcupti",
)
LOOPS = {
    "traced, registered in a domain": "domain_push_pop",
    "traced, with category, colour and payload": "stated_push_pop",
    "domain left out": "domain_push_pop",
}
"""The loops of modes whose ranges are not plain ones."""


def compiled(folder: Path) -> Path:
    """The loops as a library.

    Raises:
        SystemExit: a compiler or the header is missing.
    """
    compiler, include = shutil.which("cc") or shutil.which("gcc"), include_folder()
    if compiler is None or include is None:
        raise SystemExit("nvtx.py needs a C compiler and NVTX's header (pip install nvidia-nvtx)")
    library = folder / "nvtx_ranges.so"
    source = HERE / "native/nvtx_ranges.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", f"-I{include}", "-o", library, source, "-ldl"], check=True)
    return library


def libcupti() -> str:
    """The libcupti of an installed wheel, or of one in the cache of the tests (``scripts/cuda_wheels.py``), or ``""``.

    A version that works without a driver.
    """
    for package in ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12"):
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith("libcupti.so"):
                return str(file.locate())
    spec = importlib.util.spec_from_file_location("cuda_wheels", HERE.parent / "scripts/cuda_wheels.py")
    if spec is None or spec.loader is None:
        return ""
    wheels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheels)
    try:
        return str(wheels.libcupti("12.9"))
    except wheels.WheelMissingError:
        return ""


def measure(mode: str, library: str, turns: int, rounds: int) -> dict[str, Any]:
    """The cost of one mode in ns, in this process."""
    from collector import _native, trace
    from collector.testing import SimulatedGpu

    os.environ.pop("NVTX_INJECTION64_PATH", None)
    if mode == "libcupti":
        os.environ["NVTX_INJECTION64_PATH"] = libcupti()
    elif mode != "no tool":
        os.environ["NVTX_INJECTION64_PATH"] = _native.capture_library()
    loops = ctypes.CDLL(library)
    for name in ("push_pop", "domain_push_pop", "stated_push_pop", "two_clocks"):
        getattr(loops, name).restype = ctypes.c_double
    loops.create_domain()
    loops.create_statement()
    loop = getattr(loops, LOOPS.get(mode, "push_pop"))
    wanted: Any = ["another"] if mode == "domain left out" else True
    is_traced = mode not in ("no tool", "handler, nothing traced", "libcupti")
    ranges, clocks = [], []
    with SimulatedGpu(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["COLLECTOR_LIBCUPTI"] = library
        for _ in range(rounds):
            clocks.append(loops.two_clocks(turns))
            if is_traced:
                with trace(nvtx=wanted, strict=True):
                    ranges.append(loop(turns))
            else:
                ranges.append(loop(turns))
    return {"mode": mode, "ns": min(ranges), "two clocks": min(clocks)}


def main() -> None:
    """Run every mode and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(measure(arguments.mode, arguments.library, arguments.turns, arguments.rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        print("| a push and a pop | ns | of two clock_gettime |\n| --- | --- | --- |")
        for mode in MODES:
            if mode == "libcupti" and not libcupti():
                print("| libcupti | not installed | |")
                continue
            command = [sys.executable, __file__, f"--turns={arguments.turns}", f"--rounds={arguments.rounds}"]
            command += [f"--mode={mode}", f"--library={library}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"| {mode} | {done.stderr.strip().splitlines()[-1]} | |")
                continue
            row = json.loads(done.stdout)
            print(f"| {mode} | {row['ns']:.1f} | {row['ns'] / row['two clocks']:.2f} |")


if __name__ == "__main__":
    main()
