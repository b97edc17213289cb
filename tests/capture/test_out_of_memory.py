"""Without memory for the decode thread, or without the thread, the program continues and losses are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import collector.testing

pytestmark = pytest.mark.simulator

LIBRARY = next(
    (path for folder in collector.testing.__path__ for path in Path(folder).glob("liballocation_failer.so")), None
)

PROGRAM = """
import ctypes, json, sys, warnings
import collector
from collector.options import KINDS, KINDS_ON_REQUEST
from collector.testing import SimulatedGpu

failer = ctypes.CDLL(sys.argv[1])
failer.allocation_failer_seen.restype = ctypes.c_int64
failer.allocation_failer_failed.restype = ctypes.c_uint64
failer.allocation_failer_arm.argtypes = [ctypes.c_int64]
with_journal, folder = sys.argv[2] == "journal", sys.argv[3]
outcomes = []


def session(gpu, number):
    journal = f"{folder}/{number}.journal" if with_journal else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        failer.allocation_failer_arm(number)
        with collector.trace(journal=journal, buffer_bytes=16384, kinds=KINDS + KINDS_ON_REQUEST) as step:
            for each in range(400):
                with collector.annotate(f"layer{each % 7}"):
                    name = f"a_kernel_with_a_name_beyond_any_short_string_{number}_{each % 30}"
                    gpu.launch(name, stream=7 + each % 3)
            gpu.memcpy("HtoD", 4096)
            gpu.memset(64)
            gpu.malloc(256)
            gpu.synchronize()
        failer.allocation_failer_disarm()
    return step, [str(each.message) for each in caught]


with SimulatedGpu() as gpu:
    step, messages = session(gpu, 0)
    assert step.ledger.complete, step.ledger.losses()
    points = failer.allocation_failer_seen()
    for number in range(1, points + 1):
        step, messages = session(gpu, number)
        kernels = step.recording.kernels
        own = f"a_kernel_with_a_name_beyond_any_short_string_{number}_"
        assert all(name.startswith(own) for name in kernels.names()), number  # no row of memory that was not filled
        assert len(set(kernels.correlation_id.tolist())) == len(kernels)
        outcomes.append((failer.allocation_failer_failed(), len(step.kernels), step.ledger.losses(), messages))
    step, messages = session(gpu, 0)
    assert step.ledger.complete, step.ledger.losses()
    assert len(step.kernels) == 400 and not messages
print(json.dumps(outcomes))
"""


@pytest.mark.medium
@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
@pytest.mark.parametrize("journal", [pytest.param("journal", marks=pytest.mark.slow), "no journal"])
def test_a_failed_allocation_of_the_decode_thread_loses_what_the_ledger_says(journal: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(LIBRARY), journal, str(tmp_path)],
        env={**os.environ, "LD_PRELOAD": str(LIBRARY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert sum(failed for failed, *_ in outcomes) > 20
    for failed, kernels, losses, messages in outcomes:
        broke_off = any("broke off" in message for message in messages)
        assert kernels == 400 or losses
        if failed and not broke_off:
            assert any("could not be read" in line for line in losses)
        if not failed:
            assert not losses


IN_SEGMENTS = """
import ctypes, json, sys, warnings
from pathlib import Path
from collector.options import TraceOptions
from collector.testing import SimulatedGpu
from collector.tracing.session import Session

warnings.simplefilter("ignore")
failer = ctypes.CDLL(sys.argv[1])
failer.allocation_failer_seen.restype = ctypes.c_int64
failer.allocation_failer_failed.restype = ctypes.c_uint64
failer.allocation_failer_arm.argtypes = [ctypes.c_int64]
folder, parts = sys.argv[2], int(sys.argv[3])
outcomes = []


def session(gpu, number):
    journal = Path(folder, f"{number}.journal")
    options = TraceOptions(journal=journal, stream=True, segment_bytes=1 << 12, buffer_bytes=1 << 13)
    failer.allocation_failer_arm(number)
    step = Session(options)
    with step:
        for piece in range(6):
            for each in range(60):
                gpu.launch(f"a_kernel_with_a_name_beyond_any_short_string_{piece}_{each % 30}", stream=7 + each % 3)
            gpu.synchronize()
    failer.allocation_failer_disarm()
    return step


