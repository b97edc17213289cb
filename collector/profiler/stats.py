"""The figures of a node, and their sums."""

from __future__ import annotations

from collections.abc import Iterable


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

    def plus(self, parts: Iterable[Stats]) -> Stats:
        """The sum of itself and ``parts``; itself where there are none."""
        sum_ = self
        for part in parts:
            if sum_ is self:
                sum_ = Stats.total((self,))
            sum_.add(part)
        return sum_

    @classmethod
    def total(cls, parts: Iterable[Stats]) -> Stats:
        """The sum of ``parts``."""
        sum_ = cls()
        for part in parts:
            sum_.add(part)
        return sum_
