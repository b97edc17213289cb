"""Recordings with all kinds of rows and arbitrary values, for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.recording.text_columns import text_column

START_NS = 1_700_000_000_000_000_000
WINDOW_NS = 1_000_000
_SMALL = {"correlation_id", "external_id", "device_id", "context_id", "stream_id", "thread_id", "details_id"}
"""Columns that link rows: they have few values, so that links occur."""
_KINDS = {"copy_kind", "src_kind", "dst_kind", "memory_kind", "sync_type", "operation", "external_kind"}
_STRINGS = (
    "_Z3addIfEvPT_i",
    "sgemm",
    "odd@@name#1",
    "layer1/conv",
    "a:b::c",
    "cudaMemcpy_v3020",
    "loss/",
    "é",
    "",
    "/cpu:0",
)
_DETAILS = ([3, 4, "Conv2D", ["a:b::c", "sgemm"], [["/a.py", 7, "f", 5]]], [0, 0, "", [], []])


def recordings(max_rows: int = 6) -> st.SearchStrategy[Recording]:
    """Recordings of up to ``max_rows`` rows in each table, including rows outside of the step."""
    return st.builds(_recording, st.fixed_dictionaries({name: _rows(name, max_rows) for name in SCHEMA}), _clocks())


def _rows(table: str, max_rows: int) -> st.SearchStrategy[list[dict[str, int]]]:
    times = ("start_ns", "end_ns")
    columns = {name: _values(name, dtype) for name, dtype in SCHEMA[table].items() if name not in times}
    if "start_ns" in SCHEMA[table]:
        columns["start_ns"] = st.one_of(st.integers(0, 20), st.integers(-50, WINDOW_NS + 50), st.just(-START_NS))
        columns["duration"] = st.one_of(st.integers(0, 2000), st.integers(-5, WINDOW_NS))
    return st.lists(st.fixed_dictionaries(columns), max_size=max_rows)


def _values(column: str, dtype: str) -> st.SearchStrategy[int]:
    if text_column(column):
        return st.integers(0, len(_STRINGS) - 1)
    if column == "details_id":
        return st.integers(0, len(_DETAILS))
    if column in _SMALL:
        return st.integers(0, 3)
    if column in _KINDS:
        return st.integers(0, 12)
    limits = np.iinfo(dtype)
    few = st.sampled_from([0, 0, 1, int(limits.max), int(limits.min)])
    if column == "num_bytes":  # their sums are 64-bit numbers in TensorFlow's messages
        return st.one_of(st.integers(0, 1 << 40), st.just(0))
    return st.one_of(few, st.integers(int(limits.min), int(limits.max)))


def _clocks() -> st.SearchStrategy[dict[str, int]]:
    offset = st.sampled_from([0, -1, 3_600_000_000_007, -1_600_000_000_000_000_001])
    return st.builds(
        lambda offset, uncertainty: {
            "cupti_start_ns": START_NS,
            "cupti_stop_ns": START_NS + WINDOW_NS,
            "wall_start_ns": START_NS + offset,
            "wall_stop_ns": START_NS + offset + WINDOW_NS,
            "uncertainty_ns": uncertainty,
        },
        offset,
        st.sampled_from([0, 100]),
    )


def _recording(rows: dict[str, list[dict[str, int]]], clock: dict[str, int]) -> Recording:
    tables: dict[str, dict[str, Any]] = {}
    for table, columns in SCHEMA.items():
        for row in rows[table]:
            if "start_ns" in columns:
                row["start_ns"] += START_NS
                row["end_ns"] = row["start_ns"] + row["duration"]
        tables[table] = {name: np.array([row[name] for row in rows[table]], dtype) for name, dtype in columns.items()}
    return Recording.from_capture(
        {
            "tables": tables,
            "strings": list(_STRINGS),
            "counters": {"records_dropped": 3, "buffers": 2**40},
            "clock": clock,
            "environment": {
                "source": "test",
                "devices": {"0": "H100"},
                "thread_names": {"1": "loader"},
                "thread_devices": {"2": "/process:9"},
                "n": None,
            },
            "details": [list(each) for each in _DETAILS],
        }
    )
