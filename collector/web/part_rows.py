"""The rows of a step in columns, from which the page answers questions about any part of it.

The page has no separate names for them: a row states the row of the answer about the whole step in which it is counted
(``kind``, ``code``), and that row has the names. Only annotations that stand for their names alone have a list of
``names``; their numbers follow those of the table ``annotations``. `web/src/part` cuts the rows as `Recording.between`
does and sums them up; its answers about a part are those of `collector.analysis.between`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.annotation_paths import has_whole_paths
from collector.analysis.backward import are_backward_passes
from collector.analysis.host_waits import wait_rows, waiting_threads
from collector.analysis.memory import LARGEST_BYTES, memory_places, rows_by_address
from collector.analysis.process_rows import processes_of_calls, processes_of_launches, processes_of_overheads
from collector.analysis.questions import QUESTIONS
from collector.analysis.stream_numbers import StreamNumbers
from collector.recording.cupti_enums import ALLOCATION, LOADING_OVERHEADS
from collector.recording.first_rows import distinct_rows
from collector.recording.schema import LAUNCHED_TABLES
from collector.recording.stream_names import stream_names
from collector.recording.thread_waits import UNKNOWN_THREAD
from collector.web.answer_commands import answer_options
from collector.web.byte_planes import byte_planes, least_width
from collector.web.part_notes import part_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.recording.recording import Recording

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
    whole = recording.between()
    work = Activities.with_graphs(whole)
    streams, stream_numbers = StreamNumbers.of(whole, work)
    names = stream_names(whole)
    calls, annotations, overheads, launches = whole.api_calls, whole.annotations, whole.overheads, whole.graph_launches
    external, memory = whole.external_correlations, rows_by_address(whole)
    operations = whole.memory_operations[memory]
    starts = [table.start_ns for table in (work, calls, launches, annotations, overheads, operations)]
    first = min((int(each.min()) for each in starts if len(each)), default=recording.clock.cupti_start_ns)
    memory_places_of_step, place_of_operation = memory_places(whole)
    correlations = _numbered(
        work.correlation_id,
        calls.correlation_id,
        external.correlation_id,
        operations.correlation_id,
        launches.correlation_id,
    )
    owners = _numbered(external.external_id, annotations.external_id)
    kinds, kind = _kinds(recording, work)
    no_sizes = [np.zeros(len(table), np.uint64) for table in (whole.kernels, whole.graph_launches)]
    sizes = [no_sizes[0], whole.memcpys.num_bytes, whole.memsets.num_bytes, no_sizes[1]]
    tables = {
        "work": {
            "start": work.start_ns - first,
            "length": work.end_ns - work.start_ns,
            "table": work.table,
            "row": work.row,
            "stream": stream_numbers,
            "work_class": work.work_class,
            "kind": kind,
            "bytes": work.of_rows(sizes),
            "call": work.launch_rows() + 1,
            "annotation": whole.annotation_rows(work.correlation_id) + 1,
            "captured": _capture_rows(whole, work) + 1,
            "correlation": correlations[0],
            "process": processes_of_launches(whole, work) + 1,
        },
        "calls": {
            "start": calls.start_ns - first,
            "length": calls.end_ns - calls.start_ns,
            "code": _codes(_asked(recording, "calls"), "api_calls", len(calls)),
            "failed": calls.return_value != 0,
            "waits": np.isin(np.arange(len(calls)), wait_rows(whole, ())),
            "correlation": correlations[1],
            "process": processes_of_calls(whole) + 1,
            "thread": _thread_numbers(whole),
        },
        "graph_launches": {
            "start": launches.start_ns - first,
            "length": launches.end_ns - launches.start_ns,
            "call": whole.launch_rows(launches.correlation_id) + 1,
            "correlation": correlations[4],
        },
        "annotations": {
            "start": annotations.start_ns - first,
            "length": np.maximum(annotations.end_ns - annotations.start_ns, 0),
            "code": _codes(_asked(recording, "annotation_times/name"), "annotations", len(annotations)),
            "thread": _numbered(annotations.thread_id)[0],
            "owner": owners[1],
            "sequence": np.where(annotations.op_sequence == 0, 0, _numbered(annotations.op_sequence)[0] + 1),
            "is_backward": are_backward_passes(whole, annotations.name_id),
        },
        "externals": {"correlation": correlations[2], "owner": owners[0]},
        "overheads": {
            "start": overheads.start_ns - first,
            "length": overheads.end_ns - overheads.start_ns,
            "code": _codes(_asked(recording, "tracing_cost"), "overheads", len(overheads)),
            "loads": np.isin(overheads.overhead_kind, LOADING_OVERHEADS),
            "process": processes_of_overheads(whole) + 1,
        },
        "memory": {
            "start": operations.start_ns - first,
            "allocates": operations.operation == ALLOCATION,
            "address": _pairs(operations.device_id, operations.address),
            "place": place_of_operation[memory],
            "bytes": operations.num_bytes,
            "used": np.minimum(operations.pool_used_bytes, LARGEST_BYTES),
            "reserved": np.minimum(operations.pool_bytes, LARGEST_BYTES),
            "annotation": whole.annotation_rows(operations.correlation_id) + 1,
            "correlation": correlations[3],
        },
    }
    described: dict[str, Any] = {
        "tables": [],
        "first": first - recording.clock.cupti_start_ns,
        "kinds": kinds,
        "kind_keys": list(KINDS),
        "streams": [[*stream, names.get(stream, "")] for stream in streams],
        "devices": list(whole.working_devices),
        "memory_places": [list(place) for place in memory_places_of_step],
        "whole_paths": has_whole_paths(whole),
        "names": [whole.strings[name_id] for name_id in whole.invalid.annotations.name_id.tolist()],
        "activity_tables": list(LAUNCHED_TABLES),
        "notes": part_notes(whole),
    }
    planes = []
    for name, columns in tables.items():
        widths = {column: least_width(values) for column, values in columns.items()}
        described["tables"].append([name, len(columns["correlation" if "start" not in columns else "start"]), widths])
        planes += [byte_planes(values, widths[column]) for column, values in columns.items()]
        if max(widths.values()) > _EXACT_BYTES:
            return None
    return PartRows(described, b"".join(planes))


def _asked(recording: Recording, key: str) -> Answer:
    question, _, by = key.partition("/")
    return QUESTIONS[question].ask(recording, **answer_options(by))


def _codes(answer: Answer, table: str, rows: int) -> Numbers:
    """For each row of a table the row of an answer in which it is counted, as the answer's evidence says."""
    codes = np.zeros(rows, np.int64)
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
