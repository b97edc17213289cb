"""`prof code` of PyTorch's traces: each kernel is placed where the Python functions open at its launch say."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter

import pytest

from collector.cli import main
from collector.profiler import Profiler
from collector.profiler.profile_options import Options

FRAME = re.compile(r"(.+)\((\d+)\): (.+)", re.DOTALL)
ALL = Options(max_depth=1000, order_by="micros")


def function(name, start, duration, thread=31):
    return {"ph": "X", "cat": "python_function", "name": name, "pid": 9, "tid": thread, "ts": start, "dur": duration}


def launched(correlation, at, duration, thread=31, name="gemm"):
    """A call and the kernel that it launched."""
    arguments = {"correlation": correlation}
    return [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": thread, "ts": at, "dur": 1,
         "args": arguments},
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 1000, "dur": duration,
         "args": {**arguments, "device": 0, "stream": 7}},
    ]  # fmt: skip


EVENTS = [
    function("/home/jane/train.py(3): <module>", 0, 1000),
    function("/home/jane/model.py(7): forward", 10, 300),
    function("/home/jane/model.py(20): attend", 20, 50),
    function("<built-in method matmul of type object at 0x7f0000000000>", 21, 10),
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 31, "ts": 22, "dur": 8},
    *launched(1, 23, 70),  # in attend, called by forward
    *launched(2, 200, 30),  # in forward, after attend
    function("/home/jane/model.py(20): attend", 400, 50),
    *launched(3, 410, 8),  # in attend, called by the module
    function("worker.py(1): run", 0, 1000, thread=32),
    *launched(4, 405, 5, thread=32),
    *launched(5, 5000, 2),  # after all functions
]
EXPECTED = {
    ("train.py:3:<module>", "model.py:7:forward", "model.py:20:attend"): 70,
    ("train.py:3:<module>", "model.py:7:forward"): 30,
    ("train.py:3:<module>", "model.py:20:attend"): 8,
    ("worker.py:1:run",): 5,
}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": EVENTS}))
    return path


def micros_by_stack(path):
    """Call stack in the view -> the accelerator's time of what was launched there, without inner functions."""
    profiler = Profiler()
    profiler.add_recorded_step(0, path)
    found = Counter()

    def walk(node, above):
        stack = (*above, node.name)
        found[stack] += node.accelerator_exec_micros
        for child in node.children:
            walk(child, stack)

    for child in profiler.reporter.ask("code", ALL).message.children:
        walk(child, ())
    return +found


def launched_by_stack(events):
    """The same from the events: of each kernel, copy and memset the functions that were open when its call began."""
    functions, calls = {}, {}
    for event in events:
        category = str(event.get("cat", "")).lower()
        thread = event.get("pid"), event.get("tid")
        if category == "python_function" and (frame := FRAME.fullmatch(event["name"])):
            name = f"{frame[1].rpartition('/')[2]}:{frame[2]}:{frame[3]}"
            functions.setdefault(thread, []).append((event["ts"], -event["dur"], name))
        elif category in ("cuda_runtime", "cuda_driver") and event["args"].get("correlation"):
            calls.setdefault(event["args"]["correlation"], (thread, event["ts"]))
    found = Counter()
    for event in events:
        call = calls.get((event.get("args") or {}).get("correlation"))
        if str(event.get("cat", "")).lower() in ("kernel", "gpu_memcpy", "gpu_memset") and call:
            thread, at = call
            stack = [name for start, length, name in sorted(functions.get(thread, ())) if start <= at < start - length]
            if stack:
                found[tuple(stack)] += event["dur"]
    return +found


def test_kernels_are_placed_by_the_functions_open_at_their_launch(trace):
    assert launched_by_stack(EVENTS) == EXPECTED
    assert micros_by_stack(trace) == EXPECTED


def test_stacks_that_ops_state_place_what_they_launched(tmp_path):
    """PyTorch writes a stack from the innermost frame outwards, on request and without slices of Python's functions."""
    stated = "/home/jane/model.py(7): forward;/home/jane/train.py(3): <module>"
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 31, "ts": 22, "dur": 8}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{**op, "args": {"Call stack": stated}}, *launched(1, 23, 70)]}))
    assert micros_by_stack(path) == {("train.py:3:<module>", "model.py:7:forward"): 70}


@pytest.mark.medium
@pytest.mark.parametrize("name", ["h100_transformer_before", "h100_transformer_after"])
def test_stacks_of_recorded_traces(shared, name):
    path = shared / "data" / "gpu_traces" / "torch_tutorial" / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    expected = launched_by_stack(events)
    assert sum(expected.values()) > 0
    assert micros_by_stack(path) == expected


def test_the_command_shows_files_without_folders(trace, capsys):
    assert main(["prof", str(trace), "code"]) == 0
    out = capsys.readouterr().out
    lines = [re.match(r" *(\S+) \(\S+, (\w+)/(\w+),", line) for line in out.splitlines()]
    assert [found.groups() for found in lines if found] == [
        ("train.py:3:<module>", "0us", "108us"),
        ("model.py:7:forward", "30us", "100us"),
        ("model.py:20:attend", "70us", "70us"),
        ("model.py:20:attend", "8us", "8us"),
        ("worker.py:1:run", "5us", "5us"),
    ]
    assert "jane" not in out
    assert "<built-in" not in out


def test_functions_are_no_ops_of_kernels(trace):
    profiler = Profiler()
    profiler.add_recorded_step(0, trace)
    scopes = profiler.reporter.ask("scope", ALL).message
    on_gpu = {child.name for child in scopes.children if child.total_accelerator_exec_micros}
    assert on_gpu == {"aten.mm", "gemm"}
