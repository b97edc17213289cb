"""Schedules: each window of a loop has exactly the launches of its steps, also where a step's kernels run late."""

import ctypes
from collections import Counter

import pytest

import collector

LATE_NS = 2_000_000
"""A kernel so long that the kernels after it run when the next step has begun."""


@pytest.fixture
def stream(cuda):
    return cuda.stream()


def run_steps(cuda, stream, session, count, *, late=False):
    """Launch 10 * n + 3 kernels in step n, each with n + 1 blocks; ``late``: behind a kernel that takes long."""
    for number in range(count):
        with collector.annotate(f"step{number}"):
            if late:
                cuda.launch("spin", ctypes.c_longlong(LATE_NS), stream=stream, grid=(number + 1, 1, 1))
            for _ in range(10 * number + 3):
                cuda.launch("empty_kernel", stream=stream, grid=(number + 1, 1, 1))
        session.step()


def launched(steps, *, late=False):
    """How many kernels have the name and the number of blocks of each step."""
    return {(f"step{number}", number + 1): 10 * number + 3 + late for number in steps}


def found(session):
    kernels = session.kernels
    return Counter(zip(session.recording.annotations_of(kernels), kernels.grid_x.tolist(), strict=True))


@pytest.mark.parametrize("late", [False, True], ids=["kernels end at once", "kernels end in the next step"])
def test_each_window_has_exactly_the_launches_of_its_steps(cuda, stream, late):
    windows = []

    def keep(window):
        windows.append((found(window), window.ledger.launches_seen, window.ledger.losses()))

    schedule = collector.schedule(wait=1, warmup=1, active=2, repeat=3)
    with collector.trace(schedule=schedule, on_window=keep, strict=True) as session:
        run_steps(cuda, stream, session, 14, late=late)
    expected = [launched(steps, late=late) for steps in ((2, 3), (6, 7), (10, 11))]
    assert windows == [(counts, sum(counts.values()), []) for counts in expected]


def test_every_hundredth_step_is_recorded_alone(cuda, stream):
    windows = []
    with collector.trace(
        schedule=collector.every(steps=100), on_window=lambda window: windows.append(found(window)), strict=True
    ) as session:
        for number in range(300):
            with collector.annotate(f"step{number}"):
                cuda.launch_empty(5, stream)
            session.step()
    assert windows == [{(f"step{number}", 1): 5} for number in (99, 199, 299)]


def test_each_window_has_a_file_with_its_kernels(cuda, stream, tmp_path):
    schedule = collector.schedule(wait=2, active=1, repeat=2)
    with collector.trace(tmp_path / "window{step}.gpurec", schedule=schedule, strict=True) as session:
        run_steps(cuda, stream, session, 6)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["window2.gpurec", "window5.gpurec"]
    assert [found(collector.load(file)) for file in files] == [launched([2]), launched([5])]
