"""A step as a few tables for a terminal; its figures are those of `collector.analysis`."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.answer import branch
from collector.analysis.busy_time import devices
from collector.analysis.code_loading import code_loading
from collector.analysis.copies import copies
from collector.analysis.kernels import kernels
from collector.analysis.no_launches import no_launches
from collector.analysis.ops import ops
from collector.analysis.tree_rows import largest_rows
from collector.analysis.whole_graphs import whole_graphs
from collector.formats.call_sums import NO_TIMES
from collector.recording.context_errors import STICKY_ERRORS, failed_calls
from collector.recording.device_models import device_models
from collector.text.quantities import time_text
from collector.text.terminal import printable, shows_colours, styled
from collector.text.text_tables import folded, table_text
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.analysis.answer import Answer
    from collector.formats.step import TracedStep
    from collector.recording.recording import Recording

_TOP_ROWS = 10
_WIDTH = 100
"""Characters of a line where the terminal's width is unknown."""


def summarize(recording: Recording, *, unavailable: str | None = None, color: bool | None = None) -> str:
    """Return each device's busy time, the kernels and annotations that took most time, copies and the ledger, as text.

    Args:
        recording: the recording to summarise.
        unavailable: the reason why nothing was traced; printed instead of an empty table.
        color: whether to use terminal colours; None: if standard output is a terminal that shows them.
    """
    page = _Page(color=shows_colours(sys.stdout) if color is None else color)
    if unavailable is not None:
        page.say(f"not traced: {printable(unavailable)}", "bold", "red")
        return page.text
    if recording.environment.get("simulated"):
        page.say("simulated GPU: the times below are made up", "bold", "yellow")
    if len(busy := devices(recording)):
        _devices(page, busy, device_models(recording))
    for answer, show in (
        (kernels(recording), _kernels),
        (ops(recording), _ops),
        (copies(recording), _copies),
    ):
        if len(answer) and answer[answer.columns[0].name].tolist() != [NO_ANNOTATION]:
            show(page, answer)
    if len(loading := code_loading(recording)):
        parts = (
            f"{row['kind']} {time_text(row['covered_ns'])} ({counted('{:,} time[|s]', row['count'])})"
            for row in loading
        )
        page.say(f"Code was compiled or loaded during the step: {', '.join(parts)}", "yellow")
    if uncounted := whole_graphs([recording], are_counted=False):
        page.say(uncounted, "yellow")
    ledger = recording.ledger
    page.say(
        f"{counted('{:,} launch[|es]', ledger.launches_seen)}, {counted('{:,} kernel[|s]', ledger.kernels)}, "
        f"{counted('{:,} cop[y|ies]', ledger.memcpys)}, {counted('{:,} memset[|s]', ledger.memsets)}; "
        f"{'nothing was lost' if ledger.complete else 'INCOMPLETE:'}",
        *(["green"] if ledger.complete else ["bold", "red"]),
    )
    for loss in ledger.losses():
        page.say(loss, "red", indent="  ")
    for line in ledger.part_lines():
        page.say(line, "yellow", indent="  ")
    if timeless := Counter(recording.invalid.kernels.names()):
        names = [f"{printable(name)} ({counted('{:,} time[|s]', count)})" for name, count in timeless.most_common()]
        others = [counted("{:,} other[|s]", len(names) - _TOP_ROWS)] if len(names) > _TOP_ROWS else []
        page.say(f"Kernels without times: {', '.join(names[:_TOP_ROWS] + others)}", "yellow")
    calls = recording.api_calls
    if len(failed := failed_calls(calls)):
        code = int(calls.return_value[failed[0]])
        function = printable(calls[failed[:1]].names()[0])
        page.say(
            f"{function} returned CUDA error {code} ({STICKY_ERRORS[code]}), after which its context is unusable", "red"
        )
    if causes := no_launches(recording):
        page.say(causes, "yellow")
    return page.text


def summarize_sums(step: TracedStep, *, color: bool | None = None) -> str:
    """Return the kernels and frames that took most time in a step that holds only sums, as text; see `summarize`."""
    page = _Page(color=shows_colours(sys.stdout) if color is None else color)
    found = kernels(step)
    _kernels(page, found)
    _ops(page, ops(step))
    page.say(NO_TIMES, "yellow")
    for loss in found.losses:
        page.say(loss, "red", indent="  ")
    return page.text


