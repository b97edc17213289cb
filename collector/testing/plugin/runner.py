"""The plugin proper: the steps around each test, in the process that runs it.

The parts that decide (limits, leaks, snapshots, sharing, ...) are separate modules that know nothing of pytest's hooks;
this module calls them at the right time, and `collector.testing.plugin.leak_watch` around fixtures of wider scopes. The
results of a test travel in its reports, so that they reach the controller of pytest-xdist even from a worker that dies;
`collector.testing.plugin.run_reporting` collects them there.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import unittest
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import pytest

from collector.testing.plugin.artifacts import Artifacts
from collector.testing.plugin.background_tracing import Tracing
from collector.testing.plugin.devices import Found, find_devices, why_not
from collector.testing.plugin.failure_dumps import FailureDumps
from collector.testing.plugin.figures import Figures, figures_of
from collector.testing.plugin.leak_watch import LeakWatch
from collector.testing.plugin.limits import LimitError, judge, parse_limits
from collector.testing.plugin.lines import Lines
from collector.testing.plugin.marker_names import SIMULATED_FIXTURES
from collector.testing.plugin.markers import ADDED_LATE, MarkerError, Markers, read_markers, requirement_of, uses_gpu
from collector.testing.plugin.messages import why_lines_are_missing
from collector.testing.plugin.outcomes import fail, skip
from collector.testing.plugin.running_test import Phase, Running
from collector.testing.plugin.snapshot_matching import match_snapshot
from collector.testing.plugin.sticky_errors import recorded_sticky_error, speaks_of_cuda, sticky_error
from collector.testing.plugin.torch_profiler import TakeTurns
from collector.testing.simulator.simulated_gpu import SimulatedGpu
from collector.text import terminal
from collector.text.terminal import printable, printable_lines
from collector.tracing.session_slot import set_background

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from collector.recording.recording import Recording
    from collector.testing.plugin.device_sharing import Sharing
    from collector.testing.plugin.plugin_options import PluginOptions
    from collector.testing.plugin.traced_step import Step

_RUNNING = pytest.StashKey[Running]()
_MEASURES = {
    "benchmark": "pytest-benchmark measures its call",
    "gpu_benchmark": "gpu_benchmark measures its call, and traces it itself",
}
"""Fixtures of tests whose call tracing would slow down -> the explanation in the report."""
_LEAVE_STATUS = 75
"""Exit status of a worker that is replaced by one with a working CUDA context (EX_TEMPFAIL)."""


class GpuRunner:
    """Follows each test of this process; a pytest plugin."""

    def __init__(
        self, options: PluginOptions, root: Path, sharing: Sharing | None, shares: dict[str, int], *, may_leave: bool
    ) -> None:
        """Follow tests according to ``options``.

        Args:
            options: the run's options.
            root: the folder of the project's own Python code.
            sharing: the claims on devices, under pytest-xdist.
            shares: this worker's devices in its own order -> bytes to claim for a test that declares no memory.
            may_leave: whether another process takes over the remaining tests if this one's context is broken.
        """
        self._options = options
        self._root = root
        self._sharing = sharing
        self._shares = shares
        self._may_leave = may_leave
        self._tracing = Tracing()
        self._turns = TakeTurns(self._tracing)
        self._undo = contextlib.ExitStack()
        self._simulated_gpu: SimulatedGpu | None = None
        self.leaks = LeakWatch(self._tracing)
        """A plugin of its own."""
        self._noting: Running | None = None
        """The test whose lines are recorded now."""
        self._gpu_opened = False
        """Whether the test has opened a simulated GPU itself, since its setup began."""
        self._broken: tuple[str, str] | None = None
        self._artifacts = Artifacts(options)
        self._dumps = None if options.dumps is None else FailureDumps(options.dumps)

    # -- The test run

    def start(self) -> None:
        """Open the simulated GPU, if requested, and prepare tracing."""
        before = set_background(self._tracing)
        self._undo.callback(set_background, before)
        self._undo.callback(self._tracing.finish)
        self._undo.callback(self._turns.undo)
        self._undo.callback(self.leaks.end_test)
        self._undo.callback(SimulatedGpu.watch, SimulatedGpu.watch(self._gpu_changes))
        if self._options.simulate:
            self._simulated_gpu = self._undo.enter_context(SimulatedGpu(devices=self._options.simulate))
        if self._dumps is not None:
            self._undo.callback(self._dumps.stop)
            self._dumps.start()

    def pytest_unconfigure(self) -> None:
        """Undo `start`."""
        if problem := self._artifacts.close():
            terminal.report(f"the dataset is not complete: {problem}")
        self._undo.close()

    def found(self) -> Found:
        """The devices that tests may use."""
        return find_devices(simulated=SimulatedGpu.current() is not None)

    @contextlib.contextmanager
    def _gpu_changes(self, gpu: SimulatedGpu, opens: bool) -> Iterator[None]:
        """Trace nothing while a simulated GPU opens or closes. The run's own GPU makes way for that of a test."""
        ours, noting = self._simulated_gpu, self._noting
        self._gpu_opened |= opens and gpu is not ours
        if noting is not None:
            self._lines_off(noting)  # lines are recorded with the clock of a GPU
        if not opens:
            self.leaks.gpu_closes()
        with self._tracing.libraries_change():
            if opens and ours is not None and SimulatedGpu.current() is ours:
                ours.__exit__(None, None, None)
            try:
                yield
            finally:
                if ours is not None and gpu is not ours and SimulatedGpu.current() is None:
                    ours.__enter__()
        if opens and noting is not None:
            self._lines_on(noting)

    # -- One test

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Exit before the next test if the context is broken; pytest-xdist runs the rest in another process."""
        if self._broken is not None and self._may_leave:
            with contextlib.suppress(BaseException):  # fixtures of broken GPU tests may fail in any way
                item.session._setupstate.teardown_exact(None)
            os._exit(_LEAVE_STATUS)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Skip the test if it cannot run; otherwise trace its fixtures' setup."""
        self._gpu_opened = False
        running = item.stash[_RUNNING] = self._admit(item)
        if running.markers.leaks:
            self.leaks.begin(running)
            self.leaks.finish_before_wider_teardown(running)
        try:
            with self._phase(running, "setup"):
                result = yield
        except (Exception, pytest.fail.Exception):
            if running.skip_reason is not None and not self._brings_gpu():
                skip(running.skip_reason)  # explains the failure
            raise
        if running.skip_reason is not None and not self._brings_gpu() and not _is_of_unittest(item):
            skip(running.skip_reason)
        self._check_context(running, "setup")
        self._read_again(running)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Trace the test function and check its limits."""
        running = item.stash.get(_RUNNING, None)
        if running is None:  # the run's first marker of ours was added in the test's setup
            running = item.stash[_RUNNING] = self._admit(item)
            if running.markers.leaks:
                self.leaks.begin(running)
        if _is_of_unittest(item) and (running.markers.limits or running.markers.leaks or running.skip_reason):
            self._tell_method_apart(running, item)
        try:
            with self._phase(running, "call"):
                result = yield
            self._skip_after_set_up(running)
        except pytest.skip.Exception:
            raise
        except BaseException:
            self._add_to_failure(running)
            raise
        self._check_context(running, "call")
        self._read_late(running)
        message = running.limits_message()
        if message is not None:
            fail(message)
        running.completed = True
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Trace the fixtures' teardown; report limits that could not be checked, and leaks."""
        running = item.stash.get(_RUNNING, None)
        if running is None:
            return (yield)
        with running.after_judgement:
            try:
                with self._phase(running, "teardown"):
                    result = yield
                    self.leaks.finish(running)
            finally:
                self.leaks.end_test()
                if running.claimed and self._sharing is not None:
                    self._sharing.release()
            self._check_context(running, "teardown")
            if running.completed:
                self._judge_at_end(running)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the test's GPU work to its reports."""
        running = item.stash.get(_RUNNING, None)
        if running is not None and call.when == "teardown":
            self._add_properties(running)
        report = yield
        if self._dumps is not None and report.failed:
            self._dumps.add_to(report)
        if running is None:
            return report
        if report.failed:
            running.failed = True
            if self._broken is not None and self._broken[0] != item.nodeid and speaks_of_cuda(report.longreprtext):
                _make_skipped(report, item, _not_run(*self._broken))
            elif running.lacks_gpu and call.when == "call":  # `unittest` keeps the error of ``setUp`` for the report
                _make_skipped(report, item, printable(str(running.skip_reason)))
        if call.when == "teardown":
            self._artifacts.write(running)
        entry = running.as_report(report.when)
        if entry is not None:
            report.collector_gpu = entry  # type: ignore[attr-defined]
        if call.when == "teardown":
            del item.stash[_RUNNING]  # pytest keeps every item, and thus the recordings, to the end of the run
        return report

    def _admit(self, item: pytest.Item) -> Running:
        markers = self._markers_of(item)
        is_gpu_test = uses_gpu(item)
        reason = None
        if is_gpu_test:
            if self._broken is not None:
                skip(_not_run(*self._broken))
            own = not SIMULATED_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) and self._simulated_gpu is None
            reason = None if own or self._brings_gpu() else self._why_not(markers)
            if reason is not None and item.get_closest_marker("gpu") is not None:
                skip(reason)
        running = Running(item, markers, self._untraced(item, markers), traced=self._options.trace or markers.ask)
        running.skip_reason = reason
        if is_gpu_test and self._sharing is not None and self._shares:
            running.claimed = True
            names = list(self._shares)[: markers.requirement.count]
            wanted = markers.requirement.memory
            self._sharing.claim({name: self._shares[name] if wanted is None else wanted for name in names})
        return running

    def _markers_of(self, item: pytest.Item) -> Markers:
        try:
            markers = read_markers(item)
        except MarkerError as error:  # a marker that was added after the check at collection
            fail(str(error))
        return replace(markers, leaks=True) if self._options.leaks and uses_gpu(item) else markers

    def _untraced(self, item: pytest.Item, markers: Markers) -> str | None:
        if markers.untraced is not None or markers.ask:
            return markers.untraced
        return next((why for name, why in _MEASURES.items() if name in getattr(item, "fixturenames", ())), None)

    def _brings_gpu(self) -> bool:
        """Whether a simulated GPU is open that a test or its fixtures have opened themselves."""
        return SimulatedGpu.current() not in (None, self._simulated_gpu)

    def _why_not(self, markers: Markers) -> str | None:
        return why_not(markers.requirement, self.found(), simulating=bool(self._options.simulate))

    def _read_again(self, running: Running) -> None:
        """Apply the markers that a fixture has added to the test."""
        item, before = running.item, running.markers
        markers = running.markers = self._markers_of(item)
        if markers == before:
            return
        if markers.requirement != before.requirement and not self._brings_gpu():
            reason = self._why_not(markers)
            if reason is not None:
                skip(reason)
        running.traced = self._options.trace or markers.ask
        running.untraced = self._untraced(item, markers)
        if markers.leaks and running.leak_check is None:
            self.leaks.begin(running)

    def _read_late(self, running: Running) -> None:
        """Apply the limits that the test has added to itself; report that its other markers came too late."""
        before = running.markers
        markers = self._markers_of(running.item)
        if markers == before:
            return
        running.markers = replace(before, limits=markers.limits)
        if running.limited is None or running.markers != markers:
            running.unjudged.append(ADDED_LATE)

    def _tell_method_apart(self, running: Running, item: pytest.Function) -> None:
        """Separate the method, to which limits apply: unittest makes ``setUp`` and ``tearDown`` part of the call.

        A method that needs a GPU is not run unless ``setUp`` has opened a simulated one.
        """
        method = item.obj

        @contextlib.contextmanager
        def measured() -> Iterator[None]:
            if running.skip_reason is not None and not self._brings_gpu():
                running.lacks_gpu = True
                raise unittest.SkipTest(printable(running.skip_reason))
            begin = len(self._tracing.recorded())
            try:
                yield
            finally:
                running.method = slice(begin, len(self._tracing.recorded()))

        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with measured():
                    return await method(*args, **kwargs)

            setattr(item.instance, item.name, call_async)
        else:

            @functools.wraps(method)
            def call(*args: Any, **kwargs: Any) -> Any:
                with measured():
                    return method(*args, **kwargs)

            item.obj = call

    def _skip_after_set_up(self, running: Running) -> None:
        """Skip a test of unittest whose method needs a GPU, or whose ``setUp`` has failed without one."""
        if running.skip_reason is None or not _is_of_unittest(running.item):
            return
        running.lacks_gpu |= not self._gpu_opened and not self._brings_gpu()
        if running.lacks_gpu:
            skip(running.skip_reason)

    @contextlib.contextmanager
    def _phase(self, running: Running, when: str) -> Iterator[None]:
        """Trace one phase of the test, if it is to be traced."""
        if not running.traced or (running.untraced is not None and (when == "call" or running.markers.untraced)):
            self._tracing.finish()  # whatever the test does with CUPTI, our session must not interfere
            yield
            return
        self._turns.arrange()
        self._tracing.begin(running.wanted_kinds())
        self.leaks.begin_phase()
        if running.wants_lines(when):
            self._lines_on(running)
        try:
            yield
        finally:
            self._lines_off(running)
            self.leaks.end_phase(running)
            recordings, losses = self._tracing.end()
            if running.skip_reason is not None and _is_of_unittest(running.item):  # no GPU but that of its ``setUp``
                losses = [loss for loss in losses if loss != self._tracing.unavailable]
            phase = running.phases[when] = _phase(recordings, losses)
            if when == "call":
                running.limited = phase if running.method is None else _phase(recordings[running.method], losses)
            self.leaks.take(running, recordings)

    def _judge_at_end(self, running: Running) -> None:
        """Make the test's teardown an error if a limit could not be checked or memory leaked."""
        losses = running.phases["call"].figures.losses if "call" in running.phases else ("the test is not traced",)
        texts = list(running.unjudged)
        if running.markers.limits and losses and not texts:
            texts.append(f"GPU limits were not judged, because the trace is incomplete: {'; '.join(losses)}")
        if running.leak_check is not None:
            unfreed = running.unfreed()
            leak, held = running.leak_check.judge(unfreed.count)
            if leak is not None:
                running.notes["leak"] = {
                    "device_bytes": leak.device,
                    "allocators": dict(leak.allocators),
                    "unfreed": leak.unfreed,
                    "allocations": [asdict(allocation) for allocation in unfreed.allocations],
                }
                message = leak.message(running.item.nodeid, [*held, *unfreed.lines()])
                shown = [allocation.line for allocation in unfreed.allocations]
                missing = why_lines_are_missing(shown, running.recordings, running.lines)
                texts.append("\n\n".join([message, *missing]))
        if texts:
            fail("\n".join(texts))

    # -- Lines

    def _lines_on(self, running: Running) -> None:
        """Record lines from here on, with the clock of the current GPU."""
        if running.lines is None or running.lines_of is not SimulatedGpu.current():
            simulated = running.lines_of = SimulatedGpu.current()
            now_ns = None if simulated is None else lambda: simulated.now_ns
            running.lines = Lines(self._root, now_ns, asked=self._options.lines)
        running.lines.__enter__()
        self._noting = running

    def _lines_off(self, running: Running) -> None:
        if running.lines is not None:
            running.lines.__exit__()
        self._noting = None

    # -- Failures

    def _check_context(self, running: Running, when: str) -> None:
        """Fail the test if it left CUDA unusable and nothing else failed."""
        error = self._find_broken(running)
        if error is not None:
            fail(
                f"{running.item.nodeid} left the CUDA context of this process unusable in its {when}: {error}. "
                "An earlier asynchronous operation of the test failed; GPU tests after it cannot run in this process"
            )

    def _find_broken(self, running: Running) -> str | None:
        if self._broken is not None or not (running.used_gpu or (uses_gpu(running.item) and not running.seen_idle)):
            return None
        self._tracing.finish()
        error = sticky_error() or recorded_sticky_error(running.recordings)
        if error is not None:
            self._broken = running.item.nodeid, error
            running.notes["sticky"] = error
        return error

    def _add_to_failure(self, running: Running) -> None:
        """Add further problems to the report of a test that failed by itself."""
        message = running.limits_message()
        if message is not None:
            running.item.add_report_section("call", "GPU limits", printable_lines(message))
        error = self._find_broken(running)
        if error is not None:
            text = f"the CUDA context of this process is unusable from here on: {error}"
            running.item.add_report_section("call", "GPU", printable_lines(text))

    def _add_properties(self, running: Running) -> None:
        phase = running.phases.get("call")
        if phase is None:
            return
        figures = phase.figures.as_dict()
        figures = {"gpu_time_ns": figures.pop("device_time_ns"), **figures}
        running.item.user_properties += list(figures.items())

    # -- Fixtures

    def _running_of(self, item: pytest.Item) -> Running:
        """The state of the test, which is new if the test itself has started the plugin by its fixture's name."""
        if _RUNNING not in item.stash:
            running = item.stash[_RUNNING] = self._admit(item)
            running.completed = True  # the hook around a call that has begun does not run, and its steps are judged
        return item.stash[_RUNNING]

    def open_step(self, item: pytest.Item, limits: dict[str, object]) -> Step:
        """The step of ``gpu_trace(**limits)``."""
        from collector.testing.plugin.traced_step import Step

        running = self._running_of(item)
        try:
            parsed = parse_limits(limits)
        except LimitError as error:
            fail(f"gpu_trace: {error}")

        def on_exit(step: Step) -> None:
            __tracebackhide__ = True
            running.steps += 1
            losses = step.ledger.record_losses()
            if losses:
                running.unjudged.append(
                    f"a step cannot be judged, because its trace is incomplete: {'; '.join(losses)}"
                )
                return
            excesses = judge(parsed, step.figures)
            if excesses:
                from collector.testing.plugin.messages import excess_message

                running.note_step_limits(parsed, step.figures)
                message = excess_message(f"a step of {item.nodeid}", excesses, [step.recording], running.lines)
                fail(message, pytrace=True)

        def match(step: Step, name: str | None) -> None:
            __tracebackhide__ = True
            match_snapshot(running, step, name, update=self._options.update_snapshots)

        return Step(on_exit, match, running.wanted_kinds(parsed))

    def devices_of(self, item: pytest.Item) -> tuple[int, ...]:
        """The value of ``gpu_devices``."""
        return tuple(range(self._running_of(item).markers.requirement.count))

    @contextlib.contextmanager
    def simulated_gpu(self, node: pytest.Item | pytest.Collector) -> Iterator[SimulatedGpu]:
        """The value of ``simulated_gpu`` for a test, and of the fixtures for a class, module, package or session."""
        gpu = SimulatedGpu.current()
        if gpu is not None:  # that of the run, or of a wider scope
            yield gpu
            return
        running = node.stash.get(_RUNNING, None)
        with contextlib.ExitStack() as fixture:
            # The leak check measures again after this fixture's teardown.
            until = fixture if running is None or running.leak_check is None else running.after_judgement
            yield until.enter_context(SimulatedGpu(devices=requirement_of(node).count))


def _make_skipped(report: pytest.TestReport, item: pytest.Item, reason: str) -> None:
    path, line, _ = item.location
    report.outcome = "skipped"
    report.longrepr = (path, (line or 0) + 1, reason)


def _is_of_unittest(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test is a method of a `unittest.TestCase`, whose ``setUp`` runs in pytest's call phase."""
    return isinstance(item, pytest.Function) and issubclass(item.cls or object, unittest.TestCase)


def _not_run(culprit: str, error: str) -> str:
    return printable(f"not run because of {culprit}: it left this process's CUDA context unusable ({error})")


def _phase(recordings: list[Recording], losses: list[str]) -> Phase:
    figures = figures_of(recordings) if recordings else Figures()
    if losses:
        figures += Figures(losses=tuple(losses))
    return Phase(recordings, figures)
