"""Memory over time, as the page draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.memory import memory_over_time

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.recording import Recording

    Numbers = npt.NDArray[np.int64]

PARTS = 1000
"""The number of parts of a step: a curve with more values has only the largest and the last value of each part."""


def memory_curves(recording: Recording) -> list[dict[str, Any]]:
    """Bytes that were held after each change, for each kind of memory and pool; times are ns since the step began."""
    began, length = recording.clock.cupti_start_ns, max(recording.clock.window_ns, 1)
    curves = []
    for (device, memory, pool), times, held in memory_over_time(recording):
        own = _drawn(times - began, held, length)
        name = f"GPU {device} {memory}" + (f" pool {pool}" if pool else "")
        curves.append({"name": name, "times": (times - began)[own].tolist(), "held": held[own].tolist()})
    return curves


def _drawn(times: Numbers, held: Numbers, length: int) -> Numbers:
    """Places of the values that are drawn."""
    if len(times) <= 2 * PARTS:
        return np.arange(len(times))
    part = np.minimum(times // -(-length // PARTS), PARTS)
    last = np.flatnonzero(np.append(part[1:] != part[:-1], True))
    by_size = np.lexsort((held, part))
    largest = by_size[np.append(part[by_size][1:] != part[by_size][:-1], True)]
    return np.union1d(last, largest)
