"""Streams, recorded from the simulated CUPTI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_STREAMS = (*KINDS, "streams")
NON_BLOCKING, NULL = 2, 3
FIRST_DRIVER_STREAM = 0xF0000000
"""The simulator's streams from here on are those that the driver makes in each context."""


@pytest.mark.parametrize("cuda", ["12.0", "12.8", "13.0", "13.5"])
def test_streams_from_before_the_step_and_in_it_are_recorded(cuda: str, tmp_path: Path) -> None:
    with SimulatedGpu(cuda=cuda, devices=2) as gpu:
        gpu.launch("before", stream=7)
        with collector.trace(kinds=KINDS_WITH_STREAMS, journal=tmp_path / "step.journal", strict=True) as step:
            gpu.launch("new", stream=13, device=1)
            gpu.launch("again", stream=13, device=1)
            gpu.launch("old", stream=7)
            event = gpu.record_event(stream=9)
            gpu.wait_event(event, stream=11)
            journal = journal_with(tmp_path / "step.journal", "streams", 20, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    streams = step.recording.streams
    is_of_driver = streams.stream_id >= FIRST_DRIVER_STREAM
    assert np.bincount(streams.context_id[is_of_driver]).tolist() == [0, 8, 8]
    assert sorted(streams.priority[is_of_driver].tolist()) == [-5] * 2 + [0] * 14
    streams = streams[~is_of_driver]
    assert list(zip(streams.context_id.tolist(), streams.stream_id.tolist(), strict=True)) == [
        (1, 7),
        (1, 9),
        (1, 11),
        (2, 13),
    ]
    assert streams.priority.tolist() == [0, -1, -1, -1]
    assert streams.stream_flag.tolist() == [NULL, NON_BLOCKING, NON_BLOCKING, NON_BLOCKING]
    assert step.ledger.complete
    assert_equal(journal.streams, step.recording.streams)
    assert_kept(step.recording, "streams", tmp_path)


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert 37 not in gpu.statistics().records
    assert len(step.recording.streams) == 0
