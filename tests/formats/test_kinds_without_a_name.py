"""Numbers of kinds that a newer CUPTI added survive every format, as ``kind 55`` or as a number."""

from __future__ import annotations

import json

import pytest
from support.xspaces import xspace

from collector.formats.loading import load
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource
from collector.recording.cupti_enums import GRAPH_DEGREES
from collector.stepstats.from_recording import run_metadata
from collector.stepstats.labels import gpu_work
from collector.timeline.tensorflow import Timeline

UNNAMED = {
    "kernels": {"launch_type": 9, "graph_degree": len(GRAPH_DEGREES)},
    "memcpys": {"copy_kind": 55, "src_kind": 8, "dst_kind": 255, "graph_degree": 200},
    "memsets": {"memory_kind": 44, "graph_degree": 77},
    "synchronizations": {"sync_type": 5},
    "overheads": {"overhead_kind": 1 << 20},
    "jit_operations": {"jit_operation_type": 4, "jit_entry_type": 3},
    "memory_operations": {"operation": 3, "memory_kind": 8},
    "nvtx_ranges": {"range_kind": 3},
    "graph_launches": {"graph_degree": 5},
}
"""Table -> the columns of its row; CUPTI's enumerations have no name for these numbers."""
IN_LABELS = ("copy_kind", "src_kind", "dst_kind", "memory_kind")


@pytest.fixture
def recording(build, start_ns):
    build.kernel("k", 100, 50, **UNNAMED["kernels"])
    build.memcpy(200, num_bytes=4096, **UNNAMED["memcpys"]).memset(300, num_bytes=512, **UNNAMED["memsets"])
    for place, table in enumerate(list(UNNAMED)[3:]):
        times = {"start_ns": start_ns + 1000 + 100 * place}
        if table != "memory_operations":
            times["end_ns"] = times["start_ns"] + 50
        build.raw(table, **times, **UNNAMED[table])
    return build.recording()


def numbers(recording):
    return {
        table: {name: getattr(recording, table).columns[name].tolist() for name in columns}
        for table, columns in UNNAMED.items()
    }


def in_labels(recording):
    """The columns of copies and memsets that labels state."""
    return {
        (table, name): getattr(recording, table).columns[name].tolist()
        for table in ("memcpys", "memsets")
        for name in UNNAMED[table]
        if name in IN_LABELS
    }


@pytest.mark.parametrize("suffix", ["json", "json.gz", "pb", "pbtxt", "gpurec", "xplane.pb"])
def test_every_number_comes_back(recording, tmp_path, suffix):
    Step(RecordingSource(recording)).save(tmp_path / f"step.{suffix}")
    expected = {table: {name: [number] for name, number in columns.items()} for table, columns in UNNAMED.items()}
    found = numbers(load(tmp_path / f"step.{suffix}").recording)
    if suffix == "xplane.pb":  # which states these of GPU work as arguments
        expected["kernels"] = found["kernels"]
        for table in ("memcpys", "memsets"):
            expected[table]["graph_degree"] = found[table]["graph_degree"]
    assert found == expected


def without_columns(recording):
    metadata = run_metadata(recording)
    metadata.ClearField("capture")
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            node.ClearField("activity")
    return metadata


@pytest.mark.parametrize("is_plain", [False, True])
def test_kinds_of_copies_come_back_from_an_xspace(recording, tmp_path, is_plain):
    space = xspace(without_columns(recording) if is_plain else run_metadata(recording))
    (tmp_path / "host.xplane.pb").write_bytes(space.SerializeToString())
    found = load(tmp_path / "host.xplane.pb").recording
    if is_plain:
        assert found.memcpys.copy_kind.tolist() == [55]
    else:
        assert in_labels(found) == in_labels(recording)
    for table in ("memcpys", "memsets"):
        assert not {"kind", "kind_src", "kind_dst"} & found.arguments.of_row(table, 0).keys()


def test_kinds_of_copies_come_back_from_labels(recording, tmp_path):
    metadata = without_columns(recording)
    (tmp_path / "step.pb").write_bytes(metadata.SerializeToString())
    assert in_labels(load(tmp_path / "step.pb").recording) == in_labels(recording)


def test_a_kind_of_copies_comes_back_from_tensorflows_timeline(recording, tmp_path):
    (tmp_path / "timeline.json").write_text(Timeline(run_metadata(recording).step_stats).generate_chrome_trace_format())
    assert load(tmp_path / "timeline.json").recording.memcpys.copy_kind.tolist() == [55]


def test_the_profiler_reads_them_from_labels():
    (copy,) = gpu_work(["op:MEMCPYkind 55"], ["MEMCPYkind 55 4096 bytes (kind 8 to kind 255)"])
    assert (copy.copy_kind, copy.src_kind, copy.dst_kind, copy.num_bytes) == (55, 8, 255, 4096)


def test_a_number_that_no_column_holds_is_that_of_no_kind(recording, tmp_path):
    Step(RecordingSource(recording)).save(tmp_path / "step.json")
    text = (tmp_path / "step.json").read_text()
    drawn = text.replace("kind 55", "kind 300").replace("kind 44", f"kind {1 << 70}").replace("kind 8", "kind -1")
    (tmp_path / "step.json").write_text(json.dumps(json.loads(drawn)))
    found = load(tmp_path / "step.json").recording
    assert found.memcpys.copy_kind.tolist() == found.memcpys.src_kind.tolist() == [0]
    assert found.memsets.memory_kind.tolist() == [0]
