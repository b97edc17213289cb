"""Traces of PyTorch's profiler that a script has put together from those of several ranks."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from reference.processes_of_a_job import delays

import collector
from collector import analysis


def rank_events(rank, process, gpu=0):
    """A rank: it launches a kernel in each of two ops, and waits for its device. All ranks have the same ids."""
    host = {"ph": "X", "pid": process, "tid": 7}
    late = 3 * rank
    events = []
    for correlation, op in ((1, "first"), (2, "second")):
        at = 100 * correlation + late
        args = {"correlation": correlation, "External id": correlation}
        kernel = {"device": 0, "context": 1, "stream": 7, "registers per thread": 16}
        events += [
            {**host, "cat": "cpu_op", "name": f"{op}{rank}", "ts": at - 5, "dur": 20, "args": {"Sequence number": 5}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at, "dur": 10, "args": args},
            {
                "ph": "X",
                "pid": gpu,
                "tid": 7,
                "cat": "kernel",
                "name": f"k{rank}",
                "ts": at + 30 + 10 * rank,
                "dur": 20,
                "args": args | kernel,
            },
        ]
    wait = {"correlation": 3, "External id": 3}
    return [
        *events,
        {**host, "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": 240 + late, "dur": 90, "args": wait},
        {"ph": "i", "s": "t", "pid": process, "tid": 7, "ts": 101, "name": "[memory]", "cat": "cpu_instant_event"}
        | {"args": {"Bytes": 512, "Addr": 4096, "Device Type": 1, "Device Id": 0}},
    ]


def written(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def figures(step):
    recording = step.recording
    path = Counter({row["kind"]: row["total_ns"] for row in analysis.critical_path(recording)})
    idle = Counter({"synchronize": sum(row["synchronize_ns"] for row in analysis.idle(recording, window="span"))})
    return delays(recording) + path + idle


@pytest.fixture
def alone(tmp_path):
    """The sum of the figures of both ranks' own files."""
    found = Counter()
    for rank in range(2):
        found += figures(collector.load(written(tmp_path / f"rank{rank}.json", rank_events(rank, 1000 + rank))))
    return found


@pytest.mark.parametrize(
    "events",
    [
        [*rank_events(0, 1000), *rank_events(1, 1001)],
        sorted(
            [*rank_events(0, "[TP00] 1000", "[TP00] 0"), *rank_events(1, "[TP01] 1000", "[TP01] 0")],
            key=lambda event: event["ts"],
        ),
        sorted([*rank_events(0, 0, 0), *rank_events(1, 1, 1)], key=lambda event: event["ts"]),
    ],
    ids=["one after the other", "with names of ranks", "with the rank as process"],
)
def test_launches_of_ranks_are_kept_apart(tmp_path, alone, events):
    step = collector.load(written(tmp_path / "all.json", events))
    assert figures(step) == alone
    assert step.warning == ""
    recording = step.recording
    assert len(set(recording.kernels.device_id.tolist())) == 2
    assert recording.memory_operations.device_id.tolist() == [0, 1]
    assert len(set(recording.annotations.thread_id.tolist())) == 2
    assert len(set(recording.annotations.op_sequence.tolist())) == 2


def test_copies_between_gpus_have_the_contexts_of_their_own_rank(tmp_path):
    """Both ranks use the same numbers of contexts: those of the second one are others."""
    sides = {"fromDevice": 0, "inDevice": 0, "toDevice": 0, "fromContext": 1, "inContext": 1, "toContext": 2}
    events = []
    for rank, (process, gpu) in enumerate([(101, 0), (202, 1)]):
        copy = {"cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "ph": "X", "pid": gpu, "tid": 7}
        args = {**sides, "correlation": 1, "stream": 7, "bytes": 64}
        events += [*rank_events(rank, process, gpu), {**copy, "ts": 400 + rank, "dur": 5, "args": args}]
    recording = collector.load(written(tmp_path / "merged.json", events)).recording
    copies = recording.memcpys
    assert copies.src_context_id.tolist() == copies.context_id.tolist()
    assert len(set(zip(copies.device_id.tolist(), copies.context_id.tolist(), strict=True))) == 2
    assert set(copies.context_id.tolist()) == set(recording.kernels.context_id.tolist())
    assert len({*copies.src_context_id.tolist(), *copies.dst_context_id.tolist()}) == 4


def test_work_of_an_unknown_process_has_no_launch(tmp_path):
    events = sorted([*rank_events(0, 1000), *rank_events(1, 1001)], key=lambda event: event["ts"])
    step = collector.load(written(tmp_path / "all.json", events))
    assert delays(step.recording) == Counter()
    assert "GPU work of an unknown process, where several use the same correlation ids: 4" in step.warning
    assert any("GPU work of an unknown process" in line for line in step.ledger.losses())


def test_processes_that_share_no_id_are_read_as_one(tmp_path):
    first, second = rank_events(0, 1000), rank_events(1, 1001)
    for event in second:
        if "correlation" in event["args"]:
            event["args"]["correlation"] += 100
    step = collector.load(written(tmp_path / "all.json", sorted(first + second, key=lambda event: event["ts"])))
    assert step.warning == ""
    assert sorted(step.recording.kernels.correlation_id.tolist()) == [1, 2, 101, 102]
    assert len(delays(step.recording)) == 4
