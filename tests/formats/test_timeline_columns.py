"""Columns of traces that this project drew, from any arguments that their slices may have."""

from __future__ import annotations

import json

import pytest
from captures import START_NS

from collector.analysis.questions import QUESTIONS
from collector.formats.loading import load
from collector.protos import DeviceStepStats, StepStats
from collector.timeline.drawing import chrome_trace

BASE_NS = 1_700_000_000_000_000_000
ROWS = (
    (1, "GPU 0", 7, "stream 7", "/gpu:0/stream:7"),
    (1, "GPU 0", 8, "stream 8", "/gpu:0/stream:8.3"),
    (1, "GPU 0", 9, "copies", "/gpu:0/memcpy"),
    (1, "GPU 0", 10, "sync", "/gpu:0/sync"),
    (2, "CPU 0", 5, "main thread 5", "/cpu:0"),
)
"""Process, its name, thread, its name, device."""


@pytest.fixture
def timeline(tmp_path):
    """Writes slices: (process, thread, category, name, start in us, duration in us, arguments)."""

    def write(*slices):
        events = []
        for pid, process, tid, row, device in ROWS:
            events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}})
            named = {"name": row, "device": device}
            events.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": named})
        for pid, tid, category, name, start, length, arguments in slices:
            about = {"ph": "X", "pid": pid, "tid": tid, "cat": category, "name": name, "args": arguments}
            events.append(about | {"ts": start, "dur": length})
        path = tmp_path / "step.json"
        about = {"base_time_ns": str(BASE_NS), "ledger": {"kernels": 1}}  # which recordings have, and StepStats not
        path.write_text(json.dumps({"traceEvents": events, "otherData": about}))
        return load(path)

    return write


def test_slices_become_rows_of_their_tables(timeline):
    shape = {"kernel": "void gemm<float>()", "grid": [4, 2, 1], "block": [64, 1, 1], "registers": 18, "op": "layer"}
    step = timeline(
        (1, 7, "kernel", "gemm", 10, 2.5, {**shape, "shared_bytes": 512, "correlation": 3}),
        (1, 8, "memcpy", "MEMCPYHtoD", 20, 1, {"bytes": 4096, "from": "Pageable", "to": "Device"}),
        (1, 8, "memset", "MEMSET", 22, 1, {"bytes": 64, "to": "Device", "value": 7}),
        (1, 9, "memcpy", "MEMCPYHtoD", 20, 1, {"bytes": 4096}),
        (1, 10, "sync", "Stream Synchronize", 25, 1, {}),
        (2, 5, "op", "layer", 5, 30, {}),
        (2, 5, "api", "cudaLaunchKernel", 6, 1, {"correlation": 3}),
        (2, 5, "counter", "other", 7, 1, {}),
    )
    recording = step.recording
    kernel = recording.kernels[0]
    assert (kernel.name, kernel.grid_x, kernel.block_x, kernel.registers_per_thread) == ("gemm<float>", 4, 64, 18)
    assert (kernel.dynamic_shared_bytes, kernel.device_id, kernel.stream_id, kernel.annotation) == (512, 0, 7, "layer")
    assert recording.kernels.duration_ns.tolist() == [2500]
    assert int(kernel.start_ns) + recording.clock.offset_ns == BASE_NS + 10_000
    copy, memset = recording.memcpys[0], recording.memsets[0]
    assert (copy.num_bytes, copy.copy_kind, copy.src_kind, copy.stream_id, copy.context_id) == (4096, 1, 1, 8, 3)
    assert (memset.num_bytes, memset.memory_kind, memset.value) == (64, 3, 7)
    assert (recording.api_calls[0].name, recording.api_calls[0].thread_id) == ("cudaLaunchKernel", 5)
    assert list(recording.annotations.names()) == ["layer"]
    assert recording.environment["thread_names"] == {5: "main thread 5"}
    assert step.recording.ledger.source_counters["nodes_without_columns"] == 2


@pytest.mark.parametrize("category", ["kernel", "memcpy", "memset", "sync", "op", "", "no such\0"])
def test_arguments_do_not_fill_columns_of_times_and_places(timeline, category):
    hostile = {
        "name_id": 1 << 31,
        "start_ns": 5,
        "end_ns": -1,
        "device_id": 77,
        "stream_id": 77,
        "context_id": 77,
        "correlation_id": 9,
        "correlation": 1 << 63,
        "grid": [1 << 63, -1, "x"],
        "block": {},
        "bytes": 1 << 63,
        "registers": -5,
        "kernel": None,
        "op": [],
        "from": 3,
        "to": ["Device"],
        "num_bytes": 1 << 63,
        "sync_type": "2",
    }
    step = timeline((1, 7, category, 'a"\n\0', 1, 2, hostile), (2, 5, category, "\ud800", 1, 2, hostile))
    recording = step.recording
    for table in (recording.kernels, recording.memcpys, recording.memsets, recording.synchronizations):
        if not len(table):
            continue
        [row] = [table[place] for place in range(len(table))]
        assert int(row.start_ns) + recording.clock.offset_ns == BASE_NS + 1000
        assert (row.stream_id, row.context_id) == (7, 0)
    in_tables = {"kernel": 1, "memcpy": 1, "memset": 1, "op": 1, "sync": 2}.get(category, 0)
    assert step.recording.ledger.source_counters.get("nodes_without_columns", 0) == 2 - in_tables
    assert bool(step.run_metadata.step_stats.dev_stats) == bool(in_tables)


