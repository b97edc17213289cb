"""Relative paths are those of the working directory in which a step begins, whatever the program changes later."""

from __future__ import annotations

from pathlib import Path

import pytest

import collector
from collector.dataset.dataset import Dataset
from collector.dataset.dataset_writer import DatasetWriter
from collector.profiler.context import ProfileContext
from collector.profiler.hook import ProfilerHook
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


@pytest.fixture
def gpu():
    with SimulatedGpu() as found:
        yield found


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Changes to another folder; the program begins in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return lambda: monkeypatch.chdir(folder)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_file_of_a_step(gpu, tmp_path, elsewhere):
    with collector.trace("step.json", journal="step.journal", strict=True) as step:
        gpu.launch("kernel")
        assert step.path == Path("step.json")
        elsewhere()
    assert files_in(tmp_path) == ["step.json"]
    assert step.path == tmp_path / "step.json"


@pytest.mark.parametrize("schedule", [None, collector.schedule(wait=0, warmup=0, active=1, repeat=1)])
def test_a_directory_that_is_changed_later(gpu, tmp_path, elsewhere, schedule):
    """Of a schedule, after its last window, whose end writes the file."""
    with collector.trace("step.json", strict=True, schedule=schedule) as step:
        gpu.launch("kernel")
        if schedule is not None:
            step.step()
            elsewhere()
    elsewhere()
    assert files_in(tmp_path) == ["step.json"]
    assert step.path == tmp_path / "step.json"
    assert len(collector.load(step.path).recording.kernels) == 1


def test_a_session_that_is_used_again(gpu, tmp_path, elsewhere):
    """Each use begins anew."""
    session = collector.trace("step{step}.json", strict=True)
    with session:
        gpu.launch("kernel")
    assert session.path == Path("step0.json")
    elsewhere()
    with session:
        gpu.launch("kernel")
    assert session.path == Path("step1.json")
    assert files_in(tmp_path) == ["elsewhere/step1.json", "step0.json"]


@pytest.mark.medium
def test_a_journal_that_is_the_result(gpu, tmp_path, elsewhere):
    with collector.trace("step.json", journal="run.journal", stream=True, strict=True) as step:
        gpu.launch("kernel")
        elsewhere()
    assert files_in(tmp_path) == ["run.journal/000001.journal", "step.json"]
    assert len(step.recording.kernels) == 1


def test_a_journal_that_is_read_later(gpu, elsewhere):
    with collector.trace(journal="run.journal", stream=True, strict=True) as step:
        gpu.launch("kernel")
    elsewhere()
    assert len(step.recording.kernels) == 1


def test_a_journal_that_stays(gpu, tmp_path, elsewhere, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(collector.Session, "save", refuse)

    def trace() -> None:
        with collector.trace("step.json", journal="step.journal"):
            gpu.launch("kernel")
            elsewhere()

    with pytest.warns(collector.CollectorWarning) as warned:
        trace()
    assert str(warned[-1].message) == f"the records are in the journal {tmp_path / 'step.journal'}"
    assert files_in(tmp_path) == ["step.journal"]


@pytest.mark.parametrize("name", ["windows.json", "window{step}.json"])
def test_the_windows_of_a_schedule(gpu, tmp_path, elsewhere, name):
    """They belong together, and so do their files."""
    with collector.trace(name, schedule=collector.every(steps=2), strict=True) as session:
        for number in range(5):
            gpu.launch("kernel")
            session.step()
            if number == 1:
                elsewhere()
    assert files_in(tmp_path)
    assert not any(file.startswith("elsewhere") for file in files_in(tmp_path))


def test_a_dataset(gpu, tmp_path, elsewhere):
    pytest.importorskip("pyarrow")
    with collector.trace(dataset="runs", strict=True):
        gpu.launch("kernel")
        elsewhere()
    assert len(Dataset(tmp_path / "runs")) == 1
    assert not any(file.startswith("elsewhere") for file in files_in(tmp_path))


def test_a_writer_of_a_dataset(gpu, tmp_path, elsewhere):
    pytest.importorskip("pyarrow")
    with collector.trace(strict=True) as step:
        gpu.launch("kernel")
    with DatasetWriter("runs") as writer:
        elsewhere()
        writer.write(step.recording)
    assert len(Dataset(tmp_path / "runs")) == 1


@pytest.mark.medium
def test_the_dumps_of_a_recorder(gpu, tmp_path, elsewhere):
    recorder = collector.record(folder="dumps", strict=True)
    elsewhere()
    gpu.launch("kernel")
    dump = recorder.dump()
    recorder.stop()
    assert dump is not None
    assert dump.wait().parent == tmp_path / "dumps"


def test_the_files_of_a_profiler_hook(gpu, tmp_path, elsewhere):
    pytest.importorskip("pyarrow")
    (tmp_path / "timelines").mkdir()
    hook = ProfilerHook(save_steps=1, output_dir="timelines", output="runs")
    elsewhere()
    written = []
    for number in range(2):
        hook.before_step(number)
        gpu.launch("kernel")
        written.append(hook.after_step(number))
    assert written == [None, tmp_path / "timelines" / "timeline-1.json"]
    assert {file.partition("/")[0] for file in files_in(tmp_path)} == {"timelines", "runs"}


def test_the_files_of_a_profile_context(gpu, tmp_path, elsewhere):
    with ProfileContext("profiles", trace_steps=[0, 1], dump_steps=[0, 1], debug=True) as context:
        for _ in range(2):
            with context.step():
                gpu.launch("a")
                elsewhere()
    names = sorted(path.name for path in (tmp_path / "profiles").iterdir())
    assert names == ["profile_0", "profile_1", "run_meta_0", "run_meta_1"]


def test_a_working_directory_that_is_deleted(gpu, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    session = collector.trace("step.json")
    session.start()
    gpu.launch("kernel")
    gone.rmdir()
    with pytest.warns(collector.CollectorWarning, match=r"the trace is not saved: .*gone"):
        session.stop()
    assert len(session.recording.kernels) == 1
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def deleted(tmp_path, monkeypatch):
    """The working directory has been deleted."""
    folder = tmp_path / "deleted"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


DELETED = "the working directory has been deleted. Name the whole path, from the root on"


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        ({"path": "step.json"}, f"the trace will not be saved: cannot write step.json: {DELETED}"),
        ({"journal": "step.journal"}, f"no journal is kept: cannot write step.journal: {DELETED}"),
    ],
    ids=["path", "journal"],
)
def test_a_step_in_a_directory_that_has_been_deleted(deleted, options, trouble):
    def traced():
        with SimulatedGpu() as gpu, collector.trace(**options) as session:
            gpu.launch("k")
            gpu.synchronize()
        return session

    with pytest.warns(collector.CollectorWarning) as warned:
        session = traced()
    assert len(session.recording.kernels) == 1
    assert str(warned[0].message) == trouble


def test_a_recorder_in_a_directory_that_has_been_deleted(deleted, tmp_path):
    """It has no place for its dumps, unless one is named."""
    with SimulatedGpu() as gpu:
        with pytest.warns(collector.CollectorWarning, match="nothing is recorded: ") as warned:
            recorder = collector.record()
        assert recorder.unavailable == f"cannot write collector-dumps: {DELETED}"
        assert len(warned) == 1
        recorder.stop()
        with collector.record(folder=tmp_path / "dumps") as recorder:
            gpu.launch("k")
            gpu.synchronize()
            with pytest.warns(collector.CollectorWarning, match="nothing is dumped: cannot write dump.json: "):
                dumped = recorder.dump("dump.json")
            assert dumped is None
            assert recorder.dump() is not None
