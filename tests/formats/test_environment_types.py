"""The environment of a recording has the same types in every file that is made of it."""

from __future__ import annotations

import json

import pytest

import collector
from collector.formats.step import Step
from collector.formats.step_sources import RecordingSource

PREFIX = "/job:trainer/replica:0/task:3"
ENVIRONMENT = {
    "source": "test",
    "simulated": True,
    "driver_version": 12040,
    "cuda_version": "12.4",
    "shared_subscription": False,
    "ratio": 0.5,
    "nothing": None,
    "devices": {0: "H100", 1: "H100"},
    "thread_names": {11: "python"},
    "counts": {"7": 1},
}


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize("suffix", [".gpurec", ".pb", ".json"])
def test_the_environment_keeps_its_types(build, tmp_path, suffix, prefix):
    build.environment = ENVIRONMENT
    build.launch(1, 100).kernel("k", 1000, correlation_id=1)
    Step(RecordingSource(build.recording(), prefix)).save(tmp_path / f"step{suffix}")
    assert dict(collector.load(tmp_path / f"step{suffix}").recording.environment) == ENVIRONMENT


def test_the_environment_of_an_older_trace_is_text(build, tmp_path):
    build.environment = ENVIRONMENT
    build.kernel("k", 1000).recording().save(tmp_path / "step.json")
    trace = json.loads((tmp_path / "step.json").read_text())
    del trace["otherData"]["json_environment"]
    (tmp_path / "step.json").write_text(json.dumps(trace))
    found = collector.load(tmp_path / "step.json").recording.environment
    assert (found["driver_version"], found["thread_names"], found["simulated"]) == ("12040", {11: "python"}, True)
