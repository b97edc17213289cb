"""A Ctrl-C anywhere in our own code, and sessions that end while other threads annotate."""

from __future__ import annotations

import concurrent.futures
import gc
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import collector
from collector import _native
from collector.files.atomic_files import atomic_write
from collector.sources.native import NativeSource
from collector.testing import SimulatedGpu
from collector.tracing.annotate import annotate, send_annotations_to
from collector.tracing.recorder import Recorder
from collector.tracing.recorder_ring import RecorderSource, Ring
from collector.tracing.scheduled_windows import ScheduledWindows
from tests.support.folder_locks import is_locked

PACKAGE = Path(collector.__file__).parent
OURS = frozenset(
    str(PACKAGE / name)
    for name in (
        "tracing/annotate.py",
        "files/atomic_files.py",
        "files/folder_lock.py",
        "files/locked_files.py",
        "formats/output_paths.py",
        "tracing/session_slot.py",
        "tracing/session.py",
        "tracing/scheduled_session.py",
        "tracing/scheduled_windows.py",
        "tracing/facts_at_end.py",
        "tracing/step_journal.py",
        "tracing/step_outputs.py",
        "tracing/step_tracer.py",
        "tracing/traced_calls.py",
        "sources/native.py",
        "runtime/process_threads.py",
        "runtime/uncompiled.py",
    )
)


