"""Overlap of communication and copies with computation: ``collector.analysis.overlap(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import WorkClass, by_device, repetitions
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.device_times import device_times, ratio
from collector.analysis.evidence import activities_of
from collector.analysis.named_question import named_question
from collector.analysis.stream_numbers import STREAM_NAME, StreamNumbers
from collector.recording.collective_rows import collective_rows
from collector.recording.distinct import distinct_codes
from collector.recording.intervals import GroupTimes, Union
from collector.recording.stream_names import stream_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from collector.analysis.activities import Activities
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    _Key = tuple[int | str, ...]
    Numbers = npt.NDArray[np.int64]

SEVERAL = -1
"""The stream of the row for the time in which several streams communicated at once."""
SEVERAL_GROUPS = "(several groups)"
"""The group of the row for the time in which several process groups communicated at once."""
NO_GROUP = "(no group)"
"""The group of kernels whose process group the recording does not state."""

_DEVICE = Column("device_id", "number", "CUDA device ordinal.")
_COMMUNICATION = (
    Column("kernels", "count", "Number of kernels of NCCL or RCCL."),
    Column("communication_ns", "ns", "Time in which at least one of them ran."),
    Column("hidden_ns", "ns", "Part of this time in which compute or a whole graph ran."),
    Column("hidden_communication", "share", "hidden_ns divided by communication_ns."),
    Column("exposed_ns", "ns", "Part of this time in which neither ran."),
)
QUESTIONS = {
    "device": Question(
        "overlap",
        "A whole graph is exposed while no compute kernel runs, communication while neither of them does, a copy while "
        "no kernel and no whole graph runs, a memset while nothing else does; compute and the exposed parts add up to "
        "busy.",
        (
            _DEVICE,
            Column("busy_ns", "ns", "Time in which anything ran on the device."),
            Column("compute_ns", "ns", "Time in which a kernel ran that is not of NCCL or RCCL."),
            Column("exposed_graph_ns", "ns", "Whole graphs while no compute ran."),
            Column("exposed_communication_ns", "ns", "Communication while neither compute nor a whole graph ran."),
            Column("exposed_copy_ns", "ns", "Copies while neither a kernel nor a whole graph ran."),
            Column("exposed_memset_ns", "ns", "Memsets while nothing else ran."),
            Column("communication_ns", "ns", "Time in which a kernel of NCCL or RCCL ran."),
            Column(
                "hidden_communication",
                "share",
                "Communication while compute or a whole graph ran, divided by all communication.",
            ),
            Column("copy_ns", "ns", "Time in which a copy ran."),
            Column("hidden_copy", "share", "Copies while a kernel or a whole graph ran, divided by all copies."),
            Column("compute_communication_ns", "ns", "Time in which both compute and communication ran."),
            Column("compute_copy_ns", "ns", "Time in which both compute and a copy ran."),
            Column("communication_copy_ns", "ns", "Time in which both communication and a copy ran."),
            Column("graph_ns", "ns", "Time in which a CUDA graph ran that was recorded as a whole."),
        ),
        summed=(
            *("busy_ns", "compute_ns", "exposed_graph_ns"),
            *("exposed_communication_ns", "exposed_copy_ns", "exposed_memset_ns"),
        ),
        counts_graphs=True,
    ),
    "stream": Question(
        "overlap",
        "Communication by stream; NCCL and RCCL give each communicator a stream of its own. It is exposed while "
        "neither a compute kernel nor a whole graph runs on the device, and the times exposed alone add up to the "
        "device's exposed communication.",
        (
            _DEVICE,
            Column("context_id", "number", "CUPTI's context id."),
            Column("stream_id", "number", "CUPTI's stream id; -1: several streams at once."),
            STREAM_NAME,
            *_COMMUNICATION,
            Column("exposed_alone_ns", "ns", "Exposed time in which no other stream communicated."),
        ),
        summed=("kernels", "exposed_alone_ns"),
        otherwise="No kernel is one of NCCL or RCCL.",
        counts_graphs=True,
    ),
    "group": Question(
        "overlap",
        "Communication by process group, as PyTorch's profiler states it; it is exposed while neither a compute kernel "
        "nor a whole graph runs on the device, and the times exposed alone add up to the device's exposed "
        "communication.",
        (
            _DEVICE,
            Column("group", "text", "Name of the process group."),
            *_COMMUNICATION,
            Column("exposed_alone_ns", "ns", "Exposed time in which no other group communicated."),
        ),
        summed=("kernels", "exposed_alone_ns"),
        otherwise="No kernel is one of NCCL or RCCL whose process group is stated.",
        counts_graphs=True,
    ),
}
"""Value of ``by`` -> the question."""


@named_question(QUESTIONS, aliases={"comm_comp_overlap": ""})
def overlap(steps: Asked, *, by: str = "device", window: str = "step") -> Answer:
    """Overlap of compute, communication and copies, and the exposed part of each.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``device``; ``stream`` for communication alone, by the streams of NCCL's or RCCL's communicators; or
            ``group`` for communication by process group, where the recording states it.
        window: ``step`` for the whole step, or ``span``, from the first to the last activity of each device.

    Raises:
        ValueError: there is no such window, or ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "overlap is")
    return question.ask(steps, lambda recording: _PARTS[by](recording, window))


