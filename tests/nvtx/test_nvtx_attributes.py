"""Domain, category, colour and payload of pushed ranges: columns of the annotations, and arguments of slices."""

from __future__ import annotations

import gzip
import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.recording.recording import Recording
from collector.recording.table import Table
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

pytestmark = pytest.mark.simulator

ARGB = 1
UINT64, INT64, DOUBLE, UINT32, INT32, FLOAT = range(1, 7)
GREEN = 0xFF00FF00


def bits(form: str, value: float) -> int:
    return int.from_bytes(struct.pack(form, value).ljust(8, b"\0"), "little")


def run_program(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"loader")
    nvtx.DomainNameCategoryA(domain, 7, b"reading")
    stated = {"color_type": ARGB, "color": GREEN, "category": 7, "payload_type": DOUBLE, "payload": bits("<d", 0.5)}
    with collector.annotate("step"):
        nvtx.DomainRangePushEx(domain, attributes(b"batch", **stated))
        gpu.launch("copy")
        nvtx.RangePushA(b"plain")
        gpu.launch("gemm")
        nvtx.RangePop()
        nvtx.DomainRangePop(domain)
        nvtx.RangePushEx(attributes("other", category=9, payload_type=INT64, payload=2**64 - 3))
        nvtx.MarkEx(attributes(b"mark", **stated))
        nvtx.RangePop()


STATED = {
    "step": ("", "", 0, ""),
    "step/batch": ("loader", "reading", GREEN, "0.5"),
    "step/batch/plain": ("", "", 0, ""),
    "step/other": ("", "9", 0, "-3"),
}


def stated(table: Table) -> dict[str, tuple[str, str, int, str]]:
    texts = [table.texts(column) for column in ("domain_name_id", "category_name_id", "payload_text_id")]
    domains, categories, payloads = texts
    return dict(zip(table.names(), zip(domains, categories, table.color.tolist(), payloads, strict=True), strict=True))


@pytest.fixture
def recording(gpu: SimulatedGpu, nvtx: NvtxCopy) -> Recording:
    with collector.trace(strict=True) as step:
        run_program(gpu, nvtx)
    assert step.ledger.complete
    return step.recording


def test_they_are_columns_of_the_annotations(recording: Recording, tmp_path: Path) -> None:
    assert stated(recording.annotations) == STATED
    assert recording.kernels.annotations() == ["step/batch", "step/batch/plain"]
    assert_kept(recording, "annotations", tmp_path)


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json", ".json.gz"])
def test_they_survive_files(recording: Recording, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"step{suffix}"
    recording.save(path)
    read = collector.load(path).recording
    assert stated(read.annotations) == STATED
    assert stated(read.nvtx_ranges) == {"mark": ("", "7", GREEN, "0.5")}


def test_a_trace_of_a_trace_states_them_again(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "first.json")
    collector.load(tmp_path / "first.json").save(tmp_path / "second.json")
    assert stated(collector.load(tmp_path / "second.json").recording.annotations) == STATED


def slices(path: Path) -> dict[str, dict[str, Any]]:
    events = json.loads(path.read_bytes())["traceEvents"]
    return {event["name"]: event.get("args", {}) for event in events if event["ph"] == "X" and event["cat"] != "api"}


def test_they_are_arguments_of_slices(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "step.json")
    shown = slices(tmp_path / "step.json")
    expected = {"domain": "loader", "category": "reading", "payload": "0.5", "color": "0xff00ff00"}
    assert shown["step/batch"].items() >= expected.items()
    assert shown["step/other"].items() >= {"category": "9", "payload": "-3"}.items()
    assert not {"domain", "category", "payload", "color"} & shown["step/batch/plain"].keys()
    assert shown["mark"].items() >= {"category": "7", "payload": "0.5", "color": "0xff00ff00"}.items()


def test_perfetto_and_xplane_files_contain_the_texts(recording: Recording, tmp_path: Path) -> None:
    for suffix in (".pftrace", ".xplane.pb"):
        recording.save(tmp_path / f"step{suffix}")
        written = (tmp_path / f"step{suffix}").read_bytes()
        written = gzip.decompress(written) if written[:2] == b"\x1f\x8b" else written
        assert b"loader" in written, suffix
        assert b"reading" in written, suffix


@pytest.mark.skipif("COLLECTOR_SANITIZED" in os.environ, reason="ThreadSanitizer does not know DuckDB's own threads")
def test_they_are_columns_of_a_dataset(recording: Recording, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset, DatasetWriter

    with DatasetWriter(tmp_path / "steps", run="a") as writer:
        writer.write(recording)
    answer = Dataset(tmp_path / "steps").sql("select name, domain_name, category_name, color, payload from annotations")
    found = {name: tuple(others) for name, *others in (tuple(row.values()) for row in answer)}
    assert found == STATED


@pytest.mark.medium
def test_a_journal_has_them(gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path) -> None:
    with collector.trace(journal=tmp_path / "step.journal", strict=True) as step:
        run_program(gpu, nvtx)
        gpu.synchronize()
        read = journal_with(tmp_path / "step.journal", "annotations", len(STATED), tmp_path / "copy.journal")
    assert stated(read.annotations) == STATED
    assert stated(step.recording.annotations) == STATED


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        (UINT64, 2**64 - 1, "18446744073709551615"),
        (INT64, 2**63, "-9223372036854775808"),
        (DOUBLE, bits("<d", -1.7976931348623157e308), "-1.7976931348623157e+308"),
        (DOUBLE, bits("<d", float("nan")), "nan"),
        (UINT32, 2**32 - 1, "4294967295"),
        (INT32, 2**32 - 5, "-5"),
        (FLOAT, bits("<f", 0.1), "0.100000001"),
        (99, 5, ""),
    ],
)
def test_every_type_of_payload_is_a_text(gpu: SimulatedGpu, nvtx: NvtxCopy, kind: int, payload: int, text: str) -> None:
    with collector.trace(strict=True) as step:
        nvtx.RangePushEx(attributes(b"range", payload_type=kind, payload=payload))
        nvtx.RangePop()
    assert step.recording.annotations.texts("payload_text_id") == [text]