# A file that is being written when the signal comes is closed by the garbage collector at the latest.
pytestmark = [
    pytest.mark.simulator,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def _is_finalizing(frame: FrameType | None) -> bool:
    """Whether a finalizer runs: what is raised there goes nowhere."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


class TooLateError(Exception):
    """What a signal handler of a program raises."""


def too_late(*_: object) -> None:
    raise TooLateError


class Interrupt:
    """Runs a signal handler at the ``at``-th line or call of our code, None: nowhere; and counts them."""

    def __init__(self, at: int | None = None, handler: Callable[..., None] = signal.default_int_handler) -> None:
        self.at, self.count, self.where = at, 0, ""
        self.handler, self.is_raised = handler, False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Interrupt | None:
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "call" and frame.f_lasti >= 0 and sys.version_info < (3, 11):
            # A generator goes on. What a trace function raises then passes by all its handlers; no signal does.
            return self
        if event in ("call", "line") and not _is_finalizing(frame):
            if self.count == self.at:
                self.where = (
                    f"{event} of {frame.f_code.co_name}, {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                )
                self.handler(signal.SIGINT, frame)
            self.count += 1
        return self

    def run(self, function: Callable[[], object]) -> None:
        """Run ``function`` in a thread of its own.

        Where a trace function raises inside an except clause, CPython 3.11 goes on taking the caught exception for the
        one that is being handled, and every later exception of that thread would get it as its context.

        A thread that was joined is in /proc until the kernel has ended it. A session of the next run would list it, and
        run more lines than this one.
        """
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            thread_id = threads.submit(self._run, function).result()
        while Path(f"/proc/self/task/{thread_id}").exists():
            time.sleep(0.001)

    def _run(self, function: Callable[[], object]) -> int:
        sys.settrace(self)
        try:
            function()
        except (KeyboardInterrupt, TooLateError):
            self.is_raised = True
        finally:
            sys.settrace(None)
        return threading.get_native_id()


@pytest.fixture
def gpu() -> Iterator[SimulatedGpu]:
    with SimulatedGpu() as simulated:
        yield simulated
        assert simulated.misuse() == {}


@pytest.fixture
def step(gpu, tmp_path) -> Callable[[], None]:
    """A small step with a file, a journal and annotations of all kinds."""

    @collector.annotate("decorated", op="Add")
    def decorated() -> None:
        gpu.launch("c")

    def run() -> None:
        with collector.trace(tmp_path / "step.gpurec", journal=tmp_path / "step.journal"):
            with annotate("outer"):
                with annotate("inner", flops=3):
                    gpu.launch("a")
                decorated()
            gpu.launch("b")

    return run


@pytest.fixture
def decorated_step(gpu) -> Callable[[], None]:
    """A function that is traced at every call; its session lives as long as it does."""

    @collector.trace()
    def run() -> None:
        with annotate("outer"):
            gpu.launch("a")

    return run


@pytest.fixture
def scheduled_steps(gpu, tmp_path) -> Callable[[], None]:
    """A loop of which two steps are traced, after a step of warm-up each, into one file."""

    def run() -> None:
        with collector.trace(
            tmp_path / "windows.json",
            journal=tmp_path / "step.journal",
            schedule=collector.schedule(wait=0, warmup=1, active=1, repeat=2),
            on_window=lambda window: window.kernels.names(),
        ) as session:
            for _ in range(4):
                gpu.launch("a")
                session.step()

    return run


def healthy(gpu: SimulatedGpu, folder: Path, where: str) -> None:
    """Assert that the process can trace, and that nothing of before is in the way."""
    assert not is_locked(folder), where
    journal = folder / "step.journal"
    journal.unlink(missing_ok=True)
    with collector.trace(strict=True):
        gpu.synchronize()  # and takes what CUPTI still held of the one that was broken off
    with collector.trace(folder / "later.pb", strict=True, journal=journal) as later:
        gpu.launch("bare")
        with annotate("later"):
            gpu.launch("named")
    assert later.kernels.names() == ["bare", "named"], where
    assert later.recording.annotations_of(later.kernels) == ["", "later"], where
    assert later.ledger.complete, (where, later.ledger.losses())
    assert not _native.is_active(), where
    assert not journal.exists(), where
    assert not list(folder.glob(".*.part")), where


def sweep(
    gpu: SimulatedGpu,
    folder: Path,
    run: Callable[[], None],
    points: int | None,
    handler: Callable[..., None] = signal.default_int_handler,
) -> None:
    """Interrupt ``run`` at every line and call of ours, or at so many of them spread over all."""
    assert [path for path in OURS if not Path(path).is_file()] == []
    run()
    whole = Interrupt()
    whole.run(run)
    assert whole.count > 100
    step = 1 if points is None else max(whole.count // points, 1)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", collector.CollectorWarning)
        failed: list[BaseException | None] = []  # finalizers, of objects that were not complete
        patch.setattr(sys, "unraisablehook", lambda failure: failed.append(failure.exc_value))
        for at in range(0, whole.count, step):
            interrupt = Interrupt(at, handler)
            interrupt.run(run)
            assert interrupt.where
            assert interrupt.is_raised, interrupt.where
            healthy(gpu, folder, interrupt.where)
            assert [each for each in failed if not isinstance(each, ResourceWarning)] == [], interrupt.where


@pytest.mark.medium
def test_a_process_traces_again_after_a_ctrl_c_anywhere_in_a_session(gpu, tmp_path, step):
    sweep(gpu, tmp_path, step, points=100)


@pytest.mark.medium
def test_a_process_traces_again_after_a_ctrl_c_anywhere_in_a_decorated_function(gpu, tmp_path, decorated_step):
    sweep(gpu, tmp_path, decorated_step, points=25)
    decorated_step()
    assert decorated_step.session.recording.annotations_of(decorated_step.session.kernels) == ["outer"]


@pytest.mark.medium
def test_a_process_traces_again_after_a_ctrl_c_anywhere_in_a_schedule(gpu, tmp_path, scheduled_steps):
    sweep(gpu, tmp_path, scheduled_steps, points=40)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("which", "points"), [("step", None), ("decorated_step", None), ("scheduled_steps", 500)])
def test_a_process_traces_again_after_a_ctrl_c_at_every_line_and_call(gpu, tmp_path, which, points, request):
    """A schedule has some 2,000 lines and calls, half of which are those of the other windows."""
    sweep(gpu, tmp_path, request.getfixturevalue(which), points=points)


@pytest.fixture
def alarm() -> Iterator[Callable[..., None]]:
    """A handler of the program that raises an ordinary exception, as for a time limit."""
    before = signal.signal(signal.SIGALRM, too_late)
    yield too_late
    signal.signal(signal.SIGALRM, before)


@pytest.mark.medium
@pytest.mark.parametrize(("which", "points"), [("step", 100), ("decorated_step", 25), ("scheduled_steps", 40)])
def test_the_exception_of_a_signal_handler_reaches_the_program_from_anywhere(
    gpu, tmp_path, which, points, request, alarm
):
    sweep(gpu, tmp_path, request.getfixturevalue(which), points=points, handler=alarm)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("which", "points"), [("step", None), ("decorated_step", None), ("scheduled_steps", 500)])
def test_the_exception_of_a_signal_handler_reaches_the_program_from_every_line_and_call(
    gpu, tmp_path, which, points, request, alarm
):
    sweep(gpu, tmp_path, request.getfixturevalue(which), points=points, handler=alarm)


@pytest.mark.slow
def test_a_process_traces_again_after_real_signals(gpu, tmp_path, step, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's is long, and would be interrupted as well
    before = signal.signal(signal.SIGALRM, _interrupt)
    interrupted = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", collector.CollectorWarning)
            step()
            whole = min(seconds_of(step) for _ in range(10))  # else a step that the machine held up counts
            for part in range(300):
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, max(whole * 1.2 * part / 300, 1e-6))
                        step()
                    finally:  # which the signal may interrupt as well
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupted += 1
                healthy(gpu, tmp_path, f"a signal after {part} of 300 parts")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 100


def seconds_of(function: Callable[[], None]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def break_off_twice(step: collector.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """End ``step`` with a Ctrl-C in its end and another in the undoing of that."""
    with monkeypatch.context() as patch, step:
        patch.setattr(collector.Session, "_stop", _interrupt)
        patch.setattr(collector.Session, "_release", _interrupt)


def test_even_an_undoing_that_is_broken_off_leaves_the_process_able_to_trace(gpu, monkeypatch):
    """Whoever is impatient presses Ctrl-C twice, and may keep the session in a variable."""
    step = collector.trace()
    with pytest.raises(KeyboardInterrupt):
        break_off_twice(step, monkeypatch)
    assert _native.is_active()
    with collector.trace(strict=True) as later:
        gpu.launch("a")
    assert later.kernels.names() == ["a"]
    assert "broken off" in step.unavailable


def trace_one_step(gpu: SimulatedGpu, session: collector.Session) -> None:
    with session:
        gpu.launch("a")
        session.step()


@pytest.mark.parametrize(
    ("owner", "method"),
    [(ScheduledWindows, "next_step"), (ScheduledWindows, "end"), (collector.Session, "end_use")],
    ids=["begin", "end", "end of a window"],
)
def test_a_block_with_a_schedule_that_is_broken_off_leaves_its_session_usable(gpu, monkeypatch, owner, method):
    session = collector.trace(schedule=collector.schedule(wait=0, warmup=0, active=2))
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, _interrupt)
        with pytest.raises(KeyboardInterrupt):
            trace_one_step(gpu, session)
    with collector.trace(strict=True) as other:
        gpu.launch("b")
    assert other.kernels.names() == ["b"]
    trace_one_step(gpu, session)
    assert session.kernels.names() == ["a"]


def test_a_ctrl_c_while_the_windows_are_joined_is_told_with_their_place(gpu, tmp_path, monkeypatch):
    session = collector.trace(tmp_path / "windows.json", schedule=collector.schedule(wait=0, warmup=0, active=1))
    monkeypatch.setattr("collector.merging.merged_trace.merge_windows", _interrupt)
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(collector.CollectorWarning, match=r"interrupted; the windows are in .*\.collector-windows-"),
    ):
        trace_one_step(gpu, session)
    (folder,) = tmp_path.iterdir()
    (window,) = folder.iterdir()
    assert collector.load(window).kernels.names() == ["a"]


def test_a_signal_handler_that_interrupts_the_joining_of_windows_is_told_with_their_place(
    gpu, tmp_path, monkeypatch, alarm
):
    session = collector.trace(tmp_path / "windows.json", schedule=collector.schedule(wait=0, warmup=0, active=1))
    monkeypatch.setattr("collector.merging.merged_trace.merge_windows", alarm)
    with (
        pytest.raises(TooLateError),
        pytest.warns(collector.CollectorWarning, match=r"interrupted; the windows are in .*\.collector-windows-"),
    ):
        trace_one_step(gpu, session)
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 1


def test_a_ctrl_c_while_the_first_window_is_saved_leaves_no_folder(gpu, tmp_path, monkeypatch):
    session = collector.trace(tmp_path / "windows.json", schedule=collector.schedule(wait=0, warmup=0, active=1))
    monkeypatch.setattr(collector.Session, "save", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        trace_one_step(gpu, session)
    assert list(tmp_path.iterdir()) == []


def interrupted_after(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, with a Ctrl-C right after it."""

    def run(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)
        raise KeyboardInterrupt

    return run


def record_one_kernel(gpu: SimulatedGpu, folder: Path) -> None:
    """Record strictly, and assert that the dump is whole and nothing else is left in the folder."""
    with collector.record(folder=folder, strict=True) as recorder:
        gpu.launch("a")
        gpu.synchronize()
        dump = recorder.dump()
    assert dump is not None
    assert collector.load(dump.journal).kernels.names() == ["a"]
    assert list(folder.iterdir()) == [dump.journal]
    assert not _native.is_active()


@pytest.mark.parametrize(
    ("owner", "method"),
    [(RecorderSource, "begin"), (Recorder, "_follow_program"), (Recorder, "_begin")],
    ids=["subscribed", "followed", "begun"],
)
def test_a_ctrl_c_while_a_recorder_begins_leaves_none(gpu, tmp_path, monkeypatch, owner, method):
    hook = sys.excepthook
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, interrupted_after(getattr(owner, method)))
        with pytest.raises(KeyboardInterrupt):
            collector.record(folder=tmp_path)
    assert sys.excepthook is hook
    record_one_kernel(gpu, tmp_path)


