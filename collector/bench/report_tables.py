"""A report as tables of text, for a terminal and as the basis of other documents."""

from __future__ import annotations

import io
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.statistics.verdicts import median
from collector.text.quantities import size_text, time_text
from collector.text.terminal import printable, shows_colours
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.table import Table as RichTable

    from collector.bench.baseline import Regression
    from collector.bench.benchmark_report import Comparison, Report
    from collector.bench.result import Result
    from collector.statistics.verdicts import Interval, Ratio

PAGE_WIDTH = 160
"""Text columns if there is no terminal."""
_NARROWEST = 40
_SHOWN_KERNELS = 8
_WIDEST = 10.0  # relative half-width of the widest interval that is shown as a figure
_STYLE = {
    "faster": "green", "faster on average": "green", "slower": "red", "slower on average": "red", "REGRESSION": "red",
    "same": "cyan", "not enough data": "yellow", "reference": "dim",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Cells of text, without markup."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: frozenset[str]
    """Columns of words, which are aligned left."""
    names: int = 1
    """The number of first columns that name a row; they are repeated when a table is folded."""


def as_text(report: Report, *, color: bool | None = None, width: int | None = None) -> str:
    """Return the report for a terminal.

    Args:
        report: the report.
        color: None: if standard output is a terminal.
        width: in columns, at least 40; None: the terminal's, or 160 if there is none. Wider tables are folded.
    """
    console, text = _console(color, width)
    console.print(f"[bold]{_escaped(str(report.environment.get('gpu', '')))}[/bold]{simulation_note(report)}")
    everywhere = failures_of_all(report)
    for comparison, results in zip(report.comparisons, report.results, strict=True):
        _print(console, comparison, results, everywhere)
    if everywhere:
        console.print()
    for arm, why in everywhere.items():
        _print_failure(console, arm, why)
    return _lines(text)


def changes_as_text(
    found: Sequence[Regression], notes: Sequence[str], *, color: bool | None = None, width: int | None = None
) -> str:
    """Return the result of `collector.bench.regressions` for a terminal; see `as_text`."""
    console, text = _console(color, width)
    _print_table(console, changes(found))
    for note in notes:
        console.print(f"[yellow]note[/yellow] {_escaped(note)}")
    return _lines(text)


def _console(color: bool | None, width: int | None) -> tuple[Console, io.StringIO]:
    from rich.console import Console

    text = io.StringIO()
    in_color = shows_colours(sys.stdout) if color is None else color
    columns = shutil.get_terminal_size((PAGE_WIDTH, 24)).columns if width is None else width
    columns = max(_NARROWEST, columns)
    return Console(file=text, force_terminal=in_color, no_color=not in_color, width=columns, highlight=False), text


def _lines(text: io.StringIO) -> str:
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def simulation_note(report: Report) -> str:
    """The text after the name of a simulated card."""
    if not report.environment.get("simulated"):
        return ""
    on_gpu = any(each.design.get("clock") == "cupti" for each in report.comparisons)
    return ", simulated: the times are made up" if on_gpu else ", with a simulated GPU: the host's times are real"


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(printable(text))


def amount_text(value: float, unit: str) -> str:
    """``12.34 µs``, ``1.2 MB``, or the figure unchanged."""
    if unit == "ns":  # a sample of a clock of the host is the mean of many calls, and has parts of a ns
        return time_text(value) if value >= 1000 else f"{value:.4g} ns"
    if unit == "bytes":
        return size_text(value)
    return f"{value:.4g} {unit}".rstrip()


def verdict_text(verdict: str, same_within: float) -> str:
    """The verdict, with the meaning of "the same"."""
    return f"same within {100 * same_within:g} %" if verdict == "same" else verdict


def range_text(low: float, high: float, unit: str) -> str:
    """``9.84..10.2 µs``: both ends in one unit if it fits both."""
    first, last = amount_text(low, unit), amount_text(high, unit)
    number, _, of_first = first.partition(" ")
    return f"{number}..{last}" if last.endswith(f" {of_first}") else f"{first}..{last}"


def failures_of_all(report: Report) -> dict[str, str]:
    """Arms that none of several comparisons could measure for one reason, which is printed once at the end."""
    if len(report.comparisons) < 2:
        return {}
    first, *others = report.comparisons
    return {arm: why for arm, why in first.failures.items() if all(each.failures.get(arm) == why for each in others)}


def failure_text(arm: str, why: str) -> str:
    """The line for an arm that could not be measured."""
    return why if why.startswith("arm ") else f"{arm}: {why}"


def notes(comparison: Comparison, results: Mapping[str, Result]) -> list[str]:
    """Notes on arms whose samples are not described by one figure."""
    found = []
    for name, result in results.items():
        if result.mean_ratio is not None and result.verdict.endswith("on average") and result.ratio is not None:
            mean, middle = result.mean_ratio.interval, result.ratio.interval
            found.append(
                f"{name} is {result.verdict}: its mean is {mean.estimate:.4f} ({mean.low:.4f}..{mean.high:.4f}) times "
                f"that of {comparison.reference}, its median {middle.estimate:.4f}"
            )
        if result.modes is not None:
            lower, upper = result.modes
            found.append(
                f"{name} has two modes: {lower.share:.0%} of its samples are around "
                f"{amount_text(lower.median, result.unit)} and {upper.share:.0%} around "
                f"{amount_text(upper.median, result.unit)}; the median describes only one of them"
            )
    return found


def _print_failure(console: Console, arm: str, why: str) -> None:
    console.print(f"[red]not measured[/red] {_escaped(failure_text(arm, why))}")


def _print(
    console: Console, comparison: Comparison, results: Mapping[str, Result], printed_elsewhere: Mapping[str, str]
) -> None:
    console.print()
    if comparison.arms:
        _print_table(console, figures(comparison, results))
        if any(len(arm.kernel_ns) > 1 for arm in comparison.arms.values()):
            _print_table(console, kernels(comparison))
    for arm, why in comparison.failures.items():
        if arm not in printed_elsewhere:
            _print_failure(console, arm, why)
    for note in notes(comparison, results):
        console.print(f"[yellow]note[/yellow] {_escaped(note)}")
    for warning in comparison.warnings:
        console.print(f"[yellow]warning[/yellow] {_escaped(warning)}")
    console.print(f"[dim]{_escaped(how(comparison))}[/dim]")


_CLOCKS = {
    "cupti": "CUPTI: time in which the call's own activities ran",
    "wall": "wall clock",
    "cpu": "processor time of this process",
    "returned": "the time that each call returned",
    "reported": "the figures that each process reported",
}


def how(comparison: Comparison) -> str:
    """A sentence on the method of measurement."""
    design = comparison.design
    rounds = counted("{} round[|s]", comparison.rounds)
    if comparison.is_reported:
        return (
            f"{_CLOCKS['reported']}; {rounds}, each arm in a new process, in random order after the first round, "
            f"{comparison.seconds:.0f} s; mean and interval of the rounds; seed {design['seed']}"
        )
    cache = f", {design['cache']} L2" if design["clock"] == "cupti" else ""
    graph = f", graphs of {counted('{} call[|s]', design['graph_calls'])}" if design.get("graph_calls") else ""
    stop = {"precision": f"precision of {design['precision']:.2%} reached", "time": "out of time"}
    most = max((arm.calls_per_sample for arm in comparison.arms.values()), default=1)
    graph += f", up to {most} calls in a sample" if most > 1 else ""
    runs = f" in {len(comparison.run_rounds)} runs" if len(comparison.run_rounds) > 1 else ""
    return (
        f"{_CLOCKS[design['clock']]}{cache}{graph}; {rounds}{runs} after {comparison.warm_up_rounds} "
        f"to warm up, {comparison.seconds:.1f} s, {stop.get(comparison.stopped_by, 'all rounds made')}; "
        f"seed {design['seed']}"
    )


def figures(comparison: Comparison, results: Mapping[str, Result]) -> Table:
    """The time of each arm, its spread, and its ratio to the reference."""
    names = list(comparison.arms)
    reported = comparison.is_reported
    roofs = {name: comparison.share_of_roof(name) for name in names}
    on_gpu = comparison.design.get("clock") == "cupti"
    columns = ["arm", "mean" if reported else "median", "95 %", "ratio", "95 %", "verdict"]
    columns += ["mean ratio", "p5..p95", "outliers"] * (not reported)
    columns += ["launches", "copies", "waits"] * on_gpu
    columns += ["TFLOP/s"] * (comparison.flops is not None) + ["GB/s"] * (comparison.bytes is not None)
    columns += ["of roof"] * any(share is not None for share in roofs.values())
    facts = list(dict.fromkeys(name for arm in comparison.arms.values() for name in arm.facts))
    same_within = float(comparison.design.get("same_within", 0))
    rows = []
    for name, arm in comparison.arms.items():
        result = results[name]
        cells = [
            name,
            amount_text(result.typical.estimate, comparison.unit),
            _width_text(result.typical.relative_half_width),
            "1" if result.ratio is None else f"{result.ratio.interval.estimate:.4f}",
            "" if result.ratio is None else _interval_text(result.ratio.interval),
            verdict_text(result.verdict, same_within),
        ]
        if not reported:
            spread = range_text(result.spread.p5, result.spread.p95, comparison.unit)
            cells += [_mean_ratio_text(result.mean_ratio) or "1", spread, str(result.outliers)]
        per_sample = comparison.design.get("graph_calls") or 1
        done = (arm.launches, arm.copies + arm.memsets, arm.synchronizations)
        cells += [f"{each / per_sample:g}" for each in done] * on_gpu
        flops, moved, roof = comparison.flop_per_s(name), comparison.bytes_per_s(name), roofs[name]
        cells += [] if flops is None else [f"{flops / 1e12:.4g}"]
        cells += [] if moved is None else [f"{moved / 1e9:.4g}"]
        cells += [] if roof is None else [f"{roof:.1%}"]
        rows.append([*cells, *(str(arm.facts.get(fact, "")) for fact in facts)])
    return Table(comparison.title, [*columns, *facts], rows, left=frozenset({"arm", "verdict"}))


def kernels(comparison: Comparison) -> Table:
    """The time of each kernel, for arms of several kernels."""
    per_sample = comparison.design.get("graph_calls") or 1
    rows = []
    for name, arm in comparison.arms.items():
        found = sorted(((median(times).estimate, kernel) for kernel, times in arm.kernel_ns.items()), reverse=True)
        for taken, kernel in found[:_SHOWN_KERNELS]:
            count = list(arm.kernels).count(kernel) / per_sample
            rows.append([name, kernel, f"{count:g}", time_text(taken), f"{taken / arm.median_ns.estimate:.1%}"])
        if len(found) > _SHOWN_KERNELS:
            rows.append([name, f"{len(found) - _SHOWN_KERNELS} more", "", "", ""])
    columns = ["arm", "kernel", "per call", "median", "share"]
    return Table("", columns, rows, left=frozenset({"arm", "kernel"}), names=2)


def changes(found: Sequence[Regression]) -> Table:
    """Every arm compared with its earlier measurement."""
    rows = [
        [
            f"{each.title} {each.arm}".strip(),
            amount_text(each.before.estimate, each.unit),
            amount_text(each.now.estimate, each.unit),
            f"{each.ratio.interval.estimate:.4f}",
            _interval_text(each.ratio.interval),
            each.verdict,
            _mean_ratio_text(each.mean_ratio),
        ]
        for each in found
    ]
    columns = ["benchmark", "before", "now", "ratio", "95 %", "verdict", "mean ratio"]
    return Table("", columns, rows, left=frozenset({"benchmark", "verdict"}))


def _print_table(console: Console, table: Table) -> None:
    """Print the table, folded into several parts if it is wider than the console."""
    from rich.measure import Measurement

    unlimited = console.options.update(max_width=1 << 20)
    first, last = table.names, table.names
    while first < len(table.columns):
        last = first + 1
        while last < len(table.columns):
            wider = _rich_table(table, first, last + 1, console.width)
            if Measurement.get(console, unlimited, wider).maximum > console.width:
                break
            last += 1
        console.print(_rich_table(table, first, last, console.width))
        first = last


def _rich_table(table: Table, first: int, last: int, width: int) -> RichTable:
    """The table's columns from ``first`` to before ``last``, after the columns that name the rows."""
    from rich import box
    from rich.table import Table as RichTable

    shown = [*range(table.names), *range(first, last)]
    title = _escaped(table.title) if first == table.names else ""
    made = RichTable(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE)
    for index in shown:
        name = table.columns[index]
        is_name = index < table.names
        made.add_column(
            _escaped(name),
            justify="left" if name in table.left else "right",
            no_wrap=not is_name and max(len(row[index]) for row in table.rows) < _NARROWEST // 2,
            overflow="fold",
            max_width=max(10, width // (3 * table.names)) if is_name else None,
        )
    for row in table.rows:
        made.add_row(*(_styled(table.columns[index], row[index]) for index in shown))
    return made


def _styled(column: str, cell: str) -> str:
    style = _STYLE.get("same" if cell.startswith("same") else cell) if column == "verdict" else None
    return f"[{style}]{cell}[/{style}]" if style else _escaped(cell)


def _mean_ratio_text(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.interval.estimate:.4f}"


def _interval_text(ratio: Interval) -> str:
    if not ratio.low > 0:
        return ""
    return f"{ratio.low:.4f}..{ratio.high:.4f}" if ratio.high < _WIDEST**2 * ratio.low else "unknown"


def _width_text(half_width: float) -> str:
    if half_width > _WIDEST:
        return "unknown" if half_width == float("inf") else f"over ±{_WIDEST:.0%}"
    return f"±{half_width:.2%}"
