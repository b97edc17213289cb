"""Launches of CUDA graphs that were recorded as a whole: of their kernels, copies and memsets nothing is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.activities import Activities
from collector.analysis.shared_values import shared
from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.distinct import distinct_values
from collector.recording.intervals import Union
from collector.text.quantities import time_text
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.recording.recording import Recording


def whole_graphs(recordings: Sequence[Recording]) -> str:
    """A sentence about the launches whose work no figure of kernels, copies and memsets counts; empty: there are none.

    It has their number, and the time of all devices in which such graphs ran and nothing that is counted. That time is
    idle by the definition of `collector.analysis.devices`.
    """
    found = [_launches_and_time(recording) for recording in recordings]
    number, time_ns = (sum(each[place] for each in found) for place in (0, 1))
    if not number:
        return ""
    launches = counted("{:,} launch[|es] of CUDA graphs [was|were] recorded as a whole", number)
    idle = f", and {time_text(time_ns)} in which only graphs ran count as idle" if time_ns else ""
    return f"{launches}: the kernels, copies and memsets in them are not counted{idle}."


@shared
def _launches_and_time(recording: Recording) -> tuple[int, int]:
    """The number of these launches, and the sum of all devices' times within the step in which nothing else ran."""
    launches = recording.graph_launches
    launches = launches[launches.graph_degree == DEGREE_WHOLE_GRAPH]
    if not len(launches):
        return 0, 0
    bounds = recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns
    starts, ends = (np.clip(times, *bounds) for times in (launches.start_ns, launches.end_ns))
    counted_work = {device: own.union() for device, own in Activities.of(recording).by_device()}
    nothing = Union.of(starts[:0], ends[:0])
    time_ns = 0
    for device in distinct_values(launches.device_id).tolist():
        own = launches.device_id == device
        time_ns += Union.of(starts[own], ends[own]).without(counted_work.get(device, nothing)).length
    return len(launches), time_ns