class _Page:
    """Lines of text that fit the terminal."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._width = shutil.get_terminal_size((_WIDTH, 0)).columns
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    def say(self, sentence: str, *styles: str, indent: str = "") -> None:
        """Add a sentence in these styles."""
        lines = folded(sentence, self._width - len(indent))
        self._lines += [styled(indent + line, *styles, color=self._color) for line in lines]

    def show(self, title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, last_is_name: bool) -> None:
        """Add a table under a title; its first column holds names, and on request its last one too."""
        is_name = [place == 0 or (last_is_name and place == len(heads) - 1) for place in range(len(heads))]
        table = table_text(heads, list(rows), is_name, self._width, color=self._color)
        self._lines += [styled(title, "bold", color=self._color), "", table, ""]


def _devices(page: _Page, answer: Answer, models: Mapping[int, str]) -> None:
    window_ns = answer.windows[0].length_ns
    rows = [
        (
            f"/gpu:{row['device_id']}",
            time_text(row["busy_ns"]),
            time_text(row["idle_ns"]),
            f"{row['busy_share']:.1%}" if window_ns > 0 else "",
            *([printable(models.get(row["device_id"], ""))] if models else []),
        )
        for row in answer
    ]
    heads = ("device", "busy", "idle", "busy share", *(["model"] if models else []))
    page.show(f"Step of {time_text(window_ns)}", heads, rows, last_is_name=bool(models))


def _kernels(page: _Page, answer: Answer) -> None:
    count, total = answer.totals["count"], int(answer.totals["total_ns"])

    def line(name: str, rows: list[dict[str, Any]]) -> tuple[str, ...]:
        count, spent = sum(row["count"] for row in rows), sum(row["total_ns"] for row in rows)
        return (name, f"{count:,}", time_text(spent), time_text(spent / count), f"{spent / max(total, 1):.1%}")

    rows = list(answer)
    lines = [line(printable(row["name"]), [row]) for row in rows[:_TOP_ROWS]]
    if len(rows) > _TOP_ROWS:
        lines.append(line(counted("({:,} other[|s])", len(rows) - _TOP_ROWS), rows[_TOP_ROWS:]))
    title = f"Kernels: {count:,} of {counted('{:,} name[|s]', len(answer))}, {time_text(total)}"
    page.show(title, ("kernel", "count", "total", "mean", "share"), lines, last_is_name=False)


def _ops(page: _Page, answer: Answer) -> None:
    rows = list(answer)
    lines: list[tuple[str, ...]] = []
    for row in (rows[place] for place in largest_rows(answer["depth"], answer["total_ns"], _TOP_ROWS).tolist()):
        times = (time_text(row["self_ns"]), time_text(row["total_ns"]), f"{row['share']:.1%}")
        lines.append((branch(row["path"], row["depth"]), f"{row['activities']:,}", *times))
    if len(rows) > _TOP_ROWS:
        lines.append((counted("({:,} other[|s])", len(rows) - _TOP_ROWS), *[""] * 4))
    heads = ("annotation", "activities", "self", "total", "share")
    page.show("GPU time by annotation", heads, lines, last_is_name=False)


def _copies(page: _Page, answer: Answer) -> None:
    has_devices = len(set(answer["device_id"].tolist())) > 1
    lines = []
    for row in answer:
        known = row["count"] - row["unknown_sizes"]
        size = f"{row['num_bytes']:,}" if known == row["count"] else f"{row['num_bytes']:,} and more"
        rate = f"{row['bandwidth'] / 1e9:.1f}" if row["bandwidth"] == row["bandwidth"] else ""
        memory = " to ".join(filter(None, (row["source"], row["target"])))
        where = f" on /gpu:{row['device_id']}" if has_devices else ""
        figures = (f"{row['count']:,}", size if known else "unknown", time_text(row["total_ns"]), rate)
        lines.append((row["kind"], *figures, memory + where))
    heads = ("kind", "count", "bytes", "total", "GB/s", "memory")
    page.show("Copies and memsets", heads, lines, last_is_name=True)
