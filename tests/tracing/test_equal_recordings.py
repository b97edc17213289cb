"""A program is recorded alike in a trace of its own, as a step inside a recording, and in journals."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collector
from collector import _native
from collector.options import KINDS, KINDS_ON_REQUEST
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.recording.text_columns import text_column
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = [
    pytest.mark.simulator,
    pytest.mark.medium,
    pytest.mark.filterwarnings("ignore:annotations name"),
]

STREAMS = (7, 8, 9)
NUMBERED = ("correlation_id", "external_id", "captured_external_id", "details_id", "thread_id", "end_thread_id")
"""Columns of which the numbers differ from one recording to the next."""
OF_CAPTURE = ("records_decoded", "buffers_requested", "buffers_completed", "bytes_completed", "decode_cpu_ns",
    "callback_calls", "work_not_awaited", "bytes_mapped")  # fmt: skip
"""Figures of the ledger about the way of recording."""


class Program:
    """Runs operations in two threads."""

    def __init__(self, gpu: SimulatedGpu, nvtx: NvtxCopy, other: Executor) -> None:
        self.gpu, self.nvtx, self.other = gpu, nvtx, other
        self.domains = [None, nvtx.DomainCreateA(b"one"), nvtx.DomainCreateA(b"two")]
        self.pushed: dict[bool, list[Any]] = {True: [], False: []}
        self.started: list[tuple[Any, int]] = []
        self.entered: list[collector.annotate] = []
        self.allocated: list[int] = []
        self.graphs: list[Any] = []
        self.context = gpu.create_context()
        self.is_other = False
        self.forget_names()

    def run(self, operations: list[tuple[str, int, bool]]) -> None:
        for name, number, self.is_other in operations:
            self.call(OPERATIONS[name], number)
            self.gpu.advance(7)

    def call(self, operation: Operation, number: int) -> None:
        """Run an operation in its thread."""
        if self.is_other:
            self.other.submit(operation, self, number).result()
        else:
            operation(self, number)

    def leave(self) -> None:
        """Leave the annotations and the ranges of threads; others stay open."""
        self.leave_annotations()
        for self.is_other in (False, True):
            while self.pushed[self.is_other]:
                self.call(Program.pop, 0)

    def leave_annotations(self) -> None:
        while self.entered:
            self.entered.pop().__exit__(None, None, None)

    def forget_names(self) -> None:
        """Take back the names of objects, which the process keeps."""
        for stream in STREAMS:
            self.nvtx.NameCudaStreamA(stream, b"")
        self.nvtx.NameCudaDeviceA(0, b"")
        self.nvtx.NameOsThreadA(threading.get_native_id(), b"")
        for domain in self.domains:
            for category in range(4):
                self.nvtx.DomainNameCategoryA(domain, category, b"")

    def end(self) -> None:
        self.forget_names()
        self.leave()
        while self.started:
            self.nvtx.DomainRangeEnd(*self.started.pop())

    def said(self, number: int) -> Any:
        stated = {"category": number % 4, "color_type": 1, "color": number, "payload_type": 1, "payload": number}
        return attributes(b"range %d" % (number % 7), **(stated if number % 2 else {}))

    def push(self, number: int) -> None:
        domain = self.domains[number % 3]
        self.nvtx.DomainRangePushEx(domain, self.said(number))
        self.pushed[self.is_other].append(domain)

    def pop(self, _: int) -> None:
        if self.pushed[self.is_other]:
            self.nvtx.DomainRangePop(self.pushed[self.is_other].pop())

    def start(self, number: int) -> None:
        domain = self.domains[number % 3]
        self.started.append((domain, self.nvtx.DomainRangeStartEx(domain, self.said(number))))

    def end_started(self, number: int) -> None:
        if self.started:
            self.nvtx.DomainRangeEnd(*self.started.pop(number % len(self.started)))

    def enter(self, number: int) -> None:
        if not self.is_other:
            annotation = collector.annotate(f"op {number % 5}", **({"flops": number} if number % 3 else {}))
            self.entered.append(annotation)
            annotation.__enter__()

    def leave_one(self, _: int) -> None:
        if self.entered and not self.is_other:
            self.entered.pop().__exit__(None, None, None)

    def allocate(self, number: int) -> None:
        if self.allocated and number % 2:
            self.gpu.free(self.allocated.pop())
        else:
            self.allocated.append(self.gpu.malloc(number + 1))

    def event(self, number: int) -> None:
        event = self.gpu.record_event(stream=STREAMS[number % 3])
        self.gpu.wait_event(event, stream=7)
        if number % 2:
            self.gpu.synchronize_event(event)

    def graph(self, number: int) -> None:
        named = contextlib.nullcontext() if self.is_other else collector.annotate("captured")
        with self.gpu.capture() as captured, named:
            self.gpu.launch(f"node {number % 3}")
        self.graphs.append(captured.instantiate())

    def launch_graph(self, number: int) -> None:
        if self.graphs:
            self.graphs[number % len(self.graphs)].launch(stream=STREAMS[number % 3])

    def name_category(self, number: int) -> None:
        self.nvtx.DomainNameCategoryA(self.domains[number % 3], number % 4, b"category %d" % (number % 5))


Operation = Callable[[Program, int], Any]
OPERATIONS: dict[str, Operation] = {
    "launch": lambda run, n: run.gpu.launch(f"kernel {n % 5}", stream=STREAMS[n % 3], duration_ns=10 * n),
    "launch in a context": lambda run, n: run.gpu.launch("kernel", stream=STREAMS[n % 3], context=run.context),
    "copy": lambda run, n: run.gpu.memcpy("HtoD", 64 * n + 1, stream=STREAMS[n % 3]),
    "copy to a peer": lambda run, n: run.gpu.memcpy_peer(0, 1, n + 1),
    "fill": lambda run, n: run.gpu.memset(n + 1, stream=STREAMS[n % 3]),
    "wait": lambda run, n: run.gpu.synchronize(**({"stream": STREAMS[n % 3], "device": 0} if n % 2 else {})),
    "allocate": Program.allocate,
    "query": lambda run, n: run.gpu.query(stream=STREAMS[n % 3]),
    "event": Program.event,
    "compile": lambda run, _: run.gpu.jit(),
    "graph": Program.graph,
    "launch a graph": Program.launch_graph,
    "push": Program.push,
    "pop": Program.pop,
    "start": Program.start,
    "end": Program.end_started,
    "mark": lambda run, n: run.nvtx.DomainMarkEx(run.domains[n % 3], run.said(n)),
    "enter": Program.enter,
    "leave": Program.leave_one,
    "name a stream": lambda run, n: run.nvtx.NameCudaStreamA(STREAMS[n % 3], b"stream %d" % n),
    "name a GPU": lambda run, n: run.nvtx.NameCudaDeviceA(0, b"GPU %d" % n),
    "name a thread": lambda run, n: run.nvtx.NameOsThreadA(threading.get_native_id(), b"thread %d" % n),
    "name a category": Program.name_category,
    "pass time": lambda run, n: run.gpu.advance(n),
}
BEFORE = sorted(set(OPERATIONS) - {"graph"})
"""A trace of its own does not know graphs that were captured before it, which a recording knows."""


def facts(recording: Recording) -> dict[str, Any]:
    """The rows of all tables, without numbers that differ; their times since the begin; losses and names."""
    begin_ns, end_ns = recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns
    found: dict[str, Any] = {"length": end_ns - begin_ns}
    for name in SCHEMA:
        table = getattr(recording, name)
        columns = {}
        for column, values in table.columns.items():
            if text_column(column):
                columns[column] = table.texts(column)
            elif column in ("start_ns", "end_ns"):
                columns[column] = (values - begin_ns).tolist()
            elif column not in NUMBERED:
                columns[column] = values.tolist()
        if name in ACTIVITY_TABLES:
            columns["annotation"] = recording.annotations_of(table)
        if name == "annotations":
            details = [None, *recording.details]
            columns["details"] = [str(details[row]) for row in table.details_id.tolist()]
        found[name] = Counter(zip(*columns.values(), strict=True))
    figures = recording.ledger.as_dict().items()
    found["ledger"] = {name: count for name, count in figures if count and name not in OF_CAPTURE}
    found["labels"] = recording.environment.get("device_labels")
    names = recording.environment.get("thread_names", {}).values()
    found["threads"] = sorted(name for name in names if name.startswith("thread "))
    return found


@pytest.fixture(scope="module")
def nvtx() -> NvtxCopy:
    """A copy of NVTX that calls our handler, behind a first trace: names given before it may not be known."""
    copy = NvtxCopy(_native.capture_library())
    with SimulatedGpu() as gpu, collector.trace(strict=True):
        gpu.launch("kernel")
    return copy


def operations(names: list[str], most: int) -> st.SearchStrategy[list[tuple[str, int, bool]]]:
    return st.lists(st.tuples(st.sampled_from(names), st.integers(0, 999), st.booleans()), max_size=most)


CHOICES = (KINDS, (*KINDS, *KINDS_ON_REQUEST), ("kernels", "memcpys"), ("kernels", "runtime_api"))


@settings(deadline=None, max_examples=60)
@given(
    before=operations(BEFORE, 10),
    inside=operations(sorted(OPERATIONS), 40),
    kinds=st.sampled_from(CHOICES),
    synchronize=st.booleans(),
)
def test_a_step_is_the_same_in_a_trace_in_a_recording_and_in_journals(
    nvtx: NvtxCopy,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int, bool]],
    inside: list[tuple[str, int, bool]],
    kinds: tuple[str, ...],
    synchronize: bool,
) -> None:
    def recorded(*, is_part: bool = False, **options: Any) -> dict[str, Any]:
        with SimulatedGpu(devices=2) as gpu, ThreadPoolExecutor(1) as other, contextlib.ExitStack() as stack:
            program = Program(gpu, nvtx, other)
            if is_part:
                folder = tmp_path_factory.mktemp("dumps")
                stack.enter_context(collector.record(kinds=kinds, folder=folder, strict=True))
            program.run(before)
            program.leave()
            gpu.synchronize()
            with collector.trace(kinds=kinds, synchronize=synchronize, strict=True, **options) as step:
                program.run(inside)
                program.leave_annotations()  # a trace of its own would end them before it waits
                gpu.synchronize()
                gpu.advance(1000)
            program.end()
            return facts(step.recording)

    plain = recorded()
    assert recorded(is_part=True) == plain
    folder: Path = tmp_path_factory.mktemp("journals")
    assert recorded(journal=folder / "step.journal") == plain
    assert recorded(journal=folder / "segments", stream=True) == plain
