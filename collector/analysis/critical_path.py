"""The chain of work and waits that determined the length of a step: ``collector.analysis.critical_path(step)``.

The path is followed backwards from the last end of a kernel, copy, memset or whole graph of the recording, on any
device. An activity has several prerequisites: the activity before it on its stream, the work for which its stream
waited, a node of the same graph launch, and the call that launched it. The path continues at the prerequisite that was
met last. From a call the path goes back along its thread to the last call that had to wait for a device, and continues
with the work for which that call waited. Of a recording of several processes each has a path of its own, as none waits
for another in a way that CUPTI records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.analysis.activities import WorkClass, repetitions
from collector.analysis.annotation_paths import OP
from collector.analysis.answer import Column, Window
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.evidence import Evidence, one_row_of_each
from collector.analysis.idle import KERNEL_GAP_NS
from collector.analysis.named_question import named_question
from collector.analysis.path_edges import NONE, HostWaits, PathEdges
from collector.analysis.process_rows import has_several_processes, processes_of_calls, processes_of_work
from collector.analysis.shared_values import shared
from collector.analysis.stream_numbers import STREAM_NAME, stream_name_keys
from collector.analysis.whole_graphs import graph_labels
from collector.checked_arguments import whole_number
from collector.recording.api_functions import plain_api_name
from collector.recording.distinct import distinct_values
from collector.recording.kernel_names import short_name
from collector.recording.kind_names import copy_kind_name
from collector.recording.schema import LAUNCHED_TABLES
from collector.runtime.extension import convert_extension
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

KINDS = {
    "compute": "A kernel ran that is not of NCCL or RCCL.",
    "communication": "A kernel of NCCL or RCCL ran.",
    "copy": "A copy ran.",
    "memset": "A memset ran.",
    "graph": "A CUDA graph ran that was recorded as a whole.",
    "launch_latency": "The activity had been launched and had not begun.",
    "kernel_gap": "The activity before it on its stream had ended a short time before.",
    "dependency": "Other work it waited for had ended, or the activity before it on its stream a longer time before.",
    "event_wait": "Its stream waited for an event whose record is not known, or the activity for its launch.",
    "synchronize": "The work that the host waited for had ended, and its call had not returned.",
    "host": "The host did something other than wait for a device.",
    "unknown": "The recording does not contain what the activity waited for.",
}
"""Kind of a segment -> its meaning. The first kinds are those of `WorkClass`."""
_SYNCHRONIZE, _HOST = (list(KINDS).index(name) for name in ("synchronize", "host"))
_DEFINITION = (
    "Backwards from the last end on any device: an activity follows the prerequisite that was met last, and a call the "
    "last wait of its thread for a device. The segments follow each other without gaps from the first call or activity "
    "to that end. Each process of a recording has such a path."
)
_FIGURES = (
    Column("segments", "count", "Number of segments of the path."),
    Column("total_ns", "ns", "Sum of their durations."),
    Column("share", "share", "total_ns divided by the length of the path, or of the paths of all processes."),
    Column("longest_ns", "ns", "Longest of these segments."),
)
_KIND = Column("kind", "text", " ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items()))
_NAME = Column(
    "name", "text", "Kernel, copy or graph that ran or was about to begin; for the host the function that it called."
)
QUESTIONS = {
    by: Question("critical_path", _DEFINITION, (*keys, *_FIGURES), summed=("segments", "total_ns"), counts_graphs=True)
    for by, keys in (("kind", (_KIND,)), ("name", (_KIND, _NAME)), ("op", (OP, _KIND)))
} | {
    "segment": Question(
        "critical_path",
        _DEFINITION,
        (
            _KIND,
            _NAME,
            OP,
            Column("device_id", "number", "CUDA device ordinal; -1: the host."),
            Column("context_id", "number", "CUPTI's context id; -1: the host."),
            Column("stream_id", "number", "CUPTI's stream id; -1: the host."),
            STREAM_NAME,
            Column("thread_id", "number", "Thread of the host; -1: a device."),
            Column("start_ns", "ns", "Begin of the segment, counted from the beginning of the step."),
            Column("duration_ns", "ns", "Length of the segment."),
        ),
        summed=("duration_ns",),
        counts_graphs=True,
    ),
}
"""Value of ``by`` -> the question."""


@named_question(QUESTIONS)
def critical_path(steps: Asked, *, by: str = "kind", kernel_gap_ns: int = KERNEL_GAP_NS) -> Answer:
    """The chain of activities, waits and host time that determined the length of a step, over all of its devices.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``kind``, ``name`` or ``op``, or ``segment``: each segment in order of time.
        kernel_gap_ns: the longest time between two activities of a stream that counts as ``kernel_gap``.

    Raises:
        ValueError: ``by`` has another value, or ``kernel_gap_ns`` is below 0.
        TypeError: ``kernel_gap_ns`` is not a whole number.
    """
    question = question_by(QUESTIONS, by, "a critical path is")
    kernel_gap_ns = whole_number("kernel_gap_ns", kernel_gap_ns, least=0)
    return question.ask(steps, lambda recording: _part(recording, by, kernel_gap_ns))


class _Segments(NamedTuple):
    """Segments in order of processes and of times, each with a row of a table: its activity or call."""

    edges: PathEdges
    kinds: Numbers
    """Indices of `KINDS`."""
    start_ns: Numbers
    end_ns: Numbers
    tables: Numbers
    """Indices of `_TABLES`."""
    rows: Numbers
    paths: list[tuple[int, int]]
    """Begin and end of the path of each process."""

    @classmethod
    def of(cls, recording: Recording, kernel_gap_ns: int) -> _Segments:
        edges = PathEdges(recording)
        work, calls = edges.work, recording.api_calls
        of_work = processes_of_work(recording, work)
        is_shared = has_several_processes(recording)
        found: list[tuple[Numbers, ...]] = []
        for process in distinct_values(of_work).tolist():
            own = np.flatnonzero(of_work == process) if is_shared else None
            own_calls = processes_of_calls(recording) == process if is_shared else slice(None)
            began = [work.start_ns[:1] if own is None else work.start_ns[own[:1]], calls.start_ns[own_calls][:1]]
            found.append(_path(edges, own, int(np.concatenate(began).min()), kernel_gap_ns))
        joined = [np.concatenate([np.zeros(0, np.int64), *(path[column] for path in found)]) for column in range(4)]
        kinds, start_ns, end_ns, places = joined
        is_wait, is_host = kinds == _SYNCHRONIZE, kinds == _HOST
        tables, rows = np.full(len(kinds), len(LAUNCHED_TABLES)), np.empty(len(kinds), np.int64)
        rows[is_wait] = edges.host_waits.api_rows[places[is_wait]]
        rows[is_host] = edges.launches[places[is_host]]
        on_device = ~(is_wait | is_host)
        tables[on_device], rows[on_device] = work.table[places[on_device]], work.row[places[on_device]]
        paths = [(int(starts[0]), int(ends[-1])) for _, starts, ends, _ in found if len(starts)]
        return cls(edges, kinds, start_ns, end_ns, tables, rows, paths)

    @property
    def duration_ns(self) -> Numbers:
        return self.end_ns - self.start_ns

    def column(self, recording: Recording, name: str) -> Numbers:
        """The value of a column for each segment; -1 for tables without this column."""
        values = np.full(len(self.rows), NONE, np.int64)
        for place, table_name in enumerate(_TABLES):
            table = getattr(recording, table_name)
            own = self.tables == place
            if name in table.columns:
                values[own] = getattr(table, name)[self.rows[own]]
        return values

    def names(self, recording: Recording) -> Keys:
        """The names of the segments' activities and calls."""
        ids, labels = self.column(recording, "name_id"), graph_labels(recording)
        for table, column in (("memcpys", "copy_kind"), ("graph_launches", "graph_id")):
            ids = np.where(self.tables == _TABLES.index(table), self.column(recording, column), ids)

        def name_of(key: int) -> str:
            table, number = _TABLES[key >> 40], key & 0xFFFFFFFF
            if table == "memcpys":
                return copy_kind_name(number)
            if table == "memsets":
                return "memset"
            if table == "graph_launches":
                return labels[number]
            return (short_name if table == "kernels" else plain_api_name)(recording.strings[number])

        # The ids of names have 32 bits; memsets have no name.
        return Keys.of((self.tables << 40) | np.maximum(ids, 0), name_of)

    def ops(self, recording: Recording) -> Keys:
        """The innermost annotations of the launches of the segments' activities."""
        captured = np.maximum(self.column(recording, "captured_external_id"), 0).astype(np.uint64)  # calls have none
        ids = recording.annotation_ids(self.column(recording, "correlation_id").astype(np.uint32), captured)
        return Keys.of(ids, lambda place: recording.strings[place] if place >= 0 else "")


