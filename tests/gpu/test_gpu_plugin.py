"""The pytest plugin on a GPU: used by the tests here, and in runs of its own that must fail."""

import ctypes
import importlib.util
import os
import re
import sys
import time
from pathlib import Path

import pytest
import simulated_cuda
from timed_programs import PROGRAM_SECONDS, STICKY_SECONDS, run_timed

HERE = Path(__file__).resolve().parent
STAND_INS = HERE / "simulated_frameworks"
MEGABYTE = 1 << 20


# -- Used here


@pytest.fixture
def memory(cuda):
    """The addresses of a megabyte on the device and of one of the host's, page-locked: no test's own deed."""
    device = cuda.allocate(MEGABYTE)
    with cuda.pinned(MEGABYTE) as host:
        yield device, host
    cuda.free(device)


@pytest.mark.gpu(memory="1GiB", compute_capability=(7, 0))
@pytest.mark.gpu_limits(
    kernels=3, launches=3, memcpys=2, memcpy_htod_bytes=4096, memcpy_dtoh_bytes="8KiB", memcpy_dtod_bytes=0, memsets=1,
    memset_bytes=1000, kernel_time="5s", synchronizations=1, allocations=0, streams=2, devices=1,
)  # fmt: skip
def test_limits_hold_to_the_last_kernel_and_byte(cuda, memory):
    one, other, (device, host) = cuda.stream(), cuda.stream(), memory
    cuda.copy_to_device(device, host, 4096, one)
    cuda.launch_empty(2, one)
    cuda.launch("spin", ctypes.c_longlong(1000), stream=other)
    cuda.fill(device, 7, 1000, other)
    cuda.copy_to_host(host, device, 8192, one)
    cuda.synchronize()


def test_a_step_s_figures_are_what_was_asked_for(cuda, gpu_trace):
    stream = cuda.stream()
    with gpu_trace(kernels=4, synchronizations=0) as first:
        cuda.launch_empty(4, stream)
    with gpu_trace(kernels=0, memsets=0) as nothing:
        pass
    assert first.kernels.names() == ["empty_kernel"] * 4
    assert (first.figures.kernels, first.figures.launches, first.figures.streams) == (4, 4, 1)
    assert nothing.figures.used_gpu is False


def test_a_copy_that_runs_beside_a_kernel_is_hidden_by_it(cuda, gpu_trace):
    compute, copies, device = cuda.stream(), cuda.stream(), cuda.allocate(16 * MEGABYTE)
    with cuda.pinned(16 * MEGABYTE) as host:
        with gpu_trace() as step:
            cuda.launch("spin", ctypes.c_longlong(50_000_000), stream=compute)
            time.sleep(0.005)  # until it runs
            cuda.copy_to_device(device, host, 16 * MEGABYTE, copies)
        assert step.kernels.overlap("copy") > 0.9
        with gpu_trace() as step:
            cuda.launch("spin", ctypes.c_longlong(1_000_000), stream=compute)
            cuda.copy_to_device(device, host, 16 * MEGABYTE, compute)
        assert step.kernels.overlap("copy") < 0.01
    cuda.free(device)


def test_a_step_launches_what_its_snapshot_says(cuda, gpu_trace):
    one, other, device = cuda.stream(), cuda.stream(), cuda.allocate(4 * MEGABYTE)
    x, factor, n = ctypes.c_void_p(device), ctypes.c_float(2), ctypes.c_int(MEGABYTE)
    with gpu_trace() as step:
        cuda.fill(device, 0, 4 * MEGABYTE, one)
        cuda.launch("scale", x, factor, n, grid=(64, 1, 1), block=(128, 1, 1), stream=one)
        cuda.launch_empty(2, other)
        cuda.launch("axpy_pair", x, n, grid=(8, 1, 1), block=(256, 1, 1), shared_bytes=4, stream=one)
    cuda.free(device)
    step.assert_matches_snapshot()


@pytest.mark.gpu_leaks
def test_what_is_freed_is_no_leak(cuda):
    stream = cuda.stream()
    cuda.free(cuda.allocate(64 * MEGABYTE))
    cuda.free_in_order(cuda.allocate_in_order(MEGABYTE, stream), stream)
    cuda.synchronize()


# -- Runs of its own

