"""The command ``collector summary``."""

from __future__ import annotations

import gzip

import pytest

import collector
from collector.analysis.summary import summarize
from collector.cli import main


def test_it_prints_the_summary_of_a_step(build, tmp_path, capsys):
    recording = build.kernel("relu", 100).recording()
    recording.save(tmp_path / "step.pb")
    assert main(["summary", str(tmp_path / "step.pb")]) == 0
    assert capsys.readouterr().out == f"{summarize(recording)}\n"


def test_several_steps_stand_under_their_names(build, tmp_path, capsys):
    build.kernel("relu", 100).recording().save(tmp_path / "step.pb")
    assert main(["summary", str(tmp_path / "step.pb"), str(tmp_path / "step.pb")]) == 0
    assert capsys.readouterr().out.count(f"{tmp_path / 'step.pb'}\n") == 2


def test_a_step_without_launches_says_the_likely_causes_in_each_command(build, tmp_path, capsys):
    build.environment["source"] = "native"
    build.annotation("layer", 0, 50, 1).recording().save(tmp_path / "step.gpurec")
    path = str(tmp_path / "step.gpurec")
    timeline = ["timeline", path, "-o", str(tmp_path / "step.json")]
    for command in (["summary", path], ["stats", path], ["compare", path, path], timeline):
        main(command)
        assert "step.gpurec: no launch was recorded; likely causes: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["step.pb", "step.pbtxt", "step.json", "step.gpurec", "step.pb.gz"])
def test_an_empty_file_of_any_format_is_one_error_in_each_command(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
    timeline = ["timeline", str(path), "-o", str(tmp_path / "out.json")]
    report = ["report", str(path), "-o", str(tmp_path / "out.html")]
    for command in ("summary", "stats", "prof"):
        assert main([command, str(path)]) == 2
        assert capsys.readouterr().err == f"collector: {path}: the file is empty. Record the step again\n"
    for command in (["compare", str(path), str(path)], timeline, report):
        assert main(command) == 2
        assert "the file is empty" in capsys.readouterr().err
    with pytest.raises(collector.InvalidFileError, match="the file is empty"):
        collector.load(path)


def test_a_file_that_is_no_step_is_one_line(tmp_path, capsys):
    (tmp_path / "a.pb").write_bytes(b"<html></html>")
    assert main(["summary", str(tmp_path / "a.pb")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
