"""A report as one self-contained HTML page: every sample of every arm, and the growth of times along an axis."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.bench.report_tables import PAGE_WIDTH, amount_text, as_text, notes, verdict_text
from collector.files.atomic_files import atomic_write
from collector.text.quantities import time_text
from collector.text.wording import counted

if TYPE_CHECKING:
    import os

    from collector.bench.benchmark_report import Comparison, Report

_WIDTH, _ROW, _LEFT, _RIGHT = 900, 46, 170, 30
_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_SHOWN_SAMPLES = 1500
_CHARACTER = 7.0
"""Width of a digit of a label."""
_LARGE = 1e15
"""Whole numbers from here on are written with an exponent."""
_STYLE = """body{font:14px system-ui,sans-serif;margin:2em;max-width:60em;color:#222;background:#fff}
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:currentColor}pre{overflow-x:auto;font-size:12px}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}"""


def save_plot(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page to ``path`` completely or not at all.

    Raises:
        collector.OutputError: the file cannot be written.
    """
    with atomic_write(path) as file:
        file.write(page(report).encode())


def page(report: Report) -> str:
    """The page's HTML. Equal reports give equal pages."""
    note = " (simulated: the times are made up)" if report.environment.get("simulated") else ""
    title = html.escape(f"{report.environment.get('gpu', '')}{note}")
    parts = [f"<h1>{title}</h1>"]
    for name in dict.fromkeys(each.name for each in report.comparisons):
        family = [each for each in report.comparisons if each.name == name]
        for axis in _numeric_axes(family):
            parts.append(_scaling(family, axis))
    for comparison, results in zip(report.comparisons, report.results, strict=True):
        verdicts = [
            f"{arm}: {result.ratio.interval.estimate:.4f}, "
            f"{verdict_text(result.verdict, float(comparison.design.get('same_within', 0)))}"
            for arm, result in results.items()
            if result.ratio is not None
        ]
        parts.append(f"<h2>{html.escape(comparison.title)}</h2><p>{html.escape('; '.join(verdicts))}</p>")
        parts.append(_distributions(comparison))
        parts += [f"<p>note: {html.escape(note)}</p>" for note in notes(comparison, results)]
        parts += [f"<p>warning: {html.escape(warning)}</p>" for warning in comparison.warnings]
        parts += [f"<p>not measured: {html.escape(why)}</p>" for why in comparison.failures.values()]
    parts.append(f"<pre>{html.escape(as_text(report, color=False, width=PAGE_WIDTH))}</pre>")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _distributions(comparison: Comparison) -> str:
    """One row of dots for each arm, with the median and its interval."""
    samples = {name: np.asarray(arm.times_ns, float) for name, arm in comparison.arms.items()}
    low = min(float(times.min()) for times in samples.values())
    high = max(float(times.max()) for times in samples.values())
    margin = (high - low) * 0.05 or high * 0.05
    low, high = low - margin, high + margin

    def x_of(value: float) -> float:
        return round(_LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT), 2)

    height = _ROW * len(samples) + 30
    marks = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">']
    for row, (name, times) in enumerate(samples.items()):
        color, middle = _COLORS[row % len(_COLORS)], _ROW * row + _ROW / 2
        spread = np.random.default_rng(0).uniform(-_ROW * 0.32, _ROW * 0.32, len(times))
        step = math.ceil(len(times) / _SHOWN_SAMPLES)
        dots = "".join(
            f'<circle cx="{x_of(value)}" cy="{middle + offset:.1f}" r="2"/>'
            for value, offset in zip(times[::step].tolist(), spread[::step].tolist(), strict=True)
        )
        interval = comparison.interval(name)
        left, right, at = x_of(max(interval.low, low)), x_of(min(interval.high, high)), x_of(interval.estimate)
        tooltip = html.escape(
            f"{name}: {amount_text(interval.estimate, comparison.unit)}, {counted('{} sample[|s]', len(times))}"
        )
        marks.append(
            f"<g><title>{tooltip}</title>"
            f'<text x="{_LEFT - 10}" y="{middle + 4}" text-anchor="end">{html.escape(name[:24])}</text>'
            f'<g fill="{color}" fill-opacity=".35">{dots}</g>'
            f'<rect x="{left}" y="{middle - 12}" width="{max(right - left, 1):.2f}" height="24" fill="{color}" '
            f'fill-opacity=".4"/><path d="M{at} {middle - 15}v30" stroke="currentColor" stroke-width="2"/></g>'
        )
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = low + share * (high - low)
        label = html.escape(amount_text(value, comparison.unit))
        marks.append(f'<text x="{x_of(value)}" y="{height - 6}" text-anchor="middle">{label}</text>')
    return "".join([*marks, "</svg>"])


