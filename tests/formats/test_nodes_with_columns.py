"""Steps of ours without the part that holds the texts and links of a recording: the columns of their nodes are read.

Such a file is a StepStats that a program took out of a step, or one that was cut.
"""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("hypothesis")

from hypothesis import assume, given, settings
from reference.any_recording import recordings
from support.properties import examples

from collector.formats.loading import load
from collector.recording.recording import Recording
from collector.recording.table import Table
from collector.recording.text_columns import text_column
from collector.stepstats.from_recording import serialized, serialized_step_stats
from collector.stepstats.typed_columns import NODE_COLUMNS

LINKS = ("captured_external_id", "external_id", "details_id")
"""Columns whose numbers are those of other rows: they are numbered anew."""


def without_texts(table: Table, clock_offset_ns: int) -> list[tuple[int, ...]]:
    """The rows of a table with wall times, without the columns of texts and links."""
    columns = {
        column: values.tolist()
        for column, values in table.columns.items()
        if not text_column(column) and column not in LINKS
    }
    for column in ("start_ns", "end_ns"):
        if column in columns:
            columns[column] = [time + clock_offset_ns for time in columns[column]]
    if "correlation_id" in columns:  # work with an op gets one if it has none
        columns["correlation_id"] = [each if each < 1 << 31 else 0 for each in columns["correlation_id"]]
    return sorted(zip(*columns.values(), strict=True))


def of_columns(recording: Recording, table: str) -> list[tuple[int, ...]]:
    """The values of a table that are not in the nodes themselves."""
    columns = getattr(recording, table).columns
    return list(
        zip(*(values.tolist() for name, values in columns.items() if name not in NODE_COLUMNS[table]), strict=True)
    )


def everything(recording: Recording) -> dict[str, list[tuple[int, ...]]]:
    return {table: without_texts(getattr(recording, table), recording.clock.offset_ns) for table in NODE_COLUMNS}


@pytest.fixture
def recorded(build):
    """Work on two streams in two contexts with values that no label states."""
    for number, (context, stream) in enumerate([(1, 7), (1, 8), (2, 7)], start=1):
        now = 1_000 * number
        place = {"correlation_id": number, "context_id": context, "stream_id": stream}
        build.launch(number, now).kernel(
            "void gemm<float>(float*)", now + 100, 300, **place, grid_x=8, static_shared_bytes=16, priority=-5
        )
        build.memcpy(now + 400, 60, **place, num_bytes=4096, copy_kind=1, src_kind=1, dst_kind=3, is_async=1)
        build.memset(now + 500, 70, **place, num_bytes=64, value=9, memory_kind=3)
        build.annotation("layer", now - 10, 900, number, number)
    names = {"name_id": build.text("load"), "device_name_id": build.text("/process:9")}
    build.raw("other_ranges", start_ns=build.rows["api_calls"][-1]["start_ns"], thread_id=12, **names)
    build.raw("synchronizations", start_ns=build.rows["api_calls"][-1]["start_ns"], sync_type=3, stream_id=7)
    return build.recording()


def test_nodes_of_a_plain_step_have_their_columns(tmp_path, recorded):
    (tmp_path / "step.pb").write_bytes(serialized_step_stats(recorded))
    found = load(tmp_path / "step.pb").recording
    assert everything(found) == everything(recorded)
    assert found.kernels.names() == recorded.kernels.names()
    for text in ("name_id", "device_name_id"):
        assert found.other_ranges.texts(text) == recorded.other_ranges.texts(text)
    for table in ("kernels", "memcpys", "memsets"):
        rows = getattr(found, table)
        assert found.annotations_of(rows) == recorded.annotations_of(getattr(recorded, table))


@pytest.mark.medium
@settings(max_examples=examples(40))
@given(recording=recordings(4))
def test_columns_of_any_plain_step_come_back(tmp_path_factory, recording):
    path = tmp_path_factory.mktemp("plain") / "step.pb"
    path.write_bytes(serialized_step_stats(recording))
    assume(path.stat().st_size)
    found = load(path).recording
    rows, expected = everything(found), everything(recording)
    missing = 0
    for table in NODE_COLUMNS:
        assert not Counter(rows[table]) - Counter(expected[table])
        missing += len(expected[table]) - len(rows[table])
    # A row without any value, which no program has, is not told from one whose columns are not stated.
    assert found.counters.get("nodes_without_columns", 0) == missing
    assert missing == 0 or any(not any(row) for table in expected for row in of_columns(recording, table))


def test_a_step_that_is_cut_inside_its_streams_has_all_work(tmp_path, recorded):
    whole = serialized(recorded)
    (tmp_path / "whole.pb").write_bytes(whole)
    devices = load(tmp_path / "whole.pb").step_stats.dev_stats
    of_gpu = [device for device in devices if device.device.startswith("/gpu:0/")]
    assert [device.device for device in of_gpu] == [
        f"/gpu:0/{part}" for part in ("stream:all", "stream:7", "stream:7.2", "stream:8", "memcpy")
    ]
    at = 0
    for device in of_gpu[1:]:
        at = whole.index(device.device.encode(), at)
        for inside in (len(device.device), len(device.device) + 150):
            (tmp_path / "cut.pb").write_bytes(whole[: at + inside])
            cut = load(tmp_path / "cut.pb")
            assert cut.cut_at
            assert everything(cut.recording) == everything(recorded)
            found = {each.device: each.node_stats for each in cut.step_stats.dev_stats}
            assert {each.device: each.node_stats for each in of_gpu}.items() <= found.items()


def test_a_launch_of_a_graph_keeps_its_place_in_a_trace_that_is_drawn_of_a_plain_step(build, tmp_path):
    now = build.clock["cupti_start_ns"] + 10
    place = {"device_id": 1, "context_id": 2, "stream_id": 9, "graph_id": 4, "num_nodes": 3, "correlation_id": 8}
    build.kernel("k", 5).raw("graph_launches", start_ns=now, end_ns=now + 5, **place)
    (tmp_path / "step.pb").write_bytes(serialized_step_stats(build.recording()))
    path = tmp_path / "step.pb"
    for suffix in ("json", "pb"):
        step = load(path)
        path = tmp_path / f"again.{suffix}"
        step.save(path)
        (launch,) = load(path).recording.graph_launches
        assert {column: getattr(launch, column) for column in place} == place
