"""The report on the test run as a whole: collects the tests' reports and writes the summary at the end.

Runs in the process that reports: the only process, or the controller of pytest-xdist, where it also assigns devices to
the workers.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import CollectorError
from collector.formats.output_paths import this_process
from collector.testing.plugin.artifacts import longest, writable_folder
from collector.testing.plugin.devices import SIMULATED, Found, find_devices
from collector.testing.plugin.run_report import RunReport, write_index, write_report
from collector.text.terminal import printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.testing.plugin.plugin_options import PluginOptions

LEFT = "rescheduled"
"""Outcome of the report that pytest-xdist makes for a test that a worker left before it had begun."""


class RunReporting:
    """Gathers reports; a pytest plugin."""

    def __init__(self, options: PluginOptions, found: Callable[[], Found] | None) -> None:
        """``found`` returns the tests' devices; None: find them when needed, as tests run in other processes."""
        self._options = options
        self._found = found or self._find
        self._run = RunReport()
        self._shared_folder: Path | None = None
        self._left: set[str] = set()
        self._nowhere: set[Path | None] = set()

    # -- Before

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Check for errors that would occur later: a required GPU is missing, or an output cannot be written."""
        if session.config.option.collectonly:
            return
        if self._options.require_gpu:
            found = self._found()
            if not found.devices:
                raise pytest.UsageError(printable_lines(f"--require-gpu: there is no usable GPU: {found.reason}"))
        for folder, what in (
            (self._options.folder, "traces cannot be kept"),
            (self._options.report.parent if self._options.report else None, "the GPU report cannot be written"),
            (self._options.pages, "pages cannot be written"),
            (self._options.dataset, "the dataset cannot be written"),
        ):
            problem = None if folder is None else writable_folder(folder)
            if problem is not None:
                self._run.problem(f"{what}: {problem}")
                self._nowhere.add(folder)

    # -- During

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        entries: dict[str, Any] = getattr(report, "collector_gpu", {})
        written = {self._options.folder, self._options.pages, self._options.dataset} - {None}
        if self._nowhere & written:  # the reason was reported at the beginning
            entries.pop("problems", None)
        outcome = _outcome(report)
        if outcome == LEFT:
            return
        entry = self._run.add(report.nodeid, str(report.when), outcome, entries)
        if outcome == entry.outcome == "skipped" and isinstance(report.longrepr, tuple):
            entry.skipped_because = str(report.longrepr[2]).removeprefix("Skipped: ")
        if "sticky" in entries:
            self._left.add(_worker_of(report))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass a worker the file of device claims, whether another worker would take over its tests, and this process.

        The process is that of the placeholders in paths.
        """
        if self._shared_folder is None:
            self._shared_folder = Path(tempfile.mkdtemp(prefix="collector-gpu-"))
        here = this_process()
        node.workerinput["collector_gpu"] = {
            "process_id": here.process_id,
            "host": here.host,
            "claims": str(self._shared_folder / "claims.json"),
            "may_leave": str(getattr(node.config.option, "maxworkerrestart", None)) != "0",
        }

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """A worker that left because its CUDA context was broken had not begun this test: another worker runs it."""
        if _worker_of(report) not in self._left:
            return
        report.outcome = LEFT  # type: ignore[assignment]
        if not hasattr(sched, "workqueue"):  # schedulers of whole scopes redistribute unfinished tests by themselves
            sched.mark_test_pending(crashitem)

    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Show nothing for a test that was only passed on to another worker."""
        return ("", "", "") if str(report.outcome) == LEFT else None

    # -- After

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Any:
        """Write the report; make the run fail if the plugin failed."""
        if self._options.folder is not None and self._options.keep.rule == "slow":
            self._keep_longest()
        report = self._options.report
        if report is not None and report.parent not in self._nowhere and not session.config.option.collectonly:
            try:
                write_report(self._run.as_dict(self._found()), report)
            except CollectorError as error:
                self._run.problem(f"the GPU report was not written: {error}")
            else:
                self._run.written.append(f"GPU report: {report}")
        pages = self._options.pages
        if pages is not None and pages not in self._nowhere and not session.config.option.collectonly:
            index = pages / "index.html"
            try:
                write_index(self._run, index)
            except CollectorError as error:
                self._run.problem(f"the index of pages was not written: {error}")
            else:
                self._run.written.append(f"pages about the tests: {index}")
        if self._run.problems and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the summary."""
        from collector.testing.plugin.terminal_summary import write_summary

        write_summary(terminalreporter, self._run, self._options, simulated=bool(self._options.simulate))

    def pytest_unconfigure(self) -> None:
        """Remove the workers' shared files."""
        if self._shared_folder is not None:
            shutil.rmtree(self._shared_folder, ignore_errors=True)

    def _keep_longest(self) -> None:
        """Keep the longest of the traces that the workers kept."""
        kept = {e.trace: e for e in self._run.tests.values() if e.trace is not None}
        stay = longest(((e.figure("device_time_ns"), path) for path, e in kept.items()), self._options.keep.count)
        for path in kept.keys() - stay:
            kept[path].trace = None
            Path(path).unlink(missing_ok=True)

    def _find(self) -> Found:
        """The devices, determined in a process that runs no tests."""
        if self._options.simulate:
            return Found((SIMULATED,) * self._options.simulate, simulated=True)
        return find_devices(simulated=False)


def _outcome(report: pytest.TestReport) -> str:
    """The outcome of a phase of a test as pytest counts it; empty: it leaves the test's outcome as it is."""
    if hasattr(report, "context") and not report.failed:  # of a subtest
        return ""
    if hasattr(report, "wasxfail") and (report.skipped or report.when == "call"):
        return "xpassed" if report.passed else "xfailed"
    return str(report.outcome)


def _worker_of(report: pytest.TestReport) -> str:
    node = getattr(report, "node", None)
    return "" if node is None else str(node.gateway.id)
