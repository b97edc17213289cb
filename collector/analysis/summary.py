"""A step as a few tables for a terminal; its figures are those of `collector.analysis`."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from collector.analysis.busy_time import devices
from collector.analysis.copies import copies
from collector.analysis.kernels import kernels
from collector.analysis.no_launches import no_launches
from collector.analysis.ops import NO_ANNOTATION, ops
from collector.text.quantities import time_text
from collector.text.terminal import printable
from collector.text.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from collector.analysis.answer import Answer
    from collector.recording.recording import Recording

_TOP_ROWS = 10
_WIDTH = 100


def summarize(recording: Recording, *, unavailable: str | None = None, color: bool | None = None) -> str:
    """Return each device's busy time, the kernels and annotations that took most time, copies and the ledger, as text.

    Args:
        recording: what to summarise.
        unavailable: why nothing was traced; printed instead of an empty table.
        color: with terminal colours; None: if standard output is a terminal.
    """
    from rich.console import Console
    from rich.text import Text

    text = io.StringIO()
    in_color = sys.stdout.isatty() if color is None else color
    console = Console(file=text, force_terminal=in_color, no_color=not in_color, width=_WIDTH, highlight=False)
    parts = (
        _parts(recording) if unavailable is None else [Text(f"not traced: {printable(unavailable)}", style="bold red")]
    )
    for part in parts:
        console.print(part)
    return text.getvalue().rstrip("\n")


def _parts(recording: Recording) -> list[RenderableType]:
    from rich.text import Text

    parts: list[RenderableType] = []
    if recording.environment.get("simulated"):
        parts.append(Text("simulated GPU: the times below are made up", style="bold yellow"))
    for answer, table in (
        (devices(recording), _devices),
        (kernels(recording), _kernels),
        (ops(recording), _ops),
        (copies(recording), _copies),
    ):
        if len(answer) and answer[answer.columns[0].name].tolist() != [NO_ANNOTATION]:
            parts.append(table(answer))
    ledger = recording.ledger
    parts.append(
        Text(
            f"{counted('{:,} launch[|es]', ledger.launches_seen)}, {counted('{:,} kernel[|s]', ledger.kernels)}, "
            f"{counted('{:,} cop[y|ies]', ledger.memcpys)}, {counted('{:,} memset[|s]', ledger.memsets)}; "
            f"{'nothing was lost' if ledger.complete else 'INCOMPLETE:'}",
            style="green" if ledger.complete else "bold red",
        )
    )
    parts.extend(Text(f"  {loss}", style="red") for loss in ledger.losses())
    if causes := no_launches(recording):
        parts.append(Text(causes, style="yellow"))
    return parts


def _devices(answer: Answer) -> RichTable:
    window_ns = answer.windows[0].length_ns
    table = _table(f"Step of {time_text(window_ns)}", "device", "busy", "idle", "busy share")
    for row in answer:
        share = f"{row['busy_share']:.1%}" if window_ns > 0 else ""
        table.add_row(f"/gpu:{row['device_id']}", time_text(row["busy_ns"]), time_text(row["idle_ns"]), share)
    return table


def _kernels(answer: Answer) -> RichTable:
    from rich.text import Text

    count, total = answer.totals["count"], int(answer.totals["total_ns"])
    title = f"Kernels: {count:,} of {counted('{:,} name[|s]', len(answer))}, {time_text(total)}"
    table = _table(title, "kernel", "count", "total", "mean", "share")

    def add(name: str, rows: list[dict[str, Any]]) -> None:
        count, spent = sum(row["count"] for row in rows), sum(row["total_ns"] for row in rows)
        share = f"{spent / max(total, 1):.1%}"
        table.add_row(Text(name), f"{count:,}", time_text(spent), time_text(spent / count), share)

    rows = list(answer)
    for row in rows[:_TOP_ROWS]:
        add(printable(row["name"]), [row])
    if len(rows) > _TOP_ROWS:
        add(counted("({:,} other[|s])", len(rows) - _TOP_ROWS), rows[_TOP_ROWS:])
    return table


def _ops(answer: Answer) -> RichTable:
    from rich.text import Text

    table = _table("GPU time by annotation", "annotation", "activities", "self", "total", "share")
    rows = list(answer)
    longest = sorted(range(len(rows)), key=lambda place: -rows[place]["total_ns"])[:_TOP_ROWS]
    for row in (rows[place] for place in sorted(longest)):
        name = row["path"] if not row["depth"] else row["path"].rpartition("/")[2]
        times = (time_text(row["self_ns"]), time_text(row["total_ns"]), f"{row['share']:.1%}")
        table.add_row(Text("  " * row["depth"] + printable(name)), f"{row['activities']:,}", *times)
    if len(rows) > _TOP_ROWS:
        table.add_row(counted("({:,} other[|s])", len(rows) - _TOP_ROWS), *[""] * 4)
    return table


def _copies(answer: Answer) -> RichTable:
    has_devices = len(set(answer["device_id"].tolist())) > 1
    table = _table("Copies and memsets", "kind", "count", "bytes", "total", "GB/s", "memory")
    for row in answer:
        known = row["count"] - row["unknown_sizes"]
        size = f"{row['num_bytes']:,}" if known == row["count"] else f"{row['num_bytes']:,} and more"
        rate = f"{row['bandwidth'] / 1e9:.1f}" if row["bandwidth"] == row["bandwidth"] else ""
        memory = " to ".join(filter(None, (row["source"], row["target"])))
        where = f" on /gpu:{row['device_id']}" if has_devices else ""
        figures = (f"{row['count']:,}", size if known else "unknown", time_text(row["total_ns"]), rate)
        table.add_row(row["kind"], *figures, memory + where)
    return table


def _table(title: str, *headers: str) -> RichTable:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, header in enumerate(headers):
        is_text = header in (headers[0], "memory")
        table.add_column(header, justify="left" if is_text else "right", overflow="fold", no_wrap=position > 0)
    return table