CUDA_TESTS = """
import collector, pytest
from cuda_program import CudaProgram

kept = []

@pytest.fixture(scope="module")
def cuda():
    program = CudaProgram()
    program.launch_empty(1, program.stream())
    program.synchronize()
    return program

@pytest.mark.gpu_limits(kernels=3, allocations=0)
def test_passes(cuda):
    cuda.launch_empty(3)

@pytest.mark.gpu_limits(kernels=2, allocations=0)
def test_exceeds(cuda):
    with collector.annotate("layer1"):
        cuda.launch_empty(3)  # LAUNCHED
    cuda.free(cuda.allocate(1 << 20))

@pytest.mark.gpu_leaks
def test_leaks(cuda):
    with collector.annotate("cache"):
        kept.append(cuda.allocate(64 << 20))  # KEPT
    cuda.free(cuda.allocate(1 << 20))
"""

STICKY_TESTS = """
import ctypes, pytest
from cuda_program import CudaProgram

pytestmark = pytest.mark.gpu

@pytest.fixture(scope="module")
def cuda():
    return CudaProgram()

def test_before(cuda):
    cuda.launch_empty(1)
    cuda.synchronize()

def test_out_of_bounds(cuda):
    cuda.launch("write_to", ctypes.c_void_p(0x10))

def test_after(cuda):
    cuda.launch_empty(1)

def test_on_the_cpu_by_mark():
    pass
"""

TORCH_TESTS = """
import pytest, torch

kept = []

@pytest.fixture(scope="module")
def x():
    x = torch.ones(1024, device="cuda")
    x.add_(1).mul_(2)  # the first use loads the kernels
    torch.cuda.synchronize()
    return x

@pytest.mark.gpu_limits(kernels=2, launches=2, memcpys=0, memsets=0, synchronizations=1, allocations=0)
def test_passes(x):
    x.add_(1)
    x.mul_(2)
    torch.cuda.synchronize()

@pytest.mark.gpu_limits(kernels=1)
def test_exceeds(x):
    x.add_(1)
    x.mul_(2)  # LAUNCHED

@pytest.mark.gpu_leaks
def test_leaks(x):
    kept.append(torch.empty(16 << 20, device="cuda"))

@pytest.mark.gpu_leaks
def test_frees(x):
    torch.empty(16 << 20, device="cuda").add_(1)
"""

CUPY_TESTS = '''
import cupy, numpy, pytest

SOURCE = """
extern "C" __global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""
kept = []

@pytest.fixture(scope="module")
def x():
    x = cupy.zeros(1024, dtype=cupy.float32)
    twice(x)
    cupy.cuda.runtime.deviceSynchronize()
    return x

kernel = cupy.RawKernel(SOURCE, "twice")

def twice(x):
    kernel((4,), (256,), (x, numpy.int32(1024)))

@pytest.mark.gpu_limits(kernels=3, launches=3, memcpys=0, memsets=0, synchronizations=1, allocations=0)
def test_passes(x):
    for _ in range(3):
        twice(x)
    cupy.cuda.runtime.deviceSynchronize()

@pytest.mark.gpu_limits(kernels=2)
def test_exceeds(x):
    for _ in range(3):
        twice(x)

@pytest.mark.gpu_leaks
def test_leaks(x):
    kept.append(cupy.zeros(16 << 20, dtype=cupy.float32))
'''


@pytest.fixture
def run_pytest(gpu_here, tmp_path):
    """Runs a test file in a process of its own; returns what pytest printed."""

    def run(source, *arguments, seconds=PROGRAM_SECONDS):
        (tmp_path / "test_it.py").write_text(source)
        paths = [HERE]
        if simulated_cuda.asked_for():
            (tmp_path / "conftest.py").write_text("import simulated_cuda\nsimulated_cuda.install()\n")
            paths.append(STAND_INS)
        command = [sys.executable, "-m", "pytest", "-p", "collector.testing.plugin", "-p", "no:cacheprovider", "-rs"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        done = run_timed(
            [*command, "test_it.py", *arguments],
            seconds=seconds,
            cwd=tmp_path,
            env=environment
            | {
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])]),
                "COLUMNS": "200",
            },
        )
        return done.stdout + done.stderr

    return run


def known_line(source, mark):
    """A pattern of the file and line that ends with a comment, or of a line that is not known: see `show_unknown`.

    What `cuda_program` does, which lies outside the folder of the run, is done by the test's own line.
    """
    number = next(number for number, line in enumerate(source.splitlines(), 1) if line.endswith(f"# {mark}"))
    return rf"(?:test_it\.py:{number}|not known)"


