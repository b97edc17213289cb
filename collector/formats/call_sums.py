"""Sums of GPU work by call path, as in a profile without start times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from collector.errors import InvalidFileError
from collector.recording.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NO_TIMES = "this profile holds sums without start times"


class CallSum(NamedTuple):
    """The sums of one node of the tree of calls."""

    path: tuple[str, ...]
    """Names of the frames around the node and its own, the outermost first."""
    device_type: str
    """``CUDA`` or ``HIP``; ``""``: none is stated."""
    device_id: int
    runs: int
    """Runs on the device; 0 for a scope for which only figures stated by the program are known."""
    total_ns: int
    """Sum of their durations."""
    num_bytes: int
    """Bytes that the program stated for all runs together; 0: none."""
    flops: int
    """Floating-point operations that the program stated for all runs together; 0: none."""


class SummedDevice(NamedTuple):
    """A device that the profile describes; values that it does not state are 0."""

    device_type: str
    device_id: int
    architecture: str
    """Compute capability without its point (``86``), or AMD's name of it."""
    num_multiprocessors: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int


@dataclass(frozen=True)
class CallSums:
    """The content of one profile without start times."""

    path: Path
    """The file."""
    rows: Sequence[CallSum]
    """The nodes with a figure, from the outermost on, in the order of the file."""
    devices: Sequence[SummedDevice] = ()
    num_nodes: int = 0
    """Nodes of the tree, with and without figures."""
    depth: int = 0
    """Nodes on the longest path from the root."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Part of the file that was left out or repaired -> how often."""

    @property
    def kernels(self) -> list[CallSum]:
        """The nodes that ran on a device."""
        return [row for row in self.rows if row.runs]

    @cached_property
    def ledger(self) -> Ledger:
        """The losses: a profile of sums states none itself, so these are the parts that were not read."""
        return Ledger(unread=dict(self.unread))

    @property
    def refusal(self) -> InvalidFileError:
        """The error for an operation that needs start times."""
        remedy = "Ask collector prof, collector summary, or collector stats --question kernels or ops"
        return InvalidFileError(f"{self.path}: {NO_TIMES}", remedy)
