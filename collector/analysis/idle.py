"""Idle time of devices by cause: ``collector.analysis.idle(step)``.

Each gap in which nothing ran on a device is attributed to the reason why the activity that ended it did not start
earlier. Either its launch had not been called yet, because the thread that called it waited for the device or did
something else; or the launch had been called during the gap and had not taken effect; or it had been called before the
gap began and waited on the device. The parts of all gaps add up to the idle time to the nanosecond.
"""

from __future__ import annotations

from functools import cache, partial
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, by_device, step_window
from collector.analysis.annotation_paths import NO_ANNOTATION, launch_paths
from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.evidence import Evidence, activities_of, one_row_of_each
from collector.analysis.host_waits import launches_by_thread, thread_waits, wait_rows
from collector.analysis.named_question import named_question
from collector.analysis.process_rows import processes_beside, processes_of_overheads
from collector.analysis.shared_values import is_sharing, shared
from collector.checked_arguments import whole_number
from collector.recording.cupti_enums import LOADING_OVERHEADS
from collector.recording.distinct import descending_order
from collector.recording.idle_causes import IdleTimes, idle_times, idle_times_of_windows
from collector.recording.intervals import Union
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from collector.analysis.answer import Answer, Window
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording
    from collector.recording.thread_waits import ThreadWaits

    Numbers = npt.NDArray[np.int64]

KERNEL_GAP_NS = 2_000
"""A device needs about a microsecond from one kernel to the next; a gap up to this length is attributed to that."""

CAUSES = {
    "synchronize": "The thread that launched the activity that ended the gap waited in a synchronising call before.",
    "host": "The host did something else before it launched the activity that ended the gap.",
    "launch_latency": "The launch was called during the gap, and had not taken effect yet.",
    "kernel_gap": "The launch was called before the gap, which is as short as the time from one kernel to the next.",
    "dependency": "The launch was called before the gap; the activity waited for another stream, an event or a rank.",
    "no_launch": "The launch of the activity that ended the gap is not in the recording.",
    "tail": "Nothing ran in the window after the gap.",
}
"""Cause -> its meaning."""
CAUSE_NAMES = {cause: cause.replace("_", " ") for cause in CAUSES}
"""Cause -> its name in rows and sentences, as the headings of columns have it."""

_CAUSE_COLUMNS = tuple(Column(f"{cause}_ns", "ns", meaning) for cause, meaning in CAUSES.items())
_TRACER_COLUMN = Column(
    "tracer_ns",
    "ns",
    "Time of the gaps in which CUPTI itself ran, by its overhead records but for those of compiling and loading code, "
    "whatever the cause; 0 without such records.",
)
_TIME_COLUMNS = (*_CAUSE_COLUMNS, _TRACER_COLUMN)
_DEFINITION = (
    "A device is idle while no kernel, copy, memset or whole graph runs on it; each gap is attributed to the reason "
    "why the activity that ended it did not start earlier, and the causes add up to the idle time."
)
QUESTION = Question(
    "idle",
    _DEFINITION,
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("window_ns", "ns", "Length of the window."),
        Column("idle_ns", "ns", "Time of the window in which nothing ran on the device."),
        Column("gaps", "count", "Number of gaps."),
        *_TIME_COLUMNS,
    ),
    summed=("window_ns", "idle_ns", "gaps", *(column.name for column in _TIME_COLUMNS)),
    counts_graphs=True,
)
OPS = Question(
    "idle_ops",
    "Idle time by the annotation of the launch of the activity that ended each gap. If several activities ended it at "
    f"once, the first of their paths in the order of the alphabet counts, {NO_ANNOTATION} among them.",
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column(
            "path", "text", f"Path of the annotation; {NO_ANNOTATION}: the launch had none, or nothing ended the gap."
        ),
        Column("gaps", "count", "Number of gaps."),
        Column("idle_ns", "ns", "Sum of their lengths."),
        *_TIME_COLUMNS,
    ),
    summed=("gaps", "idle_ns", *(column.name for column in _TIME_COLUMNS)),
    otherwise="No device was idle.",
    counts_graphs=True,
)
GAPS = Question(
    "idle_gaps",
    _DEFINITION,
    (
        Column("device_id", "number", "CUDA device ordinal."),
        Column("start_ns", "ns", "Begin of the gap, counted from the beginning of the step."),
        Column("end_ns", "ns", "End of the gap, counted from the beginning of the step."),
        Column("idle_ns", "ns", "Length of the gap."),
        *_TIME_COLUMNS,
    ),
    summed=("idle_ns", *(column.name for column in _TIME_COLUMNS)),
    otherwise="No device was idle.",
    counts_graphs=True,
)