@pytest.mark.medium
@pytest.mark.parametrize("stream", [False, True])
def test_ranges_that_state_the_same_or_something_else_in_turn(
    gpu: SimulatedGpu, nvtx: NvtxCopy, tmp_path: Path, stream: bool
) -> None:
    stated = [0, 7, 7, 0, 64, 7, 64, 64, 0]
    options: dict[str, Any] = {"journal": tmp_path / "journal", "stream": True} if stream else {}
    with collector.trace(strict=True, **options) as step:
        for round_of_flushes in range(2):
            for category in stated:
                nvtx.RangePushEx(attributes(b"name", category=category))
                nvtx.RangePop()
            nvtx.RangePushA(b"plain")
            nvtx.RangePop()
            with collector.annotate("block", flops=8):
                gpu.launch("kernel")
            if stream and round_of_flushes == 0:
                time.sleep(0.5)  # the journal takes the rows
    recording = collector.load(tmp_path / "journal").recording if stream else step.recording
    table = recording.annotations[np.argsort(recording.annotations.external_id)]
    assert [(row.name, table.text(row.category_name_id)) for row in table] == [
        *(("name", str(category) if category else "") for category in stated),
        ("plain", ""),
        ("block", ""),
    ] * 2
    assert set(table.details_id[table.name_id == table.name_id[-1]].tolist()) == {1}
    assert not table.details_id[table.name_id != table.name_id[-1]].any()


def test_a_category_may_be_renamed_while_ranges_have_it(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"renamed")
    with collector.trace(strict=True) as step:
        for name in (b"first", b"second", b"first"):
            nvtx.DomainNameCategoryA(domain, 3, name)
            nvtx.DomainRangePushEx(domain, attributes(b"range", category=3))
            nvtx.DomainRangePop(domain)
    assert step.recording.annotations.texts("category_name_id") == ["first", "second", "first"]


@pytest.mark.slow
def test_payloads_beyond_the_limit_are_replaced_and_each_range_is_counted_once(
    gpu: SimulatedGpu, nvtx: NvtxCopy
) -> None:
    most = 1 << 17
    with collector.trace(strict=True) as step:
        for number in range(most + 2):
            nvtx.RangePushEx(attributes(b"range", payload_type=UINT64, payload=number))
            nvtx.RangePop()
    payloads = step.recording.annotations.texts("payload_text_id")
    assert payloads[most - 1 :] == [str(most - 1), *["(one of too many names)"] * 2]
    assert set(step.recording.annotations.names()) == {"range"}
    assert step.ledger.losses() == [
        "2 NVTX ranges or marks have no text of their own: there are too many different ones"
    ]


@pytest.mark.slow
def test_marks_beyond_the_limit_of_texts_are_counted_once_each(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    most = 1 << 17
    with collector.trace(strict=True) as step:
        for number in range(most):
            nvtx.MarkA(b"%d" % number)
        for _ in range(2):  # the empty texts of domain, category and payload are texts, too
            nvtx.MarkEx(attributes(b"a new name", payload_type=UINT64, payload=2**40))
    assert step.ledger.nvtx_ranges == most + 2
    assert step.recording.nvtx_ranges.names()[-1] == "(one of too many names)"
    (loss,) = step.ledger.losses()
    assert loss == "3 NVTX ranges or marks have no text of their own: there are too many different ones"


def test_files_of_versions_without_these_columns_have_empty_texts(recording: Recording) -> None:
    capture = recording.to_capture()
    strings = list(capture["strings"])
    for column in ("domain_name_id", "category_name_id", "color", "payload_text_id", "op_sequence", "shapes_text_id"):
        del capture["tables"]["annotations"][column]
    assert strings[0] == ""
    names = capture["tables"]["annotations"]["name_id"]
    swapped = {0: int(names[0]), int(names[0]): 0}
    capture["strings"] = [strings[swapped.get(place, place)] for place in range(len(strings))]
    for columns in capture["tables"].values():
        for column in ("name_id", "domain_name_id", "category_name_id", "payload_text_id"):
            if column in columns:
                columns[column] = columns[column].copy()
                for place, number in enumerate(columns[column].tolist()):
                    columns[column][place] = swapped.get(number, number)
    read = Recording.from_capture(capture)
    assert stated(read.annotations) == dict.fromkeys(STATED, ("", "", 0, ""))
    assert read.annotations.names() == recording.annotations.names()
    assert_equal(read.nvtx_ranges, recording.nvtx_ranges)
