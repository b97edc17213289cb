"""Threads that annotate and launch while another begins and ends sessions, with the interpreter's lock or without."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import sysconfig
import threading
import time
from contextvars import copy_context

import pytest

import collector
from collector.runtime.extension import load_extension
from collector.testing import SimulatedGpu
from collector.tracing.step_tracer import StepTracer

pytestmark = pytest.mark.simulator

THREADS = 4
SESSIONS = 20
WITHOUT_LOCK = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture
def gpu():
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


def names_of(step: collector.Session) -> set[tuple[str, str]]:
    """(annotation, kernel) of each kernel with a name."""
    nodes = [node.node_name for device in step.step_stats.dev_stats if "stream:all" in device.device
             for node in device.node_stats]  # fmt: skip
    return {(name.rpartition(":")[0], name.rpartition(":")[2]) for name in nodes}


@pytest.mark.medium
def test_launches_have_the_names_of_their_own_threads(gpu):
    shared = collector.annotate("shared")
    is_over = threading.Event()
    errors: list[BaseException] = []
    rounds = [0] * THREADS

    def work(number: int) -> None:
        try:
            while not is_over.is_set():
                with shared, collector.annotate(f"thread{number}"):
                    gpu.launch(f"kernel{number}", duration_ns=1000)
                rounds[number] += 1
                time.sleep(0.0001)  # in parallel they would launch more than a test needs to look at
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    wanted = {(f"shared/thread{number}", f"kernel{number}") for number in range(THREADS)}
    # The session began inside the block, or ended inside it: with a part of the path, or none.
    partly = {
        (name, f"kernel{number}")
        for number in range(THREADS)
        for name in (f"thread{number}", "shared", f"kernel{number}")
    }
    found: set[tuple[str, str]] = set()
    try:
        for _ in range(SESSIONS):
            with collector.trace() as step:
                before = list(rounds)
                while not errors and any(now < then + 2 for now, then in zip(rounds, before, strict=True)):
                    time.sleep(0.001)
            found |= names_of(step)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    gc.collect()
    assert errors == []
    assert wanted <= found <= wanted | partly


def test_places_that_several_threads_release_at_once_are_freed_once():
    extension = load_extension()
    stack = extension.annotation_stack(lambda path: None, int, None, int, lambda frame: False, None)

    def enter(count):
        for _ in range(count):
            stack.enter(object(), "name", 0)

    def place():
        enter(1)
        return extension.annotation_place().get()

    place_type = type(copy_context().run(place))
    stack.resume(None)
    uses = sys.getrefcount(place_type)  # each place has one
    for _ in range(10):
        trunk = copy_context()
        trunk.run(enter, 3)
        branches = [trunk.copy() for _ in range(THREADS)]
        barrier = threading.Barrier(THREADS)

        def release(branches=branches, barrier=barrier):
            branch = branches.pop()
            branch.run(enter, 400)
            stack.resume(None)
            barrier.wait(600)
            del branch  # with the last one goes what they have in common

        threads = [threading.Thread(target=release) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        del trunk
        for thread in threads:
            thread.join()
    gc.collect()
    stack.resume(None)
    copy_context().run(place)  # also releases what threads have left behind
    stack.resume(None)
    if not WITHOUT_LOCK:  # there types are never freed, and their uses not counted
        assert sys.getrefcount(place_type) == uses


@pytest.mark.skipif(not WITHOUT_LOCK, reason="this Python always has the lock")
def test_the_extension_modules_leave_the_lock_off():
    code = "import sys, collector\nfrom collector import _convert, _native\nassert not sys._is_gil_enabled()"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_end_steps_of_one_schedule_at_once_end_them_one_after_the_other(gpu):
    windows: list[int] = []
    schedule = collector.schedule(wait=1, warmup=1, active=2)
    session = collector.trace(schedule=schedule, on_window=lambda window: windows.append(len(window.kernels)))

    def work() -> None:
        for _ in range(SESSIONS):
            gpu.launch("a")
            session.step()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    with session:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(windows) == THREADS * SESSIONS // 4
    with collector.trace(strict=True) as later:
        gpu.launch("b")
    assert later.kernels.names() == ["b"]


def test_a_block_with_a_schedule_ends_the_window_that_another_thread_is_opening(gpu, monkeypatch):
    is_opening, may_open = threading.Event(), threading.Event()
    start = StepTracer.start

    def start_later(tracer, *args) -> None:
        is_opening.set()
        may_open.wait()
        start(tracer, *args)

    with collector.trace(schedule=collector.schedule(wait=1, active=1)) as session:
        monkeypatch.setattr(StepTracer, "start", start_later)
        thread = threading.Thread(target=session.step)
        thread.start()
        is_opening.wait()
        threading.Timer(0.1, may_open.set).start()
    thread.join()
    monkeypatch.undo()
    with collector.trace(strict=True) as later:
        gpu.launch("b")
    assert later.kernels.names() == ["b"]
