"""The causes of a device's idle times."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.intervals import Union

    Ints = npt.NDArray[np.int64]


class IdleCauses(NamedTuple):
    """The parts of idle times in ns. There is one row per idle time, whose parts add up to its length."""

    queued: Ints
    """The activity that ended the idle time was launched before it began, and waited for something else."""
    synchronizing: Ints
    """That activity was not launched yet, and the host was in a synchronizing call."""
    unlaunched: Ints
    """That activity was not launched yet, and the host did something else."""
    latency: Ints
    """That activity was launched during the idle time and had not started yet."""
    unknown: Ints
    """The launch time of that activity is unknown."""
    tail: Ints
    """No activity ended the idle time."""


def idle_causes(begins: Ints, ends: Ints, is_ended: npt.NDArray[np.bool_], launched: Ints, waits: Union) -> IdleCauses:
    """The causes of idle times.

    Args:
        begins: begin of each idle time, ns.
        ends: end of each idle time, ns.
        is_ended: whether an activity started at the end.
        launched: launch time of that activity, ns; 0 or less if unknown.
        waits: the times in which the host was in a synchronizing call.
    """
    is_known = launched > 0
    is_queued = launched < begins
    is_late = is_ended & is_known & ~is_queued
    until = np.clip(launched, begins, ends)
    waited = waits.covered(begins, until)

    def where(condition: npt.NDArray[np.bool_], times: Ints) -> Ints:
        return np.where(condition, times, 0)

    return IdleCauses(
        queued=where(is_ended & is_known & is_queued, ends - begins),
        synchronizing=where(is_late, waited),
        unlaunched=where(is_late, until - begins - waited),
        latency=where(is_late, ends - until),
        unknown=where(is_ended & ~is_known, ends - begins),
        tail=where(~is_ended, ends - begins),
    )
