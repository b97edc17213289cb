"""The GPU work before a test failed: dumps of a flight recorder that runs beside the tests."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from collector.options import KINDS
from collector.text.terminal import printable_lines
from collector.text.terminal import report as report_line
from collector.tracing.recorder import Recorder, open_recorder, record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_KEEP = "30s"
_SECTION = "GPU before the failure"


class FailureDumps:
    """The recorder of a process that runs tests: its own, or one that the tests have opened."""

    def __init__(self, folder: Path) -> None:
        """Nothing is recorded before `start`."""
        self._folder = folder
        self._recorder: Recorder | None = None
        self._dumped_for: str | None = None
        """The last test that failed; its later failures get no further dump."""

    def start(self) -> None:
        """Begin to record; one line says why that is impossible."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._recorder = record(_KEEP, folder=self._folder, kinds=(*KINDS, "memory_operations"), hang=None)
        if self._recorder.unavailable:
            report_line(f"--gpu-record: nothing is recorded: {self._recorder.unavailable}")

    def stop(self) -> None:
        """End the recording; the dumps are kept."""
        if self._recorder is not None:
            self._recorder.stop()

    def add_to(self, report: pytest.TestReport) -> None:
        """Dump, and name the dump in the report of a failure."""
        recorder = open_recorder()
        if recorder is None or self._dumped_for == report.nodeid:
            return
        self._dumped_for = report.nodeid
        with warnings.catch_warnings(record=True) as troubles:
            warnings.simplefilter("always")
            dump = recorder.dump(reason=report.nodeid)
        if dump is not None:
            report.sections.append((_SECTION, printable_lines(f"what the GPU did before it is in {dump.path}")))
        else:
            report.sections.extend((_SECTION, printable_lines(str(each.message))) for each in troubles)