@named_question(QUESTION, in_overview=True, aliases={"idle_time_breakdown": ""})
def idle(steps: Asked, *, window: str = "step", kernel_gap_ns: int = KERNEL_GAP_NS) -> Answer:
    """Idle time of each device by cause.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        window: ``step`` for the whole step, or ``span``, from the first to the last activity of each device.
        kernel_gap_ns: the longest gap that is attributed to the time from one kernel to the next.

    Raises:
        ValueError: there is no such window, or ``kernel_gap_ns`` is below 0.
        TypeError: ``kernel_gap_ns`` is not a whole number.
    """
    kernel_gap_ns = whole_number("kernel_gap_ns", kernel_gap_ns, least=0)

    def ask(recording: Recording) -> Part:
        rows, windows, devices = [], [], []
        for device, own_window, gaps in _devices(recording, window, kernel_gap_ns):
            windows.append(own_window)
            devices.append(device)
            length = int((gaps.ends - gaps.starts).sum())
            rows.append((device, own_window.length_ns, length, len(gaps.starts), *gaps.times.sum(axis=1).tolist()))
        return Part(rows, windows, activities_of(recording, [{"device_id": device} for device in devices]))

    return QUESTION.ask(steps, ask)


def largest_causes(answer: Answer) -> list[tuple[str, int]]:
    """The causes of idle time in an answer of `idle` or `idle_gaps`, each with its ns, the largest first."""
    times = ((cause, int(answer.totals[f"{cause}_ns"])) for cause in CAUSES)
    return sorted((each for each in times if each[1]), key=lambda each: -each[1])


@named_question(GAPS, aliases={"gpu_gaps": ""})
def idle_gaps(steps: Asked, *, window: str = "step", kernel_gap_ns: int = KERNEL_GAP_NS) -> Answer:
    """Each gap with the part of each cause, the longest first.

    Arguments and errors are those of `idle`.
    """
    kernel_gap_ns = whole_number("kernel_gap_ns", kernel_gap_ns, least=0)

    def ask(recording: Recording) -> Part:
        windows: list[Window] = []
        columns: dict[str, list[Numbers]] = {column.name: [] for column in GAPS.columns}
        ended_tables: list[Numbers] = []
        ended_by: list[Numbers] = []
        for device, own_window, gaps in _devices(recording, window, kernel_gap_ns):
            windows.append(own_window)
            ended_tables.append(gaps.ended_by_table)
            ended_by.append(gaps.ended_by_row)
            began = recording.clock.cupti_start_ns
            times = (gaps.starts - began, gaps.ends - began, gaps.ends - gaps.starts)
            own = (np.full(len(gaps.starts), device), *times, *gaps.times)
            for name, values in zip(columns, own, strict=True):
                columns[name].append(values)
        joined = {name: np.concatenate(parts or [np.zeros(0, np.int64)]) for name, parts in columns.items()}
        order = descending_order(joined["idle_ns"])  # equal ones stay in order of devices and starts
        rows = {name: values[order] for name, values in joined.items()}
        tables, ended_rows = (np.concatenate(parts or [order])[order] for parts in (ended_tables, ended_by))
        return Part(rows, windows, one_row_of_each(LAUNCHED_TABLES, tables, ended_rows))

    return GAPS.ask(steps, ask)


