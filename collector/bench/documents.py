"""Reports and comparisons of reports as Markdown, to be pasted, and as CSV, for further computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.bench.benchmark_titles import axis_columns
from collector.bench.report_tables import (
    changes,
    failure_text,
    failures_of_all,
    figures,
    how,
    kernels,
    notes,
    simulation_note,
)
from collector.text.document_cells import csv_text, markdown_row, markdown_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.bench.baseline import Regression
    from collector.bench.benchmark_report import Comparison, Report
    from collector.bench.report_tables import Table
    from collector.statistics.verdicts import Interval, Ratio

_FIGURES = (
    "arm", "unit", "statistic", "estimate", "low", "high", "mean", "p5", "p95", "variation", "samples", "outliers",
    "lower_mode", "lower_mode_share", "upper_mode", "upper_mode_share", "ratio", "ratio_low", "ratio_high",
    "mean_ratio", "mean_ratio_low", "mean_ratio_high", "verdict", "not_measured",
)  # fmt: skip
_CHANGES = (
    "benchmark", "arm", "unit", "before", "before_low", "before_high", "now", "now_low", "now_high",
    "ratio", "ratio_low", "ratio_high", "mean_ratio", "mean_ratio_low", "mean_ratio_high", "verdict",
)  # fmt: skip


def as_markdown(report: Report) -> str:
    """Return the report's tables, notes, warnings and failures as Markdown."""
    lines = [f"**{markdown_text(str(report.environment.get('gpu', '')))}**{simulation_note(report)}", ""]
    everywhere = failures_of_all(report)
    for comparison, results in zip(report.comparisons, report.results, strict=True):
        lines += [f"### {markdown_text(comparison.title)}", ""] if comparison.title else []
        if comparison.arms:
            lines += _table(figures(comparison, results))
            if any(len(arm.kernel_ns) > 1 for arm in comparison.arms.values()):
                lines += _table(kernels(comparison))
        own = {arm: why for arm, why in comparison.failures.items() if arm not in everywhere}
        lines += [f"* not measured: {markdown_text(failure_text(arm, why))}" for arm, why in own.items()]
        lines += [f"* note: {markdown_text(note)}" for note in notes(comparison, results)]
        lines += [f"* warning: {markdown_text(warning)}" for warning in comparison.warnings]
        lines += [f"* {markdown_text(how(comparison))}", ""]
    lines += [f"* not measured: {markdown_text(failure_text(arm, why))}" for arm, why in everywhere.items()]
    return "\n".join(lines).rstrip() + "\n"


def changes_as_markdown(found: Sequence[Regression], notes: Sequence[str]) -> str:
    """Return what `collector.bench.regressions` found as Markdown."""
    return "\n".join([*_table(changes(found)), *(f"* note: {markdown_text(note)}" for note in notes)]).rstrip() + "\n"


def as_csv(report: Report) -> str:
    """Return one row for each arm: benchmark, every axis, and the fields of `collector.bench.result.Result`.

    Figures are not rounded, in ``unit``; shares and ratios are numbers. The row of an arm that could not be measured
    contains the reason.
    """
    named = axis_columns(
        dict.fromkeys(axis for each in report.comparisons for axis in each.parameters), ("benchmark", *_FIGURES)
    )
    rows = [
        {"benchmark": each.name, **{named[axis]: value for axis, value in each.parameters.items()}, **row}
        for index, each in enumerate(report.comparisons)
        for row in _rows(each, report, index)
    ]
    return _csv(["benchmark", *named.values(), *_FIGURES], rows)


def changes_as_csv(found: Sequence[Regression]) -> str:
    """Return one row for each arm that `collector.bench.regressions` compared; figures are not rounded, in ``unit``."""
    rows = [
        {
            "benchmark": each.title,
            "arm": each.arm,
            "unit": each.unit,
            **_ends("before", each.before),
            **_ends("now", each.now),
            **_ratio("ratio", each.ratio),
            **_ratio("mean_ratio", each.mean_ratio),
            "verdict": each.verdict,
        }
        for each in found
    ]
    return _csv(_CHANGES, rows)


def _rows(comparison: Comparison, report: Report, index: int) -> list[dict[str, Any]]:
    rows = []
    for arm, result in report.results[index].items():
        plain = result.to_json()
        row = {"arm": arm, **plain, **_ratio("ratio", result.ratio), **_ratio("mean_ratio", result.mean_ratio)}
        for which, mode in zip(("lower", "upper"), result.modes or (), strict=False):
            row |= {f"{which}_mode": mode.median, f"{which}_mode_share": mode.share}
        rows.append(row)
    return rows + [
        {"arm": arm, "unit": comparison.unit, "verdict": "not measured", "not_measured": why}
        for arm, why in comparison.failures.items()
    ]


def _ratio(name: str, ratio: Ratio | None) -> dict[str, float | None]:
    return {name: None} if ratio is None else _ends(name, ratio.interval)


def _ends(name: str, interval: Interval) -> dict[str, float | None]:
    found = interval.to_json()
    return {name: found["estimate"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    return csv_text([columns, *([row.get(column) for column in columns] for row in rows)])


def _table(table: Table) -> list[str]:
    rules = ["---" if column in table.left else "---:" for column in table.columns]
    return [markdown_row(table.columns), f"| {' | '.join(rules)} |", *map(markdown_row, table.rows), ""]
