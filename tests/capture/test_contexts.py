"""Contexts, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_CONTEXTS = (*KINDS, "contexts")


@pytest.mark.medium
@pytest.mark.parametrize(
    "cuda",
    [
        "12.0",
        *(pytest.param(cuda, marks=pytest.mark.slow) for cuda in ("12.4", "12.5", "13.0", "13.1")),
        "13.5",
    ],
)
def test_contexts_from_before_the_step_and_in_it_are_recorded(cuda: str, tmp_path: Path) -> None:
    version = tuple(map(int, cuda.split(".")))
    with SimulatedGpu(cuda=cuda, devices=3) as gpu:
        gpu.launch("before")
        with collector.trace(kinds=KINDS_WITH_CONTEXTS, journal=tmp_path / "step.journal", strict=True) as step:
            gpu.launch("first", device=2)
            gpu.launch("second", device=2, stream=9)
            made = gpu.create_context(device=2)
            gpu.advance(1_000_000)  # the kernels end: CUPTI keeps a buffer until then
            journal = journal_with(tmp_path / "step.journal", "contexts", 3, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    contexts = step.recording.contexts
    places = list(zip(contexts.device_id.tolist(), contexts.context_id.tolist(), strict=True))
    assert places == [(0, 1), (2, 3), (2, made)]
    assert set(contexts.compute_api.tolist()) == {1}
    assert set(contexts.null_stream_id.tolist()) == {7}
    assert set(contexts.num_multiprocessors.tolist()) == {132 if version >= (12, 5) else 0}
    assert set(contexts.process_id.tolist()) == {os.getpid() if version >= (13, 1) else 0}
    assert not contexts.is_green_context.any()
    assert not contexts.parent_context_id.any()
    assert step.ledger.complete
    assert_equal(journal.contexts, contexts)
    assert_kept(step.recording, "contexts", tmp_path)


def test_the_next_step_has_them_again() -> None:
    with SimulatedGpu() as gpu:
        gpu.launch("kernel")
        for _ in range(2):
            with collector.trace(kinds=KINDS_WITH_CONTEXTS, strict=True) as step:
                gpu.launch("kernel")
            assert step.recording.contexts.context_id.tolist() == [1]


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert 9 not in gpu.statistics().records
    assert len(step.recording.contexts) == 0
