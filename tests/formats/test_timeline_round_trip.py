"""Recording -> Chrome trace or XSpace -> recording: every drawn row comes back, with all that its slice states."""

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
from collector.recording.capture import ASYNC_NOT_KNOWN
from collector.recording.schema import SCHEMA
from collector.stepstats.shown_tables import SIDE_TABLES, TABLE_ARGUMENTS
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
    "nvtx_ranges": ("range_kind", "thread_id", "color"),
    "graph_launches": ("device_id", "graph_id", "num_nodes", "stream_id", "context_id", "correlation_id"),
    "other_ranges": ("correlation_id",),
    **{
        table: (
            *(side.name,) * bool(side.texts), *("correlation_id",) * ("correlation_id" in SCHEMA[table]),
            *(argument.column for argument in TABLE_ARGUMENTS[table] if argument.form != "Text"),
        )
        for table, side in SIDE_TABLES.items() if table in TABLE_ARGUMENTS
    },
}  # fmt: skip
"""Table -> the columns that its slices state, besides times and names."""
IN_PROFILES = (*SIDE_TABLES, "graph_launches", "kernels", "memcpys", "memsets")
"""The tables of which a profile states all that a Chrome trace does."""
_LARGEST = {
    **dict.fromkeys(("num_bytes", "graph_node_id", "event_sync_id"), 1 << 53),
    **{
        argument.column: 1 << (60 if argument.form == "Hexadecimal" else 53)
        for table, arguments in TABLE_ARGUMENTS.items()
        for argument in arguments
        if SCHEMA[table][argument.column] == "u8"
    },
}
"""Column -> the number from which on its values are not read: JSON readers keep numbers in doubles."""
_NAMED = ("annotations", "other_ranges", *(table for table, side in SIDE_TABLES.items() if not side.texts))


def _launch_shape(kernel):
    """The sizes of grid and block by column, as far as they are possible; all 0 if nothing states a shape."""
    shape = {}
    for name in ("grid", "block"):
        sizes = {f"{name}_{axis}": getattr(kernel, f"{name}_{axis}") for axis in "xyz"}
        shape |= sizes if min(sizes.values()) >= 0 else dict.fromkeys(sizes, 0)
    is_stated = shape["grid_x"] or shape["block_x"] or kernel.registers_per_thread
    return shape if is_stated else dict.fromkeys(shape, 0)


def shown(recording, table):
    """The rows of a table with the columns that slices state; values without a JSON number, and impossible shapes and
    sizes, are 0, and what is neither synchronous nor asynchronous is not known."""
    rows, found = getattr(recording, table), Counter()
    offset_ns = recording.clock.offset_ns
    names = rows.recorded_names() if table in _NAMED else [""] * len(rows)
    for row, name in zip(rows, names, strict=True):
        end_ns = getattr(row, "end_ns", row.start_ns)
        values = [row.start_ns + offset_ns, end_ns + offset_ns, name]
        for column in SHOWN[table]:
            value = getattr(row, column)
            if column[:-1] in ("grid_", "block_"):
                value = _launch_shape(row)[column]
            if column == "is_async" and value > 1:
                value = ASYNC_NOT_KNOWN
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


@pytest.mark.medium
@settings(max_examples=examples(100))
@given(recording=recordings(4), prefix=st.sampled_from(["", "/job:worker/replica:0/task:3"]))
def test_rows_come_back_from_a_profile(tmp_path_factory, recording, prefix):
    path = tmp_path_factory.mktemp("profile") / "step.xplane.pb"
    Step(RecordingSource(recording, prefix)).save(path)
    step = load(path)
    for table in IN_PROFILES:
        assert shown(step.recording, table) == shown(recording, table), table
    assert not any(table in loss for loss in step.ledger.unread for table in IN_PROFILES)


@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json", "json.gz", "xplane.pb"])
def test_a_row_without_a_name_is_none_that_is_called_so(build, start_ns, tmp_path, suffix):
    names = ["", "(no name)", "unknown"]
    of_others = {"device_name_id": build.text("/cpu:0"), "thread_id": 12, "thread_name_id": build.text("loader")}
    for number, name in enumerate(names):
        times = {"start_ns": start_ns + 100 * number, "end_ns": start_ns + 100 * number + 50}
        build.annotation(name, 1000 * number, 500, number)
        build.raw("nvtx_ranges", **times, name_id=build.text(name), thread_id=11)
        build.raw("other_ranges", **times, name_id=build.text(name), **of_others)
        build.kernel(name, 80_000 + 100 * number, 50)
    build.kernel("", 90_000, grid_x=0, grid_y=0, grid_z=0, block_x=0, block_y=0, block_z=0, registers_per_thread=0)
    build.recording().save(tmp_path / f"step.{suffix}")
    found = load(tmp_path / f"step.{suffix}").recording
    assert found.kernels.recorded_names() == [*names, ""]
    assert found.annotations.recorded_names() == found.nvtx_ranges.recorded_names() == names
    assert [name for name in found.other_ranges.recorded_names() if name != "train"] == names
    assert [details.op for details in found.details] == []
    assert "unnamed" not in found.environment.get("arguments_without_columns", {})


def test_results_of_calls_and_texts_of_ranges_come_back_from_a_profile(build, tmp_path):
    build.launch(1, 10, return_value=700).kernel("k", 100, correlation_id=1, cluster_x=2, cluster_y=1, cluster_z=3)
    build.annotation("layer", 5, 900, 1, 1)
    texts = {"payload": "3", "domain_name": "torch", "category_name": "forward"}
    columns = {
        f"{name}_text_id" if name == "payload" else f"{name}_id": build.text(each) for name, each in texts.items()
    }
    build.rows["annotations"][-1] |= {**columns, "color": 0xFF00FF00, "op_sequence": 9}
    build.recording().save(tmp_path / "step.gpurec")
    load(tmp_path / "step.gpurec").save(tmp_path / "step.xplane.pb")
    found = load(tmp_path / "step.xplane.pb").recording
    assert found.api_calls.return_value.tolist() == [700, 700]
    assert [found.kernels[f"cluster_{axis}"].tolist() for axis in "xyz"] == [[2], [1], [3]]
    (row,) = found.annotations
    assert (row.color, row.op_sequence) == (0xFF00FF00, 9)
    assert {name: found.strings[getattr(row, column)] for name, column in zip(texts, columns, strict=True)} == texts
    assert not {"api_calls", "annotations"} & found.arguments.tables.keys()
