"""Schedules: chosen steps of a program, each window with results, a ledger and a file."""

from __future__ import annotations

import contextlib
import enum
import subprocess
import sys
import warnings

import numpy as np
import pytest

import collector
from collector.errors import CollectorError, CollectorWarning, SessionActiveError
from collector.files.folder_lock import FolderLock
from collector.testing import SimulatedGpu
from collector.tracing.schedule import Action, action_of

pytestmark = pytest.mark.simulator

NONE, WARMUP, RECORD, SAVE = Action


@pytest.fixture
def gpu():
    """A simulated GPU which the test must not have misused."""
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


def names(session) -> list[str]:
    return sorted({kernel.name for kernel in session.kernels})


def follow(gpu, session, steps: int) -> None:
    """Launch ``step<n>`` in each step."""
    for number in range(steps):
        gpu.launch(f"step{number}")
        gpu.synchronize()
        session.step()


@pytest.mark.parametrize(
    ("options", "actions"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, [NONE, WARMUP, RECORD, SAVE, NONE, WARMUP, RECORD, SAVE]),
        ({"active": 1}, [SAVE, SAVE, SAVE]),
        ({"wait": 1, "active": 1, "repeat": 2}, [NONE, SAVE, NONE, SAVE, NONE, NONE, NONE]),
        ({"warmup": 1, "active": 1, "repeat": 1, "skip_first": 3}, [NONE] * 3 + [WARMUP, SAVE, NONE, NONE]),
    ],
)
def test_the_actions_of_a_schedule(options, actions):
    schedule = collector.schedule(**options)
    assert [schedule(step) for step in range(len(actions))] == actions


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedules_are_those_of_pytorch():
    torch_profiler = pytest.importorskip("torch.profiler")
    for numbers in [(1, 1, 2, 0, 0), (0, 0, 1, 2, 0), (2, 0, 3, 2, 4), (0, 2, 1, 1, 1), (3, 1, 1, 0, 2)]:
        wait, warmup, active, repeat, skip_first = numbers
        theirs = torch_profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
        ours = collector.schedule(wait, warmup, active, repeat, skip_first=skip_first)
        assert [ours(step) for step in range(40)] == [action_of(theirs(step)) for step in range(40)]


def test_intervals_of_steps():
    every = collector.every(steps=3)
    assert [step for step in range(10) if every(step) is SAVE] == [2, 5, 8]
    every = collector.every(steps=5, active=2, warmup=1)
    assert [every(step) for step in range(5)] == [NONE, NONE, WARMUP, RECORD, SAVE]


def test_intervals_of_seconds():
    now = [100.0]
    every = collector.every(seconds=10, active=2, warmup=1)
    every.clock = lambda: now[0]
    found = []
    for step in range(14):
        found.append(every(step))
        now[0] += 3
    # Due after 12 s; the next interval begins when the window ends, at 21 s.
    assert found == [NONE] * 4 + [WARMUP, RECORD, SAVE] + [NONE] * 4 + [WARMUP, RECORD, SAVE]
    assert every(0) is NONE


