"""Columns from the arguments of PyTorch's profiler; its user's private data is left out."""

from __future__ import annotations

import json

import pytest

import collector
from collector.recording.cupti_enums import SYNC_TYPES

GPU = {"device": 0, "context": 1, "stream": 7}
SECRETS = ("secret-host", "secret-user", "secret-token", "--secret-flag")


def event(category, name, start, duration, **about):
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 31, "ts": start, "dur": duration, **about}


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    events = [
        event("user_annotation", "step", 0, 90, args={"External id": 1}),
        event("cpu_op", "aten::linear", 1, 50, args={"External id": 2, "Input Dims": [[2, 3]]}),
        event("cpu_op", "aten::mm", 2, 20, args={"External id": 3}),
        event("python_function", "model.py(3): forward", 2, 30, args={"Python id": 1}),
        event("cuda_runtime", "cudaGraphLaunch", 3, 4, args={"correlation": 5, "cbid": 311}),
        event("kernel", "gemm", 20, 8, args={**GPU, "correlation": 5, "graph id": 3, "graph node id": 2**33 + 1}),
        event("kernel", "relu", 30, 8, args={**GPU, "correlation": 5, "graph id": 3, "graph node id": 2**33 + 2}),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 40, 2, args={**GPU, "correlation": 8, "bytes": 5 << 30}),
        event("cuda_sync", "Stream Wait Event", 45, 1, args={
            **GPU, "correlation": 9, "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 20,
            "wait_on_cuda_event_record_corr_id": 4, "wait_on_cuda_event_id": 6,
        }),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 4.5, "s": "t",
         "args": {"Device Type": 1, "Device Id": 0, "Addr": 139624661909504, "Bytes": 4096, "Total Allocated": 4096}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 6, "s": "t",
         "args": {"Device Type": 1, "Device Id": 0, "Addr": 139624661909504, "Bytes": -4096, "Total Allocated": 0}},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 9, "tid": 31, "ts": 7, "s": "t",
         "args": {"Device Type": 0, "Device Id": -1, "Addr": 1, "Bytes": 64}},
    ]  # fmt: skip
    trace = {
        "schemaVersion": 1,
        "hostName": SECRETS[0],
        "user": SECRETS[1],
        "environment": {"API_TOKEN": SECRETS[2]},
        "commandLine": ["python", SECRETS[3]],
        "traceEvents": events,
    }
    path = tmp_path_factory.mktemp("torch") / "trace.json"
    path.write_text(json.dumps(trace))
    return collector.load(path)


def test_kernels_know_their_graph_nodes(step):
    kernels = step.recording.kernels
    assert kernels.graph_id.tolist() == [3, 3]
    assert kernels.graph_node_id.tolist() == [2**33 + 1, 2**33 + 2]
    assert step.recording.annotations_of(kernels) == ["aten::mm", "aten::mm"]


def test_copies_may_be_larger_than_four_gib(step):
    assert step.recording.memcpys.num_bytes.tolist() == [5 << 30]


def test_annotations_lie_within_each_other_and_hold_no_functions_of_python(step):
    annotations = step.recording.annotations
    assert dict(zip(annotations.recorded_names(), annotations.depth.tolist(), strict=True)) == {
        "step": 0,
        "aten::linear": 1,
        "aten::mm": 2,
    }
    assert step.recording.ledger.source_counters["nodes_without_columns"] == 1


def test_calls_know_their_process(step):
    calls = step.recording.api_calls
    assert (calls.process_id.tolist(), calls.thread_id.tolist()) == ([9], [31])


def test_waits_say_what_was_waited_for(step):
    (wait,) = step.recording.synchronizations
    assert SYNC_TYPES[wait.sync_type] == "Stream Wait Event"
    assert (wait.context_id, wait.stream_id, wait.correlation_id, wait.event_id) == (1, 7, 9, 6)
    (record,) = step.recording.cuda_events
    assert (record.stream_id, record.correlation_id, record.event_id) == (20, 4, 6)
    assert record.event_sync_id == wait.event_sync_id


def test_memory_of_gpus_is_given_out_and_taken_back(step):
    operations = step.recording.memory_operations
    assert operations.operation.tolist() == [1, 2]
    assert operations.num_bytes.tolist() == [4096, 4096]
    assert operations.address.tolist() == [139624661909504] * 2
    assert (operations.start_ns + step.recording.clock.offset_ns).tolist() == [4500, 6000]


@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_nothing_of_the_machine_or_its_user_is_taken_over(step, tmp_path, suffix):
    path = tmp_path / f"made{suffix}"
    step.save(path)
    known = path.read_bytes() + repr(dict(step.recording.environment)).encode() + step.summary().encode()
    assert not [secret for secret in SECRETS if secret.encode() in known]


def test_arguments_that_no_column_takes_are_counted(tmp_path):
    def event(number, **arguments):
        return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": number, "dur": 1, "args": arguments}

    named = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "GPU 0", "unread": 1}}
    events = [event(1, stream=7, queued=0, **{"new\ud800": "x"}), event(2, stream=7, queued=3), event(3), named]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert collector.load(path).recording.environment["arguments_without_columns"] == {"queued": 2, "new?": 1}
    path.write_text(json.dumps({"traceEvents": [event(1, **{f"a{i:03}": i for i in range(130)}), event(2, a129=1)]}))
    counts = collector.load(path).recording.environment["arguments_without_columns"]
    assert list(counts.items())[:2] == [("a129", 2), ("a000", 1)]
    assert (len(counts), counts["(others)"]) == (101, 30)
    path.write_text(json.dumps({"traceEvents": [event(1, stream=7)]}))
    assert "arguments_without_columns" not in collector.load(path).recording.environment
