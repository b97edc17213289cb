"""The GPU work of one call of an arm, from a recording: exactly the activities launched inside that call.

Each call has its own annotation, so that its kernels, copies and memsets are found by CUPTI's external correlation, and
not by their time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.distinct import distinct_values
from collector.recording.intervals import covered_by_group
from collector.recording.kernel_names import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording

_PREFIX = "bench-call-"


def call_name(index: int) -> str:
    """The annotation of the call with this number."""
    return f"{_PREFIX}{index}"


@dataclass(frozen=True)
class CallActivity:
    """The part of a recording that belongs to one call. Times are ns."""

    busy_ns: int
    """Time in which at least one of its activities ran: the union of their intervals, so that overlap counts once."""
    span_ns: int
    """From the start of its first activity to the end of its last one, including gaps."""
    kernels: tuple[str, ...]
    """Short names of its kernels, in the order of their starts."""
    kernel_ns: Mapping[str, int]
    """Total time of its kernels by short name."""
    copies: int
    memsets: int
    launches: int
    """API calls that launched its kernels; the launch of a graph of many kernels counts once."""
    synchronizations: int


NOTHING = CallActivity(0, 0, (), {}, 0, 0, 0, 0)
"""The work of a call without any activity."""


def activities_of_calls(recording: Recording, count: int) -> list[CallActivity]:
    """Return the activities of each of the calls 0 to ``count`` - 1; see `call_name`."""
    kernels, memcpys, memsets = recording.kernels, recording.memcpys, recording.memsets
    call_of_string = _call_of_string(recording.strings)

    def calls_of(correlation_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """For each correlation id the number of the call around it, -1 outside all calls."""
        return call_of_string[recording.annotation_ids(correlation_ids)]

    kernel_calls = calls_of(kernels.correlation_id)
    parts = [
        (kernel_calls, kernels.start_ns, kernels.end_ns),
        *((calls_of(table.correlation_id), table.start_ns, table.end_ns) for table in (memcpys, memsets)),
    ]
    calls, starts, ends = (np.concatenate([part[column] for part in parts]) for column in range(3))
    busy, span = _busy_and_span(calls, starts, ends, count)
    names = [short_name(name) for name in recording.strings] if len(kernels) else []
    by_call = _by_call(kernel_calls, kernels.start_ns, count)
    copies = np.bincount(parts[1][0][parts[1][0] >= 0], minlength=count)
    sets = np.bincount(parts[2][0][parts[2][0] >= 0], minlength=count)
    of_launches = calls_of(distinct_values(kernels.correlation_id))
    launches = np.bincount(of_launches[of_launches >= 0], minlength=count)
    waits = calls_of(recording.synchronizations.correlation_id)
    synchronizations = np.bincount(waits[waits >= 0], minlength=count)
    durations, name_ids = kernels.duration_ns, kernels.name_id
    result = []
    for call in range(count):
        rows = by_call[call]
        ordered = tuple(names[index] for index in name_ids[rows].tolist())
        kernel_ns: dict[str, int] = {}
        for name, duration in zip(ordered, durations[rows].tolist(), strict=True):
            kernel_ns[name] = kernel_ns.get(name, 0) + duration
        result.append(
            CallActivity(
                busy_ns=int(busy[call]),
                span_ns=int(span[call]),
                kernels=ordered,
                kernel_ns=kernel_ns,
                copies=int(copies[call]),
                memsets=int(sets[call]),
                launches=int(launches[call]),
                synchronizations=int(synchronizations[call]),
            )
        )
    return result


def _call_of_string(strings: Sequence[str]) -> npt.NDArray[np.int64]:
    """For each string the number of the call whose annotation it is or begins with; -1 for others, and at the end."""
    found = np.full(len(strings) + 1, -1, np.int64)  # the last one means no annotation
    for index, text in enumerate(strings):
        if text.startswith(_PREFIX):
            found[index] = int(text.split("/", 1)[0][len(_PREFIX) :])
    return found


def _by_call(calls: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], count: int) -> list[npt.NDArray[np.int64]]:
    """Rows of each call, sorted by start."""
    order = np.lexsort((starts, calls))
    edges = np.searchsorted(calls[order], np.arange(count + 1))
    return [order[edges[call] : edges[call + 1]] for call in range(count)]


def _busy_and_span(
    calls: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    inside = calls >= 0
    calls, starts, ends = calls[inside], starts[inside], ends[inside]
    busy = covered_by_group(calls, starts, ends, count)
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, calls, starts)
    np.maximum.at(last, calls, ends)
    span = np.zeros(count, np.int64)
    used = last > np.iinfo(np.int64).min
    span[used] = last[used] - first[used]
    return busy, span