_TABLES = (*LAUNCHED_TABLES, "api_calls")


def _path(edges: PathEdges, own: Numbers | None, first_ns: int, kernel_gap_ns: int) -> tuple[Numbers, ...]:
    """The path of the activities of one process: kinds, starts, ends, and places among all activities and waits.

    Args:
        edges: the dependencies of the recording.
        own: the places of the activities, ascending; None: all.
        first_ns: the begin of the path.
        kernel_gap_ns: see `critical_path`.
    """
    work, waits = edges.work, edges.host_waits
    at: Numbers | slice = slice(None) if own is None else own
    if own is not None:
        place_of = np.full(len(work) + 1, NONE, np.int64)  # the last one is that of no activity
        place_of[own] = np.arange(len(own))
        own_waits = np.flatnonzero(np.isin(waits.threads, edges.call_threads[own]))
        waits = waits._replace(activities=place_of[waits.activities])
        waits = HostWaits(*(column[own_waits] for column in waits))
    called_ns, threads = edges.called_ns[at], edges.call_threads[at]
    kinds, start_ns, end_ns, found = convert_extension.critical_path(
        (work.start_ns[at], work.end_ns[at], edges.stream_numbers[at], called_ns, threads, edges.graphs[at]),
        edges.stream_waits,
        waits[:-1],
        edges.stream_sets,
        first_ns,
        kernel_gap_ns,
    )
    own_kinds = kinds.astype(np.int64) + len(WorkClass) - 1
    if own is not None:
        is_wait, places = own_kinds == _SYNCHRONIZE, found
        found = places.copy()
        found[is_wait], found[~is_wait] = own_waits[places[is_wait]], own[places[~is_wait]]
    own_kinds[kinds == 0] = work.work_class[found[kinds == 0]]
    return own_kinds, start_ns, end_ns, found