def test_a_window_is_due_when_exactly_the_seconds_have_passed():
    now = [100.0]
    every = collector.every(seconds=6)
    every.clock = lambda: now[0]
    found = []
    for step in range(7):
        found.append(every(step))
        now[0] += 3
    assert found == [NONE, NONE, SAVE, NONE, NONE, SAVE, NONE]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: collector.schedule(wait=-1), ValueError, "wait is -1: at least 0"),
        (lambda: collector.schedule(active=0), ValueError, "active is 0: at least 1"),
        (lambda: collector.schedule(wait=1.5), TypeError, "wait takes a whole number, not 1.5"),
        (lambda: collector.schedule(wait=None), TypeError, "wait takes a whole number, not None"),
        (lambda: collector.schedule(skip_first="x"), TypeError, "skip_first takes a whole number, not 'x'"),
        (lambda: collector.schedule(active=1.5), TypeError, "active takes a whole number, not 1.5"),
        (lambda: collector.every(steps="x"), TypeError, "steps takes a whole number, not 'x'"),
        (lambda: collector.every(steps=5, warmup=2.5), TypeError, "warmup takes a whole number, not 2.5"),
        (lambda: collector.record(kinds=3), TypeError, "kinds takes names, not 3"),
        (lambda: collector.listen(kinds=[3]), TypeError, "kinds takes names, not 3"),
        (lambda: collector.adapters.record_torch_memory(max_entries=0), ValueError, "max_entries is 0: at least 1"),
        (
            lambda: collector.adapters.record_torch_memory(max_entries="x"),
            TypeError,
            "max_entries takes a whole number",
        ),
        (lambda: collector.every(), ValueError, "neither steps nor seconds"),
        (lambda: collector.every(steps=1, seconds=1), ValueError, "both given"),
        (lambda: collector.every(steps=2, active=2, warmup=1), ValueError, "steps is 2: at least 3 is needed"),
        (lambda: collector.every(steps=0), ValueError, "steps is 0: at least 1 is needed"),
        (lambda: collector.every(seconds=0), ValueError, "above 0"),
        (lambda: collector.every(seconds=float("nan")), ValueError, "above 0"),
        (lambda: collector.every(seconds="1"), TypeError, "seconds takes a number"),
        (lambda: collector.every(seconds=1, active=1.5), TypeError, "active takes a whole number, not 1.5"),
        (lambda: collector.every(seconds=1, warmup=-1), ValueError, "warmup is -1: at least 0 is needed"),
        (lambda: collector.trace(schedule=3), TypeError, "schedule takes a function"),
        (lambda: collector.trace(on_window=print), ValueError, "after each window of a schedule"),
        (lambda: collector.trace("a.gpurec", schedule=collector.schedule()), ValueError, r"put \{step\} into its name"),
        (
            lambda: collector.trace(journal="j", stream=True, schedule=collector.schedule()),
            ValueError,
            "choose one",
        ),
        (lambda: collector.trace(schedule=collector.schedule())(print), TypeError, "steps of a block"),
    ],
)
def test_mistakes_are_reported_at_once(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_whole_numbers_of_numpy_are_numbers_of_steps():
    two = np.int64(2)
    assert collector.schedule(wait=two, active=two, repeat=two) == collector.schedule(wait=2, active=2, repeat=2)
    assert collector.every(seconds=1, active=two, warmup=two) == collector.every(seconds=1, active=2, warmup=2)
    assert type(collector.every(seconds=1, active=two).active) is int


def test_each_window_has_results_and_a_file(gpu, tmp_path):
    seen = []
    schedule = collector.schedule(wait=1, warmup=1, active=2, repeat=2)
    path = tmp_path / "step{step}.gpurec"
    with collector.trace(path, schedule=schedule, strict=True, on_window=lambda s: seen.append(names(s))) as session:
        follow(gpu, session, 12)
        assert names(session) == ["step6", "step7"]
    assert seen == [["step2", "step3"], ["step6", "step7"]]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["step2.gpurec", "step6.gpurec"]
    assert names(collector.load(tmp_path / "step2.gpurec")) == ["step2", "step3"]
    assert session.path == tmp_path / "step6.gpurec"
    assert session.ledger.complete
    assert session.ledger.launches_seen == 2


@pytest.mark.parametrize("work", ["nothing", "a wait", "an annotation", "a kernel"])
def test_the_time_after_the_last_step_is_a_window_only_if_something_was_done_in_it(gpu, tmp_path, work):
    """A loop that calls `step` at the end of each round has begun one more step than it has rounds."""
    seen = []
    options = {"schedule": collector.schedule(wait=1, active=1), "on_window": lambda window: seen.append(names(window))}
    journal = tmp_path / "journal{step}"
    with collector.trace(tmp_path / "step{step}.gpurec", strict=True, journal=journal, **options) as session:
        follow(gpu, session, 5)
        if work == "a wait":
            gpu.synchronize()
        elif work == "an annotation":
            with collector.annotate("after"):
                pass
        elif work == "a kernel":
            gpu.launch("after")
    windows = {"step1": ["step1"], "step3": ["step3"]}
    if work in ("a kernel", "an annotation"):
        windows["step5"] = ["after"] if work == "a kernel" else []
    assert seen == list(windows.values())
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{name}.gpurec" for name in windows]
    assert names(session) == seen[-1]
    assert session.path == tmp_path / f"{list(windows)[-1]}.gpurec"


def test_a_block_without_a_step_is_a_window_also_if_it_is_empty(gpu, tmp_path):
    with collector.trace(tmp_path / "{step}.gpurec", schedule=collector.schedule(active=1)) as session:
        pass
    assert session.ledger.losses() == ["nothing was recorded: the traced process had no activity of the recorded kinds"]
    assert [file.name for file in tmp_path.iterdir()] == ["0.gpurec"]


@pytest.mark.parametrize("steps", [2, 4])
def test_a_warm_up_at_the_end_leaves_the_results_of_the_last_window(gpu, tmp_path, steps):
    path = tmp_path / "step{step}.gpurec"
    with collector.trace(path, schedule=collector.schedule(warmup=1, active=1), strict=True) as session:
        follow(gpu, session, steps)
    assert names(session) == [f"step{steps - 1}"]
    assert session.path == tmp_path / f"step{steps - 1}.gpurec"
    assert session.ledger.complete
    assert session.run_metadata.provenance.ledger["kernels"] == 1


def test_the_warm_up_is_recorded_and_forgotten(gpu):
    """Annotations that are open at the begin of the results name what is launched in them."""
    with collector.trace(schedule=collector.schedule(warmup=1, active=1, repeat=1), strict=True) as session:
        assert session._use is not None
        with collector.annotate("before"):
            gpu.launch("warm")
            gpu.synchronize()
        with collector.annotate("around"):
            session.step()
            gpu.launch("hot")
        session.step()
    recording = session.recording
    assert names(session) == ["hot"]
    assert recording.annotations_of(recording.kernels) == ["around"]
    assert [recording.strings[name] for name in recording.annotations.name_id] == ["around"]
    assert recording.ledger.losses() == []
    assert (recording.annotations.start_ns >= recording.clock.cupti_start_ns).all()
    assert len(recording.early) == len(recording.invalid) == 0


def test_work_of_the_warm_up_that_runs_into_the_window_is_not_in_it(gpu):
    with collector.trace(schedule=collector.schedule(warmup=1, active=1, repeat=1), strict=True) as session:
        gpu.launch("long", stream=7, duration_ns=30_000_000)
        gpu.launch("waiting", stream=7)
        session.step()
        gpu.launch("own", stream=8)
        session.step()
    assert names(session) == ["own"]
    assert session.ledger.losses() == []
    assert session.ledger.launches_seen == 1


def test_without_calls_the_time_of_the_work_decides(gpu):
    schedule = collector.schedule(warmup=1, active=1, repeat=1)
    with collector.trace(schedule=schedule, kinds="kernels", strict=True) as session:
        gpu.launch("long", stream=7, duration_ns=30_000_000)
        gpu.launch("waiting", stream=7)
        session.step()
        session.step()
    assert names(session) == ["waiting"]
    assert session.ledger.losses() == []


def test_graphs_that_are_captured_in_the_warm_up_have_their_names(gpu):
    with collector.trace(schedule=collector.schedule(warmup=1, active=1, repeat=1), strict=True) as session:
        with collector.annotate("captured"), gpu.capture() as graph:
            gpu.launch("inside")
        executable = graph.instantiate()
        session.step()
        executable.launch()
        session.step()
    recording = session.recording
    assert names(session) == ["inside"]
    assert recording.annotations_of(recording.kernels) == ["<captured_at>/captured"]
    assert recording.counters.get("graphs_before_trace", 0) == 0
    assert recording.ledger.losses() == []


def test_windows_without_a_number_are_one_file(gpu, tmp_path):
    path = tmp_path / "all.json"
    with collector.trace(path, schedule=collector.schedule(wait=1, active=1, repeat=3), strict=True) as session:
        follow(gpu, session, 4)
        (hidden,) = tmp_path.iterdir()
        assert hidden.name.startswith(".collector-windows-")
        follow(gpu, session, 4)
    assert list(tmp_path.iterdir()) == [path]
    assert session.path == path
    text = path.read_text()
    assert [f"step{number}" in text for number in range(4)] == [False, True, False, True]
    assert len(collector.load(path).kernels) == 3


@pytest.mark.parametrize("suffix", [".json", ".pftrace", ".xplane.pb"])
def test_windows_in_which_nothing_was_done_are_one_file_that_says_so(gpu, tmp_path, suffix):
    schedule = collector.schedule(active=1, repeat=2)
    with (
        warnings.catch_warnings(),
        collector.trace(tmp_path / f"all{suffix}", strict=True, schedule=schedule) as session,
    ):
        warnings.simplefilter("error")
        session.step()
        session.step()
    assert session.path == tmp_path / f"all{suffix}"
    assert list(tmp_path.iterdir()) == [session.path]
    if suffix != ".pftrace":
        ledger = collector.load(session.path).ledger
        assert (ledger.nothing_recorded, ledger.untraced) == (1, 0)


def test_what_a_window_lost_is_in_the_file_of_all_windows_though_nothing_is_left_of_it(gpu, tmp_path):
    for suffix in (".json", ".xplane.pb"):
        path = tmp_path / f"all{suffix}"
        with collector.trace(path, kinds="kernels", schedule=collector.schedule(active=1, repeat=2)) as session:
            gpu.launch("kept")
            session.step()
            gpu.inject("dropped_record", count=3)
            gpu.launch("lost", count=3)
            session.step()
        step = collector.load(path)
        assert [kernel.name for kernel in step.kernels] == ["kept"]
        assert step.ledger.records_dropped == 3
        assert "CUPTI dropped 3 records" in step.ledger.losses()[0]


def test_one_file_of_all_windows_is_in_the_folder_of_its_rank(gpu, tmp_path, monkeypatch):
    locked = []
    enter = FolderLock.__enter__
    monkeypatch.setattr(FolderLock, "__enter__", lambda lock: locked.append(lock._folder) or enter(lock))
    path = tmp_path / "out{rank}" / "all.json"
    with collector.trace(path, rank=3, schedule=collector.schedule(wait=1, active=1), strict=True) as session:
        follow(gpu, session, 4)
    assert session.path == tmp_path / "out3" / "all.json"
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "out3", session.path]
    assert locked[-1] == tmp_path / "out3"


