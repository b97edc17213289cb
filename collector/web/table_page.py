"""Tables in the page of reports for content other than a step: the index of a test run, and benchmark results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collector.analysis.answer import Column
from collector.bench.report_tables import failure_text, failures_of_all, figures, how, kernels, notes, simulation_note
from collector.files.atomic_files import atomic_write
from collector.version import version
from collector.web.report_data import FORMAT
from collector.web.report_file import page_of_data

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from collector.bench.benchmark_report import Report
    from collector.bench.report_tables import Table


@dataclass(frozen=True)
class PageTable:
    """A table of the page, with lines of text below it."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    lines: Sequence[str] = ()
    links: Sequence[str] = ()
    """The file beside the page to which each row leads; ``""``: none."""
    is_plain: bool = False
    """Whether the cells are texts as they stand, which are neither searched nor sorted."""

    def described(self) -> dict[str, Any]:
        """The table as the page takes it."""
        columns = [column._asdict() for column in self.columns]
        values = [list(cells) for cells in zip(*self.rows, strict=True)] or [[] for _ in columns]
        return {
            "title": self.title,
            "answer": {
                "question": self.title,
                "definition": "",
                "columns": columns,
                "values": values,
                "rows": len(self.rows),
                "totals": {},
                "losses": [],
                "notes": [],
                "python": "",
                "cli": "",
            },
            "lines": list(self.lines),
            "links": [quote(each) for each in self.links],
            "plain": self.is_plain,
        }


def write_table_page(path: str | os.PathLike[str], title: str, tables: Sequence[PageTable]) -> None:
    """Write a page, whole or not at all.

    Args:
        path: the file.
        title: the title of the page.
        tables: the tables, from top to bottom.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    data = {
        "format": FORMAT,
        "version": version(),
        "title": title,
        "steps": [],
        "answers": {},
        "refused": {},
        "tables": [each.described() for each in tables],
    }
    content = page_of_data(data, {})
    with atomic_write(path) as file:
        file.write(content)


def write_benchmark_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the tables, notes, warnings and failures of a report of benchmarks.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    tables = []
    everywhere = failures_of_all(report)
    for comparison, results in zip(report.comparisons, report.results, strict=True):
        own = {arm: why for arm, why in comparison.failures.items() if arm not in everywhere}
        lines = [f"not measured: {failure_text(arm, why)}" for arm, why in own.items()]
        lines += [f"note: {note}" for note in notes(comparison, results)]
        lines += [f"warning: {warning}" for warning in comparison.warnings]
        has_kernels = any(len(arm.kernel_ns) > 1 for arm in comparison.arms.values())
        found = [figures(comparison, results)] if comparison.arms else []
        found += [kernels(comparison)] if found and has_kernels else []
        shown = [_page_table(each, comparison.title if place == 0 else "Kernels") for place, each in enumerate(found)]
        last = shown.pop() if shown else PageTable(comparison.title, (), ())
        tables += [*shown, PageTable(last.title, last.columns, last.rows, [*lines, how(comparison)], is_plain=True)]
    if everywhere:
        lines = [f"not measured: {failure_text(arm, why)}" for arm, why in everywhere.items()]
        tables.append(PageTable("Not measured", (), (), lines, is_plain=True))
    write_table_page(path, f"{report.environment.get('gpu', '')}{simulation_note(report)}", tables)


def _page_table(table: Table, title: str) -> PageTable:
    """A table of texts; of two columns with the same name the second is called after the one before it, too."""
    columns: list[Column] = []
    for name in table.columns:
        known = [column.name for column in columns]
        columns.append(Column(f"{known[-1]} {name}" if name in known else name, _unit(table, name), ""))
    return PageTable(title, columns, table.rows, is_plain=True)


def _unit(table: Table, name: str) -> str:
    return "text" if name in table.left else "figure"
