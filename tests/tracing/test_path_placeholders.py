"""Paths that name what they depend on: ``{rank}``, ``{pid}``, ``{host}``, ``{step}`` and ``{env:VARIABLE}``."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from captures import FakeSource

import collector
from collector.errors import CollectorWarning, OutputError
from collector.formats.output_paths import check_placeholders, file_of_this_process, filled_path
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


@pytest.mark.parametrize("name", ["{}", "{0}", "{step", "x}", "{a b}", "{7c9e-1}"])
def test_other_braces_are_left_as_they_are(name):
    assert filled_path(Path(name), 1) == Path(name)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("{ranks}.json", "{ranks} is not a placeholder; did you mean {rank}?"),
        ("{rank:03d}.json", "{rank:03d} is not a placeholder; did you mean {rank}?"),
        ("step_{i}.json", "{i} is not a placeholder"),
        ("{run.name}/step.json", "{run.name} is not a placeholder"),
        ("{env:}.json", "{env:} is not a placeholder"),
        ("{ENV:JOB}.json", "{ENV:JOB} is not a placeholder"),
        ("{{epoch}}.json", "{epoch} is not a placeholder"),
        ("{rank}-{i}.json", "{i} is not a placeholder"),
    ],
)
def test_a_word_that_nothing_replaces_is_one_error(name, cause):
    """A forgotten ``f`` before the text would let every step write the same file."""
    expected = f"{name}: {cause}"
    remedies = "Write {rank}, {pid}, {host}, {step} or {env:VARIABLE}, or remove the braces"
    for refused in (check_placeholders, lambda path: filled_path(path, 1, 2)):
        with pytest.raises(OutputError) as caught:
            refused(Path(name))
        assert (caught.value.cause, caught.value.remedy) == (expected, remedies)


def test_a_folder_that_exists_may_have_any_name(tmp_path):
    (tmp_path / "{project}").mkdir()
    path = tmp_path / "{project}" / "step.json"
    check_placeholders(path)
    assert filled_path(path, 1) == path


def test_the_number_of_a_step_is_known_to_steps_alone():
    with pytest.raises(OutputError, match=r"runs-\{step\}: \{step\} stands for nothing here"):
        filled_path(Path("runs-{step}"), 1)


@pytest.mark.parametrize("option", ["path", "journal", "dataset"])
def test_a_trace_is_refused_where_the_program_asks_for_it(option, tmp_path):
    if option == "dataset":
        pytest.importorskip("pyarrow")
    with pytest.raises(OutputError, match=r"\{i\} is not a placeholder"):
        collector.trace(**{option: tmp_path / "step_{i}.json"})
    assert list(tmp_path.iterdir()) == []


def test_a_hook_is_refused_as_well(tmp_path):
    for option in ("output_dir", "output"):
        with pytest.raises(OutputError, match=r"\{i\} is not a placeholder"):
            ProfilerHook(save_steps=1, **{option: tmp_path / "{i}"})


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
