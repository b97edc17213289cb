"""The rows of a step in columns, from which the page answers questions about any part of it.

The page has no separate names for them: a row states the row of the answer about the whole step in which it is counted
(``kind``, ``code``), and that row has the names. Only annotations that stand for their names alone have a list of
``names``; their numbers follow those of the table ``annotations``. `web/src/part` cuts the rows as `Recording.between`
does and sums them up; its answers about a part are those of `collector.analysis.between`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, repeated_rows
from collector.analysis.annotation_paths import has_whole_paths
from collector.analysis.backward import are_backward_passes
from collector.analysis.duration_groups import GroupEvidence
from collector.analysis.host_waits import wait_rows, waiting_threads
from collector.analysis.memory import memory_places, rows_by_address
from collector.analysis.process_rows import processes_of_calls, processes_of_launches, processes_of_overheads
from collector.analysis.questions import QUESTIONS
from collector.analysis.stream_numbers import StreamNumbers
from collector.recording.cupti_enums import ALLOCATION, LOADING_OVERHEADS
from collector.recording.first_rows import distinct_rows
from collector.recording.possible_sizes import LARGEST_BYTES, possible_bytes
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES
from collector.recording.stream_names import stream_names
from collector.recording.thread_waits import UNKNOWN_THREAD
from collector.web.byte_planes import byte_planes, least_width
from collector.web.part_notes import part_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.recording.recording import Recording
    from collector.recording.table import Table

    _Columns = dict[str, npt.NDArray[Any]]
    Numbers = npt.NDArray[np.int64]

KINDS = (
    *("kernels/name", "kernels/whole_name", "kernels/op", "kernels/shape", "kernels/stream"),
    *("tensor_cores/use", "tensor_cores/name", "occupancy", "copies", "overlap/group"),
)
"""Answers in whose rows activities are counted."""

_EXACT_BYTES = 6
"""Bytes of numbers that JavaScript holds exactly."""


@dataclass(frozen=True)
class PartRows:
    """The rows of a step."""

    described: Mapping[str, Any]
    """The tables with their columns, the bytes of each value, and the meanings of their numbers.

    Starts are counted from ``first``, the earliest of them in ns since the step began, which is negative in a part of
    a step that begins while something runs.
    """
    planes: bytes
    """The columns of all tables, one byte plane after the other, the lowest first."""


def part_rows(recording: Recording) -> PartRows | None:
    """The rows of a recording. None: the page cannot hold a number exactly."""
    step = _StepColumns(recording)
    tables = {
        "work": step.work_columns(),
        "calls": step.call_columns(),
        "graph_launches": step.graph_launch_columns(),
        "annotations": step.annotation_columns(),
        "externals": {"correlation": step.correlations.externals, "owner": step.owners[0]},
        "overheads": step.overhead_columns(),
        "memory": step.memory_columns(),
    }
    described: dict[str, Any] = {"tables": [], **step.described()}
    planes = []
    for name, columns in tables.items():
        widths = {column: least_width(values) for column, values in columns.items()}
        if max(widths.values()) > _EXACT_BYTES:
            return None
        described["tables"].append([name, len(columns["correlation" if "start" not in columns else "start"]), widths])
        planes += [byte_planes(values, widths[column]) for column, values in columns.items()]
    return PartRows(described, b"".join(planes))


class _Correlations(NamedTuple):
    """The correlation ids of each table as numbers: the same number for the same id in all tables."""

    work: Numbers
    calls: Numbers
    externals: Numbers
    memory: Numbers
    graph_launches: Numbers


class _StepColumns:
    """The tables of a step, as columns of numbers.

    Kinds and codes come from answers about ``recording``, which the page has as well. All other numbers are those of
    ``whole``, the part of the recording between the begin and the end of the step.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.whole = whole = recording.between()
        self.work = Activities.with_graphs(whole)
        self.operations_in_order = rows_by_address(whole)
        self.operations = whole.memory_operations[self.operations_in_order]
        self.streams, self.stream_numbers = StreamNumbers.of(whole, self.work)
        self.memory_places, self.place_of_operation = memory_places(whole)
        self.kinds, self.kind = _kinds(recording, self.work)
        timed = (
            *(self.work, whole.api_calls, whole.graph_launches),
            *(whole.annotations, whole.overheads, self.operations),
        )
        self.first_ns = min(
            (int(table.start_ns.min()) for table in timed if len(table)), default=recording.clock.cupti_start_ns
        )
        correlated = (self.work, whole.api_calls, whole.external_correlations, self.operations, whole.graph_launches)
        self.correlations = _Correlations(*_numbered(*(table.correlation_id for table in correlated)))
        self.owners = _numbered(whole.external_correlations.external_id, whole.annotations.external_id)

    def described(self) -> dict[str, Any]:
        """The meanings of the numbers."""
        whole = self.whole
        names = stream_names(whole)
        return {
            "first": self.first_ns - self.recording.clock.cupti_start_ns,
            "kinds": self.kinds,
            "kind_keys": list(KINDS),
            "streams": [[*stream, names.get(stream, "")] for stream in self.streams],
            "devices": list(whole.working_devices),
            "memory_places": [list(place) for place in self.memory_places],
            "whole_paths": has_whole_paths(whole),
            "names": [whole.strings[name_id] for name_id in whole.invalid.annotations.name_id.tolist()],
            "activity_tables": list(LAUNCHED_TABLES),
            "odd_operations": self._odd_operations(),
            "notes": part_notes(whole),
        }

    def work_columns(self) -> _Columns:
        """The activities of the devices."""
        whole, work = self.whole, self.work
        no_sizes = [np.zeros(len(table), np.int64) for table in (whole.kernels, whole.graph_launches)]
        moved = [possible_bytes(table.num_bytes) for table in (whole.memcpys, whole.memsets)]
        sizes = [no_sizes[0], *moved, no_sizes[1]]
        return {
            **self._spans(work),
            "table": work.table,
            "row": work.row,
            "stream": self.stream_numbers,
            "work_class": work.work_class,
            "kind": self.kind,
            "bytes": work.of_rows(sizes),
            "call": work.launch_rows() + 1,
            "annotation": whole.annotation_rows(work.correlation_id) + 1,
            "captured": _capture_rows(whole, work) + 1,
            "correlation": self.correlations.work,
            "process": processes_of_launches(whole, work) + 1,
            "repeats": work.of_rows([_repeats(getattr(whole, table), table) for table in LAUNCHED_TABLES]),
        }

    def call_columns(self) -> _Columns:
        """The calls of the host."""
        whole, calls = self.whole, self.whole.api_calls
        return {
            **self._spans(calls),
            "code": self._codes("calls", "api_calls"),
            "failed": calls.return_value != 0,
            "waits": np.isin(np.arange(len(calls)), wait_rows(whole, ())),
            "correlation": self.correlations.calls,
            "process": processes_of_calls(whole) + 1,
            "thread": _thread_numbers(whole),
        }

    def graph_launch_columns(self) -> _Columns:
        """The launches of CUDA graphs that were recorded as a whole."""
        launches = self.whole.graph_launches
        return {
            **self._spans(launches),
            "call": self.whole.launch_rows(launches.correlation_id) + 1,
            "correlation": self.correlations.graph_launches,
        }

    def annotation_columns(self) -> _Columns:
        """The annotations; one that ends before it starts counts as empty."""
        annotations = self.whole.annotations
        spans = self._spans(annotations)
        sequence = annotations.op_sequence
        return {
            "start": spans["start"],
            "length": np.maximum(spans["length"], 0),
            "code": self._codes("annotation_times/name", "annotations"),
            "thread": _numbered(annotations.thread_id)[0],
            "owner": self.owners[1],
            "sequence": np.where(sequence == 0, 0, _numbered(sequence)[0] + 1),
            "is_backward": are_backward_passes(self.whole, annotations.name_id),
        }

    def overhead_columns(self) -> _Columns:
        """The times of CUPTI and of the driver's compiler."""
        overheads = self.whole.overheads
        return {
            **self._spans(overheads),
            "code": self._codes("tracing_cost", "overheads"),
            "loads": np.isin(overheads.overhead_kind, LOADING_OVERHEADS),
            "process": processes_of_overheads(self.whole) + 1,
        }

    def memory_columns(self) -> _Columns:
        """The allocations and releases of memory, by address."""
        operations = self.operations
        return {
            "start": operations.start_ns - self.first_ns,
            "allocates": operations.operation == ALLOCATION,
            "address": _pairs(operations.device_id, operations.address),
            "place": self.place_of_operation[self.operations_in_order],
            "bytes": operations.num_bytes,
            "used": np.minimum(operations.pool_used_bytes, LARGEST_BYTES),
            "reserved": np.minimum(operations.pool_bytes, LARGEST_BYTES),
            "annotation": self.whole.annotation_rows(operations.correlation_id) + 1,
            "correlation": self.correlations.memory,
        }

    def _odd_operations(self) -> list[int]:
        """The time, in ns since the step began, of each row of memory that `rows_by_address` leaves out."""
        is_odd = np.ones(len(self.whole.memory_operations), bool)
        is_odd[self.operations_in_order] = False
        times = self.whole.memory_operations.start_ns[is_odd] - self.recording.clock.cupti_start_ns
        return [int(time) for time in times]

    def _spans(self, table: Activities | Table) -> _Columns:
        """The start and the length of each row, in ns; starts are counted from `first_ns`."""
        return {"start": table.start_ns - self.first_ns, "length": table.end_ns - table.start_ns}

    def _codes(self, key: str, table: str) -> Numbers:
        return _codes(_asked(self.recording, key), table, len(getattr(self.whole, table)))


