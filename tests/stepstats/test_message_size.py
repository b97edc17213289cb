"""Steps that are larger than a protobuf message can be: refused where they are written, not where they are read."""

from __future__ import annotations

import pytest

import collector
from collector.cli import main
from collector.stepstats import message_size

SAYS = "more than the 2 GiB that a protobuf message can be"


@pytest.fixture
def recordings(build, tmp_path, monkeypatch):
    """Two recorded steps, whose messages are too large."""
    recording = build.launch(1, 1000).kernel("sgemm", 5000, correlation_id=1).recording()
    paths = [tmp_path / f"step{number}.gpurec" for number in range(2)]
    for path in paths:
        recording.save(path)
    monkeypatch.setattr(message_size, "MAX_MESSAGE_BYTES", 100)
    return paths


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".xplane.pb"])
def test_no_file_is_written_that_nobody_can_read(recordings, tmp_path, capsys, suffix):
    output = tmp_path / f"large{suffix}"
    with pytest.raises(collector.OutputError, match=SAYS):
        collector.load(recordings[0]).save(output)
    assert main(["timeline", str(recordings[0]), "-o", str(output)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert SAYS in line
    assert ".gpurec" in line
    assert sorted(tmp_path.iterdir()) == recordings


def test_a_merged_profile_has_the_limit_too(recordings, tmp_path, capsys):
    assert main(["merge", *map(str, recordings), "-o", str(tmp_path / "merged.xplane.pb")]) == 2
    assert SAYS in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == recordings


@pytest.mark.parametrize("kind", ["step_stats", "run_metadata"])
def test_a_message_that_cannot_be_made_says_why(recordings, kind):
    with pytest.raises(collector.OutputError, match=f"the RunMetadata of the step would take [0-9.]+ kB, {SAYS}"):
        getattr(collector.load(recordings[0]), kind)


def test_the_largest_message_is_written(recordings, tmp_path, monkeypatch):
    step = collector.load(recordings[0])
    monkeypatch.setattr(message_size, "MAX_MESSAGE_BYTES", len(step.serialized()))
    step.save(tmp_path / "step.pb")
    monkeypatch.setattr(message_size, "MAX_MESSAGE_BYTES", len(step.serialized()) - 1)
    with pytest.raises(collector.OutputError, match=SAYS):
        step.save(tmp_path / "step.pb")
