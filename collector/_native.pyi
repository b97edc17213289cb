from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from collector.recording.capture import Capture

class CaptureError(RuntimeError):
    kind: str
    cause: str
    remedy: str

class _StartOptions(TypedDict, total=False):
    libcupti: str
    libcuda: str
    search_roots: Sequence[str]
    kinds: Sequence[str]
    buffer_bytes: int
    max_buffers: int
    share_subscription: bool
    journal: str | bytes
    journal_only: bool
    segment_bytes: int
    ring_bytes: int
    ring_ns: int
    is_recorder: bool
    budget_millionths: int
    budget_period_ms: int
    nvtx_domains: Sequence[str]
    texts: Mapping[str, str]

class _DecodedBuffer(TypedDict):
    tables: dict[str, dict[str, npt.NDArray[np.generic]]]
    strings: list[str]
    counters: dict[str, int]
    strides: dict[str, int]

class _DecodeTimes(TypedDict):
    ns_decode: list[int]
    ns_memcpy: list[int]
    records: int
    bytes: int

class _NvtxStatus(TypedDict):
    libraries: list[str]
    domains: list[str]
    absent: list[str]
    next_tool_trouble: str
    thread_names: dict[int, str]
    failures: int
    device_names: dict[int, str]
    context_names: dict[int, str]
    stream_names: dict[tuple[int, int], str]
    names_unknown: int
    names_dropped: int
    names_cut: int

class _Mark(TypedDict):
    journal: bytes
    segment: int
    cupti_ns: int
    wall_ns: int
    uncertainty_ns: int
    own_thread_id: int
    own_from_ns: int
    held: list[tuple[int, int]]
    has_calls: bool
    losses: dict[str, int]
    is_up_to_date: bool

class _WatchedState(TypedDict):
    rows: int
    outstanding: int
    buffers_held: int
    error: int
    error_function: str
    is_broken: bool

def abort() -> None: ...
def annotation_calls(of_recorded_program: bool = False) -> object: ...
def benchmark_decode(buffer: Buffer, cuda_version: int, repeats: int) -> _DecodeTimes: ...
def capture_library() -> str: ...
def decode_buffer(buffer: Buffer, cuda_version: int = 13050, libcupti_path: str = "") -> _DecodedBuffer: ...
def demangle(name: str | bytes) -> str: ...
def instant() -> tuple[int, int, int] | None: ...
def is_active() -> bool: ...
def is_forked() -> bool: ...
def is_idle() -> bool: ...
def journal_trouble() -> str: ...
def listen(start: _StartOptions, socket_folder: str | bytes) -> None: ...
def listening_at() -> bytes: ...
def mark(wanted: str, synchronize: bool = False, timeout_ms: int = 5000) -> _Mark | None: ...
def note_facts(texts: Mapping[str, str], numbers: Mapping[str, int]) -> None: ...
def note_details(details: str) -> None: ...
def note_run_details(details: str) -> None: ...
def nvtx_copies() -> list[tuple[str, str]]: ...
def nvtx_status(wanted: Sequence[str] = []) -> _NvtxStatus: ...
def pack_rows(rows: Buffer, row_bytes: int, columns: Sequence[tuple[int, int, bool]]) -> bytes | None: ...
def pop_annotation() -> None: ...
def cupti_candidates(search_roots: Sequence[str]) -> list[str]: ...
def probe(libcupti: str = "", libcuda: str = "", search_roots: Sequence[str] = []) -> dict[str, object]: ...
def push_annotation(path: str, details: int = 0) -> None: ...
def remove_journal() -> None: ...
def start(options: _StartOptions) -> None: ...
def take_instantiated_graph() -> int: ...
def stop_listening() -> None: ...
def stop(synchronize: bool = True, timeout_ms: int = 5000, is_recorder: bool = False) -> Capture | None: ...
def watched_state() -> _WatchedState | None: ...
