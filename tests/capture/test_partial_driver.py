"""A libcuda that wraps the real one may lack functions: a session begins and ends without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.simulator

NEEDED = ("cuInit(unsigned flags)", "cuDriverGetVersion(int *version)")
OPTIONAL = (
    "cuDeviceGetCount(int *count)",
    "cuDeviceGet(int *device, int ordinal)",
    "cuDeviceGetName(char *name, int bytes, int device)",
    "cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)",
    "cuDevicePrimaryCtxRetain(void **context, int device)",
    "cuDevicePrimaryCtxRelease_v2(int device)",
    "cuCtxGetCurrent(void **context)",
    "cuCtxPushCurrent_v2(void *context)",
    "cuCtxPopCurrent_v2(void **context)",
    "cuCtxSynchronize(void)",
)
BODIES = {
    "cuDriverGetVersion": "*version = 13000;",
    "cuDeviceGetCount": "*count = 1;",
    "cuDeviceGet": "*device = ordinal;",
    "cuDeviceGetName": "name[0] = 'G'; name[1] = 0;",
    "cuDevicePrimaryCtxGetState": "*flags = 0; *active = 1;",
    "cuDevicePrimaryCtxRetain": "*context = (void *)0x10;",
    "cuCtxGetCurrent": "*context = (void *)0x20;",
    "cuCtxPopCurrent_v2": "*context = (void *)0x10;",
}
PROGRAM = """
import os, sys
import collector
from collector.testing import SimulatedGpu

with SimulatedGpu() as gpu:
    os.environ["COLLECTOR_LIBCUDA"] = sys.argv[1]
    with collector.trace(strict=True) as step, collector.annotate("a"):
        gpu.launch("k")
        gpu.synchronize()
    print(len(step.kernels), step.ledger.complete)
"""


def compile_driver(path: Path, functions: list[str]) -> Path:
    source = path.with_suffix(".c")
    bodies = [f"int {each} {{ {BODIES.get(each.split('(')[0], '')} return 0; }}" for each in functions]
    source.write_text("\n".join(bodies))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    return path


@pytest.mark.medium
@pytest.mark.parametrize(
    "missing", [*[pytest.param((name,), marks=pytest.mark.slow) for name in OPTIONAL], OPTIONAL[3:6], OPTIONAL]
)
def test_a_session_ends_without_an_optional_function_of_the_driver(missing: tuple[str, ...], tmp_path: Path) -> None:
    there = [*NEEDED, *(name for name in OPTIONAL if name not in missing)]
    driver = compile_driver(tmp_path / "libcuda.so", there)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(driver)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "True"]


WAITING_DRIVER = """
#include <unistd.h>
static volatile int is_waiting, is_finished, gave_up;
int cuCtxSynchronize(void) {
  is_waiting = 1;
  for (int waits = 0; !is_finished; ++waits) {
    if (waits == 4000) return gave_up = 1, 0;
    usleep(1000);
  }
  return 0;
}
int waits(void) { return is_waiting; }
int finish(void) { return is_finished = 1, gave_up; }
"""
WAITING_PROGRAM = """
import ctypes, os, sys, threading, time
import collector
from collector import _native
from collector.testing import SimulatedGpu

questions = {"journal": _native.journal_trouble, "names": _native.nvtx_status, "socket": _native.listening_at}
question = questions[sys.argv[2]]
driver = ctypes.CDLL(sys.argv[1])

def trace():
    with collector.trace(strict=True):
        pass

with SimulatedGpu():
    os.environ["COLLECTOR_LIBCUDA"] = sys.argv[1]
    threads = [threading.Thread(target=trace), threading.Thread(target=question)]
    threads[0].start()
    while not driver.waits():
        time.sleep(0.001)
    threads[1].start()
    time.sleep(0.05)
    gave_up = driver.finish()
    for thread in threads:
        thread.join()
    print(gave_up)
"""


@pytest.mark.medium
@pytest.mark.parametrize("question", ["journal", "names", "socket"])
def test_a_question_while_a_session_waits_for_the_gpu_lets_other_threads_run(question: str, tmp_path: Path) -> None:
    """The GPU may wait for one of them: for a host function of Python."""
    path = tmp_path / "libcuda.so"
    others = [each for each in (*NEEDED, *OPTIONAL) if "Synchronize" not in each]
    bodies = [f"int {each} {{ {BODIES.get(each.split('(')[0], '')} return 0; }}" for each in others]
    path.with_suffix(".c").write_text(WAITING_DRIVER + "\n".join(bodies))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(path.with_suffix(".c"))], check=True)
    command = [sys.executable, "-c", WAITING_PROGRAM, str(path), question]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