def test_streams_keep_their_contexts(build, tmp_path):
    """Waits for one context say nothing of the streams of another."""
    for correlation, device, context, stream in ((1, 0, 1, 7), (2, 0, 2, 7), (3, 1, 3, 9)):
        build.launch(correlation, 1_000 * correlation, process_id=5)
        place = {"device_id": device, "context_id": context, "stream_id": stream}
        build.kernel("k", 10_000, 5_000, correlation_id=correlation, **place)
    build.call("cudaDeviceSynchronize", 5_000, 20_000, correlation_id=4, process_id=5)
    build.raw("synchronizations", start_ns=START_NS + 5_000, end_ns=START_NS + 25_000, sync_type=4, context_id=2)
    recording = build.recording()
    recording.save(tmp_path / "step.json")
    drawn = load(tmp_path / "step.json")
    assert drawn.recording.kernels.context_id.tolist() == [1, 2, 3]
    asked = ("streams", "critical_path", "idle", "queue")
    assert [list(QUESTIONS[name].ask(drawn)) for name in asked] == [
        list(QUESTIONS[name].ask(recording)) for name in asked
    ]


def test_calls_keep_their_processes(build, tmp_path):
    """Threads of two containers may have one number."""
    for correlation, thread, process in ((1, 11, 5), (2, 12, 6), (3, 11, 5), (4, 11, 6), (5, 0, 7)):
        build.annotation("step", 1_000 * correlation - 100, 900, correlation, correlation)
        build.launch(correlation, 1_000 * correlation, thread_id=thread, process_id=process)
    recording = build.recording()
    recording.save(tmp_path / "step.json")
    again = load(tmp_path / "step.json").recording
    again.save(tmp_path / "again.json")
    for each in (again, load(tmp_path / "again.json").recording):
        assert each.api_calls.process_id.tolist() == recording.api_calls.process_id.tolist()


@pytest.mark.parametrize(("gpus", "context"), [(1, 3), (2, 0)])
def test_streams_of_earlier_versions_have_the_context_of_the_waits_if_there_is_one_gpu(build, tmp_path, gpus, context):
    for device in range(gpus):
        build.kernel("k", 1_000, 5_000, device_id=device, context_id=3 + device, stream_id=7)
    build.raw("synchronizations", start_ns=START_NS + 500, end_ns=START_NS + 9_000, sync_type=4, context_id=3)
    build.recording().save(tmp_path / "step.json")
    document = json.loads((tmp_path / "step.json").read_text())
    stated = [each["args"].pop("context", None) for each in document["traceEvents"] if each["name"] == "thread_name"]
    assert len(stated) - stated.count(None) == gpus
    (tmp_path / "step.json").write_text(json.dumps(document))
    assert load(tmp_path / "step.json").recording.kernels.context_id.tolist() == [context] * gpus


def test_work_without_a_correlation_id_keeps_its_op(timeline):
    step = timeline(
        *((1, 7, "kernel", f"k{i}", 10 + i, 1, {"op": f"op{i}"}) for i in range(3)),
        (1, 8, "memcpy", "MEMCPYDtoH", 20, 1, {"op": "op1"}),
    )
    recording = step.recording
    assert [recording.kernels[row].annotation for row in range(3)] == ["op0", "op1", "op2"]
    assert recording.memcpys[0].annotation == "op1"
    assert len(set(recording.kernels.correlation_id.tolist()) | set(recording.memcpys.correlation_id.tolist())) == 4


def test_copies_are_read_where_the_streams_of_their_gpu_are_not_drawn(build, tmp_path):
    build.kernel("gemm", 1000, 100).memcpy(2000, 300, correlation_id=2).memset(3000, 50, correlation_id=3)
    path = tmp_path / "step.json"
    chrome_trace(build.recording(), path, devices="memcpy")
    recording = load(path).recording
    assert (len(recording.kernels), len(recording.memcpys), len(recording.memsets)) == (0, 1, 1)
    assert recording.memcpys["num_bytes"].tolist() == [4096]
    assert "nodes_without_columns" not in recording.ledger.source_counters


def test_slices_of_negative_length_are_stated(timeline, tmp_path):
    kernels = [(1, 7, "kernel", "gemm", 10 * number, -5, {"correlation": number}) for number in (1, 2)]
    plain = timeline(*kernels, (1, 7, "kernel", "gemm", 40, 5, {"correlation": 3}))
    document = json.loads((tmp_path / "step.json").read_text())
    document["otherData"]["ledger"] = {"kernels": 3, "early": 1}
    (tmp_path / "step.json").write_text(json.dumps(document))
    stating = load(tmp_path / "step.json")
    for step in (plain, stating):
        assert len(step.kernels) == 1
        assert step.recording.ledger.invalid_timestamps == 2
    assert stating.ledger.early == 1


def test_a_trace_without_slices_becomes_a_message_that_is_read_again(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text(chrome_trace(StepStats(dev_stats=[DeviceStepStats(device="/gpu:0/stream:7")])))
    step = load(path)
    step.save(tmp_path / "empty.pb")
    assert load(tmp_path / "empty.pb").step_stats == step.step_stats
