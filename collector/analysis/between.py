"""The part of a step between two times, as a step of its own: ``collector.analysis.between(step, 0, 1000)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.analysis.asked import recording_in
from collector.analysis.step_marks import windowed

if TYPE_CHECKING:
    from collector.formats.step import TracedStep
    from collector.recording.recording import Recording


def between(step: Recording | TracedStep, start_ns: int, end_ns: int) -> Recording:
    """The part of a step that overlaps a range of times, to which questions are put like to any other.

    Busy and idle time are those between the two times. A kernel, a copy or a call that runs beyond them counts with its
    whole duration; so do the calls and annotations that launched what is in the part. Times in answers count from
    ``start_ns``.

    Args:
        step: a recording, a loaded step or an ended session.
        start_ns: since the step began.
        end_ns: likewise.

    Raises:
        ValueError: the end is before the start.
    """
    if end_ns < start_ns:
        raise ValueError(f"a part of a step does not end before it starts, as {start_ns} to {end_ns} ns does")
    recording = recording_in(step)
    first_ns, last_ns = (recording.clock.cupti_start_ns + each for each in (start_ns, end_ns))
    return windowed(recording.between(first_ns, last_ns), first_ns, last_ns)
