"""Busy time of each device by class of activity: ``collector.analysis.devices(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import WorkClass, repetitions
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import EXPOSURE, DeviceTimes, device_times, ratio
from collector.analysis.evidence import activities_of
from collector.analysis.named_question import named_question

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "devices",
    "A device is busy while at least one kernel, copy, memset or whole graph runs on it; compute, exposed graphs, "
    "exposed communication, exposed copies and exposed memsets add up to busy, busy and idle to the window.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("window_ns", "ns", "Length of the window."),
        Column("busy_ns", "ns", "Time in which anything ran on the device."),
        Column("idle_ns", "ns", "Rest of the window."),
        Column("busy_share", "share", "Busy time divided by the length of the window."),
        Column("compute_ns", "ns", "Time in which a kernel ran that is not of NCCL or RCCL."),
        Column("communication_ns", "ns", "Time in which a kernel of NCCL or RCCL ran."),
        Column("copy_ns", "ns", "Time in which a copy ran."),
        Column("memset_ns", "ns", "Time in which a memset ran."),
        Column("graph_ns", "ns", "Time in which a CUDA graph ran that was recorded as a whole."),
        Column("overlap_ns", "ns", "Time in which both compute and communication ran."),
        Column("exposed_graph_ns", "ns", "Whole graphs while no compute ran."),
        Column("exposed_communication_ns", "ns", "Communication while neither compute nor a whole graph ran."),
        Column("exposed_copy_ns", "ns", "Copies while neither a kernel nor a whole graph ran."),
        Column("exposed_memset_ns", "ns", "Memsets while nothing else ran."),
        Column("mean_concurrency", "ratio", "Mean number of activities that ran at once, over the window."),
        Column("max_concurrency", "count", "Largest number of activities that ran at once."),
        Column("activities", "count", "Number of kernels, copies, memsets and launches of whole graphs."),
    ),
    summed=("window_ns", "busy_ns", "idle_ns", "activities"),
    counts_graphs=True,
)


@named_question(QUESTION, in_overview=True, aliases={"gpu_time_util": "", "temporal_breakdown": ""})
def devices(steps: Asked, *, window: str = "step") -> Answer:
    """Busy and idle time of each device by class of activity.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        window: ``step`` for the whole step, or ``span``, from the first to the last activity of each device.

    Raises:
        ValueError: there is no such window.
    """
    return QUESTION.ask(steps, lambda recording: _part(recording, window))


def _part(recording: Recording, window: str) -> Part:
    found = device_times(recording, window)
    rows = [(times.device, *_row(times)) for times in found]
    evidence = activities_of(recording, [{"device_id": times.device} for times in found])
    return Part(rows, [times.window for times in found], evidence, repetitions(recording))


def _row(times: DeviceTimes) -> tuple[float, ...]:
    window_ns, busy_ns = times.window.length_ns, times.busy_ns
    return (
        window_ns,
        busy_ns,
        window_ns - busy_ns,
        ratio(busy_ns, window_ns),
        *(times.ran(each) for each in WorkClass),
        times.ran(WorkClass.COMPUTE, WorkClass.COMMUNICATION),
        *(times.exposed(each) for each in EXPOSURE[1:]),
        times.mean_concurrency,
        int(np.flatnonzero(times.by_number).max(initial=0)),
        times.activities,
    )
