"""A plugin of pytest that states every outcome at once: a run that is killed has told all that it knew.

    pytest -p told_outcomes --outcomes FILE     adds a line of JSON to FILE when a test begins and when it has ended

The text of a failure is printed when it happens, not at the end of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from notes import append_line


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption("--outcomes", type=Path, help="the file that gets a line for each outcome")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to state outcomes, if a file is named."""
    if config.option.outcomes is not None:
        config.pluginmanager.register(_Outcomes(config, config.option.outcomes))


class _Outcomes:
    def __init__(self, config: pytest.Config, file: Path) -> None:
        self.config, self.file = config, file

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        append_line(self.file, {"test": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            shown = [str(value) for name, value in report.user_properties if name == "shown"]
            self._state(report, {"when": report.when, "seconds": round(report.duration, 2), "shown": shown})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._state(report, {"when": "collection"})

    def _state(self, report: pytest.TestReport | pytest.CollectReport, facts: dict[str, Any]) -> None:
        text = report.longreprtext
        if report.skipped and isinstance(report.longrepr, tuple):
            text = report.longrepr[2]  # without the file and the line
        append_line(self.file, {"test": report.nodeid, "outcome": report.outcome, "text": text, **facts})
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"-- {report.nodeid} failed ({facts['when']}):")
            terminal.write_line(text)