with SimulatedGpu() as gpu:
    session(gpu, 0)
    points = failer.allocation_failer_seen()
    for number in range(1, points + 1, max(1, points // parts)):
        step = session(gpu, number)
        outcomes.append((failer.allocation_failer_failed(), len(step.kernels), step.ledger.losses()))
print(json.dumps(outcomes))
"""


@pytest.mark.medium
@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
@pytest.mark.parametrize("parts", [pytest.param(1000, marks=pytest.mark.exhaustive), 60])
def test_a_failed_allocation_between_segments_ends_the_journal_and_not_the_program(parts: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_SEGMENTS, str(LIBRARY), str(tmp_path), str(parts)],
        env={**os.environ, "LD_PRELOAD": str(LIBRARY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert sum(failed for failed, *_ in outcomes) > 20
    assert all(kernels == 360 or losses for _, kernels, losses in outcomes)


WITHOUT_MEMORY = """
import ctypes, json, os, socket, sys, warnings
import collector
from collector.testing import SimulatedGpu

failer = ctypes.CDLL(sys.argv[1])
failer.allocation_failer_seen.restype = ctypes.c_int64
failer.allocation_failer_arm_from.argtypes = [ctypes.c_int64]
outcomes = []


def seen_without_memory(call, *arguments):
    # Runs with no memory left from the first allocation on, from the second one, and so on; returns what it tells.
    for number in range(1, 10_000):
        failer.allocation_failer_arm_from(number)
        try:
            outcome = call(*arguments)
        except MemoryError:
            outcome = "no memory"
        has_failed = failer.allocation_failer_seen() >= number
        failer.allocation_failer_disarm()
        if not has_failed:
            return
        yield outcome
"""
"""The begin of programs in which all later allocations of a thread fail, too."""


def run_without_memory(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_MEMORY + program, str(LIBRARY)],
        env={**os.environ, "LD_PRELOAD": str(LIBRARY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.medium
@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
def test_a_session_that_does_not_begin_for_lack_of_memory_leaves_room_for_the_next() -> None:
    program = """
def session():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with collector.trace() as step:
            pass
    return [str(each.message) for each in caught]


failer.allocation_failer_choose_this_thread()
with SimulatedGpu() as gpu:
    assert session() == []
    for messages in seen_without_memory(session):
        assert messages != [], "it was traced without memory"
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert len(step.kernels) == 1 and step.ledger.complete
        outcomes.append(messages)
print(len(outcomes))
"""
    assert int(run_without_memory(program)) > 50


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
def test_a_streamed_session_that_does_not_begin_for_lack_of_memory_leaves_no_journal(tmp_path: Path) -> None:
    folder = tmp_path / "a folder whose name is longer than a short string"
    folder.mkdir()
    program = f"""
from pathlib import Path

folder = Path({str(folder)!r})


def session():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = collector.trace(journal=folder / "{{step}}.journal", stream=True)
        with session:
            began = session.unavailable is None
    return began, sorted(path.name for path in folder.iterdir())


failer.allocation_failer_choose_this_thread()
with SimulatedGpu():
    assert session() == (True, ["0.journal"])
    __import__("shutil").rmtree(folder / "0.journal")
    for began, left in seen_without_memory(session):
        outcomes.append((began, left))
        for path in folder.iterdir():
            __import__("shutil").rmtree(path)
print(json.dumps(outcomes))
"""
    outcomes = json.loads(run_without_memory(program))
    assert len(outcomes) > 50
    assert [left for began, left in outcomes if not began and left] == []


@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
def test_a_request_from_outside_for_which_there_is_no_memory_is_refused() -> None:
    program = """
def ask():
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(60)
        asking.connect(f"\\0collector-{os.getpid()}")
        asking.sendall(b"status\\0")
        asking.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: asking.recv(4096), b"")).decode().split("\\0")


with SimulatedGpu():
    collector.listen(strict=True)
    outcomes = list(seen_without_memory(ask))
    assert ask()[0] == "ok"
print(json.dumps(outcomes))
"""
    outcomes = json.loads(run_without_memory(program))
    assert len(outcomes) > 2
    assert all(outcome == ["error", "the process has no memory left", "", ""] for outcome in outcomes)


@pytest.mark.skipif(LIBRARY is None, reason="built without COLLECTOR_TEST_SUPPORT, as sanitized builds are")
def test_a_program_that_listens_can_fork_without_memory() -> None:
    """The child may listen as well, once there is some."""
    program = """
failer.allocation_failer_choose_this_thread()
with SimulatedGpu():
    collector.listen(strict=True)
failer.allocation_failer_arm_from(1)
child = os.fork()
failer.allocation_failer_disarm()
if child == 0:
    from collector import _native
    assert _native.listening_at() == b""
    collector.listen(strict=True)
    assert _native.listening_at().endswith(str(os.getpid()).encode())
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_without_memory(program) == "7\n"


# A thread's stack is larger than what may be mapped, and larger than those that the C library keeps for reuse.
WITHOUT_THREADS = """
import json, resource, signal
import collector
from collector.testing import SimulatedGpu

with SimulatedGpu() as gpu:
    with collector.trace() as step:
        gpu.launch("before")
    pages = int(open("/proc/self/statm").read().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), limits[1]))
    causes = []
    for begin in (lambda: collector.trace(strict=True).__enter__(), lambda: collector.listen(strict=True)):
        try:
            begin()
        except collector.CollectorError as error:
            causes.append(str(error))
    resource.setrlimit(resource.RLIMIT_AS, limits)
    blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    with collector.trace() as step:
        gpu.launch("after")
    print(json.dumps([causes, blocked, len(step.kernels)]))
"""


@pytest.mark.medium
@pytest.mark.skipif("COLLECTOR_SANITIZED" in os.environ, reason="a sanitizer maps more than any limit")
def test_without_a_thread_there_is_a_cause_and_the_programs_signals_are_left_alone() -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -s 262144 && exec "$@"', "sh", sys.executable, "-c", WITHOUT_THREADS],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and "ulimit" in done.stderr:
        pytest.skip(f"the stack's limit cannot be raised here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    [of_trace, of_listen], blocked, kernels = json.loads(done.stdout)
    assert "tracing could not start" in of_trace
    assert "no thread can be started" in of_listen
    assert blocked == []
    assert kernels == 1
