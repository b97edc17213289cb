"""CUDA events, and the waits for them, recorded from the simulated CUPTI in every version's layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_EVENTS = (*KINDS, "cuda_events")
NO_EVENT = 0xFFFFFFFF


@pytest.mark.medium
@pytest.mark.parametrize("cuda", ["12.0", "12.6", "12.8", "13.4", "13.5"])
def test_an_event_is_found_with_its_call_and_with_the_waits_for_it(cuda: str, tmp_path: Path) -> None:
    has_sync_ids = tuple(map(int, cuda.split("."))) >= (12, 8)
    with SimulatedGpu(cuda=cuda, devices=2) as gpu:
        with collector.trace(kinds=KINDS_WITH_EVENTS, journal=tmp_path / "step.journal", strict=True) as step:
            gpu.launch("producer", stream=7, device=1)
            first = gpu.record_event(stream=7, device=1)
            second = gpu.record_event(stream=9)
            gpu.wait_event(first, stream=11)
            gpu.synchronize_event(second)
            gpu.synchronize(stream=11)
            gpu.advance(1_000_000)  # the kernels end: CUPTI keeps a buffer until then
            journal = journal_with(tmp_path / "step.journal", "synchronizations", 3, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    recording = step.recording
    events, waits = recording.cuda_events, recording.synchronizations
    assert events.event_id.tolist() == [first, second]
    assert events.stream_id.tolist() == [7, 9]
    assert events.context_id.tolist() == [2, 1]
    assert events.device_id.tolist() == ([1, 0] if has_sync_ids else [0, 0])
    calls = recording.api_calls[recording.launch_rows(events.correlation_id)].names()
    assert calls == ["cudaEventRecord", "cudaEventRecord"]
    waited = dict(zip(waits.event_id.tolist(), waits.event_sync_id.tolist(), strict=True))
    recorded = dict(zip(events.event_id.tolist(), events.event_sync_id.tolist(), strict=True))
    assert waited == {**recorded, NO_EVENT: 0}
    assert all(recorded.values()) == has_sync_ids
    assert not events.graph_id.any()
    assert step.ledger.complete
    assert_equal(journal.cuda_events, events)
    assert_kept(recording, "cuda_events", tmp_path)
    assert_kept(recording, "synchronizations", tmp_path)


def test_cupti_writes_them_only_with_synchronizations() -> None:
    with SimulatedGpu() as gpu, collector.trace(kinds=("cuda_events", "runtime_api"), strict=True) as step:
        gpu.record_event()
    assert len(step.recording.cuda_events) == 0


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.record_event()
        assert 36 not in gpu.statistics().records
    assert len(step.recording.cuda_events) == 0
