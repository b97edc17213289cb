"""The part of a step between two times, as a step of its own: ``collector.analysis.between(step, 0, 1000)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from collector.analysis.asked import recording_in
from collector.checked_arguments import check_time
from collector.recording.recording import Recording

if TYPE_CHECKING:
    from collector.formats.step import Step, TracedStep


@overload
def between(step: Recording, start_ns: int, end_ns: int) -> Recording: ...
@overload
def between(step: TracedStep, start_ns: int, end_ns: int) -> Step: ...
@overload
def between(step: Recording | TracedStep, start_ns: int, end_ns: int) -> Recording | Step: ...
def between(step: Recording | TracedStep, start_ns: int, end_ns: int) -> Recording | Step:
    """The part of a step that overlaps a range of times, which every question takes.

    Busy and idle time are those between the two times. A kernel, a copy or a call that runs beyond them counts with its
    whole duration; work that only touches the range does not count. The calls and annotations that launched the
    activities of the part belong to it, with the annotations around these. Times in answers count from ``start_ns``.

    Args:
        step: a recording, a loaded step or an ended session.
        start_ns: begin of the range, counted from the beginning of the step.
        end_ns: end of the range, counted from the beginning of the step.

    Returns:
        A recording of a recording; of a step a step with its path, its rank and its names of devices.

    Raises:
        ValueError: the end is before the start, or one of them is NaN.
        TypeError: one of them is not a number.
    """
    for name, side in (("start_ns", start_ns), ("end_ns", end_ns)):
        check_time(name, side)
    if end_ns < start_ns:
        raise ValueError(f"a part of a step does not end before it starts, as {start_ns} to {end_ns} ns does")
    recording = recording_in(step)
    first_ns, last_ns = (recording.clock.cupti_start_ns + each for each in (start_ns, end_ns))
    part = recording.between(first_ns, last_ns, recording.clock.windowed(first_ns, last_ns))
    return part if isinstance(step, Recording) else step.with_recording(part)
