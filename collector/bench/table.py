"""A report as tables for a terminal."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from collector.bench.statistics import median, outliers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from collector.bench.report import Comparison, Report
    from collector.bench.statistics import Interval, Verdict

_WIDTH = 160
_SHOWN_KERNELS = 8
_WIDEST = 10.0  # relative half-width of an interval that is still worth a figure
_STYLE = {"faster": "green", "slower": "red", "same": "cyan", "not enough data": "yellow", "reference": "dim"}


def as_text(report: Report, *, color: bool | None = None) -> str:
    """Return the report for a terminal; ``color`` None: if standard output is one."""
    from rich.console import Console

    text = io.StringIO()
    in_color = sys.stdout.isatty() if color is None else color
    console = Console(file=text, force_terminal=in_color, no_color=not in_color, width=_WIDTH, highlight=False)
    told = report.environment
    note = ""
    if told.get("simulated"):
        on_gpu = any(each.design.get("clock") == "cupti" for each in report.comparisons)
        note = ", simulated: the times are made up" if on_gpu else ", with a simulated GPU: the host's times are real"
    console.print(f"[bold]{told.get('gpu', '')}[/bold]{note}")
    everywhere = _failures_of_all(report)
    for comparison, verdicts in zip(report.comparisons, report.verdicts, strict=True):
        _print(console, comparison, verdicts, everywhere)
    if everywhere:
        console.print()
    for arm, why in everywhere.items():
        _print_failure(console, arm, why)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def time_text(ns: float) -> str:
    """``12.34 us``, with the unit that fits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.0f} ns"


def amount_text(value: float, unit: str) -> str:
    """``12.34 us``, ``1.2 MB``, or the figure as it is."""
    if unit == "ns":
        return time_text(value)
    if unit == "bytes":
        for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
            if value >= size:
                return f"{value / size:.4g} {name}"
        return f"{value:.4g} B"
    return f"{value:.4g} {unit}".rstrip()


def verdict_text(verdict: str, same_within: float) -> str:
    """The verdict, with what "the same" means."""
    return f"same within {100 * same_within:g} %" if verdict == "same" else verdict


def _failures_of_all(report: Report) -> dict[str, str]:
    """What none of several comparisons could measure, for the same reason: told once, at the end."""
    if len(report.comparisons) < 2:
        return {}
    first, *others = report.comparisons
    return {arm: why for arm, why in first.failures.items() if all(each.failures.get(arm) == why for each in others)}


def _print_failure(console: Console, arm: str, why: str) -> None:
    from rich.markup import escape

    console.print(f"[red]not measured[/red] {escape(why if why.startswith('arm ') else f'{arm}: {why}')}")


def _print(
    console: Console, comparison: Comparison, verdicts: dict[str, Verdict], told_elsewhere: Mapping[str, str]
) -> None:
    from rich.markup import escape

    console.print()
    if comparison.arms:
        console.print(_figures(comparison, verdicts))
        if any(len(arm.kernel_ns) > 1 for arm in comparison.arms.values()):
            console.print(_kernels(comparison))
    for arm, why in comparison.failures.items():
        if arm not in told_elsewhere:
            _print_failure(console, arm, why)
    for warning in comparison.warnings:
        console.print(f"[yellow]warning[/yellow] {escape(warning)}")
    console.print(f"[dim]{escape(_how(comparison))}[/dim]")


_CLOCKS = {
    "cupti": "CUPTI: time in which the call's own activities ran",
    "wall": "wall clock",
    "cpu": "processor time of this process",
    "returned": "what each call said it took",
    "reported": "what each process reported of itself",
}


def _how(comparison: Comparison) -> str:
    design = comparison.design
    if comparison.is_reported:
        return (
            f"{_CLOCKS['reported']}; {comparison.rounds} rounds, each arm in a new process, in random order, "
            f"{comparison.seconds:.0f} s; mean and interval of the rounds; seed {design['seed']}"
        )
    cache = f", {design['cache']} L2" if design["clock"] == "cupti" else ""
    graph = f", graphs of {design['graph_calls']} calls" if design.get("graph_calls") else ""
    stop = {"precision": f"precision of {design['precision']:.2%} reached", "time": "out of time"}
    runs = f" in {len(comparison.run_rounds)} runs" if len(comparison.run_rounds) > 1 else ""
    return (
        f"{_CLOCKS[design['clock']]}{cache}{graph}; {comparison.rounds} rounds{runs} after {comparison.warm_up_rounds} "
        f"to warm up, {comparison.seconds:.1f} s, {stop.get(comparison.stopped_by, 'all rounds made')}; "
        f"seed {design['seed']}"
    )


