"""Recordings (.gpurec) made of other tools' files: data with columns is kept, and other data is counted."""

from __future__ import annotations

import numpy as np
import pytest

import collector
from collector.protos import RunMetadata


def test_a_recording_can_be_made_of_our_own_stepstats(build, tmp_path):
    given = (
        build.launch(5, 1000).kernel("sgemm", 2000, correlation_id=5).annotation("conv", 500, 4000, 3, 5).recording()
    )
    given.save(tmp_path / "step.pb")
    collector.load(tmp_path / "step.pb").save(tmp_path / "again.gpurec")
    again = collector.Recording.load(tmp_path / "again.gpurec")
    assert np.array_equal(again.kernels.start_ns, given.kernels.start_ns)
    assert again.kernels.recorded_names() == ["sgemm"]
    assert again.annotations_of(again.kernels) == ["conv"]


@pytest.mark.medium
@pytest.mark.parametrize("name", ["kineto/v100_resnet50_workers4.json.gz", "hta/a100_alexnet.json.gz"])
def test_a_recording_can_be_made_of_the_trace_of_another_tool(shared, tmp_path, name):
    path = shared / "data" / "gpu_traces" / name
    given = collector.load(path)
    given.save(tmp_path / "again.gpurec")
    again = collector.load(tmp_path / "again.gpurec")
    assert len(again.kernels) == len(given.kernels) > 0
    assert again.ledger.source_counters == given.recording.ledger.source_counters


def test_a_step_without_any_column_is_no_recording(tmp_path):
    message = RunMetadata()
    message.step_stats.dev_stats.add(device="/device:CPU:0")
    (tmp_path / "step.pb").write_bytes(message.SerializeToString())
    with pytest.raises(collector.UnknownFormatError, match="nothing that a recording has columns for"):
        collector.load(tmp_path / "step.pb").save(tmp_path / "step.gpurec")
    assert not (tmp_path / "step.gpurec").exists()
