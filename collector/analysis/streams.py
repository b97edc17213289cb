"""Time of each stream, and its concurrency with other streams: ``collector.analysis.streams(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import by_device, repetitions
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import ratio
from collector.analysis.evidence import activities_of
from collector.analysis.named_question import named_question
from collector.analysis.stream_numbers import STREAM_COLUMNS, StreamNumbers
from collector.recording.intervals import GroupTimes
from collector.recording.stream_names import stream_names

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "streams",
    "A stream is busy while at least one kernel, copy, memset or whole graph runs on it, and alone while none runs on "
    "another stream of its device; the rest of its busy time is concurrent with other streams.",
    (
        *STREAM_COLUMNS,
        Column("activities", "count", "Number of kernels, copies, memsets and launches of whole graphs."),
        Column("total_ns", "ns", "Sum of their durations."),
        Column("busy_ns", "ns", "Time of the step in which at least one ran."),
        Column(
            "busy_share",
            "share",
            "busy_ns divided by the device's busy time; shares of concurrent streams add up to more.",
        ),
        Column("alone_ns", "ns", "Busy time in which no other stream of the device was busy."),
        Column("concurrent_ns", "ns", "The rest of the busy time."),
        Column("concurrent_share", "share", "concurrent_ns divided by busy_ns."),
    ),
    summed=("activities", "total_ns"),
    counts_graphs=True,
)


@named_question(QUESTION, by_alone={"stream": ""})
def streams(steps: Asked) -> Answer:
    """Time of each stream, and the part of it that was concurrent with other streams of its device.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _part)


def _part(recording: Recording) -> Part:
    names = stream_names(recording)
    rows, windows, places = [], [], []
    for _device, work, window in by_device(recording, "step"):
        windows.append(window)
        known, numbers = StreamNumbers.of(recording, work)
        starts, ends = (np.clip(times, window.start_ns, window.end_ns) for times in (work.start_ns, work.end_ns))
        times = GroupTimes.of(numbers, starts, ends, len(known))
        busy_ns = work.union(window=window).length
        counts = np.bincount(numbers, minlength=len(known))
        totals = np.zeros(len(known), np.int64)
        np.add.at(totals, numbers, work.end_ns - work.start_ns)
        for number in np.flatnonzero(counts).tolist():
            covered, alone = int(times.covered[number]), int(times.alone[number])
            shared = covered - alone
            figures = (int(counts[number]), int(totals[number]), covered, ratio(covered, busy_ns), alone, shared)
            rows.append((*known[number], names.get(known[number], ""), *figures, ratio(shared, covered)))
            places.append({f"{name}_id": value for name, value in known[number]._asdict().items()})
    return Part(rows, windows, activities_of(recording, places), repetitions(recording))
