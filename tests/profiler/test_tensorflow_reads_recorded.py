"""TensorFlow's own tfprof and timeline read our files, and our additional fields change none of their times."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from programs import results_of

from collector.protos import GraphDef, RunMetadata
from collector.stepstats.from_recording import run_metadata

OURS = ("/cpu:0/waits", "/cpu:0/overheads", "/cpu:0/jit", "/cpu:0/memory")


def _everything(build) -> RunMetadata:
    """A step with a row of each kind."""
    build.annotation("layer1/conv", 0, 9_000, 1, 5, 6).annotation("layer1/norm", 10_000, 9_000, 2, 7)
    build.launch(5, 500).kernel("_Z3addIfEvPT_i", 4_000, 3_000, correlation_id=5)
    build.launch(6, 1_500).memcpy(8_000, 2_000, correlation_id=6)
    build.launch(7, 10_500).memset(14_000, 1_500, correlation_id=7)
    build.kernel("sgemm", 20_000, 5_000, stream_id=8)
    build.call("cudaStreamSynchronize", 30_000, 9_000, correlation_id=8, domain=2)
    build._add("synchronizations", 30_100, 8_000, {"sync_type": 3, "stream_id": 7, "correlation_id": 8})
    build._add("overheads", 40_000, 7_000, {"overhead_kind": 65536, "object_kind": 1})
    build._add("jit_operations", 45_000, 4_000, {"jit_operation_type": 3, "jit_entry_type": 1})
    build.raw("memory_operations", start_ns=build.clock["cupti_start_ns"] + 50_000, operation=1, num_bytes=4096)
    return run_metadata(build.recording())


def _without_ours(step: RunMetadata) -> RunMetadata:
    """The same as a writer would have it that knows TensorFlow's fields and devices alone."""
    plain = RunMetadata()
    for device in step.step_stats.dev_stats:
        if device.device not in OURS:
            plain.step_stats.dev_stats.append(device)
    for device in plain.step_stats.dev_stats:
        for node in device.node_stats:
            node.ClearField("activity")
            node.ClearField("correlation_id")
    return plain


def test_the_step_has_what_tensorflow_does_not_know(build):
    step = _everything(build)
    assert {device.device for device in step.step_stats.dev_stats} >= set(OURS)
    assert sum(node.HasField("activity") for device in step.step_stats.dev_stats for node in device.node_stats) >= 11
    assert len(_without_ours(step).SerializeToString()) < len(step.SerializeToString())


@pytest.mark.slow
def test_tensorflow_shows_the_same_times_with_and_without_what_is_ours(build, tmp_path):
    if find_spec("tensorflow") is None:
        pytest.skip("OUR FILES WERE NOT READ BY TENSORFLOW ITSELF: it is not installed")
    step = _everything(build)
    graph = GraphDef()
    for name in ("layer1/conv", "layer1/norm", "sgemm"):
        graph.node.add(name=name, op="NoOp")
    files = {"graph.pb": graph, "whole.pb": step, "plain.pb": _without_ours(step)}
    for name, message in files.items():
        (tmp_path / name).write_bytes(message.SerializeToString())
    paths = [str(tmp_path / name) for name in files]
    whole, plain = results_of("tensorflow_reads_recorded.py", *paths)["steps"]

    totals = whole["tfprof"]["scope"][0]
    assert totals[0] == "_TFProfRoot"
    assert totals[4:] == plain["tfprof"]["scope"][0][4:]
    assert min(totals[5:]) > 0
    assert whole["tfprof"] == plain["tfprof"]
    shown = {name: slices for name, slices in whole["timeline"].items() if not any(device in name for device in OURS)}
    assert shown == plain["timeline"]
    assert any("/gpu:0/stream:7" in name for name in shown)
