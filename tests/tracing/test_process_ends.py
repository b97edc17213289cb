"""Forks, sub-interpreters and the interpreter's end at awkward moments: nothing hangs, nothing aborts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import collector

pytestmark = pytest.mark.simulator


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


FORKS = """
import os, sys, threading, time, warnings
import collector
from collector.testing import SimulatedGpu

warnings.simplefilter("ignore")
moment = sys.argv[1]
failed = 0
with SimulatedGpu() as gpu:
    ended = threading.Event()
    # A child that imports what another thread was importing when it was forked waits for ever, in Python itself.
    with collector.trace():
        gpu.launch("k")

    def sessions():
        while not ended.is_set():
            if moment == "end":
                # Most of the time of a session is its end, which waits for a buffer.
                gpu.inject("slow_completion", value=3)
            with collector.trace():
                gpu.launch("k", duration_ns=1_000)

    thread = threading.Thread(target=sessions)
    thread.start()
    time.sleep(0.05)
    for _ in range(int(sys.argv[2])):
        child = os.fork()
        if child == 0:
            session = collector.trace()
            with session:
                with collector.annotate("child"):
                    pass
            os._exit(0 if "fork" in (session.unavailable or "") else 3)
        until = time.monotonic() + 60
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                failed += os.waitstatus_to_exitcode(status) != 0
                break
            if time.monotonic() > until:
                os.kill(child, 9)
                os.waitpid(child, 0)
                print("hung")
                failed += 1
                break
            time.sleep(0.001)
        if failed > 2:
            break
        time.sleep(0.0007)
    ended.set()
    thread.join()
print(failed)
"""


@pytest.mark.medium
@pytest.mark.skipif(bool(os.environ.get("COLLECTOR_SANITIZED")), reason="sanitizers know no threads in forked children")
@pytest.mark.parametrize("moment", ["start", pytest.param("end", marks=pytest.mark.slow)])
def test_a_child_forked_while_another_thread_starts_or_ends_a_session_does_not_hang(moment: str) -> None:
    done = run(FORKS, moment, "60")
    assert done.stdout.split() == ["0"], done.stdout + done.stderr


SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import collector
from collector.testing import SimulatedGpu

PROGRAM = '''
import sys, warnings
sys.path[:] = {path!r}
try:
    import collector
except ImportError as error:  # numpy refuses in some versions
    print("import:", error)
else:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with collector.trace() as step:
            with collector.annotate("a"):
                pass
    print("unavailable:", step.unavailable)
sys.stdout.flush()
'''.format(path=sys.path)

with SimulatedGpu() as gpu:
    with collector.trace() as step:
        gpu.launch("k")
    assert len(step.kernels) == 1
    made = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
    failure = interpreters.run_string(made, PROGRAM)
    assert failure is None, failure
    interpreters.destroy(made)
    with collector.trace() as step:
        gpu.launch("k")
    assert len(step.kernels) == 1
print("done")
"""


@pytest.mark.medium
def test_a_sub_interpreter_is_refused_with_a_reason() -> None:
    """On 3.10 and 3.11 a call into the extension from there waits for ever for the interpreter's lock."""
    done = run(SUB_INTERPRETER)
    assert done.returncode == 0, done.stderr
    refused, end = done.stdout.splitlines()
    assert end == "done"
    assert refused.startswith("import:") or ("main interpreter" in refused and "unavailable:" in refused)


AT_EXIT = """
import ctypes, sys, threading, time, warnings
import collector
from collector.tracing import session_slot
from collector.testing import SimulatedGpu

warnings.simplefilter("ignore")
if sys.argv[4] == "impatient":
    session_slot._LONGEST_WAIT_S = 0
gpu = SimulatedGpu(api_call_ns=0)
gpu.__enter__()
gpu.inject("slow_completion", value=20, count=-1)  # most of the time, the thread waits for a buffer at a session's end
began = threading.Event()

def sessions():
    while True:
        with collector.trace(sys.argv[1] or None):
            for number in range(int(sys.argv[2])):
                gpu.launch(f"kernel{number % 50}")
        began.set()  # everything that a session's end imports is imported

threading.Thread(target=sessions, daemon=True).start()
began.wait()
time.sleep(float(sys.argv[3]))
# After the interpreter's end the process goes on for a second: sleep() is called with the exit status.
library = ctypes.CDLL(None)
library.on_exit(library.sleep, None)
sys.exit(1)
"""


@pytest.mark.medium
@pytest.mark.parametrize("wait", ["0.02", pytest.param("0.03", marks=pytest.mark.slow)])
def test_the_interpreter_may_end_while_a_daemon_thread_is_in_native_code(wait: str) -> None:
    """Taking the interpreter's lock then ends the thread with pthread_exit, which no C++ destructor survives."""
    done = run(AT_EXIT, "", "10", wait, "impatient")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.medium
