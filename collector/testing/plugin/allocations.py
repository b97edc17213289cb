"""Device memory that was allocated and not freed: its place, size and line of code. Pure functions.

CUPTI's records of memory operations identify allocations by their addresses. A call without a record (in a trace of the
test's own that recorded none, or for memory that is mapped by hand) can only be counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.api_functions import ApiRole
from collector.recording.cupti_enums import ALLOCATION, RELEASE
from collector.testing.plugin.figures import (
    calls_of,
    device_memory_rows,
)
from collector.testing.plugin.messages import columns, origins_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from collector.recording.recording import Recording
    from collector.testing.plugin.lines import Lines


@dataclass(frozen=True)
class Allocation:
    """One allocation of device memory."""

    call: str
    """``cudaMalloc``; ``""`` if the call was not recorded."""
    address: int
    num_bytes: int
    device_id: int
    annotation: str
    line: str
    """``tests/test_step.py:31``, or ``""`` if unknown."""


@dataclass(frozen=True)
class Unfreed:
    """Memory that was allocated and not freed."""

    allocations: tuple[Allocation, ...] = ()
    """The allocations with known addresses, in order of time."""
    calls: tuple[str, ...] = ()
    """``2 x cudaMalloc at test_step.py:17``: allocating calls without a record."""
    balance: int = 0
    """The number of these calls minus the freeing calls without a record; at least 0."""

    @property
    def count(self) -> int:
        """The number of allocations that were not freed."""
        return len(self.allocations) + self.balance

    @property
    def num_bytes(self) -> int:
        """Bytes of the allocations with known addresses."""
        return sum(allocation.num_bytes for allocation in self.allocations)

    def lines(self) -> list[str]:
        """A table of the allocations as text, and the calls that could only be counted."""
        rows = [
            (
                f"{one.address:#x}",
                f"{one.num_bytes:,}",
                str(one.device_id),
                one.call or "-",
                one.annotation or "-",
                one.line or "not known",
            )
            for one in sorted(self.allocations, key=lambda one: -one.num_bytes)
        ]
        headers = ("address", "bytes", "device", "call", "annotation", "line")
        table = columns(headers, rows, right=(1, 2)).splitlines() if rows else []
        counted = [*self.calls, f"minus freed allocations: {self.balance}"] if self.balance else []
        return [*(line[2:] for line in table), *counted]


def unfreed(parts: Iterable[tuple[Recording, bool]], lines: Lines | None) -> Unfreed:
    """Return the memory that was allocated in the parts whose allocations count, and freed in no part.

    Args:
        parts: recordings in order of time, each with whether its allocations count; its releases always do.
        lines: the lines of Python code that ran, if they were recorded.
    """
    live: dict[int, Allocation] = {}
    calls: Counter[str] = Counter()
    freed = 0
    for recording, counts in parts:
        _follow(recording, live, allocations_of(recording, lines) if counts else {})
        if counts:
            calls.update(_counted_calls(recording, lines))
        freed += len(_without_record(recording, ApiRole.RELEASE, RELEASE))
    texts = tuple(f"{count} x {text}" for text, count in sorted(calls.items()))
    return Unfreed(tuple(live.values()), texts, max(calls.total() - freed, 0))


def allocations_of(recording: Recording, lines: Lines | None) -> dict[int, Allocation]:
    """The recorded allocations of device memory: row in ``memory_operations`` -> allocation."""
    rows = device_memory_rows(recording, ALLOCATION)
    operations = recording.memory_operations[rows]
    facts = zip(operations.address.tolist(), operations.num_bytes.tolist(), operations.device_id.tolist(), strict=True)
    return {
        row: Allocation(origin.call, address, num_bytes, device, origin.annotation, origin.line)
        for row, (address, num_bytes, device), origin in zip(
            rows.tolist(), facts, origins_of(recording, operations, lines), strict=True
        )
    }


def _follow(recording: Recording, live: dict[int, Allocation], made: dict[int, Allocation]) -> None:
    """Remove the releases of ``recording`` from ``live``, address -> allocation, and add its allocations."""
    operations = recording.memory_operations  # sorted by time
    addresses = operations.address.tolist()
    released = set(np.flatnonzero(operations.operation == RELEASE).tolist())
    for row in sorted(released | made.keys()):
        if row in released:
            live.pop(addresses[row], None)
        else:
            live[addresses[row]] = made[row]


def _counted_calls(recording: Recording, lines: Lines | None) -> Iterable[str]:
    calls = recording.api_calls[_without_record(recording, ApiRole.ALLOCATION, ALLOCATION)]
    for origin in origins_of(recording, calls, lines):
        where = " ".join(filter(None, [origin.line, f"({origin.annotation})" if origin.annotation else ""]))
        yield f"{origin.call} at {where or 'a line that is not known'}"


def _without_record(recording: Recording, role: ApiRole, operation: int) -> npt.NDArray[np.int64]:
    """The rows in ``api_calls`` of calls with this role whose memory operation was not recorded."""
    rows = calls_of(recording, role)
    recorded = recording.memory_operations.correlation_id[device_memory_rows(recording, operation)]
    return rows[~np.isin(recording.api_calls.correlation_id[rows], recorded)]