def _figures(comparison: Comparison, verdicts: dict[str, Verdict]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(comparison.title) or None, title_justify="left", title_style="bold", box=box.SIMPLE)
    names = list(comparison.arms)
    roofs = {name: comparison.share_of_roof(name) for name in names}
    on_gpu = comparison.design.get("clock") == "cupti"
    columns = ["arm", "mean" if comparison.is_reported else "median", "95 %", "ratio", "95 %", "verdict"]
    columns += ["launches", "copies", "waits"] * on_gpu
    columns += ["TFLOP/s"] * (comparison.flops is not None) + ["GB/s"] * (comparison.bytes is not None)
    columns += ["of roof"] * any(share is not None for share in roofs.values())
    columns += ["outliers"] * (not comparison.is_reported)
    facts = list(dict.fromkeys(name for arm in comparison.arms.values() for name in arm.facts))
    columns += facts
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index in (0, 5) else "right", no_wrap=index != 0)
    for name, arm in comparison.arms.items():
        verdict: str = verdicts.get(name, "reference")
        ratio = comparison.ratios[name].interval if name in comparison.ratios else None
        style = _STYLE[verdict]
        middle = comparison.interval(name)
        cells = [
            escape(name),
            amount_text(middle.estimate, comparison.unit),
            _width_text(middle.relative_half_width),
            "1" if ratio is None else f"{ratio.estimate:.4f}",
            "" if ratio is None else _interval_text(ratio),
            f"[{style}]{verdict_text(verdict, float(comparison.design.get('same_within', 0)))}[/{style}]",
        ]
        per_sample = comparison.design.get("graph_calls") or 1
        done = (arm.launches, arm.copies + arm.memsets, arm.synchronizations)
        cells += [f"{each / per_sample:g}" for each in done] * on_gpu
        flops, moved, roof = comparison.flop_per_s(name), comparison.bytes_per_s(name), roofs[name]
        cells += [] if flops is None else [f"{flops / 1e12:.4g}"]
        cells += [] if moved is None else [f"{moved / 1e9:.4g}"]
        cells += [] if roof is None else [f"{roof:.1%}"]
        cells += [] if comparison.is_reported else [str(int(outliers(arm.times_ns).sum()))]
        cells += [escape(str(arm.facts.get(fact, ""))) for fact in facts]
        table.add_row(*cells)
    return table


def _interval_text(ratio: Interval) -> str:
    if not ratio.low > 0:
        return ""
    return f"{ratio.low:.4f}..{ratio.high:.4f}" if ratio.high < _WIDEST**2 * ratio.low else "unknown"


def _width_text(half_width: float) -> str:
    if half_width > _WIDEST:
        return "unknown" if half_width == float("inf") else f"over ±{_WIDEST:.0%}"
    return f"±{half_width:.2%}"


def _kernels(comparison: Comparison) -> Table:
    """Where the time of each arm goes, for arms of several kernels."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None)
    for column in ("arm", "kernel", "per call", "median", "share"):
        table.add_column(column, justify="left" if column in ("arm", "kernel") else "right")
    per_sample = comparison.design.get("graph_calls") or 1
    for name, arm in comparison.arms.items():
        rows = sorted(((median(times).estimate, kernel) for kernel, times in arm.kernel_ns.items()), reverse=True)
        for taken, kernel in rows[:_SHOWN_KERNELS]:
            count = list(arm.kernels).count(kernel) / per_sample
            share = taken / arm.median_ns.estimate
            table.add_row(escape(name), escape(kernel), f"{count:g}", time_text(taken), f"{share:.1%}")
        if len(rows) > _SHOWN_KERNELS:
            table.add_row(escape(name), f"{len(rows) - _SHOWN_KERNELS} more")
    return table
