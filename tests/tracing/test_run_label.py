"""What the user calls a run: recorded on request alone, and kept by the files that a recording is read back from."""

from __future__ import annotations

import pytest

import collector
from collector.recording.run_label import RunLabel
from collector.web.report_data import step_data
from collector.web.run_figures import run_figures

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(REVISION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json"])
def test_label_and_revision_are_in_files(example, fake_source, repository, suffix):
    path = repository / f"step.{suffix}"
    with collector.trace(path, source=fake_source(example.to_capture()), label="batch <64>", git_revision=True):
        pass
    step = collector.load(path)
    assert RunLabel.of(step.recording) == ("batch <64>", REVISION)
    for said in (run_figures(step), step_data(step, path.name).described):
        assert (said["label"], said["git_revision"]) == ("batch <64>", REVISION)


@pytest.mark.parametrize("suffix", ["gpurec", "pb", "json", "pftrace"])
def test_a_label_of_strange_bytes_loses_no_trace(example, fake_source, tmp_path, suffix):
    """A surrogate escape, as Python makes of an argument that is not UTF-8."""
    path = tmp_path / f"step.{suffix}"
    dataset = tmp_path / "dataset"
    with collector.trace(path, source=fake_source(example.to_capture()), label="run \udcff", dataset=dataset):
        pass
    assert path.stat().st_size > 0
    assert any(dataset.rglob("*.parquet"))
    if suffix != "pftrace":
        assert RunLabel.of(collector.load(path).recording).label == "run \\udcff"


def test_nothing_is_recorded_unless_asked(example, fake_source, repository):
    with collector.trace(source=fake_source(example.to_capture())) as step:
        pass
    assert RunLabel.of(step.recording) == ("", "")
    assert {"label", "git_revision"} & set(step.recording.environment) == set()


def test_a_folder_without_repository_has_no_revision(example, fake_source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with collector.trace(source=fake_source(example.to_capture()), git_revision=True) as step:
        pass
    assert RunLabel.of(step.recording).git_revision == ""


def test_a_label_is_text():
    with pytest.raises(TypeError, match="label takes text, not 3"):
        collector.trace(label=3)  # type: ignore[call-overload]
