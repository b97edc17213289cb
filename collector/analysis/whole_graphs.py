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
    number = int((recording.graph_launches.graph_degree == DEGREE_WHOLE_GRAPH).sum())
    if not number:
        return 0, 0
    counted_work = {device: own.union() for device, own in Activities.of(recording).by_device()}
    nothing = Union.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    times = whole_graph_times(recording)
    return number, sum(own.without(counted_work.get(device, nothing)).length for device, own in times.items())


def whole_graph_times(recording: Recording) -> dict[int, Union]:
    """Device -> the times within the step in which such graphs ran on it, on CUPTI's clock."""
    launches = recording.graph_launches
    launches = launches[launches.graph_degree == DEGREE_WHOLE_GRAPH]
    bounds = recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns
    starts, ends = (np.clip(times, *bounds) for times in (launches.start_ns, launches.end_ns))
    on_device = {device: launches.device_id == device for device in distinct_values(launches.device_id).tolist()}
    return {device: Union.of(starts[own], ends[own]) for device, own in on_device.items()}
