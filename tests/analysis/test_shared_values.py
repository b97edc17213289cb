"""Values that several questions need are computed once while they are asked together, and forgotten afterwards."""

from __future__ import annotations

import pytest

from collector.analysis import devices, idle
from collector.analysis.activities import Activities
from collector.analysis.questions import QUESTIONS
from collector.analysis.shared_values import shared_values


def test_they_are_the_same_within_the_block_alone(example):
    assert Activities.of(example) is not Activities.of(example)
    with shared_values():
        first = Activities.of(example)
        with shared_values():
            assert Activities.of(example) is first
        assert Activities.of(example) is first
    assert Activities.of(example) is not first


@pytest.mark.medium
def test_answers_are_the_same_with_them(example, gpu_traces):
    import collector

    names = ("a100_alexnet", "odd_tiny_compare_base")  # the activities of the second have no calls, and some are equal
    for step in (example, *(collector.load(gpu_traces / "hta" / f"{name}.json.gz").recording for name in names)):
        asked = [
            (question, by) for question in QUESTIONS.values() if not question.of_ranks for by in question.questions
        ]
        alone = [question.answer(step, by).to_json() for question, by in asked]
        with shared_values():
            assert [question.answer(step, by).to_json() for question, by in asked] == alone


def test_windows_and_recordings_are_told_apart(example, build):
    other = build.kernel("k", 100, 50).recording()
    with shared_values():
        found = [
            devices(step, window=window)["busy_ns"].tolist() for step in (example, other) for window in ("step", "span")
        ]
        gaps = [idle(example, kernel_gap_ns=gap).totals["kernel_gap_ns"] for gap in (0, 2_000)]
    assert found == [
        devices(step, window=window)["busy_ns"].tolist() for step in (example, other) for window in ("step", "span")
    ]
    assert gaps == [idle(example, kernel_gap_ns=gap).totals["kernel_gap_ns"] for gap in (0, 2_000)]
