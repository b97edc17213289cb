"""Nsight Compute as a witness: it lists the kernels of a program with the same names, grids, blocks and counts."""

import csv
import json
import re
import shutil
import statistics
import sys
from collections import Counter

import pytest
from timed_programs import run_timed

DURATION = "gpu__time_duration.sum"
REFUSALS = re.compile(
    r"==ERROR== .*(permission|driver|not supported|ERR_NVGPUCTRPERM|Failed to initialize|LibraryNotLoaded).*",
    re.IGNORECASE,
)

PROGRAM = """
import ctypes
from cuda_program import CudaProgram

cuda = CudaProgram()
stream = cuda.stream()
x, factor, n = ctypes.c_void_p(cuda.allocate(4 << 20)), ctypes.c_float(1), ctypes.c_int(1 << 20)

def work():
    for index in range(4):
        cuda.launch("axpy_pair", x, n, grid=(16, 2, 1), block=(128, 2, 1), shared_bytes=512, stream=stream)
        cuda.launch("scale", x, factor, n, grid=(64, 1, 1 + index), block=(32, 4, 2), stream=stream)
    for _ in range(3):
        cuda.launch("spin", ctypes.c_longlong(500_000), stream=stream)
    cuda.launch_empty(2, stream)
    cuda.synchronize()
"""

TRACED = """
import json
import collector
with collector.trace(strict=True) as step:
    work()
kernels = step.recording.kernels
shapes = zip(*(kernels[f"{what}_{axis}"].tolist() for what in ("grid", "block") for axis in "xyz"))
rows = zip(kernels.recorded_names(), shapes, (kernels.end_ns - kernels.start_ns).tolist())
print(json.dumps([[name, shape[:3], shape[3:], ns] for name, shape, ns in rows]))
"""

LISTING = """\
==PROF== Connected to process 4711 (/usr/bin/python3.12)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum"
"","","","","","","","","","","","us"
"0","4711","python3.12","127.0.0.1","_Z9axpy_pairPfi","1","7","(128, 2, 1)","(16, 2, 1)","0","9.0","1.50"
"1","4711","python3.12","127.0.0.1","spin","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","1,000.25"
"""  # noqa: E501
NS = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}


def kernels_of(listing):
    """The name, grid, block and nanoseconds of each kernel in the output of ``ncu --csv --page raw``."""
    lines = listing.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith('"ID"'))
    units, *rows = csv.DictReader(line for line in lines[header:] if line.startswith('"'))

    def shape(text):
        return tuple(int(number) for number in re.findall(r"\d+", text))

    return [
        (
            row["Kernel Name"], shape(row["Grid Size"]), shape(row["Block Size"]),
            float(row[DURATION].replace(",", "")) * NS[units[DURATION]],
        )
        for row in rows
    ]  # fmt: skip


def test_the_listing_of_ncu_is_read():
    assert kernels_of(LISTING) == [
        ("_Z9axpy_pairPfi", (16, 2, 1), (128, 2, 1), 1500.0),
        ("spin", (1, 1, 1), (1, 1, 1), 1_000_250.0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
        "==ERROR== Failed to initialize the profiler: LibraryNotLoaded",
        "==ERROR== Cuda driver is not compatible with Nsight Compute",
        "==ERROR== LibraryNotLoaded",
    ],
)
def test_a_refusal_of_ncu_is_known(line):
    assert REFUSALS.search(f"==PROF== Connected to process 4711\n{line}\n")[0] == line


def test_ncu_lists_the_same_kernels_with_the_same_grids_and_blocks(run_program, python_text, show, real_gpu):
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("NOT COMPARED WITH NSIGHT COMPUTE: ncu is not on PATH")
    rows = json.loads(run_program(PROGRAM + TRACED))
    ours = [(name, tuple(grid), tuple(block), ns) for name, grid, block, ns in rows]
    options = ["--csv", "--page", "raw", "--metrics", DURATION, "--print-kernel-base", "mangled"]
    options += ["--clock-control", "none", "--cache-control", "none"]
    done = run_timed([ncu, *options, sys.executable, "-c", python_text(PROGRAM + "work()\n")])
    refusal = REFUSALS.search(done.stdout + done.stderr)
    if refusal:
        pytest.skip(f"NOT COMPARED WITH NSIGHT COMPUTE: {refusal[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = kernels_of(done.stdout)
    assert Counter(kernel[:3] for kernel in ours) == Counter(kernel[:3] for kernel in theirs)
    ratios = sorted(
        statistics.median(ns for *key, ns in ours if key == list(kernel))
        / statistics.median(ns for *key, ns in theirs if key == list(kernel))
        for kernel in {kernel[:3] for kernel in ours}
    )
    show(f"durations, ours to Nsight Compute's, by kernel: {', '.join(f'{ratio:.3f}' for ratio in ratios)}")
