"""The figures of a node, and their sums."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain


def int64(value: int) -> int:
    """``value`` as 64 bits hold it: sums of a damaged step's figures wrap around, as tfprof's do."""
    return (value + 2**63) % 2**64 - 2**63


class Stats:
    """Figures that add up: times in microseconds, memory in bytes, counts."""

    __slots__ = (
        "accelerator_exec_micros",
        "cpu_exec_micros",
        "definition_count",
        "exec_micros",
        "float_ops",
        "output_bytes",
        "parameters",
        "peak_bytes",
        "requested_bytes",
        "residual_bytes",
        "run_count",
    )

    def __init__(self) -> None:
        self.exec_micros = 0
        self.accelerator_exec_micros = 0
        self.cpu_exec_micros = 0
        self.requested_bytes = 0
        self.peak_bytes = 0
        self.residual_bytes = 0
        self.output_bytes = 0
        self.parameters = 0
        self.float_ops = 0
        self.run_count = 0
        self.definition_count = 0

    def add(self, other: Stats) -> None:
        """Adds every figure of ``other``."""
        self.exec_micros += other.exec_micros
        self.accelerator_exec_micros += other.accelerator_exec_micros
        self.cpu_exec_micros += other.cpu_exec_micros
        self.requested_bytes += other.requested_bytes
        self.peak_bytes += other.peak_bytes
        self.residual_bytes += other.residual_bytes
        self.output_bytes += other.output_bytes
        self.parameters += other.parameters
        self.float_ops += other.float_ops
        self.run_count += other.run_count
        self.definition_count += other.definition_count

    def divide(self, steps: int) -> None:
        """Makes times, bytes and runs of several steps averages, rounded down."""
        for figure in _OF_A_STEP:
            setattr(self, figure, getattr(self, figure) // steps)

    def plus(self, parts: Iterable[Stats]) -> Stats:
        """The sum of itself and ``parts``; itself where there are none."""
        return self.total(chain((self,), parts))

    @classmethod
    def total(cls, parts: Iterable[Stats]) -> Stats:
        """The sum of ``parts``; the part itself where there is but one, so nobody may add to what this answers."""
        pending = iter(parts)
        sum_ = next(pending, NOTHING)
        second = next(pending, None)
        if second is None:
            return sum_
        first, sum_ = sum_, cls()
        sum_.add(first)
        sum_.add(second)
        for part in pending:
            sum_.add(part)
        return sum_


_OF_A_STEP = (
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "exec_micros",
    "output_bytes",
    "peak_bytes",
    "requested_bytes",
    "residual_bytes",
    "run_count",
)

NOTHING = Stats()
"""All figures are 0, and stay so."""
