"""Figures of the GPU work in a part of a test."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import whole_graph_rows
from collector.analysis.copies import MEMSET, bytes_by_kind
from collector.analysis.device_times import device_times
from collector.analysis.stream_numbers import streams_of_rows
from collector.recording.api_functions import ApiRole, have_role
from collector.recording.cupti_enums import ALLOCATION, DEVICE_MEMORY, HOST_WAITS, RELEASE
from collector.recording.distinct import distinct_values
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from collector.recording.recording import Recording

_Stream = tuple[int, int, int]


@dataclass(frozen=True)
class Figures:
    """Counts, bytes and times in ns; `collector.testing.plugin.limits.LIMITS` describes each."""

    device_time_ns: int = 0
    kernel_time_ns: int = 0
    kernels: int = 0
    launches: int = 0
    memcpys: int = 0
    memcpy_bytes: int = 0
    memcpy_htod_bytes: int = 0
    memcpy_dtoh_bytes: int = 0
    memcpy_dtod_bytes: int = 0
    memcpy_ptop_bytes: int = 0
    memsets: int = 0
    memset_bytes: int = 0
    synchronizations: int = 0
    allocations: int = 0
    frees: int = 0
    streams: int = 0
    devices: int = 0
    losses: tuple[str, ...] = ()
    """Reasons why the figures may be too low; empty if no loss is known."""
    stream_keys: frozenset[_Stream] = field(default=frozenset(), repr=False)
    """(device, context, stream) of every stream with work."""

    @property
    def used_gpu(self) -> bool:
        """Whether the part used a GPU."""
        return any(getattr(self, name) for name in NUMBERS)

    def __add__(self, other: Figures) -> Figures:
        """The figures of two parts, one after the other."""
        keys = self.stream_keys | other.stream_keys
        sums = {name: getattr(self, name) + getattr(other, name) for name in NUMBERS}
        sums |= {"streams": len(keys), "devices": len({device for device, _, _ in keys})}
        losses = dict.fromkeys(self.losses + other.losses)
        return Figures(**sums, losses=tuple(losses), stream_keys=keys)

    def as_dict(self) -> dict[str, int]:
        """Every number by its name."""
        return {name: getattr(self, name) for name in NUMBERS}


NUMBERS = tuple(item.name for item in fields(Figures) if item.name not in ("losses", "stream_keys"))
"""The figures that are numbers, in their order."""


def figures_of(recordings: Iterable[Recording]) -> Figures:
    """The figures of several recordings made one after the other."""
    total = Figures()
    for recording in recordings:
        total += _of_one(recording)
    return total


def _of_one(recording: Recording) -> Figures:
    keys: set[_Stream] = set()
    for name in ACTIVITY_TABLES:
        keys.update(streams_of_rows(getattr(recording, name))[0])
    keys.update(streams_of_rows(recording.graph_launches[whole_graph_rows(recording)])[0])
    moved = Counter(bytes_by_kind(recording))
    waits = recording.synchronizations
    return Figures(
        device_time_ns=sum(times.busy_ns for times in device_times(recording, "step")),
        kernel_time_ns=int(recording.kernels.duration_ns.sum()),
        kernels=len(recording.kernels),
        launches=recording.ledger.launches_seen,
        memcpys=len(recording.memcpys),
        memcpy_bytes=sum(moved.values()) - moved[MEMSET],
        memcpy_htod_bytes=moved["HtoD"] + moved["HtoA"],
        memcpy_dtoh_bytes=moved["DtoH"] + moved["AtoH"],
        memcpy_dtod_bytes=moved["DtoD"] + moved["AtoA"] + moved["AtoD"] + moved["DtoA"],
        memcpy_ptop_bytes=moved["PtoP"],
        memsets=len(recording.memsets),
        memset_bytes=moved[MEMSET],
        synchronizations=int(np.isin(waits.sync_type, HOST_WAITS).sum()),
        allocations=_count(recording, ApiRole.ALLOCATION, ALLOCATION),
        frees=_count(recording, ApiRole.RELEASE, RELEASE),
        streams=len(keys),
        devices=len({device for device, _, _ in keys}),
        losses=tuple(recording.ledger.record_losses()),
        stream_keys=frozenset(keys),
    )


def calls_of(recording: Recording, role: ApiRole) -> npt.NDArray[np.int64]:
    """The rows in ``api_calls`` of the successful calls of functions that have ``role``.

    A runtime call and its driver call share a correlation id; the outer call represents both.
    """
    calls = recording.api_calls
    rows = np.flatnonzero(have_role(calls.name_id, recording.strings, role) & (calls.return_value == 0))
    _, first = np.unique(calls.correlation_id[rows], return_index=True)
    return np.sort(rows[first])


def device_memory_rows(recording: Recording, operation: int) -> npt.NDArray[np.int64]:
    """The rows in ``memory_operations`` that allocate or release device memory; none if they were not recorded."""
    table = recording.memory_operations
    return np.flatnonzero((table.operation == operation) & np.isin(table.memory_kind, DEVICE_MEMORY))


def _count(recording: Recording, role: ApiRole, operation: int) -> int:
    """The number of calls: those of allocating functions, plus other calls with a recorded memory operation."""
    called = recording.api_calls.correlation_id[calls_of(recording, role)]
    recorded = recording.memory_operations.correlation_id[device_memory_rows(recording, operation)]
    return len(distinct_values(np.concatenate([called, recorded])))
