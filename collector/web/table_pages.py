"""Pages of tables without a script, in the style of reports: the index of a test run, and what benchmarks measured."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from collector.bench.report_tables import failure_text, failures_of_all, figures, how, kernels, notes, simulation_note
from collector.files.atomic_files import atomic_write
from collector.text.html_tables import html_line, html_table
from collector.text.terminal import printable
from collector.version import version
from collector.web.report_file import asset, content_hash

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from collector.bench.benchmark_report import Report
    from collector.bench.report_tables import Table


def write_table_page(path: str | os.PathLike[str], title: str, parts: Sequence[str]) -> None:
    """Write a page, whole or not at all.

    Args:
        path: the file.
        title: of the page.
        parts: HTML, as `collector.text.html_tables` makes it.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    style, name = asset("app.css"), html.escape(printable(title))
    policy = f"default-src 'none'; style-src '{content_hash(style)}'; base-uri 'none'; form-action 'none'"
    page = (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        '<meta name=viewport content="width=device-width,initial-scale=1">\n<meta name=referrer content=no-referrer>\n'
        f"<title>{name}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n<header><h1>{name}</h1></header>\n"
        + "\n".join(parts)
        + f"\n<footer><p>Made by cupti-collector {version()}. Nothing here is loaded from anywhere.</p></footer>\n"
        "</main>\n</body>\n</html>\n"
    )
    with atomic_write(path) as file:
        file.write(page.encode(errors="backslashreplace"))


def write_benchmark_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the tables, notes, warnings and failures of a report of benchmarks.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    parts = []
    everywhere = failures_of_all(report)
    for comparison, results in zip(report.comparisons, report.results, strict=True):
        if comparison.title:
            parts.append(f"<h2>{html.escape(printable(comparison.title))}</h2>")
        if comparison.arms:
            parts.append(_html(figures(comparison, results)))
            if any(len(arm.kernel_ns) > 1 for arm in comparison.arms.values()):
                parts.append(_html(kernels(comparison)))
        own = {arm: why for arm, why in comparison.failures.items() if arm not in everywhere}
        lines = [f"not measured: {failure_text(arm, why)}" for arm, why in own.items()]
        lines += [f"note: {note}" for note in notes(comparison, results)]
        lines += [f"warning: {warning}" for warning in comparison.warnings]
        parts += map(html_line, [*lines, how(comparison)])
    parts += [html_line(f"not measured: {failure_text(arm, why)}") for arm, why in everywhere.items()]
    write_table_page(path, f"{report.environment.get('gpu', '')}{simulation_note(report)}", parts)


def _html(table: Table) -> str:
    return html_table(table.columns, table.rows, [column in table.left for column in table.columns])
