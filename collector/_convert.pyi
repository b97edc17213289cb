from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

_Int64s = npt.NDArray[np.int64]
_Remarks = Sequence[tuple[str, str, int | None]]
"""(name, details, wall time in ns or None: the end)."""
_EventRecords = Sequence[tuple[int, int, int, int, int]]
"""(call, event, synchronisation, context, stream)."""
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

@final
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
        remarks: _Remarks,
        labels: Mapping[str, str],
        event_records: _EventRecords,
    ) -> tuple[int, int]: ...
    def mark(self, time_ns: int, name: str, details: str = "") -> None: ...
    def finish(self, metadata: str) -> None: ...

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
def devices(message: bytes, *, is_run_metadata: bool) -> list[bytes]: ...
def distinct_texts(data: Buffer, begins: _Int64s, ends: _Int64s) -> tuple[list[str], _Int64s]: ...
def encode_step(
    *,
    tables: Mapping[str, _Table],
    without_node: Sequence[_Table],
    texts: Mapping[str, Sequence[str]],
    annotation_label: npt.NDArray[np.uint32],
    outputs: _Messages | None,
    memory: _Messages | None,
    thread_names: bytes,
    known_external_id: npt.NDArray[np.integer],
    known_name_id: npt.NDArray[np.integer],
    annotation_external_kind: int,
    device_prefix: str,
    offset_ns: int,
    around: tuple[bytes, bytes] | None,
) -> bytes: ...
def gpu_labels(names: list[str], labels: list[str]) -> list[tuple[int, int, str, str, str, int, int, int]]: ...
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
def node_columns(
    device: Buffer, numbers: Sequence[int], texts: Sequence[int]
) -> tuple[int, dict[int, _Int64s], dict[int, tuple[_Int64s, _Int64s]]]: ...
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
    max_slices: int | None,
    arrows: bool,
    counters: bool,
    label: str,
    base_ns: int | None,
    remarks: _Remarks,
    labels: Mapping[str, str],
    event_records: _EventRecords,
    describe: Callable[[dict[str, int]], str],
) -> dict[str, int]: ...
