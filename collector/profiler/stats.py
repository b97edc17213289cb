"""The figures of a node, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from collector.profiler.attributes import COUNTERS

FIGURES = (*COUNTERS, "run_count", "definition_count")
"""The figures of a node."""

Figures = tuple[int, ...]
"""A number for each of `FIGURES`."""

_ZEROS: Figures = (0,) * len(FIGURES)


def int64(value: int) -> int:
    """``value`` reduced to 64 bits: sums of a damaged step's figures wrap around, as in tfprof."""
    return (value + 2**63) % 2**64 - 2**63


class Stats:
    """Figures that add up: times in microseconds, memory in bytes, counts."""

    __slots__ = FIGURES

    def __init__(self, figures: Figures = _ZEROS) -> None:
        (
            self.exec_micros,
            self.accelerator_exec_micros,
            self.cpu_exec_micros,
            self.requested_bytes,
            self.peak_bytes,
            self.residual_bytes,
            self.output_bytes,
            self.parameters,
            self.float_ops,
            self.run_count,
            self.definition_count,
        ) = figures

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
        """The sum of itself and ``parts``; itself if there are none."""
        return self.total(chain((self,), parts))

    @classmethod
    def total(cls, parts: Iterable[Stats]) -> Stats:
        """The sum of ``parts``. A single part is returned itself, so callers must not change the result."""
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


NOTHING = Stats()
"""All figures are 0 and must stay 0."""


def table(figures: Sequence[Figures]) -> NDArray[np.int64]:
    """The figures of many nodes: a row for each of `FIGURES`, a column for each node."""
    try:
        columns = np.array(figures, np.int64)
    except OverflowError:  # in a damaged step
        columns = np.array([[int64(figure) for figure in node] for node in figures], np.int64)
    return np.ascontiguousarray(columns.T)
