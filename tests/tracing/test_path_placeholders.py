"""Paths that name what they depend on: ``{rank}``, ``{pid}``, ``{host}``, ``{step}`` and ``{env:VARIABLE}``."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from captures import FakeSource

import collector
from collector.errors import CollectorWarning, OutputError
from collector.formats.output_paths import file_of_this_process, filled_path
from collector.profiler.hook import ProfilerHook


def test_each_placeholder_is_filled_in(monkeypatch):
    monkeypatch.setenv("JOB", "night")
    host = socket.gethostname().replace("/", "-")
    path = filled_path(Path("{env:JOB}-{rank}-{pid}-{host}-{step}.json"), 3, 7)
    assert path == Path(f"night-3-{os.getpid()}-{host}-7.json")


def test_the_rank_is_that_of_torchrun_or_0(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert filled_path(Path("{rank}.json"), None) == Path("0.json")
    monkeypatch.setenv("RANK", "5")
    assert filled_path(Path("{rank}.json"), None) == Path("5.json")


@pytest.mark.parametrize("name", ["{}", "{ranks}", "{env:}", "{step", "{{x}}", "{step}"])
def test_other_braces_are_left_as_they_are(name):
    assert filled_path(Path(name), 1) == Path(name)


def test_a_path_with_a_rank_gets_no_other(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert file_of_this_process(Path("step-{rank}-x9.json"), 3) == (Path("step-3-x9.json"), "")
    assert file_of_this_process(Path("step-{step}.json"), 3, 4)[0] == Path("step-4.rank3.json")


def test_what_a_placeholder_stands_for_is_no_rank(tmp_path, monkeypatch):
    """Each step of a rank has the same kind of name, also the one whose number is that of the rank."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"WORLD_SIZE": "8", "RANK": "2", "EPOCH": "2"}.items():
        monkeypatch.setenv(name, value)
    for asked in ("step{step}.json", "rank{step}.json", "{step}/rank.json", "e{env:EPOCH}.json"):
        names = [str(file_of_this_process(Path(asked), None, step)[0]) for step in (1, 2)]
        assert all(name.endswith(".rank2.json") for name in names), names
    assert file_of_this_process(Path("t{env:RANK}.json"), None, 1) == (Path("t2.json"), "")
    assert file_of_this_process(Path("rank2-{step}.json"), None, 1) == (Path("rank2-1.json"), "")


def test_a_variable_that_is_not_set_is_one_error(monkeypatch):
    monkeypatch.delenv("NOTHING_HERE", raising=False)
    with pytest.raises(OutputError, match="the environment variable NOTHING_HERE is not set"):
        filled_path(Path("{env:NOTHING_HERE}.json"), 0)


def test_a_session_counts_its_steps_and_makes_folders(example, tmp_path):
    session = collector.trace(tmp_path / "{rank}" / "step_{step}.json", source=FakeSource(example.to_capture()))
    for number in range(2):
        with session:
            pass
        assert session.path == tmp_path / "0" / f"step_{number}.json"
        assert session.path.exists()


def test_a_session_without_its_variable_runs_the_body_and_warns(example, tmp_path, monkeypatch):
    monkeypatch.delenv("NOTHING_HERE", raising=False)
    asked = tmp_path / "{env:NOTHING_HERE}.json"
    session = collector.trace(asked, source=FakeSource(example.to_capture()))
    with pytest.warns(CollectorWarning, match=r"the trace will not be saved.*NOTHING_HERE"), session:
        pass
    assert len(session.kernels) == len(example.kernels)
    strict = collector.trace(asked, source=FakeSource(example.to_capture()), strict=True)
    with pytest.raises(OutputError, match="NOTHING_HERE"), strict:
        pass


def test_hook_and_dataset_fill_them_in(example, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from collector.dataset import Dataset

    monkeypatch.setenv("JOB", "night")
    hook = ProfilerHook(
        save_steps=1,
        output_dir=tmp_path / "{env:JOB}-{step}",
        output=tmp_path / "{env:JOB}" / "runs",
        open_trace=lambda: collector.trace(source=FakeSource(example.to_capture())),
    )
    with hook:
        hook.after_step(1)
        assert hook.after_step(2) == tmp_path / "night-2" / "timeline-2.json"
    assert len(Dataset(tmp_path / "night" / "runs")) == 1
