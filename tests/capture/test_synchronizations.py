"""Waits for CUDA events name the awaited recording of the event, in versions of CUPTI that record it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_tables import assert_kept

import collector
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

NO_EVENT = 0xFFFFFFFF


@pytest.mark.parametrize("cuda", ["12.0", "12.6", "12.8", "13.5"])
def test_waits_for_one_recording_of_an_event_have_its_id(cuda: str, tmp_path: Path) -> None:
    has_sync_ids = tuple(map(int, cuda.split("."))) >= (12, 8)
    with SimulatedGpu(cuda=cuda) as gpu, collector.trace(strict=True) as step:
        event = gpu.record_event(stream=7)
        gpu.wait_event(event, stream=9)
        gpu.synchronize_event(event)
        gpu.synchronize(stream=9)
    waits = step.recording.synchronizations
    of_event, others = waits[waits.event_id == event], waits[waits.event_id == NO_EVENT]
    assert len(of_event) == 2
    assert len(set(of_event.event_sync_id.tolist())) == 1
    assert bool(of_event.event_sync_id[0]) == has_sync_ids
    assert len(others) >= 1
    assert not others.event_sync_id.any()
    assert_kept(step.recording, "synchronizations", tmp_path)
