"""The simulator's shared library: its path, functions and structs, which mirror native/simulator/control.h."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from functools import lru_cache
from pathlib import Path

from collector.errors import CollectorError

LIBRARY_NAME = "libcollector_simulator.so"
_EXTENSION, _FOLDER = "collector._native", "testing"
"""The compiled module, and the folder beside it that has the library.

The folders of the package ``collector.testing`` do not tell: of an editable installation, pytest's import hook knows
only the folder of the sources.
"""


class Config(ctypes.Structure):
    """The options to open it with."""

    _fields_ = (
        ("cuda", ctypes.c_int32),
        ("api_version", ctypes.c_uint32),
        ("driver_version", ctypes.c_int32),
        ("devices", ctypes.c_int32),
        ("start_ns", ctypes.c_int64),
        ("api_call_ns", ctypes.c_int64),
        ("launch_latency_ns", ctypes.c_int64),
        ("gap_ns", ctypes.c_int64),
        ("follow_real_time", ctypes.c_int32),
        ("deliver_from_caller", ctypes.c_int32),
        ("abort_on_fatal", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("device_name", ctypes.c_char_p),
    )


class Activity(ctypes.Structure):
    """One operation, to execute or to replay."""

    _fields_ = (
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("launch_start_ns", ctypes.c_int64),
        ("launch_end_ns", ctypes.c_int64),
        ("num_bytes", ctypes.c_uint64),
        ("graph_node_id", ctypes.c_uint64),
        ("source_graph_node_id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_uint32),
        ("launch", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("context", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("correlation", ctypes.c_uint32),
        ("grid", ctypes.c_int32 * 3),
        ("block", ctypes.c_int32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("registers_per_thread", ctypes.c_uint32),
        ("static_shared_bytes", ctypes.c_int32),
        ("dynamic_shared_bytes", ctypes.c_int32),
        ("local_bytes_per_thread", ctypes.c_uint32),
        ("launch_type", ctypes.c_uint32),
        ("graph_id", ctypes.c_uint32),
        ("copy_kind", ctypes.c_uint32),
        ("src_kind", ctypes.c_uint32),
        ("dst_kind", ctypes.c_uint32),
        ("src_device", ctypes.c_uint32),
        ("dst_device", ctypes.c_uint32),
        ("is_async", ctypes.c_uint32),
        ("value", ctypes.c_uint32),
        ("memory_kind", ctypes.c_uint32),
    )


LATENCIES = ("count", "total_ns", "max_ns", "p50_ns", "p99_ns", "p9999_ns")
COUNTS = (
    "buffers_requested",
    "buffers_completed",
    "buffers_declined",
    "buffers_outstanding",
    "bytes_completed",
    "records_written",
    "launches",
)


class Latency(ctypes.Structure):
    """Durations of a client callback."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in LATENCIES)


class Counts(ctypes.Structure):
    """The simulator's counts so far."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in COUNTS)


def library_path() -> Path:
    """The path of the simulator's shared library.

    Raises:
        CollectorError: it was not built.
    """
    named = os.environ.get("COLLECTOR_SIMULATOR")
    if named:
        return Path(named)
    extension = importlib.util.find_spec(_EXTENSION)
    if extension is not None and extension.origin is not None:
        path = Path(extension.origin).with_name(_FOLDER) / LIBRARY_NAME
        if path.exists():
            return path
    raise CollectorError(
        f"the simulator's library {LIBRARY_NAME} is not installed", "Install the package with pip, which builds it"
    )


@lru_cache(maxsize=4)
def load(path: str) -> ctypes.CDLL:
    """The library with its signatures declared."""
    library = ctypes.CDLL(path)
    text, u32, i64, u64 = ctypes.c_char_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
    activity = ctypes.POINTER(Activity)
    for name, result, arguments in (
        ("sim_open", ctypes.c_int, [ctypes.POINTER(Config)]),
        ("sim_close", None, []),
        ("sim_execute", u32, [activity, i64, u64]),
        ("sim_replay", None, [activity, u64]),
        ("sim_launch_graph", u32, [activity, ctypes.POINTER(i64), u64, u32]),
        ("sim_begin_capture", ctypes.c_void_p, [u32, ctypes.c_void_p]),
        ("sim_add_child_graph", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
        ("sim_add_conditional", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
        ("sim_end_capture", ctypes.c_int, []),
        ("sim_new_graph_id", u32, []),
        ("sim_graph_id", u32, [ctypes.c_void_p]),
        ("sim_instantiate", ctypes.c_void_p, [ctypes.c_void_p]),
        ("sim_clone_graph", ctypes.c_void_p, [ctypes.c_void_p]),
        ("sim_update_graph", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
        ("sim_add_empty_node", ctypes.c_int, [ctypes.c_void_p]),
        ("sim_set_kernel", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, u32, ctypes.c_char_p, i64]),
        ("sim_set_child_graph", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, u32, ctypes.c_void_p]),
        ("sim_destroy_graph", ctypes.c_int, [ctypes.c_void_p]),
        ("sim_launch_executable", u32, [ctypes.c_void_p, u32]),
        ("sim_synchronize", u32, [u32, i64, u32]),
        ("sim_query", ctypes.c_int, [u32, u32]),
        ("sim_record_event", u32, [u32, u32, u32]),
        ("sim_wait_event", ctypes.c_int, [u32, u32, u32]),
        ("sim_synchronize_event", ctypes.c_int, [u32]),
        ("sim_api_call", u32, [text, text]),
        ("sim_allocate", u64, [u32, u64, u32, i64, u32]),
        ("sim_free", ctypes.c_int, [u64, i64, u32]),
        ("sim_overhead", None, [u32, i64]),
        ("sim_jit", None, [u32, u32, u64, i64]),
        ("sim_create_context", u32, [u32]),
        ("sim_context_error", u32, []),
        ("sim_now", i64, []),
        ("sim_advance", None, [i64]),
        ("sim_count_ticks", None, [i64, u32]),
        ("sim_wait_until_idle", ctypes.c_int, [i64]),
        ("sim_reload_module", ctypes.c_int, [text, text]),
        ("sim_inject", ctypes.c_int, [text, i64, i64, i64, text]),
        ("sim_return_kept_buffers", None, []),
        ("sim_clear_faults", None, []),
        (
            "sim_fault",
            text,
            [
                u64,
                ctypes.POINTER(text),
                ctypes.POINTER(i64),
                ctypes.POINTER(ctypes.c_int),
                ctypes.POINTER(text),
                ctypes.POINTER(u64),
            ],
        ),
        ("sim_misuse", text, [u64, ctypes.POINTER(text), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(u64)]),
        ("sim_counts", None, [ctypes.POINTER(Counts)]),
        ("sim_records_of_kind", u64, [u32]),
        ("sim_function", text, [u64, ctypes.POINTER(u64)]),
        ("sim_logged_call", text, [u64, ctypes.POINTER(u32), ctypes.POINTER(u32)]),
        ("sim_callback_latency", None, [u32, ctypes.POINTER(Latency)]),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
