"""Loaded and traced steps: they have the same interface, and compute nothing before it is requested."""

from __future__ import annotations

import numpy as np
import pytest

import collector
from collector.formats.step import Step, TracedStep
from collector.formats.step_sources import RecordingSource
from collector.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from collector.recording.recording import Recording
from collector.recording.schema import SCHEMA
from collector.sources.replay import ReplaySource
from collector.stepstats import from_recording, wire
from collector.stepstats.from_recording import serialized
from collector.timeline import chrome_trace

START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def recording(build):
    build.launch(5, 1000).kernel("sgemm", 2000, correlation_id=5, registers_per_thread=40).memcpy(9000)
    return build.annotation("layer1/conv", 500, 4000, 3, 5).recording()


@pytest.fixture
def refuse(monkeypatch):
    def refuse(module, name):
        def fail(*_, **__):
            raise AssertionError(f"{name} was called")

        monkeypatch.setattr(module, name, fail)

    return refuse


def test_a_recording_is_loaded_without_messages(recording, tmp_path, refuse):
    recording.save(tmp_path / "a.gpurec")
    for name in ("serialized", "run_metadata"):
        refuse(from_recording, name)
    step = collector.load(tmp_path / "a.gpurec")
    assert step.recording.kernels.names() == ["sgemm"]
    assert step.ledger == recording.ledger
    assert "sgemm" in step.summary()
    assert repr(step) == f"<Step {str(tmp_path / 'a.gpurec')!r}: recording, {tables_of(recording)}>"


def test_the_ledger_of_columns_has_what_of_their_file_could_not_be_read(recording):
    step = Step(RecordingSource(recording), skipped={"rows that cannot be read": 3})
    assert recording.ledger.complete
    assert not step.ledger.complete
    assert step.ledger.unread == dict(step.provenance.unread) == {"rows that cannot be read": 3}


def test_a_message_is_drawn_without_being_parsed(recording, tmp_path, refuse):
    recording.save(tmp_path / "a.pb")
    expected = chrome_trace((tmp_path / "a.pb").read_bytes())
    refuse(wire, "run_metadata_of")
    step = collector.load(tmp_path / "a.pb")
    assert chrome_trace(step) == expected
    assert step.serialized() == (tmp_path / "a.pb").read_bytes()
    assert step.ledger == recording.ledger
    assert repr(step).startswith(f"<Step {str(tmp_path / 'a.pb')!r}: RunMetadata, 4 devices, ")


def test_what_the_caller_changes_is_written(recording, tmp_path):
    recording.save(tmp_path / "a.pb")
    step = collector.load(tmp_path / "a.pb")
    step.step_stats.dev_stats[0].device = "/cpu:7"
    step.save(tmp_path / "b.pb")
    assert collector.load(tmp_path / "b.pb").step_stats.dev_stats[0].device == "/cpu:7"


def test_a_step_stats_is_written_as_run_metadata(tmp_path):
    (tmp_path / "a.pb").write_bytes(StepStats(dev_stats=[DeviceStepStats(device="/cpu:0")]).SerializeToString())
    step = collector.load(tmp_path / "a.pb")
    assert RunMetadata.FromString(step.serialized()).step_stats == step.step_stats


def tables_of(recording):
    rows = {name: len(getattr(recording, name)) for name in SCHEMA}
    return ", ".join(f"{name}: {count}" for name, count in rows.items() if count)


INTERFACE = (
    "recording",
    "ledger",
    "kernels",
    "memcpys",
    "memsets",
    "step_stats",
    "run_metadata",
    "path",
    "unavailable",
)


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_a_session_that_has_ended_and_a_file_offer_the_same(recording, tmp_path, suffix):
    source = ReplaySource(recording)
    with collector.trace(tmp_path / f"step{suffix}", source=source, strict=True) as session:
        pass
    loaded = collector.load(tmp_path / f"step{suffix}")
    for step in (session, loaded):
        assert isinstance(step, TracedStep)
        for name in INTERFACE:
            getattr(step, name)
        assert "\n" not in repr(step)
        assert step.kernels.names() == ["sgemm"]
        assert step.recording.annotations_of(step.kernels) == ["layer1/conv"]
        assert "sgemm" in step.summary()
        step.save(tmp_path / "again.pb")
        assert collector.load(tmp_path / "again.pb").kernels.names() == ["sgemm"]
    assert repr(session) == f"<Session {str(session.path)!r}: recording, {tables_of(session.recording)}>"


