"""What the times in which a device was idle are put down to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.recording.intervals import Union

    Ints = npt.NDArray[np.int64]


class IdleCauses(NamedTuple):
    """Parts of idle times, in ns, one row for each of these; together they are its length."""

    queued: Ints
    """The activity that ended it was launched before it began, and waited for something else."""
    synchronizing: Ints
    """That activity was not launched yet, and the host waited in a synchronizing call."""
    unlaunched: Ints
    """It was not launched yet, and the host did something else."""
    latency: Ints
    """It was launched after the idle time began, and had not started."""
    unknown: Ints
    """When it was launched is not known."""
    tail: Ints
    """No activity ended it."""


def idle_causes(begins: Ints, ends: Ints, is_ended: npt.NDArray[np.bool_], launched: Ints, waits: Union) -> IdleCauses:
    """The causes of idle times.

    Args:
        begins: when each began, ns.
        ends: when each ended, ns.
        is_ended: whether an activity started at its end.
        launched: when that activity was launched, ns; 0 or less: not known.
        waits: when the host was in a synchronizing call.
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