def _axis_text(value: float) -> str:
    """A value of an axis, a whole number with all of its digits, as in the names of benchmarks."""
    return f"{value:.0f}" if value.is_integer() and value < _LARGE else f"{value:g}"


def _numeric_axes(family: list[Comparison]) -> list[str]:
    """Axes with at least two different positive numbers."""
    values: dict[str, set[float]] = {}
    for each in family:
        for axis, value in each.parameters.items():
            if _has_logarithm(value):
                values.setdefault(axis, set()).add(value)
    return [axis for axis, found in values.items() if len(found) > 1]


def _has_logarithm(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _scaling(family: list[Comparison], axis: str) -> str:
    """Median over the axis, both logarithmic; one line for each arm and each setting of the other axes."""
    lines: dict[str, list[tuple[float, float]]] = {}
    left_out: dict[str, None] = {}
    for each in family:
        if axis not in each.parameters:
            continue
        at = each.parameters[axis]
        if not _has_logarithm(at):
            left_out[str(at)] = None
            continue
        others = ",".join(f"{name}={value}" for name, value in each.parameters.items() if name != axis)
        for name in each.arms:
            label = f"{name} [{others}]" if others else name
            lines.setdefault(label, []).append((float(at), each.interval(name).estimate))
    points = [point for line in lines.values() for point in line]
    bounds = [(min(map(math.log, column)), max(map(math.log, column))) for column in zip(*points, strict=True)]
    height = 340

    def place(point: tuple[float, float]) -> tuple[float, float]:
        shares = [
            (math.log(value) - low) / ((high - low) or 1.0) for value, (low, high) in zip(point, bounds, strict=True)
        ]
        return round(70 + shares[0] * (_WIDTH - 300), 2), round(height - 50 - shares[1] * (height - 80), 2)

    marks = [f'<h2>{html.escape(family[0].name)} over {html.escape(axis)}</h2><svg viewBox="0 0 {_WIDTH} {height}">']
    for row, (label, line) in enumerate(lines.items()):
        color = _COLORS[row % len(_COLORS)]
        placed = [place(point) for point in sorted(line)]
        path = " ".join(f"{x},{y}" for x, y in placed)
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in placed)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>{dots}')
        marks.append(f'<text x="{_WIDTH - 210}" y="{30 + 20 * row}" style="fill:{color}">{html.escape(label)}</text>')
    free_from = 0.0
    for value in sorted({point[0] for point in points}):
        x, text = place((value, points[0][1]))[0], _axis_text(value)
        half = len(text) * _CHARACTER / 2
        if x - half >= free_from:
            marks.append(f'<text x="{x}" y="{height - 20}" text-anchor="middle">{text}</text>')
            free_from = x + half + _CHARACTER
    for value in (min(point[1] for point in points), max(point[1] for point in points)):
        y = place((points[0][0], value))[1]
        marks.append(f'<text x="62" y="{y + 4}" text-anchor="end">{time_text(value)}</text>')
    marks.append("</svg>")
    if left_out:
        note = f"without {axis} = {', '.join(left_out)}: a logarithmic axis has positive numbers only"
        marks.append(f"<p>{html.escape(note)}</p>")
    return "".join(marks)
