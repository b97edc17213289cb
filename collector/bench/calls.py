"""The GPU work of one call of an arm, from a recording: exactly the activities launched inside that call.

Each call has its own annotation, so that its kernels, copies and memsets are found by CUPTI's external correlation, and
not by their time. An annotation names the launches of its own thread. A call may launch from other threads, as a
backward pass of PyTorch does: these launches are found by their times, because calls follow one another and each waits
until the GPU is idle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.distinct import distinct_values
from collector.recording.intervals import covered_by_group
from collector.recording.kernel_names import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording

_PREFIX = "bench-call-"
_CALL = re.compile(rf"{_PREFIX}(\d+)(?:/|$)")


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
    """Waits of the thread that made the call."""


NOTHING = CallActivity(0, 0, (), {}, 0, 0, 0, 0)
"""The work of a call without any activity."""


def activities_of_calls(recording: Recording, count: int) -> list[CallActivity]:
    """Return the activities of each of the calls 0 to ``count`` - 1; see `call_name`."""
    kernels, memcpys, memsets = recording.kernels, recording.memcpys, recording.memsets
    call_of_string = _call_of_string(recording.strings)

    call_at = _call_at(recording, call_of_string)

    def annotated(correlation_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """For each correlation id the number of the call whose thread made it, -1 for others."""
        return call_of_string[recording.annotation_ids(correlation_ids)]

    def calls_of(correlation_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """For each correlation id of a launch the number of the call around it, -1 outside all calls."""
        calls = annotated(correlation_ids)
        return np.where(calls < 0, call_at(recording.launch_rows(correlation_ids)), calls)

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
    waits = annotated(recording.synchronizations.correlation_id)  # by time, the harness' own wait is too close
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
        if number := _CALL.match(text):
            found[index] = int(number[1])
    return found


def _call_at(
    recording: Recording, call_of_string: npt.NDArray[np.int64]
) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """A function that returns the number of the call during which each of some API calls began; -1 outside all calls.

    It takes rows in ``api_calls``; -1 means none.
    """
    annotations = recording.annotations
    numbers = call_of_string[annotations.name_id]
    own = np.flatnonzero(numbers >= 0)
    own = own[np.argsort(annotations.start_ns[own], kind="stable")]
    starts, ends, numbers = annotations.start_ns[own], annotations.end_ns[own], numbers[own]
    # Of annotations inside a call, which share its number, the end is no later than the call's.
    ends = np.maximum.accumulate(ends) if len(ends) else ends
    began = recording.api_calls.start_ns

    def call_at(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if not len(own) or not len(began):
            return np.full(len(rows), -1, np.int64)
        times = began[np.maximum(rows, 0)]
        last = np.searchsorted(starts, times, side="right") - 1
        is_inside = (rows >= 0) & (last >= 0) & (times < ends[last])
        return np.where(is_inside, numbers[last], -1)

    return call_at


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