class WaitedTooLongError(TimeoutError):
    """What a signal handler of a program raises, and what system calls raise as well."""


@pytest.fixture
def time_limit() -> Iterator[Callable[..., None]]:
    def end_waiting(*_: object, **__: object) -> None:
        raise WaitedTooLongError

    before = signal.signal(signal.SIGALRM, end_waiting)
    yield end_waiting
    signal.signal(signal.SIGALRM, before)


def test_the_exception_of_a_signal_handler_ends_the_begin_of_a_recorder(gpu, tmp_path, monkeypatch, time_limit):
    with monkeypatch.context() as patch:
        patch.setattr(RecorderSource, "begin", time_limit)
        with pytest.raises(WaitedTooLongError):
            collector.record(folder=tmp_path)
    record_one_kernel(gpu, tmp_path)


def test_the_exception_of_a_signal_handler_ends_a_dump_and_no_recorder(gpu, tmp_path, monkeypatch, time_limit):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        gpu.launch("a")
        with monkeypatch.context() as patch:
            patch.setattr(RecorderSource, "cut", time_limit)
            with pytest.raises(WaitedTooLongError):
                recorder.dump()
        assert recorder.dump() is not None


def test_the_exception_of_a_signal_handler_that_interrupts_a_write_leaves_no_other_file(
    gpu, tmp_path, monkeypatch, time_limit
):
    """An OSError in the writing of a file would be taken for one of the disk."""
    monkeypatch.setattr("collector.formats.step.TracedStep.save", interrupted_write(time_limit))
    with pytest.raises(WaitedTooLongError), collector.trace(tmp_path / "step.pb"):
        gpu.launch("a")
    assert list(tmp_path.iterdir()) == []


