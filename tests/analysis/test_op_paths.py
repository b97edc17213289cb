"""The op of an activity has one path everywhere, also in a CUDA graph, whose nodes have a launch and a capture."""

from __future__ import annotations

import pytest

import collector
from collector.analysis import compare, critical_path, idle_ops, kernels, ops, steps
from collector.analysis.annotation_paths import launch_paths
from collector.profiler.advice.recording_columns import RecordingStep
from collector.testing import SimulatedGpu

CAPTURED = "decode/<captured_at>/model/layer"
BOTH = {CAPTURED, "decode/own"}


@pytest.fixture(scope="module")
def step():
    """A step that launches a graph, whose kernel was captured in an annotation, and a kernel of its own."""
    with SimulatedGpu(cuda="13.0") as gpu, collector.trace(strict=True) as traced:
        with gpu.capture() as graph, collector.annotate("model/layer"):
            gpu.launch("captured_gemm", duration_ns=20_000)
        executable = graph.instantiate()
        for _ in range(3):
            with collector.annotate("decode"):
                executable.launch()
                gpu.synchronize()
                with collector.annotate("own"):
                    gpu.launch("own_gemm", duration_ns=9_000)
                gpu.synchronize()
    return traced


pytestmark = pytest.mark.simulator


def test_every_question_names_the_launch_and_the_capture(step):
    assert {row["path"] for row in ops(step) if row["self_activities"]} == BOTH
    assert set(kernels(step, by="op")["op"]) == BOTH
    assert {row["path"] for row in idle_ops(step)} - {"(no annotation)"} == BOTH
    for by in ("op", "segment"):
        of_devices = [row for row in critical_path(step, by=by) if row["kind"] == "compute"]
        assert {row["op"] for row in of_devices} == BOTH, by
    assert {row["path"] for row in compare(step, step) if row["now_ns"]} == BOTH


def test_the_time_of_an_op_is_the_same_in_every_question(step):
    of_ops = {row["path"]: row["self_ns"] for row in ops(step) if row["self_ns"]}
    assert {row["op"]: row["total_ns"] for row in kernels(step, by="op")} == of_ops
    assert {row["path"]: row["now_ns"] for row in compare(step, step)} == of_ops
    whole = critical_path(step, by="op")
    assert {row["op"]: row["total_ns"] for row in whole if row["kind"] == "compute"} == of_ops  # nothing overlaps


def test_rows_nodes_advice_and_timeline_have_the_same_path(step, tmp_path):
    assert set(step.recording.kernels.annotations()) == BOTH
    nodes = {
        node.node_name.rpartition(":")[0]
        for device in step.step_stats.dev_stats
        if device.device == "/gpu:0/stream:all"
        for node in device.node_stats
    }
    assert nodes == BOTH
    (device,) = RecordingStep.of(step.recording).accelerators
    assert {name.rpartition(":")[0] for name in device.names[0]} == BOTH
    step.save(tmp_path / "step.json")
    assert (
        collector.load(tmp_path / "step.json").recording.kernels.annotations() == step.recording.kernels.annotations()
    )


def test_the_op_that_explains_an_outlier_is_the_captured_one(build):
    """Graphs of five steps; in the last one the captured op is slow."""
    build.annotation("model/layer", 0, 10, 99)
    build.environment["source"] = "native"
    for number, spent in enumerate((2_000, 2_100, 1_900, 2_050, 40_000), 1):
        at = 100_000 * number
        build.launch(number, at + 10).annotation(f"step {number}", at, spent + 1_000, number, number)
        values = {"graph_id": 5, "graph_node_id": 7, "captured_external_id": 99}
        build.kernel("gemm", at + 700, spent, correlation_id=number, **values)
    recording = build.recording()
    assert set(recording.kernels.annotations()) == {
        f"step {number}/<captured_at>/model/layer" for number in range(1, 6)
    }
    (outlier,) = [row for row in steps(recording) if row["verdict"] == "outlier"]
    assert (outlier["name"], outlier["op"]) == ("step 5", "<captured_at>/model/layer")


def test_paths_of_names_that_are_no_paths_nest_at_the_launch_and_at_the_capture(build):
    build.environment["source"] = "profiler"
    build.annotation("capture", 0, 100, 90).annotation("aten::linear", 10, 50, 91)
    build.annotation("step", 200, 700, 92).launch(1, 300).annotation("replay", 250, 600, 93, 1)
    build.kernel("gemm", 900, 50, correlation_id=1, graph_id=5, captured_external_id=91)
    build.kernel("other", 950, 50, correlation_id=1, graph_id=5)
    recording = build.recording()
    table = recording.kernels
    paths, index = launch_paths(recording, table.correlation_id, table.captured_external_id)
    assert [paths[place] for place in index] == ["step/replay/<captured_at>/capture/aten::linear", "step/replay"]
    used = {row["path"]: row["self_ns"] for row in ops(recording) if row["self_ns"]}
    assert used == {"step/replay/<captured_at>/capture/aten::linear": 50, "step/replay": 50}