def test_a_recording_is_written_from_a_loaded_one_alone(recording, tmp_path):
    recording.save(tmp_path / "a.gpurec")
    collector.load(tmp_path / "a.gpurec").save(tmp_path / "b.gpurec")
    assert (tmp_path / "b.gpurec").read_bytes() == (tmp_path / "a.gpurec").read_bytes()


# --- columns of files that hold none

SHOWN = {
    "kernels": ("start_ns", "end_ns", "device_id", "stream_id", "correlation_id", "registers_per_thread", "grid_x",
                "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    "memcpys": ("start_ns", "end_ns", "device_id", "stream_id", "num_bytes", "copy_kind", "src_kind", "dst_kind"),
    "memsets": ("start_ns", "end_ns", "device_id", "stream_id", "num_bytes", "memory_kind"),
    "api_calls": ("start_ns", "end_ns", "thread_id", "correlation_id", "domain"),
    "annotations": ("start_ns", "end_ns", "thread_id"),
}  # fmt: skip
"""Of what was recorded, the columns that a timeline shows."""


@pytest.mark.parametrize("suffix", [".json", ".pb"])
def test_a_timeline_read_back_has_the_columns_that_it_shows(build, tmp_path, suffix):
    build.launch(5, 1000).kernel("_Z4gemmPfi", 2000, correlation_id=5, registers_per_thread=40, grid_y=3, stream_id=9)
    build.memcpy(9000, correlation_id=6).memset(12_000, device_id=1).annotation("layer1/conv", 500, 4000, 3, 5)
    build.kernel("relu", 15_000, correlation_id=7).annotation("layer2::relu", 14_000, 900, 4, 7)
    build.call("cuLaunchKernel", 14_100, 50, correlation_id=7, domain=1)
    recording = build.recording()
    recording.save(tmp_path / f"step{suffix}")
    found = collector.load(tmp_path / f"step{suffix}").recording
    for table, columns in SHOWN.items():
        own, read = getattr(recording, table), getattr(found, table)
        for column in columns:
            assert getattr(read, column).tolist() == getattr(own, column).tolist(), (table, column)
    assert found.kernels.names() == recording.kernels.names()
    assert found.kernels.demangled_names() == recording.kernels.demangled_names()
    assert found.annotations_of(found.kernels) == recording.annotations_of(recording.kernels)
    assert found.annotations.names() == recording.annotations.names()
    assert "nodes_without_columns" not in found.ledger.source_counters


@pytest.mark.parametrize("prefix", ["", "/job:worker/replica:0/task:3"])
def test_a_timeline_read_back_distinguishes_static_and_dynamic_shared_memory(build, tmp_path, prefix):
    """A figure of 0 is not drawn, and the sum of both always is."""
    sizes = [(16, 0), (16, 100), (0, 64), (0, 0)]
    for place, (static, dynamic) in enumerate(sizes):
        build.kernel(f"k{place}", 2000 * place, static_shared_bytes=static, dynamic_shared_bytes=dynamic)
    Step(RecordingSource(build.recording(), prefix)).save(tmp_path / "step.json")
    found = collector.load(tmp_path / "step.json").kernels
    assert list(zip(found.static_shared_bytes.tolist(), found.dynamic_shared_bytes.tolist(), strict=True)) == sizes


def test_two_ranks_of_one_timeline_have_gpus_of_their_own(tmp_path):
    devices = [f"/job:worker/replica:0/task:{rank}/gpu:0/stream:7" for rank in range(2)]
    step = StepStats(dev_stats=[DeviceStepStats(device=each, node_stats=[node("k:k", 5, 5)]) for each in devices])
    chrome_trace(step, tmp_path / "a.json")
    (tmp_path / "a.pb").write_bytes(step.SerializeToString())
    for name in ("a.json", "a.pb"):
        assert collector.load(tmp_path / name).recording.kernels.device_id.tolist() == [0, 1]


# --- columns of StepStats that others wrote


def node(name, start, duration, label="", **fields):
    return NodeExecStats(
        node_name=name, timeline_label=label, all_start_nanos=START_NS + start, all_end_rel_nanos=duration, **fields
    )


def columns_of(devices, tmp_path) -> Recording:
    step = StepStats(dev_stats=[DeviceStepStats(device=name, node_stats=nodes) for name, nodes in devices.items()])
    (tmp_path / "foreign.pb").write_bytes(step.SerializeToString())
    return collector.load(tmp_path / "foreign.pb").recording


def test_gpu_work_of_a_foreign_step_has_the_columns_that_its_labels_state(tmp_path):
    kernel = node("a/b:gemm", 100, 50, "void gemm<float>(int) regs:40 shm:64 grid:2,3,4 block:32,1,1")
    copy = node("a/b:MEMCPYHtoD", 200, 5, "MEMCPYHtoD 4096 bytes (Pageable to Device)")
    memset = node("MEMSET:MEMSET", 300, 5, "MEMSET 16 bytes (Device)")
    found = columns_of(
        {"/gpu:1/stream:7": [kernel, copy], "/gpu:1/stream:9.2": [memset], "/gpu:1/memcpy": [copy, memset]}, tmp_path
    )
    assert len(found.kernels) + len(found.memcpys) + len(found.memsets) == 3
    [row] = found.kernels
    assert (row.device_id, row.stream_id, row.registers_per_thread, row.dynamic_shared_bytes) == (1, 7, 40, 64)
    assert [row.grid_x, row.grid_y, row.grid_z, row.block_x, row.block_y, row.block_z] == [2, 3, 4, 32, 1, 1]
    assert (row.start_ns, row.end_ns) == (START_NS + 100, START_NS + 150)
    assert found.kernels.demangled_names() == ["void gemm<float>(int)"]
    assert found.annotations_of(found.kernels) == found.annotations_of(found.memcpys) == ["a/b"]
    [row] = found.memcpys
    assert (row.num_bytes, row.copy_kind, row.src_kind, row.dst_kind) == (4096, 1, 1, 3)
    [row] = found.memsets
    assert (row.num_bytes, row.memory_kind, row.stream_id, row.context_id) == (16, 3, 9, 2)


def test_hosts_rows_are_calls_and_annotations_and_all_else_is_counted(tmp_path):
    found = columns_of(
        {
            "/cpu:0": [
                node("layer/conv", 0, 100, "layer/conv = Conv2D(x)", thread_id=3),
                node("cudaLaunchKernel", 10, 5, thread_id=3, correlation_id=8),
                NodeExecStats(node_name="no time", all_start_nanos=-5, all_end_rel_nanos=-1),
            ],
            "/gpu:0/stream:all": [node("layer/conv:gemm", 50, 5, correlation_id=8, thread_id=3)],
            "Steps/steps": [node("step 1", 0, 100)],
        },
        tmp_path,
    )
    assert found.annotations.names() == ["layer/conv"]
    assert found.api_calls.recorded_names() == ["cudaLaunchKernel"]
    assert found.launch_rows(found.kernels.correlation_id).tolist() == [0]
    assert found.ledger.source_counters["nodes_without_columns"] == 1
    assert found.ledger.unread == {"nodes without a possible time": 1}
    assert found.details[int(found.annotations.details_id[0]) - 1].op == "Conv2D"


def test_an_op_is_the_annotation_that_was_open_at_the_launch(tmp_path):
    ranges = [node("aten::mm", start, 40, thread_id=3) for start in (0, 100, 200)]
    calls = [node("cudaLaunchKernel", start + 5, 5, thread_id=3, correlation_id=start + 1) for start in (0, 100, 200)]
    work = [node("aten.mm:gemm", start + 20, 5, correlation_id=start + 1) for start in (0, 100, 200)]
    found = columns_of({"/cpu:0": [*ranges, *calls], "/gpu:0/stream:7": work}, tmp_path)
    assert found.annotations_of(found.kernels) == ["aten::mm"] * 3
    by_id = dict(zip(found.annotations.external_id.tolist(), found.annotations.start_ns.tolist(), strict=True))
    linked = [by_id[external] for external in found.external_correlations.external_id.tolist()]
    assert sorted(linked) == [START_NS, START_NS + 100, START_NS + 200]


def test_times_that_count_from_nothing_are_kept_by_the_clock(tmp_path):
    step = StepStats(
        dev_stats=[{"device": "/gpu:0/stream:7", "node_stats": [{"node_name": "k", "all_start_nanos": -7}]}]
    )
    (tmp_path / "a.pb").write_bytes(step.SerializeToString())
    found = collector.load(tmp_path / "a.pb").recording
    assert (found.kernels.start_ns + found.clock.offset_ns).tolist() == [-7]
    assert np.all(found.kernels.start_ns > 0)


def test_a_file_of_ours_is_let_go_once_its_columns_are_read(recording, tmp_path):
    """The columns alone are the same step, with the rank that its devices state."""
    for prefix in ("", "/job:worker/replica:0/task:3"):
        (tmp_path / "a.pb").write_bytes(serialized(recording, prefix))
        step = collector.load(tmp_path / "a.pb")
        alone = step.columns_alone()
        assert not step.is_recording
        assert alone.is_recording
        assert alone.recording is step.recording
        assert (alone.path, alone.device_prefix) == (step.path, prefix)
        assert alone.serialized() == step.serialized()
        assert alone.ledger == step.ledger


def test_a_file_that_holds_more_than_columns_is_kept(recording, tmp_path):
    """The bytes are the truth with a node that another program added, a changed message, damage, or no capture."""
    message = RunMetadata.FromString(serialized(recording))
    changed = collector.load(_written(tmp_path / "a.pb", message))
    changed.run_metadata.step_stats.dev_stats[0].node_stats[0].node_name = "other"
    assert changed.columns_alone() is changed
    message.step_stats.dev_stats.add(device="/host:0").node_stats.add(node_name="added", all_start_micros=5)
    added = collector.load(_written(tmp_path / "b.pb", message))
    assert added.columns_alone() is added
    (tmp_path / "c.pb").write_bytes((tmp_path / "a.pb").read_bytes()[:-3])
    damaged = collector.load(tmp_path / "c.pb")
    assert damaged.columns_alone() is damaged
    message.ClearField("capture")
    strange = collector.load(_written(tmp_path / "d.pb", message))
    assert strange.columns_alone() is strange


def _written(path, message):
    path.write_bytes(message.SerializeToString())
    return path


def test_a_column_that_is_not_zero_from_the_second_row_on(build, tmp_path):
    for place, registers in enumerate((0, 0, 40, 0, 7)):
        build.kernel("gemm", 1000 * place + 1, registers_per_thread=registers)
    build.recording().save(tmp_path / "a.pb")
    kernels = collector.load(tmp_path / "a.pb").recording.kernels
    assert kernels.registers_per_thread.tolist() == [0, 0, 40, 0, 7]
    assert kernels.grid_y.tolist() == build.recording().kernels.grid_y.tolist()


def test_a_report_of_impossible_arguments_writes_nothing(example, tmp_path):
    step = Step(RecordingSource(example))
    for arguments, kind, named in (
        ({"before": 3}, TypeError, "before takes steps, not 3"),
        ({"before": None}, TypeError, "before takes steps, not None"),
        ({"title": 3}, TypeError, "title takes text, not 3"),
        ({"max_size": "x"}, TypeError, "max_size takes a number of bytes, not 'x'"),
        ({"max_size": -1}, ValueError, "max_size is -1: a number of bytes from 0 on is needed"),
        ({"max_size": float("nan")}, ValueError, "max_size is nan: a number of bytes from 0 on is needed"),
    ):
        with pytest.raises(kind, match=named):
            step.report(tmp_path / "step.html", **arguments)
    assert not list(tmp_path.iterdir())