def interrupted_write(handler: Callable[..., None]) -> Callable[..., None]:
    def save(_: object, path: Path) -> None:
        with atomic_write(path):
            handler()

    return save


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Recorder, "_end_source"), (RecorderSource, "stop"), (Ring, "remove")],
)
def test_a_recorder_whose_end_was_broken_off_can_be_stopped_again(gpu, tmp_path, monkeypatch, owner, method):
    recorder = collector.record(folder=tmp_path, strict=True)
    gpu.launch("a")
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, _interrupt)
        with pytest.raises(KeyboardInterrupt):
            recorder.stop()
    recorder.stop()
    record_one_kernel(gpu, tmp_path)


def test_a_block_of_a_recorder_ends_though_the_dump_of_its_error_is_broken_off(gpu, tmp_path, monkeypatch):
    def fail() -> None:
        with collector.record(folder=tmp_path, strict=True):
            gpu.launch("a")
            raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "_dump", _interrupt)
        with pytest.raises(KeyboardInterrupt), pytest.warns(collector.CollectorWarning, match="no dump could be made"):
            fail()
    (kept,) = tmp_path.glob(".collector-ring-*")
    shutil.rmtree(kept)
    record_one_kernel(gpu, tmp_path)


def test_a_session_whose_thread_ended_in_the_middle_of_it_is_no_obstacle(gpu, monkeypatch):
    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            break_off_twice(step, monkeypatch)

    step = collector.trace()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert _native.is_active()
    with collector.trace(strict=True) as later:
        gpu.launch("a")
    assert later.kernels.names() == ["a"]