def _by_device(recording: Recording, window: str) -> Part:
    found = device_times(recording, window)
    compute, communication, copy, memset, graph = WorkClass
    rows = []
    for times in found:
        communication_ns, copy_ns = times.ran(communication), times.ran(copy)
        exposed_communication_ns, exposed_copy_ns = times.exposed(communication), times.exposed(copy)
        rows.append(
            (
                times.device,
                times.busy_ns,
                times.ran(compute),
                times.exposed(graph),
                exposed_communication_ns,
                exposed_copy_ns,
                times.exposed(memset),
                communication_ns,
                ratio(communication_ns - exposed_communication_ns, communication_ns),
                copy_ns,
                ratio(copy_ns - exposed_copy_ns, copy_ns),
                times.ran(compute, communication),
                times.ran(compute, copy),
                times.ran(communication, copy),
                times.ran(graph),
            )
        )
    evidence = activities_of(recording, [{"device_id": times.device} for times in found])
    return Part(rows, [times.window for times in found], evidence, repetitions(recording))


def _by_stream(recording: Recording, window: str) -> Part:
    names = stream_names(recording)

    def streams(_: int, collectives: Activities) -> tuple[Sequence[_Key], Numbers]:
        known, numbers = StreamNumbers.of(recording, collectives)
        return [(*stream, names.get(stream, "")) for stream in known], numbers

    return _by_key(recording, window, streams, (SEVERAL, SEVERAL, ""))


def _by_group(recording: Recording, window: str) -> Part:
    stated = _groups_of_kernels(recording)
    name_ids, numbers = distinct_codes(stated)
    names = [recording.strings[name_id] if name_id >= 0 else NO_GROUP for name_id in name_ids.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    places = np.empty(len(names), np.int64)
    places[order] = np.arange(len(names))

    def groups(device: int, collectives: Activities) -> tuple[Sequence[_Key], Numbers]:
        return [(device, names[number]) for number in order], places[numbers[collectives.row]]

    return _by_key(recording, window, groups, (SEVERAL_GROUPS,))


def _groups_of_kernels(recording: Recording) -> Numbers:
    """The name of the process group of each kernel, as an index of the recording's strings; -1: unknown."""
    named = [group if recording.strings[group] else -1 for group in recording.collectives.group_name_id.tolist()]
    found: Numbers = np.array([*named, -1], np.int64)[collective_rows(recording)]
    return found


def _by_key(
    recording: Recording,
    window: str,
    keys_of: Callable[[int, Activities], tuple[Sequence[_Key], Numbers]],
    several: _Key,
) -> Part:
    """Communication by a key of its kernels.

    Args:
        recording: the recording that is asked.
        window: the name of the window.
        keys_of: takes a device and its kernels of communication; returns the keys, each with the device first, and for
            each kernel the index of its key.
        several: the key, without the device, of the time in which kernels of several keys were exposed.
    """
    rows: list[tuple[float | str, ...]] = []
    windows = []
    evidence: list[Mapping[str, npt.NDArray[np.int64]]] = []
    for device, work, own_window in by_device(recording, window):
        windows.append(own_window)
        hiding = work.union(WorkClass.COMPUTE, WorkClass.GRAPH, window=own_window)
        collectives = work.where(work.work_class == WorkClass.COMMUNICATION)
        known, numbers = keys_of(device, collectives)
        exposed: dict[int, Union] = {}
        for number in np.flatnonzero(np.bincount(numbers, minlength=len(known))).tolist():
            own = collectives.where(numbers == number)
            covered = own.union(window=own_window)
            exposed[number] = covered.without(hiding)
            hidden_ns = covered.length - exposed[number].length
            figures = (covered.length, hidden_ns, ratio(hidden_ns, covered.length), exposed[number].length)
            rows.append((*known[number], len(own), *figures))
            evidence.append(own.rows_by_table())
        groups = np.repeat(list(exposed), [len(each.starts) for each in exposed.values()])
        starts, ends = (np.concatenate([numbers[:0], *(each[side] for each in exposed.values())]) for side in (0, 1))
        alone = GroupTimes.of(groups, starts, ends, len(known)).alone
        first = len(rows) - len(exposed)
        rows[first:] = [(*row, int(alone[number])) for row, number in zip(rows[first:], exposed, strict=True)]
        all_exposed = collectives.union(window=own_window).without(hiding).length
        if both_ns := all_exposed - int(alone.sum()):
            rows.append((device, *several, 0, both_ns, 0, 0.0, both_ns, both_ns))
            evidence.append({})
    return Part(rows, windows, evidence, repetitions(recording))


_PARTS = {"device": _by_device, "stream": _by_stream, "group": _by_group}
