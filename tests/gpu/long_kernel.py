"""A kernel of PyTorch of more than 50 ms, measured by CUDA events and by the collector in the same run."""

from __future__ import annotations

from typing import Any

CYCLES = 200_000_000
"""About 0.1 s at the clock of a card of today."""
TIMES = 3


def durations_ms() -> tuple[list[list[float]], list[str]]:
    """The milliseconds by events and by the kernel's record of each run, and what the last recording lost.

    Without a record of the kernel its milliseconds are -1.
    """
    import torch

    import collector

    found = []
    losses: list[str] = []
    torch.cuda._sleep(1000)  # the first one loads its kernel
    torch.cuda.synchronize()
    for _ in range(TIMES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with collector.trace(strict=True) as step:
            start.record()
            torch.cuda._sleep(CYCLES)
            end.record()
            torch.cuda.synchronize()
        kernels: Any = step.recording.kernels
        recorded = max(kernels.duration_ns.tolist(), default=-1_000_000)
        found.append([float(start.elapsed_time(end)), recorded / 1e6])
        losses = step.ledger.losses()
    return found, losses


def assert_agreement(found: list[list[float]], losses: list[str]) -> str:
    """Assert that both agree within 2 % in most runs; returns a line about it."""
    line = ", ".join(f"events {events:.3f} ms, record {record:.3f} ms" for events, record in found)
    apart = sorted(abs(events - record) / events for events, record in found)
    assert all(events >= 50 for events, _ in found), f"the kernel was too short: {line}"
    assert apart[len(apart) // 2] < 0.02, f"{line}; losses: {losses}"
    return line
