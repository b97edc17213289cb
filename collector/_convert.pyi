from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import TypedDict, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

_Int64s = npt.NDArray[np.int64]
_Remarks = Sequence[tuple[str, str, int | None]]
"""(name, details, wall time in ns or None: the end)."""
_EventRecords = Sequence[tuple[int, int, int, int, int]]
"""(call, event, synchronisation, context, stream)."""
_Sampled = Sequence[tuple[str, str, str, Sequence[int], Sequence[int]]]
"""(device, figure, unit, wall times in ns, values)."""
_OpDetails = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[Sequence[tuple[str, str]]]]
"""(starts, durations, threads, which of the details, the arguments of each of the details)."""
_Table = tuple[int, Mapping[str, npt.NDArray[np.integer]], Sequence[tuple[int, str]]]
"""(Activity.Kind, columns, [(field of Activity, column)])."""
_Messages = tuple[Sequence[bytes], npt.NDArray[np.uint32]]
"""Messages, and for each row the index of its message."""

_Activities = tuple[_Int64s, _Int64s, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]
"""(starts, ends, devices, classes)."""

class WireError(ValueError):
    args: tuple[str, int]

class LabelledColumns(TypedDict):
    columns: dict[str, _Int64s]
    texts: list[str]
    devices: list[tuple[str, str, str, bool, bool]]
    thread_names: dict[int, str]
    untimed: int
    unlabelled: int

@final
class AnnotationStack:
    def enter(self, owner: object, name: str, details: int) -> None: ...
    def leave(self, owner: object) -> None: ...
    def resume(self, place: object) -> None: ...
    def end(self) -> None: ...
    def detach(self) -> None: ...
    def counts(self) -> tuple[int, int, int]: ...

