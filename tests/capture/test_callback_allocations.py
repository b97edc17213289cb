"""Our buffer callbacks never touch the heap: counted, call by call, by a preloaded allocator."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import collector.testing

pytestmark = pytest.mark.simulator

PROGRAM = """
import ctypes, json, threading
counter = ctypes.CDLL(None)
def count(what):
    function = getattr(counter, "allocation_counter_" + what)
    function.restype = ctypes.c_uint64
    return function()
def counts():
    return {what: count(what) for what in ("windows", "allocations", "bytes", "releases")}
"""

SESSIONS = """
import collector
from collector.testing import SimulatedGpu

calls = 0
with SimulatedGpu(cuda={cuda!r}, deliver={deliver!r}) as gpu:
    def work(stream):
        with collector.annotate(f"stream{{stream}}"):
            for _ in range(20):
                gpu.launch("gemm", stream=stream, count=500)
                gpu.memcpy("HtoD", 4096, stream=stream)
                gpu.memset(64, stream=stream)
    for session in range(3):
        workers = [threading.Thread(target=work, args=(7 + index,)) for index in range(4)]
        options = dict(buffer_bytes={buffer_bytes}, max_buffers={max_buffers}, budget={budget!r})
        with collector.trace(strict=True, **options) as step:
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            gpu.synchronize()
        calls += step.ledger.buffers_requested + step.ledger.buffers_completed
    statistics = gpu.statistics()
seen = statistics.request_latency.count + statistics.complete_latency.count
print(json.dumps(counts() | {{"calls": calls, "seen": seen, "kernels": len(step.kernels)}}))
"""

# A client that allocates in its callbacks: what the counter must catch.
GUILTY = """
from collector.testing import SimulatedGpu
from collector.testing.simulator import simulated_gpu

keep = []
requested_type = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
completed_type = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)

@requested_type
def requested(buffer, size, max_records):
    keep.append(ctypes.create_string_buffer(1 << 20))
    buffer[0], size[0], max_records[0] = ctypes.addressof(keep[-1]), 1 << 20, 0

@completed_type
def completed(context, stream, buffer, size, valid):
    keep.append(ctypes.string_at(buffer, valid))

with SimulatedGpu() as gpu:
    library = ctypes.CDLL(str(simulated_gpu.library_path()))
    assert library.cuptiActivityRegisterCallbacks(requested, completed) == 0
    assert library.cuptiActivityEnable(10) == 0
    gpu.launch("gemm", count=100)
    gpu.synchronize()
    assert library.cuptiActivityFlushAll(1) == 0
print(json.dumps(counts()))
"""

ELSEWHERE = """
keep = ctypes.create_string_buffer(1 << 20)
print(json.dumps(counts()))
"""


@pytest.fixture(scope="module")
def run_counted():
    if os.environ.get("COLLECTOR_SANITIZED"):
        pytest.skip("a sanitizer brings its own allocator")
    libraries = [Path(folder) / "liballocation_counter.so" for folder in collector.testing.__path__]
    library = next((path for path in libraries if path.exists()), None)
    if library is None:
        pytest.skip(
            "ALLOCATIONS IN CALLBACKS WERE NOT COUNTED: only an editable install builds liballocation_counter.so"
        )

    def run(text):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM + text],
            env=os.environ | {"LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.medium
@pytest.mark.parametrize("deliver", ["worker", "caller"])
@pytest.mark.parametrize(
    ("cuda", "buffer_bytes", "max_buffers", "budget"),
    [
        ("12.4", 64 << 10, 64, None),
        ("12.4", 64 << 10, 64, "0.0001%"),
        pytest.param("13.0", 64 << 10, 64, None, marks=pytest.mark.slow),
        pytest.param("13.5", 1 << 20, 64, "1%", marks=pytest.mark.slow),
        pytest.param("12.9", 16 << 10, 2, None, marks=pytest.mark.slow),
        pytest.param("12.4", 16 << 10, 2, None, marks=pytest.mark.slow),
    ],
)
def test_no_callback_allocates_or_frees(run_counted, cuda, deliver, buffer_bytes, max_buffers, budget):
    counted = run_counted(
        SESSIONS.format(cuda=cuda, deliver=deliver, buffer_bytes=buffer_bytes, max_buffers=max_buffers, budget=budget)
    )
    assert counted["windows"] == counted["seen"] > 100
    assert counted["calls"] > 100
    assert counted["kernels"] > 0
    assert (counted["allocations"], counted["bytes"], counted["releases"]) == (0, 0, 0)


def test_a_callback_that_allocates_is_caught(run_counted):
    counted = run_counted(GUILTY)
    assert counted["windows"] > 0
    assert counted["allocations"] > 0
    assert counted["bytes"] >= 1 << 20


def test_what_is_allocated_elsewhere_is_not_counted(run_counted):
    assert run_counted(ELSEWHERE) == {"windows": 0, "allocations": 0, "bytes": 0, "releases": 0}
