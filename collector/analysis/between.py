"""The part of a step between two times, as a step of its own: ``collector.analysis.between(step, 0, 1000)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.asked import recording_in

if TYPE_CHECKING:
    from collector.formats.step import TracedStep
    from collector.recording.recording import Recording

def between(step: Recording | TracedStep, start_ns: int, end_ns: int) -> Recording:
    """The part of a step that overlaps a range of times, as a recording that every question takes.

    Busy and idle time are those between the two times. A kernel, a copy or a call that runs beyond them counts with its
    whole duration. The calls and annotations that launched the activities of the part belong to it. Times in answers
    count from ``start_ns``.

    Args:
        step: a recording, a loaded step or an ended session.
        start_ns: begin of the range, counted from the beginning of the step.
        end_ns: end of the range, counted from the beginning of the step.

    Raises:
        ValueError: the end is before the start.
    """
    if end_ns < start_ns:
        raise ValueError(f"a part of a step does not end before it starts, as {start_ns} to {end_ns} ns does")
    recording = recording_in(step)
    first_ns, last_ns = (recording.clock.cupti_start_ns + each for each in (start_ns, end_ns))
    return recording.between(first_ns, last_ns, recording.clock.windowed(first_ns, last_ns))