def _part(recording: Recording, by: str, kernel_gap_ns: int) -> Part:
    found = _segments(recording, kernel_gap_ns)
    windows = [Window("path", *path) for path in found.paths]
    losses = [*repetitions(recording), *_losses(found.edges)]
    kind_names = np.array(list(KINDS), object)
    if by == "segment":
        names, ops = found.names(recording), found.ops(recording)
        places = {name: found.column(recording, name) for name in ("device_id", "context_id", "stream_id")}
        columns = {
            "kind": kind_names[found.kinds],
            "name": names.column(),
            "op": ops.column(),
            **places,
            "stream_name": stream_name_keys(recording, *places.values()).column(),
            "thread_id": found.column(recording, "thread_id"),
            "start_ns": found.start_ns - recording.clock.cupti_start_ns,
            "duration_ns": found.duration_ns,
        }
        return Part(columns, windows, one_row_of_each(_TABLES, found.tables, found.rows), losses)
    kinds = Keys.of_values(list(KINDS), found.kinds)
    keys = {
        "kind": lambda: [kinds],
        "name": lambda: [kinds, found.names(recording)],
        "op": lambda: [found.ops(recording), kinds],
    }[by]()
    groups = DurationGroups(keys, found.duration_ns)
    counted_by = QUESTIONS[by].columns[: len(keys)]
    columns = groups.named_keys(counted_by) | groups.figures()
    columns |= {"segments": groups.num_rows, "longest_ns": groups.max_ns}

    def rows_of(row: int) -> dict[str, Numbers]:
        own = groups.rows(row)
        return {
            name: np.sort(found.rows[own[chosen]])
            for place, name in enumerate(_TABLES)
            if (chosen := found.tables[own] == place).any()
        }

    return Part(columns, windows, Evidence(len(groups), rows_of), losses)


@shared
def _segments(recording: Recording, kernel_gap_ns: int) -> _Segments:
    return _Segments.of(recording, kernel_gap_ns)


def _losses(edges: PathEdges) -> list[str]:
    work = edges.work
    waits = "{:,} wait[|s] of streams for an event without a known record (kind cuda_events): not followed"
    early = int(((edges.launches >= 0) & (edges.called_ns > work.start_ns)).sum())
    sentences = {
        waits: edges.unknown_events,
        "{:,} activit[y|ies] without a recorded call: the path does not continue on the host": int(
            (edges.launches < 0).sum()
        ),
        "{:,} activit[y|ies] began before the call, as the clocks disagree: the call counts from the start on": early,
    }
    return [counted(text, number) for text, number in sentences.items() if number]
