"""The summary at the end of the test run's output."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from collector.testing.plugin.limits import show
from collector.text.document_cells import markdown_row, markdown_text
from collector.text.job_summary import add_to_job_summary, job_annotations
from collector.text.terminal import printable, printable_lines
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from collector.testing.plugin.plugin_options import PluginOptions
    from collector.testing.plugin.run_report import RunReport, TestEntry

_MOST_TESTS = 10
_HEADERS = ("test", "GPU time", "kernels", "copies", "bytes copied")
_INCOMPLETE = " (incomplete)"
_EXCEEDED = " (over its limits)"
_SUMMARY = "GPU work of the tests"
"""Title of the table on the page of a job."""


def write_summary(
    reporter: pytest.TerminalReporter, run: RunReport, options: PluginOptions, *, simulated: bool
) -> None:
    """Write the table of the tests that used the GPU most, and any remarks."""
    top = run.most_used(_MOST_TESTS)
    used = len(run.most_used(len(run.tests)))
    lines: list[tuple[str, dict[str, bool]]] = []
    if options.trace and run.unavailable is not None:
        lines.append((f"GPU activity was not traced: {run.unavailable}", {"yellow": True}))
    broken = [f"{nodeid} left its process's CUDA context unusable: {error}" for nodeid, error in run.broken]
    lines += [(text, {"red": True}) for text in broken]
    lines += [(_counted(text, count), {"yellow": True}) for text, count in sorted(run.remarks.items())]
    lines += [(_counted(text, count), {"red": True, "bold": True}) for text, count in sorted(run.problems.items())]
    kept = sum(entry.trace is not None for entry in run.tests.values())
    if options.folder is not None and kept:
        lines.append((f"{counted('{} trace[|s]', kept)} kept in {options.folder}", {}))
    added = sum(entry.in_dataset for entry in run.tests.values())
    if options.dataset is not None and added:
        lines.append((f"{counted('{} test[|s]', added)} added to the dataset {options.dataset}", {}))
    lines += [(text, {}) for text in run.written]
    exceeded = [f"{nodeid}: {text}" for nodeid in sorted(run.tests) for text in run.tests[nodeid].exceeded]
    if not lines and not exceeded and not (options.trace and top):
        return
    if lines or (options.trace and top):  # pytest has printed the failures
        reporter.write_sep("=", "GPU")
    if options.trace and top:
        title = f"{len(top)} of {counted('{} test[|s]', used)} that used the GPU" + (
            ", simulated: its times are made up" * simulated
        )
        reporter.write_line(_table(title, top, width=max(reporter._tw.fullwidth, 60), color=reporter.hasmarkup))
    for text, style in lines:
        reporter.write_line(printable_lines(text), **style)
    for level, messages in (("error", [*exceeded, *broken, *sorted(run.problems)]), ("warning", sorted(run.remarks))):
        for line in job_annotations(level, _SUMMARY, messages):
            reporter.write_line(line)
    remarks = [*exceeded, *(text for text, _ in lines)]
    add_to_job_summary(_SUMMARY, _markdown(top if options.trace else [], remarks, simulated=simulated))


def _markdown(entries: Sequence[TestEntry], remarks: Sequence[str], *, simulated: bool) -> str:
    """The same for the page of a job."""
    lines = ["A simulated GPU: the times are made up.", ""] if simulated else []
    if entries:
        lines += [markdown_row(_HEADERS), f"| --- |{' ---: |' * (len(_HEADERS) - 1)}"]
        lines += [markdown_row(_cells(entry)) for entry in entries]
        lines.append("")
    return "\n".join([*lines, *(f"* {markdown_text(each)}" for each in remarks)])


def _cells(entry: TestEntry) -> list[str]:
    """The row of a test."""
    return [
        entry.nodeid + "".join(text for text, _ in _marks(entry)),
        show(entry.figure("device_time_ns"), "time"),
        f"{entry.figure('kernels'):,}",
        f"{entry.figure('memcpys'):,}",
        f"{entry.figure('memcpy_bytes'):,}",
    ]


def _marks(entry: TestEntry) -> list[tuple[str, str]]:
    """What stands behind the name of a test, each with its style."""
    marks = [(_INCOMPLETE, "red")] if _is_lossy(entry) else []
    return [*marks, (_EXCEEDED, "bold red")] if entry.exceeded else marks


def _is_lossy(entry: TestEntry) -> bool:
    return any(phase["losses"] for phase in entry.phases.values())


def _counted(text: str, count: int) -> str:
    return f"{text} ({count} times)" if count > 1 else text


def _table(title: str, entries: Sequence[TestEntry], *, width: int, color: bool) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(_HEADERS[0], overflow="fold", ratio=1)
    for header in _HEADERS[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    for entry in entries:
        _, *figures = _cells(entry)
        name = Text.assemble(printable(entry.nodeid), *_marks(entry))
        table.add_row(name, *figures)
    text = io.StringIO()
    Console(file=text, force_terminal=color, no_color=not color, width=width, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip().splitlines())
