"""TensorFlow's steps that are drawn as our Chrome trace and read back: their figures are those of TensorFlow's file."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

import collector
from collector.analysis.questions import QUESTIONS
from collector.protos import RunMetadata

SHARED = Path(os.environ.get("COLLECTOR_SHARED") or Path(__file__).parents[2].parent / "shared")
INPUTS = SHARED / "data" / "tf" / "inputs"
STEPS = sorted(
    str(path.relative_to(INPUTS))
    for pattern in ("*/run_meta_0.pb*", "gpu_mlp_adam/run_meta_1.pb*", "synth/*.step_stats.pb*")
    for path in INPUTS.glob(pattern)
    if "large" not in path.name and not path.name.startswith("empty.")  # which is slow, and which has no slice
)
needs_goldens = pytest.mark.skipif(
    not STEPS, reason=f"TENSORFLOW'S GOLDEN STEPS ARE NOT HERE ({INPUTS}): set COLLECTOR_SHARED to have them tested"
)
ASKED = [
    (name, by) for name, question in QUESTIONS.items() if not question.of_ranks for by in question.questions
]  # fmt: skip
OF_LABELS = ("kernels", "critical_path", "occupancy", "tensor_cores")
"""Questions about names, some of which in one file are so odd that TensorFlow takes the op for the kernel."""
UNTIMED = "nodes without a possible time in the file that the step was read from"


def told(step):
    answers = {(name, by): QUESTIONS[name].answer(step, by) for name, by in ASKED}
    return {
        key: (
            sorted(json.dumps(dict(row)) for row in answer),  # of equal rows any may be the first
            answer.totals,
            answer.losses,
            answer.notes,
            [window.length_ns for window in answer.windows],
        )
        for key, answer in answers.items()
    }


@pytest.mark.medium
@pytest.mark.parametrize("name", STEPS)
def test_every_question_has_the_answer_of_the_file(tmp_path, name):
    step = collector.load(INPUTS / name)
    step.save(tmp_path / "step.json")
    found = collector.load(tmp_path / "step.json")
    expected, answers = told(step), told(found)
    for key in expected:
        if "kernel_labels" not in name or key[0] not in OF_LABELS:
            assert answers[key] == expected[key], key
    assert repr(found.recording) == repr(step.recording)


@pytest.mark.medium
@needs_goldens
def test_a_merged_trace_has_the_figures_of_its_inputs(build, tmp_path):
    """One of them is a recording, whose columns count as before."""
    build.launch(1, 20_000).kernel("gemm", 30_000, 9_000, correlation_id=1, registers_per_thread=16)
    build.annotation("layer", 19_000, 2_000, 1, 1)
    build.recording().save(tmp_path / "rank2.gpurec")
    inputs = [INPUTS / "gpu_mlp_adam" / f"run_meta_{number}.pb.gz" for number in (0, 1)]
    steps = [collector.load(path) for path in (*inputs, tmp_path / "rank2.gpurec")]
    for chosen, paths in ((steps[:2], inputs), (steps, [*inputs, tmp_path / "rank2.gpurec"])):
        collector.merge(paths, tmp_path / "merged.json", layout="overlay")
        found = collector.load(tmp_path / "merged.json")
        for table in ("kernels", "memcpys", "annotations", "api_calls", "external_correlations"):
            rows = [getattr(step.recording, table) for step in chosen]
            assert len(getattr(found.recording, table)) == sum(map(len, rows)), table
        for name in ("kernels", "annotation_times"):
            expected: Counter[str] = Counter()
            for step in chosen:
                expected.update({row["name"]: row["total_ns"] for row in QUESTIONS[name].ask(step)})
            assert {row["name"]: row["total_ns"] for row in QUESTIONS[name].ask(found)} == dict(expected)
        assert sum(row["busy_ns"] for row in QUESTIONS["devices"].ask(found)) == sum(
            QUESTIONS["devices"].ask(step).totals["busy_ns"] for step in chosen
        )
        assert f"{UNTIMED}: 3" in found.recording.ledger.losses()
    (kernel,) = found.kernels.where(registers_per_thread=16)
    assert kernel.name == "gemm"


@pytest.mark.parametrize("suffix", [None, "gpurec", "pb", "json"])
def test_a_node_without_a_start_is_a_loss(tmp_path, suffix):
    """It made the window of a step 47 years long."""
    message = RunMetadata()
    device = message.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    host = message.step_stats.dev_stats.add(device="/cpu:0")
    for number, start_us in enumerate([1_500_000_000_000_000, 1_500_000_000_000_400]):
        times = {"op_end_rel_micros": 100, "all_end_rel_micros": 100}
        device.node_stats.add(node_name=f"op{number}:MatMul", all_start_micros=start_us + 100, **times)
        host.node_stats.add(node_name=f"op{number}", all_start_micros=start_us, **times)
    host.node_stats.add(node_name="_SOURCE", all_end_rel_micros=5)
    path = tmp_path / "step.pb"
    path.write_bytes(message.SerializeToString())
    step = collector.load(path)
    if suffix:
        step.save(tmp_path / f"saved.{suffix}")
        step = collector.load(tmp_path / f"saved.{suffix}")
    answer = QUESTIONS["devices"].ask(step)
    assert answer.totals["window_ns"] == 600_000
    assert answer.losses == (f"{UNTIMED}: 1",)
    assert step.recording.annotations.names() == ["op0", "op1"]
    part = collector.analysis.between(step, 0, 300_000)
    assert part.recording.ledger.losses() == [f"{UNTIMED}: 1"]