@final
class ChromeScan:
    def __init__(self) -> None: ...
    def feed(self, piece: bytes) -> bool: ...
    def finish(self) -> None: ...
    def starts_ns(self, rows: _Int64s) -> _Int64s: ...
    def durations_ns(self, rows: _Int64s) -> _Int64s: ...
    def names(self, rows: _Int64s) -> npt.NDArray[np.uint32]: ...
    def categories(self, rows: _Int64s) -> npt.NDArray[np.uint32]: ...
    def has_categories(self) -> bool: ...
    def track_numbers(self, rows: _Int64s) -> npt.NDArray[np.uint32]: ...
    def shape_numbers(self) -> npt.NDArray[np.uint16]: ...
    def shapes(self) -> list[list[int]]: ...
    def phases(self) -> npt.NDArray[np.uint8]: ...
    def tracks(self) -> list[tuple[str, str]]: ...
    def members(self) -> list[tuple[str, str]]: ...
    def argument_names(self) -> list[str]: ...
    def numbers(self, argument: int, rows: _Int64s, missing: int) -> _Int64s: ...
    def argument_texts(self, argument: int, rows: _Int64s) -> _Int64s: ...
    def written_starts(self, rows: _Int64s) -> _Int64s: ...
    def written_durations(self, rows: _Int64s) -> _Int64s: ...
    def texts(self, numbers: _Int64s) -> list[str]: ...
    @property
    def num_entries(self) -> int: ...
    @property
    def num_not_objects(self) -> int: ...
    @property
    def num_arguments_left_out(self) -> int: ...
    @property
    def num_not_finite(self) -> int: ...
    @property
    def num_ill_formed(self) -> int: ...
    @property
    def first_ill_formed(self) -> int: ...
    @property
    def has_events(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def failed_at(self) -> int: ...

@final
class StepEvents:
    def __init__(
        self, message: Buffer, *, is_run_metadata: bool, event_records: _EventRecords, op_details: _OpDetails
    ) -> None: ...
    def devices(self) -> list[tuple[str, dict[int, str]]]: ...
    def nodes(self, device: int) -> list[tuple[bytes, tuple[int, int] | None]]: ...
    def links(self) -> list[tuple[int, int, int, int]]: ...
    def nodes_beside(self, devices: Sequence[int], others: Sequence[int]) -> list[list[int]]: ...
    def lines(
        self,
        device: int,
        *,
        describe: Callable[[bytes, bytes], tuple[int, bytes]],
        stat_number: Callable[[str], int],
        origin_ns: int,
        shift_ns: int,
        by_thread: bool,
        by_process: bool,
        processes: Mapping[int, int],
        first_correlation: int | None,
        causes: Sequence[tuple[int, int]],
        flows: Mapping[int, int],
        detail_stats: Sequence[bytes],
        event_stats: Mapping[int, bytes],
        only: Sequence[int] | None,
    ) -> tuple[list[tuple[int, int, int, bytes]], int, int]: ...

class MergedTrace:
    def __init__(
        self,
        write: Callable[[memoryview], object],
        *,
        writer: str,
        owned_devices: Sequence[tuple[str, bytes]],
    ) -> None: ...
    def add(
        self,
        message: bytes,
        *,
        is_run_metadata: bool,
        owner: str,
        base_ns: int,
        start_ns: int,
        shift_ns: int,
        added_to_correlations: int,
        remarks: _Remarks,
        labels: Mapping[str, str],
        event_records: _EventRecords,
        op_details: _OpDetails,
        collectives: _OpDetails,
        call_ops: _OpDetails,
        sampled: _Sampled,
    ) -> tuple[int, int]: ...
    def mark(self, time_ns: int, name: str, details: str = "") -> None: ...
    def finish(self, metadata: str) -> None: ...

def annotate_in(stack: AnnotationStack | None, in_python: bool) -> None: ...
def annotation_place() -> ContextVar[object]: ...
def annotation_stack(
    push: Callable[..., object],
    pop: Callable[[], object],
    calls: object,
    continued: Callable[[int], int],
    suspends: Callable[[FrameType], bool],
    on_first: Callable[[], object] | None,
) -> AnnotationStack: ...
def allocator_maximums(
    message: Buffer, *, is_run_metadata: bool, op_time: str
) -> list[tuple[str, int, int, set[str]]] | None: ...
def count_whole(message: bytes, schema: Sequence[Sequence[tuple[int, int, int]]], root: int) -> list[int] | None: ...
def covered_by_group(groups: _Int64s, starts: _Int64s, ends: _Int64s, count: int) -> _Int64s: ...
def covered_lengths(union_starts: _Int64s, union_ends: _Int64s, starts: _Int64s, ends: _Int64s) -> _Int64s: ...
def critical_path(
    activities: tuple[_Int64s, _Int64s, _Int64s, _Int64s, _Int64s, _Int64s],
    stream_waits: tuple[_Int64s, _Int64s, _Int64s, _Int64s],
    host_waits: tuple[_Int64s, _Int64s, _Int64s, _Int64s, _Int64s, _Int64s],
    stream_sets: Sequence[_Int64s],
    first_ns: int,
    kernel_gap_ns: int,
) -> tuple[npt.NDArray[np.uint8], _Int64s, _Int64s, _Int64s]: ...
def correlation_ids(message: bytes, *, is_run_metadata: bool) -> tuple[int, int] | None: ...
def demangle(name: str | bytes) -> bytes: ...
def devices(message: bytes, *, is_run_metadata: bool) -> list[bytes]: ...
def distinct_texts(data: Buffer, begins: _Int64s, ends: _Int64s) -> tuple[list[str], _Int64s]: ...
def encode_step(
    *,
    tables: Mapping[str, _Table],
    without_node: Sequence[_Table],
    texts: Mapping[str, Sequence[str]],
    annotation_op_ends: Sequence[int],
    annotation_label: npt.NDArray[np.uint32],
    outputs: _Messages | None,
    memory: _Messages | None,
    host_devices: Sequence[tuple[str, bytes]],
    host_device_of: Mapping[str, npt.NDArray[np.uint32]],
    known_external_id: npt.NDArray[np.integer],
    known_name_id: npt.NDArray[np.integer],
    annotation_external_kind: int,
    first_contexts: Sequence[tuple[int, int, int]],
    device_prefix: str,
    offset_ns: int,
    around: tuple[bytes, bytes] | None,
) -> bytes: ...
def hasten_annotate(annotate: type[object]) -> None: ...
def gpu_labels(names: list[str], labels: list[str]) -> list[tuple[int, int, str, str, str, int, int, int]]: ...
def innermost_ranges(
    threads: _Int64s, starts_ns: _Int64s, ends_ns: _Int64s, asked_threads: _Int64s, asked_ns: _Int64s
) -> tuple[_Int64s, _Int64s]: ...
def interval_difference(
    starts: _Int64s, ends: _Int64s, taken_starts: _Int64s, taken_ends: _Int64s
) -> tuple[_Int64s, _Int64s]: ...
def interval_gaps(starts: _Int64s, ends: _Int64s, begin_ns: int, end_ns: int) -> tuple[_Int64s, _Int64s, _Int64s]: ...
def interval_union(starts: _Int64s, ends: _Int64s) -> tuple[_Int64s, _Int64s]: ...
def labelled_columns(message: bytes, *, is_run_metadata: bool) -> LabelledColumns: ...
def message_numbers(data: Buffer, begins: _Int64s, ends: _Int64s, fields: Sequence[int]) -> dict[int, _Int64s]: ...
def message_tree(
    depths: _Int64s,
    numbers: Sequence[tuple[int, _Int64s]],
    texts: Sequence[tuple[int, list[str]]],
    encoded: Sequence[bytes],
    children: int,
) -> bytes: ...
def nested_ranges(order: _Int64s, threads: _Int64s, ends_ns: _Int64s) -> tuple[_Int64s, _Int64s]: ...
def node_columns(
    device: Buffer, numbers: Sequence[int], texts: Sequence[int]
) -> tuple[int, dict[int, _Int64s], dict[int, tuple[_Int64s, _Int64s]]]: ...
def node_times(message: bytes, *, is_run_metadata: bool) -> list[tuple[_Int64s, _Int64s]]: ...
def order_by_device_and_start(tables: Sequence[tuple[npt.NDArray[np.uint32], _Int64s]]) -> _Int64s: ...
def overlap_length(starts: _Int64s, ends: _Int64s, other_starts: _Int64s, other_ends: _Int64s) -> int: ...
def read_activities(
    message: Buffer,
    *,
    is_run_metadata: bool,
    offset_ns: int,
    tables: Sequence[tuple[int, Sequence[tuple[int, int]]]],
) -> tuple[list[list[npt.NDArray[np.uint8]]], bytes, int]: ...
def survey(message: bytes, *, is_run_metadata: bool) -> tuple[int, int] | None: ...
def sweep_devices(
    tables: Sequence[_Activities], window: tuple[int, int] | None
) -> list[tuple[int, int, int, int, _Int64s, _Int64s]]: ...
def sweep_groups(groups: _Int64s, starts: _Int64s, ends: _Int64s, count: int) -> tuple[_Int64s, _Int64s]: ...
def tensorflow_timeline(
    message: Buffer,
    *,
    is_run_metadata: bool,
    show_dataflow: bool,
    show_memory: bool,
    op_time: str,
    pretty: bool,
    data_type_names: Mapping[int, str],
) -> str | None: ...
def times_by_number(starts: _Int64s, ends: _Int64s, begin_ns: int, end_ns: int) -> _Int64s: ...
def trace_writers() -> list[str]: ...
def write_trace(
    message: Buffer,
    write: Callable[[memoryview], object],
    *,
    is_run_metadata: bool,
    writer: str,
    keep_device: Callable[[str], bool] | None,
    keep_name: Callable[[str], bool] | None,
    min_duration_ns: int,
    window_start_ns: int | None,
    window_end_ns: int | None,
    window_origin_ns: int | None,
    max_slices: int | None,
    arrows: bool,
    counters: bool,
    label: str,
    base_ns: int | None,
    remarks: _Remarks,
    labels: Mapping[str, str],
    thread_processes: Mapping[int, int],
    event_records: _EventRecords,
    op_details: _OpDetails,
    collectives: _OpDetails,
    call_ops: _OpDetails,
    sampled: _Sampled,
    describe: Callable[[dict[str, int]], str],
) -> dict[str, int]: ...