def _asked(recording: Recording, key: str) -> Answer:
    question, _, by = key.partition("/")
    return QUESTIONS[question].answer(recording, by)


def _codes(answer: Answer, table: str, rows: int) -> Numbers:
    """For each row of a table the row of an answer in which it is counted, as the answer's evidence says."""
    codes = np.zeros(rows, np.int64)
    if isinstance(answer.evidence, GroupEvidence):  # whose groups may be as many as the rows
        if answer.evidence.table == table:
            of_rows = answer.evidence.groups.group_of_rows()
            codes[: len(of_rows)] = of_rows
        return codes
    for number, evidence in enumerate(answer.evidence):
        codes[evidence.get(table, [])] = number
    return codes


def _kinds(recording: Recording, work: Activities) -> tuple[list[list[int]], Numbers]:
    """The distinct rows of `KINDS`' answers in which activities are counted, and which of these each activity has."""
    lengths = [len(getattr(recording, table)) for table in LAUNCHED_TABLES]
    columns = []
    for key in KINDS:
        answer = _asked(recording, key)
        codes = [_codes(answer, table, rows) for table, rows in zip(LAUNCHED_TABLES, lengths, strict=True)]
        columns.append(work.of_rows(codes).astype(np.int64))
    first, kind = distinct_rows(columns)
    return np.stack([column[first] for column in columns], axis=1).tolist(), kind


