"""Recording -> Chrome trace -> recording: every row of a timeline comes back, with all that its slice states."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.any_recording import recordings
from support.properties import examples

from collector.formats.loading import load
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.timeline import chrome_trace

_OF_GRAPHS = ("graph_id", "graph_node_id", "graph_degree")
SHOWN = {
    "kernels": (
        "device_id", "stream_id", "context_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
        "registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "launch_type", "priority",
        "local_bytes_per_thread", *_OF_GRAPHS,
    ),
    "memcpys": (
        "device_id", "stream_id", "context_id", "copy_kind", "src_kind", "dst_kind", "num_bytes", "is_async",
        "src_device_id", "src_context_id", "dst_device_id", "dst_context_id", *_OF_GRAPHS,
    ),
    "memsets": ("device_id", "stream_id", "context_id", "memory_kind", "num_bytes", "value", "is_async", *_OF_GRAPHS),
    "api_calls": ("process_id", "thread_id", "correlation_id", "return_value"),
    "annotations": ("thread_id",),
    "synchronizations": ("sync_type", "stream_id", "context_id", "correlation_id", "return_value", "event_sync_id"),
    "overheads": ("overhead_kind", "correlation_id"),
    "jit_operations": (
        "jit_operation_type", "jit_entry_type", "device_id", "process_id", "thread_id", "correlation_id", "jit_id",
        "cache_bytes",
    ),
    "memory_operations": (
        "operation", "memory_kind", "address", "num_bytes", "device_id", "correlation_id", "context_id", "stream_id",
        "is_async", "pool_type", "pool_address", "pool_bytes", "pool_used_bytes",
    ),
    "nvtx_ranges": ("range_kind", "thread_id", "color"),
    "graph_launches": ("device_id", "graph_id", "num_nodes", "stream_id", "context_id", "correlation_id"),
    "other_ranges": ("correlation_id",),
}  # fmt: skip
"""Table -> the columns that its slices state, besides times and names."""
_SIZES = (
    "num_bytes", "graph_node_id", "jit_id", "cache_bytes", "event_sync_id", "pool_bytes", "pool_used_bytes",
)  # fmt: skip
_LARGEST = {**dict.fromkeys(_SIZES, 1 << 53), **dict.fromkeys(("address", "pool_address"), 1 << 60)}
"""Column -> the number from which on its values are not read: JSON readers keep numbers in doubles."""
_NAMED = ("annotations", "nvtx_ranges", "other_ranges")


def shown(recording, table):
    """The rows of a table with the columns that slices state; values without a JSON number, and impossible shapes and
    sizes, are 0."""
    rows, found = getattr(recording, table), Counter()
    offset_ns = recording.clock.offset_ns
    names = rows.recorded_names() if table in _NAMED else [""] * len(rows)
    for row, name in zip(rows, names, strict=True):
        end_ns = getattr(row, "end_ns", row.start_ns)
        values = [row.start_ns + offset_ns, end_ns + offset_ns, "" if name == "(no name)" else name]
        for column in SHOWN[table]:
            value = getattr(row, column)
            if column[:-1] in ("grid_", "block_") and min(getattr(row, f"{column[:-1]}{axis}") for axis in "xyz") < 0:
                value = 0
            if column.endswith("_shared_bytes"):
                value = max(value, 0)
            if value >= _LARGEST.get(column, 1 << 64):
                value = 0
            values.append(value)
        found[tuple(values)] += 1
    return found


@pytest.mark.medium
@settings(max_examples=examples(300))
@given(recording=recordings(4), prefix=st.sampled_from(["", "/job:worker/replica:0/task:3"]))
def test_rows_come_back_from_their_slices(tmp_path_factory, recording, prefix):
    path = tmp_path_factory.mktemp("drawn") / "step.json"
    chrome_trace(Step(RecordingSource(recording, prefix)), path)
    found = load(path).recording
    for table in SHOWN:
        assert shown(found, table) == shown(recording, table), table