def test_one_window_is_a_file_of_any_format(gpu, tmp_path):
    with collector.trace(tmp_path / "one.gpurec", schedule=collector.schedule(wait=1, repeat=1)) as session:
        follow(gpu, session, 3)
    assert names(collector.load(tmp_path / "one.gpurec")) == ["step1"]


def test_a_block_that_ends_early_has_what_was_recorded(gpu, tmp_path):
    schedule = collector.schedule(wait=1, warmup=1, active=4)

    def fail() -> None:
        with collector.trace(tmp_path / "{step}.gpurec", schedule=schedule) as session:
            follow(gpu, session, 3)
            gpu.launch("last")
            raise KeyError("the program's own")

    with pytest.raises(KeyError):
        fail()
    assert names(collector.load(tmp_path / "2.gpurec")) == ["last", "step2"]
    with collector.trace(tmp_path / "never.gpurec", schedule=collector.schedule(wait=1, warmup=2, repeat=1)) as session:
        follow(gpu, session, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["2.gpurec"]
    assert session.unavailable is None
    with collector.trace(strict=True) as after:
        gpu.launch("kernel")
    assert len(after.kernels) == 1


def test_a_session_follows_its_schedule_again(gpu):
    seen = []
    session = collector.trace(schedule=collector.schedule(wait=1, repeat=1), on_window=lambda s: seen.append(names(s)))
    for _ in range(2):
        with session:
            follow(gpu, session, 3)
    assert seen == [["step1"], ["step1"]]


def test_schedules_of_others(gpu):
    """A function of the step is a schedule: also PyTorch's, whose actions have the same names."""
    torch_action = enum.Enum("ProfilerAction", ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"])
    actions = ["RECORD", "RECORD", "NONE", "WARMUP", "NONE", "RECORD_AND_SAVE"]
    seen = []
    with collector.trace(
        schedule=lambda step: torch_action[actions[step]], on_window=lambda s: seen.append(names(s)), strict=True
    ) as session:
        follow(gpu, session, 5)
        gpu.launch("last")
    assert seen == [["step0", "step1"], ["last"]]
    with pytest.raises(TypeError, match="a schedule returned 7"), collector.trace(schedule=lambda _: 7):
        pass
    with collector.trace(strict=True):
        pass


def test_misuse_names_cause_and_remedy(gpu):
    session = collector.trace(schedule=collector.schedule())
    with pytest.raises(CollectorError, match="session is not open"):
        session.step()
    with pytest.raises(CollectorError, match=r"no schedule. Write collector.trace\(schedule="):
        collector.trace().step()
    with pytest.raises(CollectorError, match=r"not started. Call start\(\)"):
        collector.trace().stop()
    with session, pytest.raises(SessionActiveError, match="follows its schedule already"):
        session.start()


def test_an_exception_of_on_window_loses_no_step(gpu, tmp_path):
    class OwnError(Exception):
        pass

    def fail(_) -> None:
        raise OwnError

    def follow_and_catch(schedule, steps: int) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with collector.trace(folder / "{step}.gpurec", schedule=schedule, on_window=fail, strict=True) as session:
            for number in range(steps):
                gpu.launch(f"step{number}")
                gpu.synchronize()
                with contextlib.suppress(OwnError):
                    session.step()
        return [f"{file.stem}: {names(collector.load(file))}" for file in sorted(folder.iterdir())]

    assert follow_and_catch(collector.every(steps=2), 6) == ["1: ['step1']", "3: ['step3']", "5: ['step5']"]
    actions = [RECORD, WARMUP, SAVE, NONE, NONE]  # the first window has no step that ends it
    assert follow_and_catch(actions.__getitem__, 4) == ["0: ['step0']", "2: ['step2']"]


@pytest.mark.parametrize("stopped_by", ["on_window", "the schedule"])
def test_a_session_that_is_stopped_between_two_steps_opens_no_other_window(gpu, stopped_by):
    def schedule(step: int) -> Action:
        if stopped_by == "the schedule" and step == 1:
            session.stop()
        return SAVE

    def stop_after_window(stopped: collector.Session) -> None:
        if stopped_by == "on_window":
            stopped.stop()

    session = collector.trace(schedule=schedule, on_window=stop_after_window, strict=True)
    session.start()
    follow(gpu, session, 1)
    assert names(session) == ["step0"]
    with collector.trace(strict=True) as other:
        gpu.launch("other")
    assert names(other) == ["other"]


def test_a_session_that_is_stopped_after_the_last_window_has_the_path_of_its_file(gpu, tmp_path):
    def stop(session: collector.Session) -> None:
        session.stop()

    path = tmp_path / "windows.json"
    schedule = collector.schedule(active=5)
    with collector.trace(path, schedule=schedule, on_window=stop, strict=True) as session:
        gpu.launch("kernel")
    assert session.path == path
    assert collector.load(path).kernels.names() == ["kernel"]


def test_start_and_stop(gpu):
    session = collector.trace(strict=True)
    assert session.start() is session
    gpu.launch("kernel")
    session.stop()
    assert names(session) == ["kernel"]
    with pytest.raises(CollectorError):
        session.stop()
    scheduled = collector.trace(schedule=collector.schedule(wait=1, repeat=1), strict=True).start()
    follow(gpu, scheduled, 3)
    scheduled.stop()
    assert names(scheduled) == ["step1"]


def test_what_cannot_be_traced_is_one_warning(monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so")
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", "/nowhere/libcupti.so")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with collector.trace(schedule=collector.schedule(wait=1, warmup=1, active=1)) as session:
            for _ in range(9):
                session.step()
    assert len(told) == 1
    assert "not traced" in str(told[0].message)
    assert session.unavailable


def test_a_window_beside_another_trace_is_not_traced(gpu):
    with collector.trace(strict=True) as outer:
        with (
            pytest.warns(CollectorWarning, match="another session is already tracing") as told,
            collector.trace(schedule=collector.schedule(active=1)) as session,
        ):
            follow(gpu, session, 3)
        assert len(told) == 1
    assert len(outer.kernels) == 3


def test_windows_of_a_recorder_are_parts_of_its_recording(gpu, tmp_path):
    seen = []
    schedule = collector.schedule(wait=1, warmup=1, active=1, repeat=2)
    with (
        collector.record(folder=tmp_path, strict=True) as recorder,
        collector.trace(schedule=schedule, strict=True, on_window=lambda s: seen.append(names(s))) as session,
    ):
        follow(gpu, session, 7)
        dump = recorder.dump()
    assert seen == [["step2"], ["step5"]]
    assert session.ledger.losses() == []
    assert len(collector.load(dump.journal).kernels) == 7


@pytest.mark.medium
def test_a_program_that_forgets_the_end_has_its_file(tmp_path):
    program = """
import sys, collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
session = collector.trace(sys.argv[1], schedule=collector.every(steps=2)).start()
for number in range(4):
    gpu.launch(f"step{number}")
    session.step()
"""
    path = tmp_path / "all.json"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [path]
    assert names(collector.load(path)) == ["step1", "step3"]
