"""Depth of each stream's queue of launched work: ``collector.analysis.queue(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from collector.analysis.activities import Activities, repetitions
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.device_times import ratio
from collector.analysis.evidence import Evidence
from collector.analysis.named_question import named_question
from collector.analysis.shared_values import shared
from collector.analysis.stream_numbers import STREAM_COLUMNS, Stream, StreamNumbers
from collector.recording.distinct import grouped_rows
from collector.recording.intervals import times_by_number
from collector.recording.stream_names import stream_names
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

WITHOUT_CALL = "{:,} activit[y|ies] without a recorded call: when they were queued is not known"
BEFORE_CALL = "{:,} activit[y|ies] began before the call, as the clocks disagree: never queued"
"""Losses of the answers."""
_DEFINITION = (
    "An activity is queued from the start of the call that launched it to its own start; each node of a graph counts, "
    "and a graph that was recorded as a whole counts as one activity. The depth of a stream's queue is the number of "
    "queued activities, from the first call to the last start; of a part of a step those count that ran in it."
)
QUESTIONS = {
    "stream": Question(
        "queue",
        _DEFINITION,
        (
            *STREAM_COLUMNS,
            Column("activities", "count", "Kernels, copies, memsets and whole graphs that followed a recorded call."),
            Column("window_ns", "ns", "Time from the first of their calls to the last of their starts."),
            Column("empty_ns", "ns", "Part of this time in which nothing was queued."),
            Column("empty_share", "share", "empty_ns divided by window_ns."),
            Column("mean_depth", "ratio", "Mean depth over this time."),
            Column("max_depth", "count", "Largest depth."),
        ),
        summed=("activities", "window_ns", "empty_ns"),
        otherwise="No call that launched them is in the recording.",
        counts_graphs=True,
    ),
    "depth": Question(
        "queue",
        _DEFINITION,
        (
            *STREAM_COLUMNS,
            Column("depth", "count", "Number of activities that were queued at once."),
            Column("duration_ns", "ns", "Time in which exactly this number was queued."),
            Column("share", "share", "duration_ns divided by the time from the first call to the last start."),
        ),
        summed=("duration_ns",),
        otherwise="No call that launched them is in the recording.",
        counts_graphs=True,
    ),
}
"""Value of ``by`` -> the question."""


@named_question(QUESTIONS, aliases={"queue_length_summary": ""})
def queue(steps: Asked, *, by: str = "stream") -> Answer:
    """Depth of the queue of each stream: how far the host was ahead.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``stream``, or ``depth`` for the time of each depth.

    Raises:
        ValueError: ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "depths of queues are")
    return question.ask(steps, lambda recording: _part(recording, by))


class _Queue(NamedTuple):
    stream: Stream
    work: Activities
    by_depth: Numbers


def _part(recording: Recording, by: str) -> Part:
    known, called, early = _queued(recording)
    names = stream_names(recording)
    rows: list[tuple[float | str, ...]] = []
    queues: list[_Queue] = []
    for each in _queues(recording, known, called):
        key = (*each.stream, names.get(each.stream, ""))
        by_depth = each.by_depth.tolist()
        length = sum(by_depth)
        if by == "stream":
            mean = ratio(sum(depth * duration for depth, duration in enumerate(by_depth)), length)
            deepest = max((depth for depth, duration in enumerate(by_depth) if duration), default=0)
            figures = (len(each.work), length, by_depth[0], ratio(by_depth[0], length), mean, deepest)
            found: list[tuple[float | str, ...]] = [(*key, *figures)]
        else:
            lasted = ((depth, duration) for depth, duration in enumerate(by_depth) if duration)
            found = [(*key, depth, duration, ratio(duration, length)) for depth, duration in lasted]
        rows += found
        queues += [each] * len(found)
    losses = [*repetitions(recording)]
    if without := len(Activities.with_graphs(recording)) - len(known) - early:
        losses.append(counted(WITHOUT_CALL, without))
    if early:
        losses.append(counted(BEFORE_CALL, early))
    return Part(rows, (), Evidence(len(queues), lambda row: queues[row].work.rows_by_table()), losses)


@shared
def _queued(recording: Recording) -> tuple[Activities, Numbers, int]:
    """The activities that followed their recorded call, the start of the call, and the number that began before it."""
    work = Activities.with_graphs(recording)
    launches = work.launch_rows()
    is_known = launches >= 0
    known, called = work.where(is_known), recording.api_calls.start_ns[launches[is_known]]
    is_queued = called <= known.start_ns
    return known.where(is_queued), called[is_queued], int((~is_queued).sum())


@shared
def _queues(recording: Recording, work: Activities, called: Numbers) -> list[_Queue]:
    streams, numbers = StreamNumbers.of(recording, work)
    order, bounds = grouped_rows(numbers, len(streams))
    queues = []
    for stream, begin, end in zip(streams, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin == end:
            continue
        own = work.at(order[begin:end])
        queued = called[order[begin:end]]
        by_depth = times_by_number(queued, own.start_ns, int(queued.min()), int(own.start_ns.max()))
        queues.append(_Queue(stream, own, by_depth))
    return queues
