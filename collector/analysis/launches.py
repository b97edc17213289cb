"""Delays between launches and the start of their work: ``collector.analysis.launches(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.duration_groups import lower_median
from collector.analysis.evidence import Evidence
from collector.analysis.named_question import named_question
from collector.analysis.stream_numbers import STREAM_COLUMNS, stream_name_keys
from collector.recording.api_functions import plain_api_name
from collector.recording.distinct import distinct_codes
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.analysis.evidence import Rows
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

_DEFINITION = (
    "The delay of an activity is its start minus the start of the call that launched it; its time in the queue begins "
    "when that call returned. A call may launch several activities, as a graph launch does; a graph that was recorded "
    "as a whole is one. Where the clocks of host and device disagree, delays can be negative."
)
QUESTION = Question(
    "launches",
    _DEFINITION,
    (
        Column("api", "text", "Function that was called, without its version suffix."),
        Column("calls", "count", "Number of its calls that launched something."),
        Column("activities", "count", "Number of kernels, copies, memsets and whole graphs that they launched."),
        Column("api_ns", "ns", "Sum of the durations of these calls."),
        Column("min_delay_ns", "ns", "Shortest delay; negative where the clocks disagree."),
        Column("median_delay_ns", "ns", "Median of the delays; of an even number of delays the lower middle one."),
        Column("max_delay_ns", "ns", "Longest delay."),
        Column(
            "min_queue_ns",
            "ns",
            "Shortest time in the queue; negative where an activity began before the call returned.",
        ),
        Column(
            "median_queue_ns",
            "ns",
            "Median of the times in the queue, which count as 0 where an activity began before the call returned.",
        ),
        Column(
            "max_queue_ns", "ns", "Longest time in the queue; 0 where all activities began before the call returned."
        ),
    ),
    summed=("calls", "activities", "api_ns"),
    otherwise="No call that launched them is in the recording.",
    counts_graphs=True,
)
DELAYS = Question(
    "launch_delays",
    _DEFINITION,
    (
        Column("table", "text", "Table of the activity."),
        Column("row", "number", "Row of the activity in its table."),
        *STREAM_COLUMNS,
        Column("api_row", "number", "Row of the call in ``api_calls``."),
        Column("api_ns", "ns", "Duration of the call."),
        Column("delay_ns", "ns", "Start of the activity minus start of the call."),
        Column("queue_ns", "ns", "Start of the activity minus end of the call; 0 where it began before that end."),
    ),
    otherwise="No call that launched them is in the recording.",
    counts_graphs=True,
)


@named_question(QUESTION, in_overview=True, counts=("api_calls",), aliases={"cuda_kern_exec_sum": ""})
def launches(steps: Asked) -> Answer:
    """Calls that launched something by function: their number, their time, and the delays until the work began.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return QUESTION.ask(steps, _by_function)


@named_question(DELAYS, aliases={"cuda_kern_exec_trace": "", "cuda_kernel_launch_stats": ""})
def launch_delays(steps: Asked) -> Answer:
    """The delay of each activity whose call was recorded, in order of devices and of starts.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
    """
    return DELAYS.ask(steps, _by_activity)


def _by_activity(recording: Recording) -> Part:
    work, launch_rows = _launched(recording)
    starts, ends = _call_times(recording, launch_rows)
    places = {name: work.column(name).astype(np.int64) for name in ("device_id", "context_id", "stream_id")}
    delays: dict[str, npt.NDArray[Any]] = {
        "table": np.array(LAUNCHED_TABLES, object)[work.table],
        "row": work.row,
        **places,
        "stream_name": stream_name_keys(recording, *places.values()).column(),
        "api_row": launch_rows,
        "api_ns": ends - starts,
        "delay_ns": work.start_ns - starts,
        "queue_ns": np.maximum(work.start_ns - ends, 0),
    }

    def rows_of(place: int) -> Rows:
        return {**work.at(np.array([place])).rows_by_table(), "api_calls": launch_rows[[place]]}

    return Part(delays, (), Evidence(len(work), rows_of))


def _launched(recording: Recording) -> tuple[Activities, Numbers]:
    """The activities whose call was recorded, and the rows of these calls."""
    work = Activities.with_graphs(recording)
    rows = work.launch_rows()
    return work.where(rows >= 0), rows[rows >= 0]


def _call_times(recording: Recording, rows: Numbers) -> tuple[Numbers, Numbers]:
    return recording.api_calls.start_ns[rows], recording.api_calls.end_ns[rows]


def _by_function(recording: Recording) -> Part:
    work, launch_rows = _launched(recording)
    starts, ends = _call_times(recording, launch_rows)
    calls = recording.api_calls
    ids, index = distinct_codes(calls.name_id[launch_rows])
    names = [plain_api_name(calls.text(number)) for number in ids.tolist()]
    rows, evidence = [], []
    for name in dict.fromkeys(names):
        own = np.array([each == name for each in names])[index]
        is_called = np.zeros(len(calls), bool)
        is_called[launch_rows[own]] = True
        api_rows = np.flatnonzero(is_called)
        activities = work.where(own)
        delay, since_return = activities.start_ns - starts[own], activities.start_ns - ends[own]
        queue = np.maximum(since_return, 0)
        figures = (
            len(api_rows),
            len(activities),
            int((calls.end_ns[api_rows] - calls.start_ns[api_rows]).sum()),
            int(delay.min()),
            lower_median(delay),
            int(delay.max()),
            int(since_return.min()),
            lower_median(queue),
            int(queue.max()),
        )
        rows.append((name, *figures))
        evidence.append((api_rows, activities))
    order = sorted(range(len(rows)), key=lambda place: (-rows[place][2], rows[place][0]))

    def rows_of(place: int) -> Rows:
        api_rows, activities = evidence[order[place]]
        return {"api_calls": api_rows, **activities.rows_by_table()}

    return Part([rows[place] for place in order], (), Evidence(len(rows), rows_of))
