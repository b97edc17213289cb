"""NVTX marks, and ranges that start in one place and end in another: a table of their own."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from kept_tables import assert_kept

import collector
from collector import _native
from collector.recording.cupti_enums import NVTX_RANGE_KINDS
from collector.recording.journal_segments import segments_of
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu
from collector.tracing.recorder_ring import Keep
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator

ARGB, DOUBLE, INT64 = 1, 3, 2


def rows(step: collector.Session) -> list[tuple[str, str, str]]:
    """Kind, name and domain of every row."""
    table = step.recording.nvtx_ranges
    kinds = [NVTX_RANGE_KINDS[kind] for kind in table.range_kind.tolist()]
    return list(zip(kinds, table.names(), table.texts("domain_name_id"), strict=True))


def forms(nvtx: NvtxCopy) -> dict[str, Any]:
    domain = nvtx.DomainCreateA(b"marks")
    registered = nvtx.DomainRegisterStringA(domain, b"registered")
    in_domain = lambda message: nvtx.DomainRangeStartEx(domain, attributes(message))  # noqa: E731
    return {
        "mark A": (lambda: nvtx.MarkA(b"name"), None, ("Mark", "name", "")),
        "mark W": (lambda: nvtx.MarkW("wide é"), None, ("Mark", "wide é", "")),
        "mark Ex": (lambda: nvtx.MarkEx(attributes(b"name")), None, ("Mark", "name", "")),
        "mark in domain": (lambda: nvtx.DomainMarkEx(domain, attributes(b"name")), None, ("Mark", "name", "marks")),
        "start A": (lambda: nvtx.RangeStartA(b"name"), nvtx.RangeEnd, ("Start/End Range", "name", "")),
        "start W": (lambda: nvtx.RangeStartW("wide é"), nvtx.RangeEnd, ("Start/End Range", "wide é", "")),
        "start Ex": (lambda: nvtx.RangeStartEx(attributes(b"name")), nvtx.RangeEnd, ("Start/End Range", "name", "")),
        "start in domain": (
            lambda: in_domain(b"name"),
            lambda started: nvtx.DomainRangeEnd(domain, started),
            ("Start/End Range", "name", "marks"),
        ),
        "start registered": (
            lambda: in_domain(registered),
            lambda started: nvtx.DomainRangeEnd(domain, started),
            ("Start/End Range", "registered", "marks"),
        ),
    }


@pytest.mark.parametrize("form", forms(NvtxCopy(_native.capture_library())))
def test_every_form_is_a_row_of_its_own(gpu: SimulatedGpu, nvtx: NvtxCopy, form: str) -> None:
    begin, end, row = forms(nvtx)[form]
    with collector.trace(strict=True) as step:
        started = begin()
        gpu.launch("inside")
        if end:
            end(started)
    assert rows(step) == [row]
    assert step.recording.kernels.annotations() == [""]  # they name no launches
    assert step.ledger.complete
    table = step.recording.nvtx_ranges
    assert (table.end_ns > table.start_ns).tolist() == [end is not None]


def test_colour_category_and_payload_are_kept(gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path) -> None:
    domain = nvtx.DomainCreateA(b"details")
    nvtx.DomainNameCategoryA(domain, 7, b"loading")
    half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
    said = {"color_type": ARGB, "color": 0xFF00FF00, "category": 7, "payload_type": DOUBLE, "payload": half}
    with collector.trace(strict=True) as step:
        nvtx.DomainMarkEx(domain, attributes(b"named category", **said))
        nvtx.MarkEx(attributes(b"number", category=7, payload_type=INT64, payload=2**64 - 3))
        nvtx.MarkA(b"nothing said")
        gpu.launch("kernel")
    table = step.recording.nvtx_ranges
    texts = {column: table.texts(column) for column in ("category_name_id", "payload_text_id")}
    order = ["named category", "number", "nothing said"]
    assert table.names() == order
    assert texts == {"category_name_id": ["loading", "7", ""], "payload_text_id": ["0.5", "-3", ""]}
    assert table.color.tolist() == [0xFF00FF00, 0, 0]
    assert_kept(step.recording, "nvtx_ranges", tmp_path)


def test_ranges_overlap_and_end_in_other_threads(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        first = nvtx.RangeStartA(b"first")
        gpu.advance(100)
        second = nvtx.RangeStartA(b"second")
        assert first != second
        thread = threading.Thread(target=nvtx.RangeEnd, args=(first,))
        thread.start()
        thread.join()
        gpu.advance(100)
        nvtx.RangeEnd(second)
    first_row, second_row = step.recording.nvtx_ranges
    assert (first_row.name, second_row.name) == ("first", "second")
    assert first_row.end_thread_id != first_row.thread_id == second_row.end_thread_id
    assert first_row.end_ns < second_row.end_ns


def test_a_range_that_is_still_open_ends_with_the_step(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        left = nvtx.RangeStartA(b"open")
        gpu.launch("kernel")
    (row,) = step.recording.nvtx_ranges
    assert row.end_ns == step.recording.clock.cupti_stop_ns
    assert row.end_thread_id == 0
    with collector.trace(strict=True) as step:
        nvtx.RangeEnd(left)  # of the earlier step
        nvtx.RangeEnd(0)
        nvtx.RangeEnd(1 << 63 | 12345)
        gpu.launch("kernel")
    assert len(step.recording.nvtx_ranges) == 0


def test_a_domain_that_is_left_out_has_no_rows(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    noisy = nvtx.DomainCreateA(b"noisy")
    nvtx.DomainCreateA(b"quiet")
    with collector.trace(nvtx=["quiet"]) as step:
        nvtx.DomainMarkEx(noisy, attributes(b"mark"))
        nvtx.DomainRangeEnd(noisy, nvtx.DomainRangeStartEx(noisy, attributes(b"range")))
        nvtx.MarkA(b"default domain")
    assert rows(step) == []


def test_nothing_is_kept_without_a_trace(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    nvtx.MarkA(b"before")
    started = nvtx.RangeStartA(b"before")
    with collector.trace(strict=True) as step:
        nvtx.RangeEnd(started)
        gpu.launch("kernel")
    assert rows(step) == []


def test_long_and_broken_texts_are_cut_and_shown(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        nvtx.MarkA(b"x" * (1 << 20))
        nvtx.MarkA(b"broken \xff")
        nvtx.MarkA(None)
    long, *others = step.recording.nvtx_ranges.names()
    assert long == "x" * 4093 + "…"
    assert others == ["broken \\xff", "(no name)"]


def test_use_of_a_destroyed_domain_is_harmless(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"destroyed")
    with collector.trace(strict=True) as step:
        nvtx.DomainDestroy(domain)
        nvtx.DomainMarkEx(domain, attributes(b"after"))
        gpu.launch("kernel")
    assert rows(step) == [("Mark", "after", "destroyed")]


@pytest.mark.medium
def test_a_fork_while_another_thread_creates_domains_leaves_a_child_that_goes_on(nvtx: NvtxCopy) -> None:
    stopped = threading.Event()

    def create() -> None:
        while not stopped.is_set():
            nvtx.DomainNameCategoryA(nvtx.DomainCreateA(b"busy"), 1, b"category")
            nvtx.DomainRegisterStringA(None, b"busy")

    creating = threading.Thread(target=create)
    creating.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                domain = nvtx.DomainCreateA(b"child")
                nvtx.DomainMarkEx(domain, attributes(nvtx.DomainRegisterStringA(domain, b"mark")))
                nvtx.NameOsThreadA(1, b"thread")
                nvtx.DomainNameCategoryA(domain, 2, b"category")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stopped.set()
        creating.join()


def test_they_have_a_track_of_their_own(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    with collector.trace(strict=True) as step:
        started = nvtx.RangeStartA(b"epoch")
        gpu.launch("kernel")
        nvtx.RangeEnd(started)
    (device,) = [device for device in step.step_stats.dev_stats if device.device == "/cpu:0/nvtx"]
    assert [node.node_name for node in device.node_stats] == ["epoch"]


def numbered(nvtx: NvtxCopy, kind: str, number: int) -> Any:
    """A mark or the begin of a range whose payload is the number in its name."""
    said = attributes(b"%s %d" % (kind.encode(), number), payload_type=INT64, payload=number)
    return nvtx.RangeStartEx(said) if kind == "range" else nvtx.MarkEx(said)


def assert_numbered(recording: Recording) -> None:
    """Each row has the name of its own number, and each kernel that of its grid."""
    table = recording.nvtx_ranges
    kinds = ["range" if NVTX_RANGE_KINDS[kind] != "Mark" else "mark" for kind in table.range_kind.tolist()]
    payloads = table.texts("payload_text_id")
    assert table.names() == [f"{kind} {number}" for kind, number in zip(kinds, payloads, strict=True)]
    assert [kernel.name for kernel in recording.kernels] == [f"kernel {k.grid_x}" for k in recording.kernels]
    assert len(set(recording.strings)) == len(recording.strings)


@pytest.mark.parametrize("missing", [None, 0, 7])
def test_segments_have_the_names_of_their_rows(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, missing: int | None
) -> None:
    with collector.record(keep="64MB", folder=tmp_path, strict=True) as recorder:
        before = numbered(nvtx, "range", 0)
        for piece in range(1, 16):
            for number in range(20):
                numbered(nvtx, "mark", 20 * piece + number)
                gpu.launch(f"kernel {1 + number % 7}", grid=(1 + number % 7, 1, 1))
            after = numbered(nvtx, "range", piece)  # open in two segments
            gpu.synchronize()
            nvtx.RangeEnd(before)
            before = after
            recorder._source.cut()  # type: ignore[union-attr]
        dump = recorder.dump()
    assert dump is not None
    segments = segments_of(dump.journal)
    assert len(segments) >= 15
    for segment in segments:
        assert_numbered(Recording.load(segment))
    if missing is not None:
        segments[missing].unlink()
    recording = Recording.load(dump.journal)
    assert_numbered(recording)
    assert (len(recording.nvtx_ranges) == 300 + 16) == (missing is None)
    assert (len(recording.kernels) == 300) == (missing is None)


def test_marks_whose_names_never_repeat_fit_into_a_ring(gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path) -> None:
    with collector.record(keep="64KiB", folder=tmp_path, strict=True) as recorder:
        for number in range(6000):
            numbered(nvtx, "mark", number)
            if number % 200 == 199:
                gpu.launch("kernel 1")
                gpu.synchronize()
                recorder._source.cut()  # type: ignore[union-attr]
        dump = recorder.dump()
    assert dump is not None
    recording = Recording.load(dump.journal)
    assert_numbered(recording)
    names = recording.nvtx_ranges.names()
    assert names == [f"mark {number}" for number in range(6000 - len(names), 6000)]
    assert len(names) >= 200
    assert recording.ledger.losses() == []


@pytest.mark.medium
def test_a_recording_on_disk_has_more_names_than_fit_into_memory(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is one file, as those of `collector run`."""
    monkeypatch.setattr(Keep, "limits", lambda _: {})
    with collector.record(folder=tmp_path, strict=True) as recorder:
        for number in range(140_000):
            nvtx.MarkA(b"mark %d" % number)
            if number % 20_000 == 0:
                gpu.launch("kernel 1")
                gpu.synchronize()
                recorder._source.cut()  # type: ignore[union-attr]
        recorder._source.cut()  # type: ignore[union-attr]
        recording = Recording.load(next(tmp_path.glob(".collector-ring-*/ring.journal")))
    assert recording.nvtx_ranges.names() == [f"mark {number}" for number in range(140_000)]
    assert {kernel.name for kernel in recording.kernels} == {"kernel 1"}
