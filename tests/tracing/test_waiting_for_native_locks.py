"""Calls of the extension that wait for a lock of the native code let Python's other threads run."""

from __future__ import annotations

import threading
import time

import pytest

import collector
from collector import _native
from collector.testing import SimulatedGpu

pytestmark = [pytest.mark.simulator, pytest.mark.medium]

LONG_S = 0.06
EDGE_S = 0.015
ROUNDS = 20


def test_a_question_about_the_journal_while_a_session_ends() -> None:
    """The end of a session waits for the GPU, and that may need a thread of Python, as for a host function."""
    waits: list[tuple[float, float]] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            begin = time.perf_counter()
            _native.journal_trouble()
            end = time.perf_counter()
            if end - begin > LONG_S:
                waits.append((begin, end))
            time.sleep(0.001)

    def trace(gpu: SimulatedGpu) -> None:
        gpu.inject("slow_completion", value=90)
        with collector.trace():
            gpu.launch("kernel")

    asking = threading.Thread(target=ask)
    asking.start()
    others_ran = False
    with SimulatedGpu() as gpu:
        for _ in range(ROUNDS):
            tracing = threading.Thread(target=trace, args=(gpu,))
            tracing.start()
            ticks = []
            while tracing.is_alive():
                ticks.append(time.perf_counter())
                time.sleep(0.001)
            others_ran = any(begin + EDGE_S < tick < end - EDGE_S for begin, end in waits for tick in ticks)
            if others_ran:
                break
    is_over.set()
    asking.join()
    assert waits, "no call has waited"
    assert others_ran