@named_question(OPS)
def idle_ops(steps: Asked, *, window: str = "step", kernel_gap_ns: int = KERNEL_GAP_NS) -> Answer:
    """Idle time by the annotation before whose work each device was idle, the longest first.

    Arguments and errors are those of `idle`.
    """
    kernel_gap_ns = whole_number("kernel_gap_ns", kernel_gap_ns, least=0)

    def ask(recording: Recording) -> Part:
        windows: list[Window] = []
        columns: dict[str, list[npt.NDArray[Any]]] = {column.name: [] for column in OPS.columns}
        grouped: list[tuple[_Gaps, DurationGroups]] = []
        for device, own_window, gaps in _devices(recording, window, kernel_gap_ns):
            windows.append(own_window)
            ended = gaps.all_that_ended()
            paths, of_work = launch_paths(recording, ended.work.correlation_id, ended.work.captured_external_id)
            texts = [path or NO_ANNOTATION for path in paths]
            keys = Keys.of(np.append(of_work, texts.index(NO_ANNOTATION)), texts.__getitem__)
            codes = np.full(len(gaps.starts), keys.codes[-1])
            if len(ended.firsts):
                codes[gaps.ended_by_row >= 0] = np.minimum.reduceat(keys.codes[:-1], ended.firsts)
            groups = DurationGroups([Keys(keys.values, codes)], gaps.ends - gaps.starts)
            grouped.append((gaps, groups))
            figures = (groups.num_rows, groups.total_ns, *groups.reduced(np.add, gaps.times))
            own = (np.full(len(groups), device), *groups.keys, *figures)
            for name, values in zip(columns, own, strict=True):
                columns[name].append(values)
        firsts = np.cumsum([0, *(len(groups) for _, groups in grouped)])

        def rows_of(row: int) -> dict[str, Numbers]:
            place = int(np.searchsorted(firsts, row, side="right")) - 1
            gaps, groups = grouped[place]
            return gaps.rows_that_ended(groups.rows(row - int(firsts[place])))

        joined = {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in columns.items()}
        return Part(joined, windows, Evidence(int(firsts[-1]), rows_of))

    return OPS.ask(steps, ask)


def causes_in_windows(recording: Recording, starts: Numbers, ends: Numbers) -> Numbers:
    """The idle times of all devices together: a row for each of `CAUSES`, a column for each window.

    They are those that `idle` finds in the parts of the recording between these times.

    Args:
        recording: the recording of the activities.
        starts: the begins of the windows, ns; none begins before the end of the one before it.
        ends: their ends, ns.
    """
    found = np.zeros((len(CAUSES), len(starts)), np.int64)
    waits_of = cache(partial(_waits, recording))  # devices of the same processes share them
    for _, work, _ in _with_idle_devices(recording, "step"):
        waits = waits_of(processes_beside(recording, work))
        for window, times in idle_times_of_windows(
            work.start_ns, work.end_ns, (starts, ends), partial(_launched, recording, work), waits
        ):
            for row, own in zip(found, _by_cause(times, KERNEL_GAP_NS), strict=True):
                np.add.at(row, window, own)
    return found


def _waits(recording: Recording, beside: tuple[int, ...]) -> ThreadWaits:
    """The waits of the threads of the processes that `processes_beside` gives."""
    return thread_waits(recording, wait_rows(recording, beside))


def _launched(recording: Recording, work: Activities, places: Numbers) -> tuple[Numbers, Numbers]:
    """The times of the launches of some activities, and the numbers of the threads that launched them."""
    return launches_by_thread(recording, work.at(places).launch_rows())


def _by_cause(times: IdleTimes, kernel_gap_ns: int) -> list[Numbers]:
    """The part of each idle time that each of `CAUSES` has."""
    is_short = times.lengths <= kernel_gap_ns
    causes = times.causes
    parts = {
        "synchronize": causes.synchronizing,
        "host": causes.unlaunched,
        "launch_latency": causes.latency,
        "kernel_gap": np.where(is_short, causes.queued, 0),
        "dependency": np.where(is_short, 0, causes.queued),
        "no_launch": causes.unknown,
        "tail": causes.tail,
    }
    return [parts[cause] for cause in CAUSES]


class _Ended(NamedTuple):
    """All activities that ended gaps, gap after gap."""

    work: Activities
    firsts: Numbers
    """Place of the first one of each gap that was ended."""


