"""Recording -> wire bytes: the native pass and its readable twin write equal bytes."""

from __future__ import annotations

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from reference import plain_step_stats
from reference.any_recording import recordings

from collector.protos import RunMetadata
from collector.stepstats import from_recording
from collector.stepstats.from_recording import serialized, step_stats


@pytest.mark.medium
@given(recordings())
def test_the_native_pass_writes_what_its_twin_writes(recording):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_recording, "_encoded", plain_step_stats.encoded)
        expected, expected_steps = serialized(recording, "/job:a/task:1"), step_stats(recording)
    data = serialized(recording, "/job:a/task:1")
    assert RunMetadata.FromString(data) == RunMetadata.FromString(expected)
    assert data == expected
    assert step_stats(recording) == expected_steps
