"""How busy each device was, and with what: ``collector.analysis.devices(step)``."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities, WorkClass, by_device
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.recording.intervals import Union

if TYPE_CHECKING:
    from collector.analysis.answer import Answer, Window
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "devices",
    "A device is busy while at least one kernel, copy or memset runs on it; compute, exposed communication, exposed "
    "copies and exposed memsets add up to busy, busy and idle to the window.",
    (
        Column("device_id", "number", "CUDA's number of the device."),
        Column("window_ns", "ns", "Length of the window."),
        Column("busy_ns", "ns", "Time in which anything ran on the device."),
        Column("idle_ns", "ns", "Rest of the window."),
        Column("busy_share", "share", "Busy time by the window's length."),
        Column("compute_ns", "ns", "Time in which a kernel ran that is none of NCCL's or RCCL's."),
        Column("communication_ns", "ns", "Time in which a kernel of NCCL or RCCL ran."),
        Column("copy_ns", "ns", "Time in which a copy ran."),
        Column("memset_ns", "ns", "Time in which a memset ran."),
        Column("overlap_ns", "ns", "Time in which both compute and communication ran."),
        Column("exposed_communication_ns", "ns", "Communication while no compute ran."),
        Column("exposed_copy_ns", "ns", "Copies while neither compute nor communication ran."),
        Column("exposed_memset_ns", "ns", "Memsets while nothing else ran."),
        Column("mean_concurrency", "ratio", "Activities that ran at once, on average over the window."),
        Column("max_concurrency", "count", "Activities that ran at once, at most."),
        Column("activities", "count", "Kernels, copies and memsets."),
    ),
    summed=("window_ns", "busy_ns", "idle_ns", "activities"),
)


def devices(steps: Asked, *, window: str = "step") -> Answer:
    """Busy and idle time of each device, by what it did.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        window: ``step``, all of what was recorded, or ``span``, from the first to the last activity of each device.

    Raises:
        ValueError: there is no such window.
    """
    return QUESTION.ask(steps, lambda recording: _part(recording, window))


def _part(recording: Recording, window_name: str) -> Part:
    rows, windows, evidence = [], [], []
    for device, own, window in by_device(recording, window_name):
        windows.append(window)
        rows.append((device, *_row(own, window)))
        evidence.append(own.rows_by_table())
    return Part(rows, windows, evidence)


def _row(work: Activities, window: Window) -> tuple[float, ...]:
    present = frozenset(WorkClass(each) for each in np.flatnonzero(np.bincount(work.work_class)).tolist())

    @cache
    def union_of(classes: frozenset[WorkClass]) -> Union:
        return work.union(*(classes if classes < present else ()), window=window)

    def union(*classes: WorkClass) -> Union:
        chosen = present.intersection(classes)
        return union_of(chosen) if chosen else _NEVER

    busy = union(*WorkClass).length
    compute, communication, copies, memsets = map(union, WorkClass)
    kernels = union(WorkClass.COMPUTE, WorkClass.COMMUNICATION)
    moving = union(WorkClass.COMPUTE, WorkClass.COMMUNICATION, WorkClass.COPY)
    overlap = compute.overlap(communication)
    running, lengths = concurrency(work, window)
    return (
        window.length_ns,
        busy,
        window.length_ns - busy,
        _ratio(busy, window.length_ns),
        *(each.length for each in (compute, communication, copies, memsets)),
        overlap,
        communication.length - overlap,
        _not_in(copies, kernels),
        _not_in(memsets, moving),
        _ratio(int((running * lengths).sum()), window.length_ns),
        int(running[lengths > 0].max(initial=0)),
        len(work),
    )


_NEVER = Union.of(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _not_in(union: Union, other: Union) -> int:
    return union.length - union.overlap(other)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def concurrency(work: Activities, window: Window) -> tuple[np.ndarray, np.ndarray]:
    """How many activities ran at once, from moment to moment of a window.

    Of two moments that are the same an end comes before a start.

    Returns:
        Numbers of activities, and how long (ns) so many ran; in order of time, times of no length left out.
    """
    starts, ends = (np.clip(times, window.start_ns, window.end_ns) for times in (work.start_ns, work.end_ns))
    is_there = ends > starts
    times = np.concatenate([[window.start_ns], starts[is_there], ends[is_there], [window.end_ns]])
    change = np.repeat([0, 1, -1, 0], [1, is_there.sum(), is_there.sum(), 1])
    order = np.argsort(times, kind="stable")
    running = np.cumsum(change[order])[:-1]
    lengths = np.diff(times[order])
    return running[lengths > 0], lengths[lengths > 0]