def test_a_session_that_is_entered_and_forgotten_is_reported_by_the_next(gpu, tmp_path):
    collector.trace(tmp_path / "lost.json").__enter__()
    gpu.launch("a")
    gpu.synchronize()
    with (
        pytest.warns(collector.CollectorWarning, match=r"lost\.json.* was never ended .* lost"),
        collector.trace(strict=True) as later,
    ):
        gpu.launch("b")
    assert later.kernels.names() == ["b"]
    assert list(tmp_path.iterdir()) == []


class Counting:
    """A source that keeps the annotation stack of every thread."""

    def __init__(self) -> None:
        self._threads = threading.local()

    @property
    def stack(self) -> list[str]:
        if not hasattr(self._threads, "stack"):
            self._threads.stack = []
        return self._threads.stack

    def push_annotation(self, path: str, details: int = 0) -> None:
        self.stack.append(path)

    def pop_annotation(self) -> None:
        self.stack.pop()


class Pause:
    """Ends the session in another thread at the ``at``-th line or call of annotate's code."""

    def __init__(self, at: int | None) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Pause | None:
        if frame.f_code.co_filename != str(PACKAGE / "tracing/annotate.py"):
            return None
        if event in ("call", "line"):
            if self.count == self.at:
                thread = threading.Thread(target=send_annotations_to, args=(None,))
                thread.start()
                thread.join()
            self.count += 1
        return self


def test_a_session_may_end_in_another_thread_at_any_line_of_an_annotation():
    @annotate("decorated")
    def decorated() -> None:
        pass

    def annotated() -> None:
        with annotate("outer"), annotate("inner", flops=3, stack=True):
            decorated()

    def paused(at: int | None) -> int:
        source: Any = Counting()
        send_annotations_to(source)
        pause = Pause(at)
        before = sys.gettrace()
        sys.settrace(pause)
        try:
            annotated()
        finally:
            sys.settrace(before)
            send_annotations_to(None)
        assert source.stack == [], at
        return pause.count

    points = paused(None)
    assert points > 20
    for at in range(points):
        paused(at)


@pytest.mark.slow
def test_threads_annotate_while_sessions_begin_and_end(gpu):
    errors: list[BaseException] = []
    is_over = threading.Event()

    def annotated() -> None:
        try:
            while not is_over.is_set():
                with annotate("outer"), annotate("inner"):
                    pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=annotated) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        with collector.trace():
            pass
    is_over.set()
    for thread in threads:
        thread.join()
    gc.collect()
    assert errors == []


DURING_IMPORTS = """
import sys
import collector
from collector.testing import SimulatedGpu

modules = []

def trace_in_module(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and frame.f_code.co_name == "<module>" and name.startswith(sys.argv[1]):
        modules.append(name)
        if len(modules) == 1:
            with trace("inner.json"):
                gpu.launch("inner")

trace = collector.trace
with SimulatedGpu() as gpu:
    sys.setprofile(trace_in_module)
    with trace("outer.json") as step:
        gpu.launch("outer")
    sys.setprofile(None)
print(len(modules))
assert step.unavailable is None
assert step.recording.kernels.names() == ["outer"]
"""


@pytest.mark.medium
@pytest.mark.parametrize("modules", ["collector.formats.", "collector.recording.", "collector.timeline."])
def test_a_trace_in_the_middle_of_an_import_of_ours(tmp_path: Path, modules: str) -> None:
    """As a signal handler or a finalizer begins one: it finds modules that are imported only in part."""
    program = [sys.executable, "-W", "ignore", "-c", DURING_IMPORTS, modules]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "outer.json").exists()
    assert (int(done.stdout) > 0) == (modules != "collector.formats.")


@pytest.mark.parametrize("moment", ["start", "stop"])
def test_a_trace_in_the_middle_of_the_begin_or_end_of_another(gpu, monkeypatch, moment):
    """As a signal handler begins one: the other one is not abandoned, and goes on after it."""
    interrupted = getattr(NativeSource, moment)

    def interrupt(*given: Any, **options: Any) -> object:
        result = interrupted(*given, **options)
        monkeypatch.setattr(NativeSource, moment, interrupted)
        with collector.trace() as inner:
            pass
        refused.append(inner.unavailable)
        return result

    refused: list[str | None] = []
    monkeypatch.setattr(NativeSource, moment, interrupt)
    with (
        pytest.warns(collector.CollectorWarning, match="this step is not traced: another session is already tracing"),
        collector.trace() as step,
    ):
        gpu.launch("a")
    assert len(refused) == 1
    assert step.unavailable is None
    assert step.kernels.names() == ["a"]
