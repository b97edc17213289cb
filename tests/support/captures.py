"""Captures and sources made by hand, for tests that need no native extension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collector.recording.capture import empty_capture
from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA

START_NS = 1_700_000_000_000_000_000
"""The begin of the window of every capture made here; times are given relative to it."""
WINDOW_NS = 1_000_000


class CaptureBuilder:
    """A capture of a window of 1 ms, filled row by row; times are ns from its begin."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMA}
        self.strings = [""]  # the name of rows without one, as in every capture of ours
        self.counters: dict[str, int] = {}
        self.environment: dict[str, Any] = {"source": "test", "simulated": True}
        self.clock = {
            "cupti_start_ns": START_NS,
            "cupti_stop_ns": START_NS + WINDOW_NS,
            "wall_start_ns": START_NS,
            "wall_stop_ns": START_NS + WINDOW_NS,
            "uncertainty_ns": 100,
        }

    def text(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def raw(self, table: str, **values: Any) -> CaptureBuilder:
        """Add a row with exactly these values; other columns are 0."""
        self.rows[table].append(values)
        return self

    def _add(self, table: str, start: int, duration: int, values: dict[str, Any]) -> CaptureBuilder:
        times = {"start_ns": START_NS + start, "end_ns": START_NS + start + duration}
        if "name" in values:
            values["name_id"] = self.text(values.pop("name"))
        return self.raw(table, **{**times, **values})

    def kernel(self, name: str, start: int, duration: int = 1000, **values: Any) -> CaptureBuilder:
        row = {"stream_id": 7, "context_id": 1, "grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 32, "block_y": 1}
        return self._add("kernels", start, duration, {**row, "block_z": 1, "name": name, **values})

    def memcpy(self, start: int, duration: int = 1000, **values: Any) -> CaptureBuilder:
        row = {"stream_id": 7, "context_id": 1, "copy_kind": 1, "src_kind": 1, "dst_kind": 3, "num_bytes": 4096}
        return self._add("memcpys", start, duration, {**row, **values})

    def memset(self, start: int, duration: int = 1000, **values: Any) -> CaptureBuilder:
        row = {"stream_id": 7, "context_id": 1, "memory_kind": 3, "num_bytes": 4096}
        return self._add("memsets", start, duration, {**row, **values})

    def whole_graph(self, start: int, duration: int = 1000, **values: Any) -> CaptureBuilder:
        row = {"stream_id": 7, "context_id": 1, "graph_id": 6, "graph_degree": DEGREE_WHOLE_GRAPH, "name": ""}
        return self._add("graph_launches", start, duration, {**row, **values})

    def call(self, name: str, start: int, duration: int = 500, **values: Any) -> CaptureBuilder:
        return self._add("api_calls", start, duration, {"thread_id": 11, "name": name, **values})

    def launch(self, correlation: int, start: int, **values: Any) -> CaptureBuilder:
        """A runtime launch and the driver launch inside it, which share the correlation id."""
        self.call("cuLaunchKernel", start + 100, 200, correlation_id=correlation, domain=1, **values)
        return self.call("cudaLaunchKernel_v7000", start, 500, correlation_id=correlation, domain=2, **values)

    def annotation(self, path: str, start: int, duration: int, external: int, *correlations: int) -> CaptureBuilder:
        for correlation in correlations:
            self.raw("external_correlations", correlation_id=correlation, external_id=external, external_kind=5)
        return self._add("annotations", start, duration, {"name": path, "thread_id": 11, "external_id": external})

    def capture(self) -> Any:
        capture = empty_capture()
        for table, rows in self.rows.items():
            capture["tables"][table] = {
                column: np.array([row.get(column, 0) for row in rows], np.dtype(dtype))
                for column, dtype in SCHEMA[table].items()
            }
        capture["strings"] = list(self.strings)
        capture["counters"] = dict(self.counters)
        capture["clock"] = dict(self.clock)
        capture["environment"] = dict(self.environment)
        return capture

    def recording(self) -> Recording:
        return Recording.from_capture(self.capture())


class FakeSource:
    """A source that returns a given capture, and fails on request."""

    name = "fake"

    def __init__(self, capture: Any = None) -> None:
        self.capture = capture
        self.fail: dict[str, BaseException] = {}
        self.calls: list[str] = []
        self.paths: list[str | None] = []
        self.options: Any = None

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fail:
            raise self.fail[name]

    def probe(self) -> dict[str, Any]:
        return {"available": True}

    def start(self, options: Any) -> None:
        self.options = options
        self._call("start")

    def stop(self, *, synchronize: bool, timeout_ms: int) -> Any:
        self._call("stop")
        return empty_capture() if self.capture is None else self.capture

    def abort(self) -> None:
        self._call("abort")

    def push_annotation(self, path: str) -> None:
        self.paths.append(path)

    def pop_annotation(self) -> None:
        self.paths.append(None)


@pytest.fixture
def build() -> CaptureBuilder:
    """An empty capture to fill."""
    return CaptureBuilder()


@pytest.fixture
def start_ns() -> int:
    """The begin of the window of `build`."""
    return START_NS


@pytest.fixture
def fake_source() -> type[FakeSource]:
    """A source that the test controls."""
    return FakeSource


@pytest.fixture
def step_capture(build: CaptureBuilder) -> Any:
    """A small step: a copy, an annotated kernel, a memset, with their calls."""
    build.launch(1, 1000).kernel("_Z3addIfEvPT_i", 5000, 2000, correlation_id=1, registers_per_thread=16)
    build.annotation("layer1/conv", 900, 3000, 77, 1)
    build.call("cudaMemcpyAsync_v3020", 8000, correlation_id=2).memcpy(9000, 1024, correlation_id=2)
    build.call("cudaMemsetAsync_v3020", 11_000, correlation_id=3).memset(12_000, 512, correlation_id=3)
    return build.capture()


@pytest.fixture
def example(example_builder: CaptureBuilder) -> Recording:
    """The recording of the worked example, by which every definition is checked."""
    return example_builder.recording()


@pytest.fixture
def example_builder(build: CaptureBuilder) -> CaptureBuilder:
    """The worked example, to which more may be added."""
    return worked_example(build)


def worked_example(build: CaptureBuilder) -> CaptureBuilder:
    """A step of 1,000 ns on device 0, small enough to be counted by hand.

    Calls, start to end: launches 1 at 0-20, 2 at 30-50, 5 at 90-110, 4 at 300-320, 7 at 750-770; an asynchronous copy 3
    at 60-80; a synchronisation with stream 7 at 330-700; a launch of a graph of two kernels, 8, at 775-795.
    """
    build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + 1000
    for correlation, start, end in ((1, 0, 20), (2, 30, 50), (5, 90, 110), (4, 300, 320), (7, 750, 770)):
        build.call("cudaLaunchKernel_v7000", start, end - start, correlation_id=correlation)
    build.call("cudaMemcpyAsync_v3020", 60, 20, correlation_id=3)
    build.call("cudaStreamSynchronize_v3020", 330, 370, correlation_id=6)
    build.call("cudaGraphLaunch_v10000", 775, 20, correlation_id=8)
    for name, stream, start, end, correlation in (
        ("A", 7, 100, 200, 1),
        ("B", 7, 200, 250, 2),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 240, 400, 5),
        ("D", 7, 420, 690, 4),
        ("F", 7, 800, 850, 7),
        ("G1", 7, 860, 900, 8),
        ("G2", 7, 890, 930, 8),
    ):
        build.kernel(name, start, end - start, stream_id=stream, correlation_id=correlation)
    build.memcpy(120, 100, stream_id=8, correlation_id=3, num_bytes=4000)
    return build
