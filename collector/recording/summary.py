"""A step as a table for a terminal."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.copy_kind_names import copy_kind_name
from collector.recording.intervals import Union
from collector.recording.kernel_names import short_name
from collector.text.quantities import time_text
from collector.text.terminal import printable
from collector.text.wording import counted

if TYPE_CHECKING:
    import numpy.typing as npt
    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from collector.recording.recording import Recording

_TOP_KERNELS = 10
_WIDTH = 100


def summarize(recording: Recording, *, unavailable: str | None = None, color: bool | None = None) -> str:
    """Return the kernels that took most time, the copies, each device's busy time and the ledger, as text.

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
    busy = busy_ns(recording)
    if busy:
        parts.append(_devices(recording, busy))
    if len(recording.kernels):
        parts.append(_kernels(recording))
    if len(recording.memcpys) or len(recording.memsets):
        parts.append(_copies(recording))
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
    return parts


def _devices(recording: Recording, busy: dict[int, int]) -> RichTable:
    table = _table(f"Step of {time_text(recording.clock.window_ns)}", "device", "busy", "idle", "busy share")
    window = recording.clock.window_ns
    for device, spent in busy.items():
        share = f"{spent / window:.1%}" if window > 0 else ""
        table.add_row(f"/gpu:{device}", time_text(spent), time_text(max(window - spent, 0)), share)
    return table


def _kernels(recording: Recording) -> RichTable:
    from rich.text import Text

    kernels = recording.kernels
    ids, row_ids = np.unique(kernels.name_id, return_inverse=True)
    names, name_of_id = np.unique([short_name(kernels.text(name_id)) for name_id in ids.tolist()], return_inverse=True)
    index = name_of_id[row_ids]
    counts = np.bincount(index)
    totals = np.zeros(len(names), np.int64)
    np.add.at(totals, index, kernels.duration_ns)
    order = np.lexsort((np.arange(len(names)), -totals))
    title = f"Kernels: {len(kernels):,} of {counted('{:,} name[|s]', len(names))}, {time_text(int(totals.sum()))}"
    table = _table(title, "kernel", "count", "total", "mean", "share")
    for row in order[:_TOP_KERNELS].tolist():
        total, count = int(totals[row]), int(counts[row])
        share = f"{total / max(int(totals.sum()), 1):.1%}"
        table.add_row(Text(printable(str(names[row]))), f"{count:,}", time_text(total), time_text(total / count), share)
    if len(names) > _TOP_KERNELS:
        rest = order[_TOP_KERNELS:]
        total, count = int(totals[rest].sum()), int(counts[rest].sum())
        share = f"{total / max(int(totals.sum()), 1):.1%}"
        table.add_row(
            counted("({:,} other[|s])", len(rest)), f"{count:,}", time_text(total), time_text(total / count), share
        )
    return table


def _copies(recording: Recording) -> RichTable:
    table = _table("Copies and memsets", "kind", "count", "bytes", "total", "GB/s")
    copies, memsets = recording.memcpys, recording.memsets
    for kind in np.unique(copies.copy_kind).tolist():
        rows = copies.where(copy_kind=kind)
        table.add_row(copy_kind_name(kind), *_traffic(rows.num_bytes, rows.duration_ns))
    if len(memsets):
        table.add_row("memset", *_traffic(memsets.num_bytes, memsets.duration_ns))
    return table


def _traffic(num_bytes: npt.NDArray[Any], duration_ns: npt.NDArray[Any]) -> tuple[str, str, str, str]:
    known = num_bytes > 0  # CUPTI gives 0 where it does not know
    moved, spent = int(num_bytes.sum()), int(duration_ns[known].sum())
    size = f"{moved:,}" if known.all() else f"{moved:,} and more" if moved else "unknown"
    return f"{len(num_bytes):,}", size, time_text(int(duration_ns.sum())), f"{moved / spent:.1f}" if spent else ""


def _table(title: str, *headers: str) -> RichTable:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, header in enumerate(headers):
        table.add_column(header, justify="right" if position else "left", overflow="fold", no_wrap=position > 0)
    return table


def busy_ns(recording: Recording) -> dict[int, int]:
    """For each device with activity the ns in which at least one kernel, copy or memset ran, by device number."""
    tables = (recording.kernels, recording.memcpys, recording.memsets)
    devices, starts, ends = (
        np.concatenate([getattr(table, column) for table in tables]) for column in ("device_id", "start_ns", "end_ns")
    )
    rows = {device: devices == device for device in np.unique(devices).tolist()}
    return {device: Union.of(starts[chosen], ends[chosen]).length for device, chosen in rows.items()}
