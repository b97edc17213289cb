"""A program that mixes the features of tracing at random, and knows what each of its recordings must contain.

Its arguments are the mode (see `MODES`), the number of programs to try, and the file for what a recording of the whole
process must contain.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from nvtx_copy import NvtxCopy

import collector
from collector import _native
from collector.launching.attached_process import AttachedProcess
from collector.options import KINDS
from collector.recording.ledger import GRAPH_NAMES_LOST
from collector.recording.recording import Recording
from collector.testing import SimulatedGpu

MODES = ("plain", "listening", "recorded")
"""Whether other processes may record the process, or do: ``recorded`` needs `collector run --nvtx`."""
STEPS = 40
NAMES = st.sampled_from(["conv", "layer/dense", "pool"])
SUFFIXES = [".json", ".json.gz", ".pb", ".pbtxt", ".gpurec", ".xplane.pb"]
VERSIONS = st.sampled_from(["12.0", "12.4", "13.0", "13.5"])
ALLOWED = (*GRAPH_NAMES_LOST, "nothing_recorded")
"""Losses that tell of no lost record."""

Activity = tuple[str, "str | int", "str | None"]
"""Table, name or number of bytes, annotation; None: that of a node of a graph, which depends on its capture."""


def contents(recording: Recording, nodes: set[str | int]) -> Counter[Activity]:
    found: Counter[Activity] = Counter()
    keys = {
        "kernels": [kernel.name for kernel in recording.kernels],
        "memcpys": recording.memcpys.num_bytes.tolist(),
        "memsets": recording.memsets.num_bytes.tolist(),
    }
    for table, own in keys.items():
        for key, path in zip(own, getattr(recording, table).annotations(), strict=True):
            found[table, key, None if key in nodes else path] += 1
    return found


def left_open() -> tuple[int, list[str]]:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), sorted(thread.name for thread in threading.enumerate())


@dataclass
class Open:
    """An annotation that is entered."""

    annotation: collector.annotate
    destination: object
    """The receiver of annotations at its entry."""
    recording: int
    """The number of the recording in which it was entered; 0: there was none."""


@dataclass
class Window:
    """The session of the program that is open."""

    session: Any
    is_own: bool = False
    """Whether it records by itself, and is no part of a recording."""
    launched: list[Activity] = field(default_factory=list)
    path: Path | None = None
    stream: Path | None = None
    kinds: str = ""
    is_lost: bool = False
    """Whether its recorder was stopped inside of it."""


@dataclass
class Schedule:
    """The schedule of the window, by the documentation."""

    results: list[Counter[Activity]]
    expected: list[list[Activity]] = field(default_factory=list)
    step: int = -1
    is_open: bool = False
    is_recording: bool = False
    has_step: bool = False


class MixedFeatures(RuleBasedStateMachine):
    """Rules are what a program does; the model has what was launched while a recording or a session was open."""

    mode = "plain"
    nvtx: Any
    of_process: list[Activity] = []  # noqa: RUF012 - of all programs that one process runs
    numbers = iter(range(1, 1 << 60))
    at_first: tuple[int, list[str]] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.home, self.folder = Path.cwd(), Path(tempfile.mkdtemp(prefix="mixed-features-"))
        os.chdir(self.folder)
        self.gpu: Any = None
        self.holder = ""  # of the recording that is open: trace, record, attach, run
        self.recordings = 0
        self.launched: list[Activity] = []  # since that began
        self.destination: object = None if self.mode == "plain" else object()
        self.window: Window | None = None
        self.schedule: Schedule | None = None
        self.recorder: Any = None
        self.open: list[Open] = []
        self.graphs: list[tuple[Any, list[Activity]]] = []
        self.nodes: set[str | int] = set()

    @initialize(cuda=VERSIONS, deliver=st.sampled_from(["worker", "caller"]))
    def begin(self, cuda: str, deliver: Any) -> None:
        self.gpu = SimulatedGpu.current()
        if self.gpu is None:
            self.gpu = SimulatedGpu(cuda=cuda, deliver=deliver, devices=2)
            self.gpu.__enter__()
        if self.mode == "recorded":
            assert ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"]).cuInit(0) == 0
            self.holder, self.recordings, self.launched = "run", 1, self.of_process

    # -- The model ---------------------------------------------------------------------------------------------------

    def path(self, *inner: str) -> str:
        """The annotation of a launch inside further annotations; those from before a recording name nothing in it."""
        own = [each for each in self.open if each.destination is self.destination is not None]
        names = [each.annotation.name for each in own] + list(inner) * (self.destination is not None)
        is_known = bool(inner) or (bool(own) and own[-1].recording == self.recordings)
        return "/".join(names) if self.holder and is_known and names else ""

    def note(self, activity: Activity) -> None:
        if self.holder:
            self.launched.append(activity)
        if self.window is not None:
            self.window.launched.append(activity)

    def begin_recording(self, holder: str) -> None:
        self.holder, self.launched = holder, []
        self.recordings += 1
        if holder != "attach":
            self.destination = object()

    def end_recording(self) -> None:
        is_attached, self.holder = self.holder == "attach", ""
        if not is_attached:
            self.destination = None if self.mode == "plain" else object()

    def begin_window(self, window: Window) -> None:
        self.window = window
        window.is_own = not self.holder
        if window.is_own:
            self.begin_recording("trace")

    def end_window(self, window: Window) -> None:
        self.window = None
        if window.is_own:
            self.end_recording()

    def check(
        self, recording: Recording, launched: list[Activity], what: str, allowed: tuple[str, ...] = ALLOWED
    ) -> None:
        found, expected = contents(recording, self.nodes), Counter(launched)
        assert found == expected, f"{what}: {expected - found} missing, {found - expected} too many"
        for name, line in recording.ledger.explained_losses():
            is_of_format = what.endswith(".xplane.pb") and "rows without columns" in line
            assert name in allowed or is_of_format, (what, line)

    # -- The program's work ------------------------------------------------------------------------------------------

    def work(self, kind: str, path: str, *, stream: int = 7, duration_ns: int = 10_000) -> Activity:
        number = next(self.numbers)
        if kind == "kernels":
            self.gpu.launch(f"kernel{number}", stream=stream, duration_ns=duration_ns)
            return kind, f"kernel{number}", path
        if kind == "memcpys":
            self.gpu.memcpy("HtoD", number, stream=stream, duration_ns=duration_ns)
        else:
            self.gpu.memset(number, stream=stream, duration_ns=duration_ns, device=1)
        return kind, number, path

    @rule(
        kind=st.sampled_from(["kernels", "memcpys", "memsets"]),
        stream=st.sampled_from([7, 8]),
        duration_ns=st.sampled_from([10_000, 50_000_000]),
        waits=st.booleans(),
    )
    def launch(self, kind: str, stream: int, duration_ns: int, waits: bool) -> None:
        self.note(self.work(kind, self.path(), stream=stream, duration_ns=duration_ns))
        if waits:
            self.gpu.synchronize()

    @precondition(lambda self: len(self.open) < 4)
    @rule(name=NAMES, flops=st.sampled_from([None, 5.0]))
    def enter(self, name: str, flops: float | None) -> None:
        annotation = collector.annotate(name, flops=flops)
        annotation.__enter__()
        self.open.append(Open(annotation, self.destination, self.recordings if self.holder else 0))

    @precondition(lambda self: self.open)
    @rule()
    def leave(self) -> None:
        self.open.pop().annotation.__exit__(None, None, None)

    @rule(name=NAMES)
    def generator(self, name: str) -> None:
        @collector.annotate(name)
        def generate() -> Any:
            self.note(self.work("kernels", self.path(name)))
            yield
            self.note(self.work("memcpys", self.path(name)))

        for _ in generate():
            self.note(self.work("kernels", self.path()))

    @rule(name=NAMES)
    def thread(self, name: str) -> None:
        path = name if self.holder and self.destination is not None else ""
        done: list[Activity] = []

        def run() -> None:
            with collector.annotate(name):
                done.append(self.work("kernels", path, stream=9))
            done.append(self.work("memcpys", "", stream=9))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for each in done:
            self.note(each)

    @rule(names=st.lists(NAMES, min_size=1, max_size=3), in_pool=st.booleans())
    def tasks(self, names: list[str], in_pool: bool) -> None:
        async def task(name: str) -> None:
            path = self.path(name)
            with collector.annotate(name):
                self.note(self.work("kernels", path))
                await asyncio.sleep(0)
                self.note(self.work("memcpys", path, stream=8))
                if in_pool:
                    self.note(await asyncio.to_thread(self.work, "kernels", path))

        async def run() -> None:
            await asyncio.gather(*map(task, names))

        asyncio.run(run())
        if self.holder in ("attach", "run"):  # the code around the loop has entered its annotations again
            for each in self.open:
                if each.destination is self.destination:
                    each.recording = self.recordings

    @rule(name=NAMES, has_inner=st.booleans())
    def nvtx_range(self, name: str, has_inner: bool) -> None:
        path = "/".join(filter(None, [self.path(), name])) if self.holder else ""
        self.nvtx.RangePushA(name.encode())
        if has_inner:
            with collector.annotate("inner"):
                self.note(self.work("kernels", f"{path}/inner" if self.destination is not None and path else path))
        self.note(self.work("kernels", path))
        self.nvtx.RangePop()

    def capture_nodes(self, name: str) -> tuple[Any, list[Activity]]:
        number = next(self.numbers)
        nodes: list[Activity] = [("kernels", f"node{number}", None), ("memcpys", number, None)]
        self.nodes |= {key for _, key, _ in nodes}
        with self.gpu.capture() as graph, collector.annotate(name):
            self.gpu.launch(f"node{number}")
            self.gpu.memcpy("DtoD", number)
        return graph, nodes

    @precondition(lambda self: len(self.graphs) < 2)
    @rule(name=NAMES)
    def capture(self, name: str) -> None:
        graph, nodes = self.capture_nodes(name)
        self.graphs.append((graph.instantiate(), nodes))

    @precondition(lambda self: self.graphs)
    @rule(name=NAMES, updates=st.booleans())
    def launch_graph(self, name: str, updates: bool) -> None:
        executable, nodes = self.graphs[-1]
        if updates:
            graph, nodes = self.capture_nodes(name)
            executable.update(graph)
            self.graphs[-1] = executable, nodes
        executable.launch()
        for node in nodes:
            self.note(node)

    @precondition(lambda self: self.graphs)
    @rule()
    def destroy_graph(self) -> None:
        self.graphs.pop()[0].destroy()

    @rule()
    def change_directory(self) -> None:
        place = self.folder / f"folder{next(self.numbers)}"
        place.mkdir()
        os.chdir(place)

    @rule(hook=st.sampled_from(["setprofile", "settrace"]), is_set=st.booleans())
    def hook(self, hook: str, is_set: bool) -> None:
        getattr(sys, hook)((lambda *_: None) if is_set else None)

    @rule()
    def fork(self) -> None:
        """The child leaves what the parent has open, and its own session traces nothing of the parent."""
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                warnings.simplefilter("ignore")
                with collector.annotate("child"), collector.trace(self.folder / "child.json"):
                    pass
                for each in reversed(self.open):
                    each.annotation.__exit__(None, None, None)
                if self.window is not None and hasattr(self.window.session, "__exit__"):
                    self.window.session.__exit__(None, None, None)
                if self.recorder is not None:
                    self.recorder.stop()
                status = 0
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        (self.folder / "child.json").unlink(missing_ok=True)

    @precondition(lambda self: self.mode != "recorded" and not self.holder and self.window is None)
    @rule(cuda=VERSIONS)
    def use_another_gpu(self, cuda: str) -> None:
        self.gpu.__exit__(None, None, None)
        self.graphs = []
        self.gpu = SimulatedGpu(cuda=cuda, devices=2)
        self.gpu.__enter__()

    # -- Sessions ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.window is None)
    @rule(
        suffix=st.sampled_from(["", *SUFFIXES]),
        keeps=st.sampled_from(["", "journal", "stream"]),
        kinds=st.sampled_from(["", "", "kernels", "no calls", "whole graphs"]),
        stacks=st.booleans(),
    )
    def begin_trace(self, suffix: str, keeps: str, kinds: str, stacks: bool) -> None:
        # A part of a recording has neither stacks nor a journal of its own, which a strict session refuses.
        number, options = next(self.numbers), {"stacks": stacks and not self.holder}
        is_streamed = keeps == "stream" and not self.holder
        options |= {"journal": f"{number}.journal", "stream": is_streamed} if keeps else {}
        without_calls = [kind for kind in KINDS if not kind.endswith("_api")]
        options |= {
            "kernels": {"kinds": "kernels"},
            "no calls": {"kinds": without_calls},
            "whole graphs": {"graphs": "whole"},
        }.get(kinds, {})
        path = f"{number}{suffix}" if suffix else None
        session = collector.trace(path, strict=True, **options)
        session.start()
        stream = Path.cwd() / f"{number}.journal" if is_streamed else None
        self.begin_window(Window(session, path=path and Path.cwd() / path, stream=stream, kinds=kinds))

    @precondition(lambda self: self.window and not self.schedule)
    @rule(raises=st.booleans())
    def end_trace(self, raises: bool) -> None:
        window, error = self.window, RuntimeError() if raises else None
        assert window is not None
        with contextlib.suppress(collector.NotTracedError), warnings.catch_warnings():
            if window.is_lost:
                warnings.simplefilter("ignore")
            window.session.__exit__(error and RuntimeError, error, None)
        self.end_window(window)
        if window.kinds == "whole graphs":  # also later, CUPTI records no nodes of what was instantiated in it
            self.graphs.clear()
        assert (window.session.unavailable is None) != window.is_lost
        if window.is_lost:
            return
        launched = window.launched
        if window.is_own and window.kinds == "whole graphs":
            launched = [each for each in launched if each[2] is not None]
        elif window.is_own and window.kinds:
            kept = ["kernels"] if window.kinds == "kernels" else ["kernels", "memcpys", "memsets"]
            launched = [(table, key, path and "") for table, key, path in launched if table in kept]
        allowed = ALLOWED
        if window.kinds == "whole graphs":  # CUPTI has no record of a graph that was captured before
            allowed += ("launches_without_kernel",)
        self.check(window.session.recording, launched, "session", allowed)
        if window.path is not None:
            self.check(collector.load(window.path).recording, launched, window.path.name, allowed)
            window.path.unlink()
        if window.stream is not None:
            self.check(collector.load(window.stream).recording, launched, "stream", allowed)
            shutil.rmtree(window.stream)

    @precondition(lambda self: self.window and not self.window.is_lost and (not self.schedule or self.schedule.is_open))
    @rule()
    def begin_second_trace(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", collector.CollectorWarning)
            with collector.trace(self.folder / "second.json") as session:
                self.note(self.work("kernels", self.path()))
        assert session.unavailable
        assert not (self.folder / "second.json").exists()

    @precondition(lambda self: self.window is None)
    @rule(raises=st.booleans())
    def traced_call(self, raises: bool) -> None:
        window = Window(None)

        @collector.trace(strict=True)
        def function() -> None:
            self.begin_window(window)
            self.note(self.work("kernels", self.path()))
            with collector.annotate("called"):
                self.note(self.work("kernels", self.path("called")))
            if raises:
                raise RuntimeError

        with contextlib.suppress(RuntimeError):
            function()
        self.end_window(window)
        self.check(function.session.recording, window.launched, "call")

    # -- Schedules ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.window is None)
    @rule(
        wait=st.integers(0, 1),
        warmup=st.integers(0, 1),
        active=st.integers(1, 2),
        repeat=st.integers(0, 2),
        suffix=st.sampled_from(["", ".json", ".xplane.pb", "-{step}.gpurec"]),
    )
    def begin_schedule(self, wait: int, warmup: int, active: int, repeat: int, suffix: str) -> None:
        results: list[Counter[Activity]] = []
        session = collector.trace(
            f"windows{next(self.numbers)}{suffix}" if suffix else None,
            strict=True,
            schedule=collector.schedule(wait, warmup, active, repeat),
            on_window=lambda session: results.append(contents(session.recording, self.nodes)),
        )
        self.schedule = Schedule(results)
        session.start()
        self.window = Window(session)
        self.follow_schedule()

    def follow_schedule(self) -> None:
        schedule, window = self.schedule, self.window
        assert schedule is not None
        assert window is not None
        schedule.step += 1
        action = window.session.options.schedule(schedule.step)
        if action and not schedule.is_open:
            schedule.is_open = True
            self.begin_window(window)
        if action >= 2 and not schedule.is_recording:
            schedule.is_recording = True
            window.launched = []

    def end_scheduled_window(self, *, is_kept: bool = True) -> None:
        schedule, window = self.schedule, self.window
        assert schedule is not None
        assert window is not None
        if is_kept:
            schedule.expected.append(window.launched)
        if window.is_own:
            self.end_recording()
        schedule.is_open = schedule.is_recording = schedule.has_step = window.is_own = False
        window.launched = []

    def check_windows(self) -> None:
        assert self.schedule is not None
        found, expected = self.schedule.results, list(map(Counter, self.schedule.expected))
        assert found == expected, f"windows: {found}, not {expected}"

    @precondition(lambda self: self.schedule)
    @rule(number=st.integers(1, 4), has_work=st.booleans())
    def next_steps(self, number: int, has_work: bool) -> None:
        for _ in range(number):
            if has_work:
                self.note(self.work("kernels", self.path(), duration_ns=50_000_000))
            self.next_step()

    def next_step(self) -> None:
        schedule, window = self.schedule, self.window
        assert schedule is not None
        assert window is not None
        window.session.step()
        schedule.has_step = schedule.is_recording
        if window.session.options.schedule(schedule.step) == 3:
            self.end_scheduled_window()
        self.follow_schedule()
        self.check_windows()

    @precondition(lambda self: self.schedule)
    @rule()
    def end_schedule(self) -> None:
        schedule, window = self.schedule, self.window
        assert schedule is not None
        assert window is not None
        if schedule.is_recording and not window.launched:  # so that its last window is one in any case
            self.note(self.work("kernels", self.path()))
        window.session.stop()
        if schedule.is_open:
            self.end_scheduled_window(is_kept=schedule.is_recording)
        self.check_windows()
        self.window = self.schedule = None
        path = window.session.path
        if path is not None and "-" not in path.name and schedule.expected:
            launched = [each for window_ in schedule.expected for each in window_]
            found = contents(collector.load(path).recording, self.nodes)
            assert found == Counter(launched), path.name
        for file in self.folder.rglob("windows*"):
            file.unlink()

    # -- Recordings of the process -----------------------------------------------------------------------------------

    @precondition(lambda self: not self.holder and self.window is None)
    @rule(keep=st.sampled_from(["30s", "64MB"]))
    def begin_recorder(self, keep: str) -> None:
        self.recorder = collector.record(keep, folder=self.folder / "dumps", strict=True, hang=None)
        self.begin_recording("record")

    @precondition(lambda self: self.recorder and self.launched)
    @rule()
    def dump(self) -> None:
        self.gpu.synchronize()
        dump = self.recorder.dump(self.folder / "dump.gpurec")
        self.check(collector.load(dump.wait()).recording, self.launched, "dump")
        dump.path.unlink()
        shutil.rmtree(dump.journal)

    @precondition(lambda self: self.recorder and not self.schedule)
    @rule()
    def end_recorder(self) -> None:
        """Also inside of a session, which is lost then."""
        self.gpu.synchronize()
        self.recorder.stop()
        self.recorder = None
        self.end_recording()
        if self.window is not None:
            self.window.is_lost = True

    @precondition(lambda self: self.mode == "listening" and not self.holder and self.window is None)
    @rule()
    def attach(self) -> None:
        AttachedProcess(os.getpid()).start()
        self.begin_recording("attach")

    @precondition(lambda self: self.mode == "listening")
    @rule()
    def ask(self) -> None:
        process = AttachedProcess(os.getpid())
        assert process.status().state == (self.holder or "idle")
        if self.holder in ("record", "attach"):
            process.cut()

    @precondition(lambda self: self.holder == "attach" and self.window is None)
    @rule()
    def detach(self) -> None:
        self.gpu.synchronize()
        journal, trouble = AttachedProcess(os.getpid()).stop()
        assert not trouble
        self.end_recording()
        self.check(Recording.load(journal), self.launched, "attach")
        shutil.rmtree(journal.parent)

    # -- The end -----------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            sys.setprofile(None)
            sys.settrace(None)
            if self.gpu is not None:
                self.end_all()
        finally:
            if self.gpu is not None and self.mode != "recorded":
                self.gpu.__exit__(None, None, None)
            os.chdir(self.home)
            files = [path.name for path in self.folder.rglob("*") if path.is_file()]
            shutil.rmtree(self.folder)
        assert files == []
        found = left_open()
        MixedFeatures.at_first = MixedFeatures.at_first or found
        assert found == MixedFeatures.at_first

    def end_all(self) -> None:
        """End what is open. A session is exact after that."""
        if self.schedule is not None:
            self.end_schedule()
        if self.window is not None:
            self.end_trace(False)
        if self.recorder is not None:
            self.end_recorder()
        if self.holder == "attach":
            self.detach()
        while self.open:
            self.leave()
        self.gpu.synchronize()
        self.traced_call(False)
        assert self.gpu.misuse() == {}


def main() -> None:
    MixedFeatures.mode, number, file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if MixedFeatures.mode == "listening":
        collector.listen(strict=True)
    MixedFeatures.nvtx = NvtxCopy(str(_native.capture_library()))
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "annotations name only the nodes", collector.CollectorWarning)
    warnings.filterwarnings("ignore", ".* use of fork", DeprecationWarning)
    settings = hypothesis.settings(
        max_examples=number,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=True,  # chance fails no run of the tests; a higher number looks further
        report_multiple_bugs=False,
        phases=[hypothesis.Phase.generate],  # in place of a shrunk program, whose search takes minutes
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(MixedFeatures, settings=settings)  # type: ignore[no-untyped-call]
    file.write_text(json.dumps(MixedFeatures.of_process))


if __name__ == "__main__":
    main()
