"""Streams, recorded from the simulated CUPTI."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_tables import assert_equal, assert_kept, journal_with

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS_WITH_STREAMS = (*KINDS, "streams")
DEFAULT, NON_BLOCKING, NULL = 1, 2, 3
FIRST_DRIVER_STREAM = 0xF0000000
"""The simulator's streams from here on are those that the driver makes in each context."""


@pytest.mark.medium
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
            gpu.advance(1_000_000)  # the kernels end: CUPTI keeps a buffer until then
            journal = journal_with(tmp_path / "step.journal", "streams", 19, tmp_path / "copy.journal")
        assert gpu.misuse() == {}
    streams = step.recording.streams
    is_of_driver = streams.stream_id >= FIRST_DRIVER_STREAM
    own = streams[is_of_driver]
    for context in (1, 2):  # a real card showed eight streams per context, of which one is the default stream
        of_context = own[own.context_id == context]
        assert of_context.priority.tolist() == [0, 0, 0, 0, 0, 0, -5]
        assert of_context.stream_flag.tolist() == [DEFAULT, *[NON_BLOCKING] * 5, DEFAULT]
    streams = streams[~is_of_driver]
    assert list(zip(streams.context_id.tolist(), streams.stream_id.tolist(), strict=True)) == [
        (1, 7),
        (1, 9),
        (1, 11),
        (2, 7),
        (2, 13),
    ]
    assert streams.priority.tolist() == [0, -1, -1, 0, -1]
    assert streams.stream_flag.tolist() == [NULL, NON_BLOCKING, NON_BLOCKING, NULL, NON_BLOCKING]
    assert step.ledger.complete
    assert_equal(journal.streams, step.recording.streams)
    assert_kept(step.recording, "streams", tmp_path)


def test_they_are_recorded_only_where_they_are_named() -> None:
    with SimulatedGpu() as gpu:
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
        assert 37 not in gpu.statistics().records
    assert len(step.recording.streams) == 0
