"""Number of activities that ran at once, and its duration: ``collector.analysis.concurrency(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.activities import repetitions
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.device_times import device_times, ratio
from collector.analysis.evidence import activities_of
from collector.analysis.named_question import named_question

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

QUESTION = Question(
    "concurrency",
    "Time of the window in which exactly this number of kernels, copies, memsets and whole graphs ran at once on a "
    "device. An end comes before a start at the same moment, and the times of a device add up to the window.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("running", "count", "Number of activities that ran at once."),
        Column("duration_ns", "ns", "Time in which exactly this number ran."),
        Column("share", "share", "duration_ns divided by the length of the window."),
        Column("busy_share", "share", "duration_ns divided by the busy time; 0 for the row of the idle time."),
    ),
    summed=("duration_ns",),
    counts_graphs=True,
)


@named_question(QUESTION)
def concurrency(steps: Asked, *, window: str = "step") -> Answer:
    """Time in which each number of activities ran at once, for each device.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        window: ``step`` for the whole step, or ``span``, from the first to the last activity of each device.

    Raises:
        ValueError: there is no such window.
    """
    return QUESTION.ask(steps, lambda recording: _part(recording, window))


def _part(recording: Recording, window: str) -> Part:
    found = device_times(recording, window)
    rows = [
        (
            times.device,
            running,
            duration_ns,
            ratio(duration_ns, times.window.length_ns),
            ratio(duration_ns, times.busy_ns) if running else 0.0,
        )
        for times in found
        for running, duration_ns in enumerate(times.by_number.tolist())
        if duration_ns
    ]
    evidence = activities_of(recording, [{"device_id": row[0]} for row in rows])
    return Part(rows, [times.window for times in found], evidence, repetitions(recording))