def _repeats(table: Table, name: str) -> npt.NDArray[np.bool_]:
    """Whether each row equals the row before it in every column; launches of graphs are not compared."""
    repeats = np.zeros(len(table), bool)
    if name in ACTIVITY_TABLES:
        repeats[repeated_rows(table)] = True
    return repeats


def _numbered(*columns: npt.NDArray[Any]) -> Sequence[Numbers]:
    """Numbers from 0 on instead of the values, the same one for the same value in all columns."""
    numbers = np.unique(np.concatenate(columns), return_inverse=True)[1].reshape(-1)
    return np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])


def _thread_numbers(recording: Recording) -> Numbers:
    """The thread of each call as a number that is the same for calls of the same thread; 0: it is not known."""
    threads = waiting_threads(recording)
    return np.where(threads == UNKNOWN_THREAD, 0, _numbered(threads)[0] + 1)


def _pairs(devices: npt.NDArray[Any], addresses: npt.NDArray[Any]) -> Numbers:
    """A number for each distinct pair, in their order."""
    device_numbers, address_numbers = _numbered(devices)[0], _numbered(addresses)[0]
    return _numbered(device_numbers * (int(address_numbers.max(initial=0)) + 1) + address_numbers)[0]


def _capture_rows(recording: Recording, work: Activities) -> Numbers:
    """The row of the annotation around the capture of each activity; -1: it is in no CUDA graph, or has none."""
    captured = work.captured_external_id
    return np.full(len(work), -1, np.int64) if captured is None else recording.capture_annotation_rows(captured)
