"""Perfetto traces of a step or a part of it, for the copy of Perfetto's page that the server shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.files.new_folders import scratch_folder
from collector.timeline import chrome_trace

if TYPE_CHECKING:
    from collector.formats.step import TracedStep


def perfetto_trace(step: TracedStep, part: tuple[int, int] | None = None, max_events: int | None = None) -> bytes:
    """The trace.

    Args:
        step: the step to draw.
        part: start and end of the part to draw, ns since the step began; None: the whole step.
        max_events: the maximum number of slices; the longest are drawn.
    """
    return _drawn(step, max_events, part or (None, None))[0]


def trace_shift(step: TracedStep) -> int:
    """The time of the trace at which the step began: traces count from their first event, which may be earlier."""
    clock = step.recording.clock
    base_ns = _drawn(step, 0, (None, None))[1]
    return clock.cupti_start_ns + clock.offset_ns - base_ns


def _drawn(step: TracedStep, max_events: int | None, window_ns: tuple[int | None, int | None]) -> tuple[bytes, int]:
    """The trace, and the wall time of its time 0."""
    with scratch_folder() as folder:
        path = folder / "step.pftrace"
        drawn = chrome_trace(step, path, max_events=max_events, window_ns=window_ns)
        return path.read_bytes(), drawn.base_ns
