"""The message about a file that took long to write."""

from __future__ import annotations

import json
import random

import pytest

from collector.cli import main
from collector.files import written_files
from collector.files.written_files import written


def said(capsys, path, data):
    with written(path, after_s=0):
        path.write_bytes(data)
    return capsys.readouterr().err


def test_a_trace_says_its_place_size_viewer_and_the_smaller_format(tmp_path, capsys):
    data = json.dumps([{"ph": "X", "name": "kernel", "ts": number} for number in range(1000)]).encode()
    line = said(capsys, tmp_path / "step.json", data)
    assert line.startswith(
        f"collector: {tmp_path / 'step.json'}: {len(data) / 1000:.4g} kB; open it with https://ui.perf"
    )
    assert "step.json.gz would be about" in line
    assert line.count("\n") == 1


def test_a_format_that_is_not_five_times_smaller_is_not_named(tmp_path, capsys):
    line = said(capsys, tmp_path / "step.json", random.Random(1).randbytes(10_000))
    assert "smaller" not in line


@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("a.pftrace", "https://ui.perfetto.dev"),
        ("a.json.gz", "https://ui.perfetto.dev or chrome://tracing"),
        ("a.gpurec", "collector prof"),
        ("a.xplane.pb", "XProf or TensorBoard"),
    ],
)
def test_each_format_says_what_opens_it(tmp_path, capsys, name, opened):
    assert f"open it with {opened}" in said(capsys, tmp_path / name, b"1234")


def test_what_is_quick_or_not_to_be_said_says_nothing(tmp_path, capsys):
    with written(tmp_path / "a", shown=False, after_s=0), written(tmp_path / "b", after_s=3600):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["timeline", "merge"])
def test_commands_say_it(command, build, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(written_files, "SAID_AFTER_S", 0)
    build.kernel("k", 100).recording().save(tmp_path / "step.gpurec")
    for name in ("out.json", "out.xplane.pb"):
        assert main([command, str(tmp_path / "step.gpurec"), "-o", str(tmp_path / name)]) == 0
        assert f"{name}: " in capsys.readouterr().err
    assert main(["merge", str(tmp_path / "step.gpurec"), "-o", str(tmp_path / "out.json"), "-q"]) == 0
    assert capsys.readouterr().err == ""
