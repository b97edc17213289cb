"""Which kernels took the time: ``collector.analysis.kernels(step)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question
from collector.analysis.launches import lower_median

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

_KEYS = {
    "name": (Column("name", "text", "Short name of the kernel, which tells different kernels apart."),),
    "whole_name": (
        Column("whole_name", "text", "Name as its programmer wrote it, with template arguments and types."),
    ),
    "op": (
        Column("op", "text", "Innermost annotation that it was launched under; empty: none."),
        Column("name", "text", "Short name of the kernel."),
    ),
    "shape": (
        Column("name", "text", "Short name of the kernel."),
        Column("grid", "text", "Blocks of the grid, x,y,z."),
        Column("block", "text", "Threads of a block, x,y,z."),
    ),
    "stream": (
        Column("device_id", "number", "CUDA's number of the device."),
        Column("stream_id", "number", "CUPTI's number of the stream."),
        Column("name", "text", "Short name of the kernel."),
    ),
}
"""What kernels can be counted by -> the columns that say it."""
_FIGURES = (
    Column("count", "count", "Kernels."),
    Column("total_ns", "ns", "Sum of their durations."),
    Column("share", "share", "That by the sum of all kernels' durations."),
    Column("min_ns", "ns", "Shortest duration."),
    Column("median_ns", "ns", "Median of the durations, of an even number the lower one."),
    Column("max_ns", "ns", "Longest duration."),
)
QUESTIONS = {
    by: Question(
        "kernels",
        f"Kernels counted by {by.replace('_', ' ')}; times are sums of durations: kernels that ran at once count each.",
        (*columns, *_FIGURES),
        summed=("count", "total_ns"),
    )
    for by, columns in _KEYS.items()
}


def kernels(steps: Asked, *, by: str = "name") -> Answer:
    """Kernels and their time, those that took longest first.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``name``, ``whole_name``, ``op``, ``shape`` or ``stream``.

    Raises:
        ValueError: kernels cannot be counted by that.
    """
    if by not in QUESTIONS:
        raise ValueError(f"by={by!r}: kernels are counted by {', '.join(QUESTIONS)}")
    return QUESTIONS[by].ask(steps, lambda recording: _part(recording, by))


def _part(recording: Recording, by: str) -> Part:
    table = recording.kernels
    keys = _keys(recording, by)
    distinct: dict[tuple[Any, ...], int] = {}
    index = np.array([distinct.setdefault(key, len(distinct)) for key in keys], np.int64)
    durations = table.duration_ns
    whole = int(durations.sum())
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(len(distinct) + 1))
    rows, evidence = [], []
    for key, place in distinct.items():
        own = order[bounds[place] : bounds[place + 1]]
        spent = durations[own]
        total = int(spent.sum())
        share = total / whole if whole else 0.0
        rows.append((*key, len(own), total, share, int(spent.min()), lower_median(spent), int(spent.max())))
        evidence.append({"kernels": own})
    width = len(_KEYS[by])
    ranked = sorted(range(len(rows)), key=lambda place: (-rows[place][width + 1], rows[place][:width]))
    return Part([rows[place] for place in ranked], (), [evidence[place] for place in ranked])


def _keys(recording: Recording, by: str) -> list[tuple[Any, ...]]:
    """What each kernel is counted under."""
    table = recording.kernels
    names = table.demangled_names() if by == "whole_name" else table.names()
    if by == "op":
        return list(zip(recording.annotations_of(table), names, strict=True))
    if by == "shape":
        shapes = [
            [
                f"{x},{y},{z}"
                for x, y, z in zip(*(getattr(table, f"{what}_{axis}").tolist() for axis in "xyz"), strict=True)
            ]
            for what in ("grid", "block")
        ]
        return list(zip(names, *shapes, strict=True))
    if by == "stream":
        return list(zip(table.device_id.tolist(), table.stream_id.tolist(), names, strict=True))
    return [(name,) for name in names]