@pytest.mark.parametrize(
    "output",
    ["step.gpurec", *(pytest.param(f"step.{suffix}", marks=pytest.mark.slow) for suffix in ("json", "pftrace", "pb"))],
)
def test_the_interpreters_end_waits_for_a_session_that_a_daemon_thread_saves(output: str, tmp_path: Path) -> None:
    for wait in ("0.02", "0.03"):
        path = tmp_path / output
        done = run(AT_EXIT, str(path), "3000", wait, "patient")
        assert (done.returncode, done.stderr) == (1, "")
        assert list(tmp_path.iterdir()) == [path]  # and no half of a file
        if path.suffix != ".pftrace":  # which is written only
            assert collector.load(path).step_stats.dev_stats


EXITS = """
import ctypes, sys, threading, time, warnings
import collector
from collector.testing import SimulatedGpu

libc = ctypes.CDLL(None)
# Registered first, this handler runs last: for two seconds libcupti's destructors have run, and threads have not ended.
libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), 2_000_000, None)
gpu = SimulatedGpu()
gpu.__enter__()
what, folder = sys.argv[1:]

def annotate_on():
    while True:
        with collector.annotate("layer"):
            gpu.launch("k")

if what == "later":
    warnings.simplefilter("ignore")
    with collector.trace(strict=True):
        gpu.launch("k")

    def trace_later():
        time.sleep(0.5)
        with collector.trace() as step:
            print(step.unavailable, flush=True)

    threading.Thread(target=trace_later, daemon=True).start()
elif what == "record":
    recorder = collector.record(keep="30s", folder=folder, strict=True)
else:
    options = {"journal": folder + "/run.journal", "stream": what == "stream"} if what != "trace" else {}
    session = collector.trace(strict=True, **options)
    session.__enter__()
gpu.launch("k")
if what != "later":
    threading.Thread(target=annotate_on, daemon=True).start()
    time.sleep(0.05)
libc.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["trace", "journal", "stream", "record"])
def test_a_library_ends_the_process_while_a_session_is_open(what: str, tmp_path: Path) -> None:
    """Python's exit handlers do not run then: our thread called libcupti after libcupti's destructors had run."""
    done = run(EXITS, what, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    if what == "stream":
        step = collector.load(tmp_path / "run.journal")
        assert "had not ended" in step.ledger.losses()[0]


@pytest.mark.slow
def test_a_session_is_refused_while_the_process_ends(tmp_path: Path) -> None:
    """Another thread, or the delay of `collector run`, may begin one while exit handlers run."""
    done = run(EXITS, "later", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (3, "this process is ending\n", "")


FIRST_AT_EXIT = """
import atexit
import collector
from collector.testing import SimulatedGpu

@atexit.register
def trace():
    with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
        with collector.annotate("op"):
            gpu.launch("k")
        gpu.synchronize()
    print([kernel.annotation for kernel in step.recording.kernels])
"""


@pytest.mark.medium
def test_the_first_session_may_begin_in_an_exit_handler() -> None:
    """What it imports may start no thread pool any more."""
    done = run(FIRST_AT_EXIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['op']\n", "")


RELEASES = """
import ctypes, sys

libc = ctypes.CDLL(None)

def counts():
    return [sys.getrefcount(kind) for kind in (_convert.WireError, _native.CaptureError)]

@ctypes.CFUNCTYPE(None)
def after_destructors():
    print(*(now - then for now, then in zip(counts(), before)), flush=True)

# Registered first, it runs after the destructors of the extensions, whose static objects are made in the import.
libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
libc.__cxa_atexit(ctypes.cast(after_destructors, ctypes.c_void_p), None, None)
from collector import _convert, _native
before = counts()
libc.exit(3)
"""


def test_the_extensions_release_no_python_object_where_a_library_ends_the_process() -> None:
    """The interpreter may be running in other threads then, and in the usual end it is gone."""
    done = run(RELEASES)
    assert (done.returncode, done.stdout, done.stderr) == (3, "0 0\n", "")


@pytest.mark.medium
def test_a_warning_that_cannot_be_printed_does_not_end_the_program(tmp_path: Path) -> None:
    """Programs that become services close their standard files."""
    program = """
import sys
import collector
from collector.testing import SimulatedGpu

sys.stderr.close()
with SimulatedGpu() as gpu, collector.trace(sys.argv[1]) as step:
    gpu.launch("kernel")
print(len(step.kernels))
"""
    done = run(program, str(tmp_path / "missing" / "step.json"))
    assert (done.returncode, done.stdout) == (0, "1\n")
