"""The test run's report: the GPU work of every test, as one JSON file with the schema ``report.schema.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.files.atomic_files import atomic_write
from collector.testing.plugin.figures import NUMBERS
from collector.testing.plugin.limits import Limit
from collector.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.testing.plugin.devices import Found

FORMAT = "collector-gpu-report"
VERSION = 2
PHASES = ("setup", "call", "teardown")


@dataclass
class TestEntry:
    """The record of one test."""

    __test__ = False

    nodeid: str
    outcome: str = "interrupted"
    """passed, failed, error, skipped, xfailed, xpassed, crashed or, until its end is known, interrupted."""
    skipped_because: str | None = None
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Phase -> figures, losses and top kernels; only phases that were traced."""
    steps: int = 0
    limits: list[dict[str, Any]] = field(default_factory=list)
    step_limits: list[dict[str, Any]] = field(default_factory=list)
    """The limits that steps of the test exceeded, in the form of ``limits``; not in the report."""
    untraced: str | None = None
    leak: dict[str, Any] | None = None
    trace: str | None = None
    page: str | None = None
    """The file of the test's page, beside the index."""
    in_dataset: bool = False
    """Whether it was added to the dataset; not in the report."""

    def figure(self, name: str) -> int:
        """A figure summed over all phases."""
        return sum(phase["figures"].get(name, 0) for phase in self.phases.values())

    @property
    def exceeded(self) -> list[str]:
        """A line for each exceeded limit that made the test fail."""
        if self.outcome not in ("failed", "error"):
            return []
        return [
            f"limit {limit.name}{of} exceeded: {limit.shown(each['measured'])}, at most {limit.shown(limit.maximum)}"
            for of, limits in (("", self.limits), (" of a step", self.step_limits))
            for each in limits
            if each["exceeded"]
            for limit in [Limit(each["name"], each["maximum"])]
        ]

    def as_dict(self) -> dict[str, Any]:
        """The entry in the form of the report."""
        return {
            "nodeid": self.nodeid,
            "outcome": self.outcome,
            "skipped_because": self.skipped_because,
            "phases": {name: self.phases[name] for name in PHASES if name in self.phases},
            "steps": self.steps,
            "limits": self.limits,
            "untraced": self.untraced,
            "leak": self.leak,
            "trace": self.trace,
        }


@dataclass
class RunReport:
    """Collects the reports of all tests from all processes."""

    tests: dict[str, TestEntry] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    """Failures of the plugin, with their number; any failure makes the run fail."""
    remarks: dict[str, int] = field(default_factory=dict)
    """Notes for the reader."""
    broken: list[tuple[str, str]] = field(default_factory=list)
    """(test, error) for each test that left a process's CUDA context unusable."""
    written: list[str] = field(default_factory=list)
    """The files about the whole run, each with its purpose, for the end of the output."""

    def add(self, nodeid: str, when: str, outcome: str, entries: Mapping[str, Any]) -> TestEntry:
        """Add one phase of one test: its pytest outcome, which may be empty, and the entries from its process."""
        entry = self.tests.get(nodeid)
        if entry is None or when == "setup":  # of a test that runs again, the last run counts
            entry = self.tests[nodeid] = TestEntry(nodeid)
        if outcome == "failed":
            entry.outcome = "failed" if when == "call" else "crashed" if when not in PHASES else "error"
        elif outcome in ("skipped", "xfailed", "xpassed"):
            entry.outcome = entry.outcome if entry.outcome in ("failed", "error") else outcome
        elif outcome == "passed" and when != "setup" and entry.outcome == "interrupted":
            entry.outcome = outcome
        if "figures" in entries:
            entry.phases[when] = {name: entries[name] for name in ("figures", "losses", "kernels")}
        for name in ("steps", "limits", "step_limits", "untraced", "leak", "trace", "page", "in_dataset"):
            if name in entries:
                setattr(entry, name, entries[name])
        for text in entries.get("problems", ()):
            self.problem(text)
        for text in entries.get("remarks", ()):
            self.remarks[text] = self.remarks.get(text, 0) + 1
        if "sticky" in entries:
            self.broken.append((nodeid, entries["sticky"]))
        return entry

    def problem(self, text: str) -> None:
        """Record a failure of the plugin; the run will fail."""
        self.problems[text] = self.problems.get(text, 0) + 1

    @property
    def unavailable(self) -> str | None:
        """The reason why nothing was traced, if tests should have been traced and none was."""
        losses = [loss for entry in self.tests.values() for phase in entry.phases.values() for loss in phase["losses"]]
        used = any(entry.figure(name) for entry in self.tests.values() for name in NUMBERS)
        return losses[0] if losses and not used else None

    def most_used(self, count: int) -> list[TestEntry]:
        """The tests with the most device time, of those that used a device."""
        used = [entry for entry in self.tests.values() if any(entry.figure(name) for name in NUMBERS)]
        return sorted(used, key=lambda entry: (-entry.figure("device_time_ns"), entry.nodeid))[:count]

    def as_dict(self, found: Found) -> dict[str, Any]:
        """The whole report; tests are sorted by node id, so that the order does not depend on the workers."""
        entries = [self.tests[nodeid] for nodeid in sorted(self.tests)]
        return {
            "format": FORMAT,
            "version": VERSION,
            "collector_version": version(),
            "simulated": found.simulated,
            "devices": [
                {
                    "name": device.name,
                    "memory_bytes": device.memory_bytes,
                    "compute_capability": list(device.compute_capability),
                }
                for device in found.devices
            ],
            "unavailable": self.unavailable or found.reason or None,
            "problems": sorted(self.problems),
            "remarks": sorted(self.remarks),
            "totals": {"tests": len(entries)}
            | {n: sum(e.figure(n) for e in entries) for n in NUMBERS if n not in _NO_SUM},
            "tests": [entry.as_dict() for entry in entries],
        }


_NO_SUM = ("streams", "devices")
"""Figures whose sum over tests is meaningless: many tests may use the same stream."""


def write_index(run: RunReport, path: Path) -> None:
    """Write a page with the figures of every test, and links to the pages about them in the same folder.

    Raises:
        collector.OutputError: it cannot be written.
    """
    from collector.analysis.answer import Column
    from collector.web.table_page import PageTable, write_table_page

    entries = [run.tests[nodeid] for nodeid in sorted(run.tests)]
    columns = [
        Column("test", "text", "Its node id; a link leads to the page about its GPU work."),
        Column("outcome", "text", "What pytest says of it."),
        Column("device_time_ns", "ns", "Sum of the durations of kernels, copies and memsets, in all of its phases."),
        Column("kernels", "count", "Kernels that ran."),
        Column("launches", "count", "Launches of kernels by the host."),
        Column("memcpys", "count", "Copies that ran."),
    ]
    names = [column.name for column in columns[2:]]
    rows = [[entry.nodeid, entry.outcome, *map(entry.figure, names)] for entry in entries]
    lines = [*sorted(run.problems), *sorted(run.remarks), *filter(None, [run.unavailable])]
    links = [entry.page or "" for entry in entries]
    write_table_page(path, "GPU work of tests", [PageTable("Tests", columns, rows, lines, links)])


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write the report completely or not at all.

    Raises:
        collector.OutputError: it cannot be written.
    """
    with atomic_write(path) as file:
        file.write((json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode(errors="surrogateescape"))
