"""The window of a step in the metadata of drawn files, because it does not follow from the slices.

A step begins before its first activity and ends after its last one: without the window, its idle time would be another
in each format. The two ends are texts of nanoseconds of the wall clock, as JSON readers store numbers in doubles.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from collector.recording.possible_times import FAR_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.protos import Provenance
    from collector.recording.recording import Recording

KEY = "window_ns"
"""The member of a file's metadata."""
Window = tuple[int, int]
"""Begin and end of a step, wall time."""
_TIME = re.compile(r"-?[0-9]{1,19}")


def window_of(provenance: Provenance | None) -> Window | None:
    """The window that a message states; None where it states none."""
    if provenance is None:
        return None
    window = provenance.window_start_nanos, provenance.window_end_nanos
    return window if any(window) and window[0] <= window[1] else None


def window_texts(window: Window) -> list[str]:
    """The value of `KEY`."""
    return [str(time_ns) for time_ns in window]


def stated_window(about: Mapping[str, Any]) -> Window | None:
    """The inverse of `window_texts`, in the metadata of any file; None where it states none."""
    stated = about.get(KEY)
    if not isinstance(stated, list) or len(stated) != 2:
        return None
    if not all(isinstance(each, str) and _TIME.fullmatch(each) for each in stated):
        return None
    start_ns, end_ns = map(int, stated)
    return (start_ns, end_ns) if is_held((start_ns, end_ns)) else None


def is_held(window: Window) -> bool:
    """Whether a message can hold a window: it fits into 64 bits, and does not end before it begins."""
    return -(1 << 63) <= window[0] <= window[1] < 1 << 63


def in_window(recording: Recording, window: Window | None) -> Recording:
    """The rows of a recording, which its clock encloses, as those of a step with a stated window.

    A window far from them is impossible, and the recording is returned unchanged.
    """
    clock = recording.clock
    if window is None:
        return recording
    is_near = clock.wall_start_ns - FAR_NS <= window[0] and window[1] <= clock.wall_stop_ns + FAR_NS
    if clock.window_ns > 0 and not is_near:
        return recording
    ahead_ns = clock.wall_start_ns - clock.cupti_start_ns
    start_ns, end_ns = (time_ns - ahead_ns for time_ns in window)
    return recording.restated(clock=clock.windowed(start_ns, end_ns))