@pytest.fixture
def show_unknown(show):
    """Shows that a run did not find the lines of some launches: the clocks of Python and of CUPTI are not one.

    They never are on the simulator.
    """

    def check(text):
        count = len(re.findall(r"\bnot known\b", text))
        if count and not simulated_cuda.asked_for():
            show(f"{count} lines of the run's own code are not known")

    return check


def outcomes(text):
    """``{"passed": 2, "failed": 1, ...}`` of pytest's last line."""
    last = next(line for line in reversed(text.splitlines()) if re.search(r" in \d+\.\d+s", line))
    return {word.rstrip("s"): int(count) for count, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last)}


def needs(framework):
    """Skip where a framework is not installed; on the simulator a stand-in takes its place."""
    if os.environ.get(simulated_cuda.VARIABLE) == "bindings":
        pytest.skip("the frameworks' stand-ins launch by name, which the real cuda.bindings do not")
    if not simulated_cuda.asked_for() and importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")


def test_a_tighter_limit_and_a_leak_fail_with_their_lines(run_pytest, show_unknown):
    text = run_pytest(CUDA_TESTS)
    show_unknown(text)
    assert outcomes(text) == {"passed": 2, "failed": 1, "error": 1}, text
    assert re.search(r"^  kernels +3 +2 +1$", text, re.MULTILINE), text
    assert re.search(r"^  allocations +1 +0 +1$", text, re.MULTILINE), text
    launched = rf"^  layer1 +{known_line(CUDA_TESTS, 'LAUNCHED')} +3 x empty_kernel$"
    assert re.search(launched, text, re.MULTILINE), text
    assert "test_leaks leaks GPU memory: the device's grew by" in text
    kept = rf"^  0x[0-9a-f]+ +67,108,864 +0 +cuMemAlloc +cache +{known_line(CUDA_TESTS, 'KEPT')}$"
    assert re.search(kept, text, re.MULTILINE), text
    assert text.count("0x") == 1, text


def test_every_test_of_a_traced_run_has_its_own_kernels(run_pytest):
    text = run_pytest(CUDA_TESTS, "--gpu-trace", "-k", "passes or exceeds")
    assert "tests that used the GPU" in text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith(" test_it.py::")}
    kernels = {name: row[-3] for name, row in rows.items()}  # the name may have a remark
    assert kernels == {"test_it.py::test_passes": "4", "test_it.py::test_exceeds": "3"}


def test_workers_share_the_gpu_and_find_the_same(run_pytest):
    if importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    text = run_pytest(CUDA_TESTS, "-p", "xdist.plugin", "-n", "2", "-k", "passes or exceeds")
    assert outcomes(text) == {"passed": 1, "failed": 1}, text


def test_a_torch_test_passes_its_limit_and_fails_a_tighter_one(run_pytest, show_unknown):
    needs("torch")
    text = run_pytest(TORCH_TESTS)
    show_unknown(text)
    assert outcomes(text) == {"passed": 3, "failed": 1, "error": 1}, text
    assert re.search(r"^  kernels +2 +1 +1$", text, re.MULTILINE), text
    assert re.search(rf"{known_line(TORCH_TESTS, 'LAUNCHED')} +[12] x ", text), text
    assert re.search(r"test_leaks leaks GPU memory: .*, PyTorch's allocator by 67,108,864 bytes", text), text


def test_a_cupy_test_passes_its_limit_and_fails_a_tighter_one(run_pytest):
    needs("cupy")
    text = run_pytest(CUPY_TESTS)
    assert outcomes(text) == {"passed": 2, "failed": 1, "error": 1}, text
    assert re.search(r"^  kernels +3 +2 +1$", text, re.MULTILINE), text
    assert re.search(r" 3 x twice$", text, re.MULTILINE), text
    assert re.search(r"test_leaks leaks GPU memory: .*, CuPy's allocator by 67,108,864 bytes", text), text


def test_after_an_illegal_address_the_others_say_why_they_are_not_run(run_pytest):
    text = run_pytest(STICKY_TESTS, seconds=STICKY_SECONDS)  # the last: what it leaves may disturb others
    assert outcomes(text) == {"passed": 1, "failed": 1, "skipped": 2}, text
    assert "test_out_of_bounds left the CUDA context of this process unusable" in text
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "not run because of test_it.py::test_out_of_bounds" in text