class _Gaps:
    """The gaps of one device with the cause of each."""

    def __init__(
        self,
        recording: Recording,
        work: Activities,
        window: Window,
        waits: ThreadWaits,
        tracer: Union,
        kernel_gap_ns: int,
    ) -> None:
        bounds = (window.start_ns, window.end_ns)
        times = idle_times(work.start_ns, work.end_ns, bounds, partial(_launched, recording, work), waits)
        self.starts, self.ends, ended_by = times.begins, times.ends, times.ended_by
        is_ended = ended_by >= 0
        first = work.at(ended_by[is_ended])
        self.ended_by_table = np.zeros(len(ended_by), np.int64)
        """The table of the first activity that ended each gap, as an index of `LAUNCHED_TABLES`."""
        self.ended_by_row = np.full(len(ended_by), -1, np.int64)
        """The row of that activity there; -1: nothing ended it."""
        self.ended_by_table[is_ended], self.ended_by_row[is_ended] = first.table, first.row
        self._work, self._ended_by = work, ended_by
        by_cause = _by_cause(times, kernel_gap_ns)
        self.times: Numbers = np.stack([*by_cause, tracer.covered(self.starts, self.ends)])
        """A row for each of `_TIME_COLUMNS`, a column for each gap."""

    def all_that_ended(self) -> _Ended:
        """The activities that began when a gap ended, of which there may be several for each gap."""
        is_ended = self._ended_by >= 0
        first = self._ended_by[is_ended]
        counts = np.searchsorted(self._work.start_ns, self.ends[is_ended], side="right") - first
        firsts = np.cumsum(counts) - counts
        places = np.repeat(first - firsts, counts) + np.arange(counts.sum())
        return _Ended(self._work.at(places), firsts)

    def rows_that_ended(self, gaps: Numbers) -> dict[str, Numbers]:
        """For some gaps: table -> the rows of the first activity that ended each."""
        ended = gaps[self.ended_by_row[gaps] >= 0]
        return {
            name: np.sort(self.ended_by_row[ended[own]])
            for place, name in enumerate(LAUNCHED_TABLES)
            if (own := self.ended_by_table[ended] == place).any()
        }


def _devices(recording: Recording, window: str, kernel_gap_ns: int) -> Iterable[tuple[int, Window, _Gaps]]:
    """Each device with its window and its gaps. Within `shared_values` they are kept for other questions."""
    return (_kept_devices if is_sharing() else _each_device)(recording, window, kernel_gap_ns)


@shared
def _kept_devices(recording: Recording, window: str, kernel_gap_ns: int) -> list[tuple[int, Window, _Gaps]]:
    return list(_each_device(recording, window, kernel_gap_ns))


def _with_idle_devices(recording: Recording, window: str) -> Iterable[tuple[int, Activities, Window]]:
    """Like `by_device`, with the devices that worked in the whole recording, and not in this part of it."""
    step = step_window(recording, window)
    if step is None:
        return by_device(recording, window)
    nothing = Activities.with_graphs(recording).at(np.zeros(0, np.int64))
    idle = ((device, nothing, step) for device in recording.idle_devices)
    return merge(by_device(recording, window), idle, key=itemgetter(0))


def _each_device(recording: Recording, window: str, kernel_gap_ns: int) -> Iterator[tuple[int, Window, _Gaps]]:
    overheads = recording.overheads
    is_tracers = ~np.isin(overheads.overhead_kind, LOADING_OVERHEADS)
    known: dict[tuple[int, ...], tuple[ThreadWaits, Union]] = {}  # devices of the same processes share them
    for device, work, own_window in _with_idle_devices(recording, window):
        beside = processes_beside(recording, work)
        if beside not in known:
            own = is_tracers
            if beside:
                own = is_tracers & np.isin(processes_of_overheads(recording), beside)
            tracer = Union.of(overheads.start_ns[own], overheads.end_ns[own])
            known[beside] = _waits(recording, beside), tracer
        yield device, own_window, _Gaps(recording, work, own_window, *known[beside], kernel_gap_ns)
