"""Texts above the longest that is stored: the beginning is kept, and the ledger counts what was cut."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import collector
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator

LONGEST = 4096
CUT = "x" * (LONGEST - 3) + "…"


Use = Callable[[NvtxCopy, bytes], None]
"""Uses a text once in a range or mark."""


def push(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.RangePushA(text)
    nvtx.RangePop()


def push_wide(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.RangePushW(text.decode())
    nvtx.RangePop()


def push_registered(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.RangePushEx(attributes(nvtx.DomainRegisterStringA(None, text)))
    nvtx.RangePop()


def push_in_domain(nvtx: NvtxCopy, text: bytes) -> None:
    domain = nvtx.DomainCreateA(text)
    nvtx.DomainRangePushEx(domain, attributes(b"range"))
    nvtx.DomainRangePop(domain)


def push_in_category(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.NameCategoryA(1, text)
    nvtx.RangePushEx(attributes(b"range", category=1))
    nvtx.RangePop()


def push_op(nvtx: NvtxCopy, text: bytes) -> None:
    """Of an op with as many digits in the list of its sizes: a list of one text is as good."""
    nvtx.RangePushA(b"aten::cat, seq = 3, op_id = 5, sizes = [" + text[2:] + b"], input_op_ids = [(0,-1)]")
    nvtx.RangePop()


def mark(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.MarkA(text)


def start(nvtx: NvtxCopy, text: bytes) -> None:
    nvtx.RangeEnd(nvtx.RangeStartA(text))


def mark_in_domain(nvtx: NvtxCopy, text: bytes) -> None:
    """The name is as long as that of the domain."""
    nvtx.DomainMarkEx(nvtx.DomainCreateA(text), attributes(text))


def annotation_texts(column: str) -> Callable[[Recording], list[str]]:
    return lambda recording: recording.annotations.texts(column)


def range_texts(column: str) -> Callable[[Recording], list[str]]:
    return lambda recording: recording.nvtx_ranges.texts(column)


PLACES: list[tuple[Use, Callable[[Recording], list[str]]]] = [
    (push, annotation_texts("name_id")),
    (push_wide, annotation_texts("name_id")),
    (push_registered, annotation_texts("name_id")),
    (push_in_domain, annotation_texts("domain_name_id")),
    (push_in_category, annotation_texts("category_name_id")),
    (push_op, annotation_texts("shapes_text_id")),
    (mark, range_texts("name_id")),
    (start, range_texts("name_id")),
    (mark_in_domain, range_texts("domain_name_id")),
]


@pytest.mark.parametrize(("use", "texts"), PLACES, ids=[use.__name__ for use, _ in PLACES])
@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, 1 << 20])
def test_each_range_with_a_text_above_the_limit_is_counted(
    gpu: SimulatedGpu, nvtx: NvtxCopy, use: Use, texts: Callable[[Recording], list[str]], length: int
) -> None:
    with collector.trace() as step:
        for _ in range(3):
            use(nvtx, b"x" * length)
        gpu.launch("kernel")
    nvtx.NameCategoryA(1, b"")
    stored = [text.lstrip("[").rstrip("]").rstrip("…") for text in texts(step.recording)]
    assert [set(text) for text in stored] == [{"x"}] * 3
    is_cut = length > LONGEST
    assert {len(text.encode()) for text in texts(step.recording)} == {LONGEST}
    assert {text.endswith("…") for text in texts(step.recording)} == {is_cut}
    assert step.ledger.source_counters.get("names_cut", 0) == (3 if is_cut else 0)
    assert step.ledger.complete == (not is_cut)


def test_characters_are_not_cut_in_two(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace() as step:
        for length in range(2_040, 2_060):
            push(nvtx, ("é" * length).encode())
            push(nvtx, ("a" + "é" * length).encode())
        gpu.launch("kernel")
    kept = {name.rstrip("…") for name in step.recording.annotations.names()}
    assert {frozenset(name.lstrip("a")) for name in kept} == {frozenset("é")}
    assert step.ledger.source_counters["names_cut"] == (2_059 - 2_048) + (2_059 - 2_047)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1])
def test_names_of_threads_and_streams_above_the_limit_are_counted(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, length: int, stream: bool
) -> None:
    thread, text = threading.get_native_id(), b"x" * length
    try:
        with collector.trace(journal=tmp_path / "journal", stream=stream) as step:
            nvtx.NameOsThreadA(thread, text)
            nvtx.NameOsThreadA(os.getppid(), text)  # no thread of this process
            nvtx.NameCudaStreamA(7, text)
            nvtx.NameCudaDeviceA(0, text)
            gpu.launch("kernel", stream=7)
    finally:
        nvtx.NameOsThreadA(thread, b"")
        nvtx.NameOsThreadA(os.getppid(), b"")
        nvtx.NameCudaStreamA(7, b"")
        nvtx.NameCudaDeviceA(0, b"")
    expected = CUT if length > LONGEST else text.decode()
    environment, ledger = step.recording.environment, step.ledger
    assert environment["thread_names"][thread] == expected
    assert environment["device_labels"]["/gpu:0/stream:7"] == expected
    assert ledger.source_counters.get("nvtx_names_cut", 0) == (3 if length > LONGEST else 0)
    assert ledger.complete == (length <= LONGEST)
    with collector.trace() as later:
        gpu.launch("kernel")
    assert later.ledger.complete
