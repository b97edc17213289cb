"""A step at a glance for notebooks; its figures are those of `collector.analysis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.annotation_paths import NO_ANNOTATION
from collector.analysis.busy_time import devices
from collector.analysis.idle import CAUSE_NAMES, CAUSES, idle, largest_causes
from collector.analysis.kernels import kernels
from collector.analysis.largest_paths import largest_paths
from collector.analysis.no_launches import no_launches
from collector.analysis.ops import ops
from collector.analysis.shared_values import shared_values
from collector.analysis.whole_graphs import whole_graphs
from collector.recording.device_models import device_models
from collector.text.html_tables import html_line, html_table
from collector.text.quantities import time_text
from collector.text.wording import counted

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_ROWS = 5


def overview_html(recording: Recording, *, unavailable: str | None = None, warning: str = "") -> str:
    """Devices, the kernels and annotations that took most time, causes of idle time and losses, as HTML.

    Args:
        recording: the recording to show.
        unavailable: the reason why nothing was traced; shown in place of tables.
        warning: the parts of the file that could not be read.
    """
    if unavailable is not None:
        return html_line(f"Not traced: {unavailable}", "bad")
    parts = [html_line(warning, "bad")] if warning else []
    if recording.environment.get("simulated"):
        parts.append(html_line("A simulated GPU: the times are made up.", "bad"))
    with shared_values():
        parts += _tables(recording)
    losses = recording.ledger.losses()
    parts += [html_line(f"Incomplete: {loss}", "bad") for loss in losses] or [html_line("Nothing was lost.", "good")]
    if causes := no_launches(recording):
        parts.append(html_line(causes))
    return "".join(parts)


def _tables(recording: Recording) -> list[str]:
    busy, gaps, names, paths = devices(recording), idle(recording), kernels(recording), ops(recording)
    if not len(busy):
        return [html_line("No GPU did anything in this step.")]
    models = device_models(recording)
    tables = [
        html_table(
            ["device", "busy", "idle", "busy share", *(["model"] if models else [])],
            [
                [
                    f"/gpu:{row['device_id']}",
                    time_text(row["busy_ns"]),
                    time_text(row["idle_ns"]),
                    f"{row['busy_share']:.1%}",
                    *([models.get(row["device_id"], "")] if models else []),
                ]
                for row in busy
            ],
            [True, False, False, False, *([True] if models else [])],
            caption=f"A step of {time_text(recording.clock.window_ns)}",
        )
    ]
    if len(names):
        tables.append(
            html_table(
                ["kernel", "count", "total", "share"],
                [
                    [row["name"], f"{row['count']:,}", time_text(row["total_ns"]), f"{row['share']:.1%}"]
                    for row, _ in zip(names, range(_ROWS), strict=False)
                ],
                [True, False, False, False],
                caption=f"The kernels that took most time, of {counted('{:,} name[|s]', len(names))}",
            )
        )
    if len(paths) and paths["path"].tolist() != [NO_ANNOTATION]:
        rows, places = list(paths), largest_paths(paths, "self_ns", _ROWS).tolist()
        tables.append(
            html_table(
                ["annotation", "activities", "right under it"],
                [
                    [row["path"], f"{row['self_activities']:,}", time_text(row["self_ns"])]
                    for row in (rows[place] for place in places)
                ],
                [True, False, False],
                caption="GPU time by annotation",
            )
        )
    causes = largest_causes(gaps)
    if causes:
        tables.append(
            html_table(
                ["cause", "idle", "meaning"],
                [[CAUSE_NAMES[cause], time_text(cause_ns), CAUSES[cause]] for cause, cause_ns in causes],
                [True, False, True],
                caption="Why the devices were idle",
                sentences=["meaning"],
            )
        )
    if uncounted := whole_graphs([recording], are_counted=False):
        tables.append(html_line(uncounted))
    return tables
