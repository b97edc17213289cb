"""After hundreds of mixed sessions a process has the memory, threads, files and address space of a few sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.simulator

MIB = 2**20
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
"""Otherwise glibc reserves 64 MiB of address space for a thread that allocates while the others do."""

FIGURES = """
import gc, json, os

def figures():
    gc.collect()
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {
        "resident": int(status["VmRSS"].split()[0]) * 1024,
        "addresses": int(status["VmSize"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }
"""

SESSIONS = (
    FIGURES
    + """
import asyncio, sys, threading, warnings
import collector
from collector import bench
from collector.testing import SimulatedGpu

folder, count = sys.argv[1], int(sys.argv[2])
warnings.simplefilter("ignore", collector.CollectorWarning)
streams = iter(range(100, 10**9))
GEOMETRIES = [{}, {"buffer_bytes": 65536, "max_buffers": 64}, {"buffer_bytes": 1 << 20}, {"max_buffers": 8}]


def work(gpu, launches=200):
    for name in ("conv", "pool", "dense"):
        with collector.annotate(name):
            gpu.launch(f"kernel_{name}", count=launches // 4, duration_ns=100)
            gpu.memcpy("HtoD", 4096)
    gpu.synchronize()


def in_memory(gpu, number):
    with collector.trace(**GEOMETRIES[number % len(GEOMETRIES)]) as step:
        work(gpu)
    assert step.ledger.complete, step.ledger.losses()
    step.summary()


def saved(gpu, number):
    with collector.trace(f"{folder}/step.{('json', 'pb', 'pftrace', 'gpurec')[number // 8 % 4]}", stacks=True) as step:
        work(gpu)
    assert step.ledger.complete, step.ledger.losses()


def with_journal(gpu, number):
    with collector.trace(journal=f"{folder}/{number}.journal") as step:
        work(gpu)
    assert step.ledger.complete, step.ledger.losses()


def many_streams(gpu, number):
    with collector.trace() as step:
        for _ in range(50):
            gpu.launch("k", stream=next(streams), duration_ns=100)
    assert len(step.kernels) == 50


def untraced(gpu, number):
    with collector.trace(source="cupti-python"):
        work(gpu)


def failing(gpu, number):
    try:
        with collector.trace():
            work(gpu)
            raise RuntimeError
    except RuntimeError:
        pass


def from_threads(gpu, number):
    with collector.trace() as step:
        threads = [threading.Thread(target=work, args=(gpu, 40)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert step.ledger.complete, step.ledger.losses()


def large(gpu, number):
    with collector.trace() as step:
        gpu.launch("k", count=100_000, duration_ns=10)
    assert len(step.kernels) == 100_000


KINDS = [in_memory, saved, with_journal, many_streams, untraced, failing, from_threads, large]
taken = []
gpu = None
for number in range(count):
    if number % 40 == 20:  # the harness opens a card of its own
        if gpu is not None:
            gpu.__exit__(None, None, None)
            gpu = None
        with bench.SimulatedCard(seed=number) as card:
            arms = {"a": card.kernel("a", mean_ns=10_000), "b": card.kernel("b", mean_ns=11_000)}
            bench.compare(arms, gpu=card, max_seconds=0.2)
    if gpu is None:
        gpu = SimulatedGpu(cuda=("12.4", "13.0")[number // 40 % 2])
        gpu.__enter__()
    KINDS[number % len(KINDS)](gpu, number)
    # Every kind of session has been there by then, the harness among them.
    if number >= 24 and (number - 24) % 20 == 0 or number == count - 1:
        taken.append(figures())
print(json.dumps(taken))
"""
)

TESTS = (
    FIGURES
    + """
import collector
import pytest

TAKEN = []

@pytest.mark.parametrize("number", range(COUNT))
def test_step(number, record_property):
    from collector.testing import SimulatedGpu
    gpu = SimulatedGpu._active
    if number % 3 == 0:
        with collector.trace(buffer_bytes=(64 + 8 * (number % 5)) * 1024, max_buffers=64) as step:
            gpu.launch("k", count=2_000, duration_ns=100)
        assert len(step.kernels) == 2_000
    elif number % 3 == 1:
        gpu.launch("k", count=20_000, duration_ns=100)
    else:
        for stream in range(50):
            gpu.launch("k", stream=1_000 + 50 * number + stream)
    if number >= 20 and number % 20 == 0 or number == COUNT - 1:
        TAKEN.append(figures())
        with open("figures.json", "w") as file:
            json.dump(TAKEN, file)
"""
)


def assert_flat(taken: list[dict[str, int]]) -> None:
    first, last = taken[0], taken[-1]
    assert last["threads"] <= first["threads"]
    assert last["files"] <= first["files"]
    if os.environ.get("COLLECTOR_SANITIZED"):
        return  # a sanitizer keeps freed memory for a while on purpose
    # What an allocator does with many threads' freed blocks is not one session's doing: no more than tens of KiB each.
    assert last["resident"] - first["resident"] < 24 * MIB, taken
    assert last["addresses"] - first["addresses"] < 48 * MIB, taken


@pytest.mark.medium
@pytest.mark.parametrize("count", [105, pytest.param(300, marks=pytest.mark.slow)])
def test_mixed_sessions_end_with_what_a_few_had(count: int, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    program = [sys.executable, "-c", SESSIONS, str(tmp_path), str(count)]
    done = subprocess.run(program, env=os.environ | ONE_ARENA, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_flat(json.loads(done.stdout))
    assert not list(tmp_path.glob("*.journal"))


@pytest.mark.parametrize("count", [pytest.param(count, marks=pytest.mark.slow) for count in (300, 60)])
def test_the_plugin_beside_sessions_of_the_tests_ends_with_what_a_few_had(count: int, tmp_path: Path) -> None:
    (tmp_path / "test_steps.py").write_text(TESTS.replace("COUNT", str(count)))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--gpu-simulate", "--gpu-trace"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | ONE_ARENA
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_flat(json.loads((tmp_path / "figures.json").read_text()))
