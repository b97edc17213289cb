"""How long launches took until their work began: ``collector.analysis.launches(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.recording.api_functions import plain_api_name
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

_DEFINITION = (
    "The delay of an activity is its start minus the start of the call that launched it; its time in the queue begins "
    "when that call returned. A call may launch several activities, as that of a graph does. Clocks that disagree make "
    "negative delays."
)
QUESTION = Question(
    "launches",
    _DEFINITION,
    (
        Column("api", "text", "Function that was called, without its version."),
        Column("calls", "count", "Calls of it that launched something."),
        Column("activities", "count", "Kernels, copies and memsets that they launched."),
        Column("api_ns", "ns", "Time in these calls."),
        Column("min_delay_ns", "ns", "Shortest delay; below 0 where the clocks disagree."),
        Column("median_delay_ns", "ns", "Median of the delays, of an even number the lower one."),
        Column("max_delay_ns", "ns", "Longest delay."),
        Column("median_queue_ns", "ns", "Median of the times in the queue; 0 for what began before the call returned."),
        Column("max_queue_ns", "ns", "Longest time in the queue."),
    ),
    summed=("calls", "activities", "api_ns"),
)
DELAYS = Question(
    "launch_delays",
    _DEFINITION,
    (
        Column("table", "text", "Table of the activity."),
        Column("row", "number", "Its row there."),
        Column("device_id", "number", "CUDA's number of the device."),
        Column("stream_id", "number", "CUPTI's number of the stream."),
        Column("api_row", "number", "Row of the call in ``api_calls``."),
        Column("api_ns", "ns", "Time in the call."),
        Column("delay_ns", "ns", "Start of the activity minus start of the call."),
        Column("queue_ns", "ns", "Start of the activity minus end of the call; 0 if it began before."),
    ),
)


def launches(steps: Asked) -> Answer:
    """Calls that launched something, by function: how many, how long, and how long until the work began.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _by_function)


def launch_delays(steps: Asked) -> Answer:
    """The delay of each activity whose call was recorded, in order of the activities' starts."""
    return DELAYS.ask(steps, lambda recording: Part(_delays(recording)))


def _delays(recording: Recording) -> dict[str, npt.NDArray[Any]]:
    work = Activities.of(recording)
    work = work.where(work.launch_row >= 0)
    starts, ends = (getattr(recording.api_calls, name)[work.launch_row] for name in ("start_ns", "end_ns"))
    return {
        "table": np.array(ACTIVITY_TABLES, object)[work.table],
        "row": work.row,
        "device_id": work.device_id,
        "stream_id": work.stream_id,
        "api_row": work.launch_row,
        "api_ns": ends - starts,
        "delay_ns": work.start_ns - starts,
        "queue_ns": np.maximum(work.start_ns - ends, 0),
    }


def _by_function(recording: Recording) -> Part:
    delays = _delays(recording)
    calls = recording.api_calls
    names = [plain_api_name(name) for name in calls[delays["api_row"]].recorded_names()]
    distinct, index = np.unique(np.array(names, str), return_inverse=True)
    rows, evidence = [], []
    for place, name in enumerate(distinct.tolist()):
        own = np.flatnonzero(index == place)
        api_rows = np.unique(delays["api_row"][own])
        spent = int((calls.end_ns[api_rows] - calls.start_ns[api_rows]).sum())
        delay, queue = delays["delay_ns"][own], delays["queue_ns"][own]
        rows.append(
            (
                name,
                len(api_rows),
                len(own),
                spent,
                int(delay.min()),
                lower_median(delay),
                int(delay.max()),
                lower_median(queue),
                int(queue.max()),
            )
        )
        tables = delays["table"][own]
        evidence.append(
            {"api_calls": api_rows}
            | {
                table: np.sort(delays["row"][own][tables == table])
                for table in ACTIVITY_TABLES
                if (tables == table).any()
            }
        )
    order = sorted(range(len(rows)), key=lambda place: (-rows[place][2], rows[place][0]))
    return Part([rows[place] for place in order], (), [evidence[place] for place in order])


def lower_median(values: npt.NDArray[Any]) -> int:
    """The median of whole numbers, which is one of them: of an even number the lower of the two in the middle."""
    return int(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])
