"""How far ranks' clocks are apart, told from what they did together.

A collective ends on all its ranks at nearly the same moment: none can leave before the last has arrived. So the ends of
the same collective on two ranks are one moment read from two clocks, and the median of the differences over many
collectives is the clocks' offset.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from collector.formats.node_times import node_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.protos.step_stats_pb2 import StepStats

Markers = dict[tuple[int, str], list[int]]
"""Step number and name of a collective -> the ends of its runs on one rank, in ns of that rank's clock, in order."""

COLLECTIVE = re.compile(
    r"nccl(?!.*(?:Send|Recv))|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE
)
"""What the name or label of a node holds that all ranks run together. Sends and receives only pair two of them."""
_LAUNCH_DETAILS = re.compile(r" [a-z_]+:[\w,.]+(?=$| )")


@dataclass(frozen=True)
class ClockOffset:
    """How one rank's clock was moved to fit the others'."""

    offset_ns: int
    """What was subtracted from the rank's times."""
    error_ns: int | None
    """Half of the markers agree within this; None where the offset was given, or nothing was estimated."""
    markers: int
    """How many common moments the estimate stands on."""
    source: str
    """given, estimated, reference, or none."""


def collective_ends(step: StepStats, step_number: int, marker: re.Pattern[str] = COLLECTIVE) -> Markers:
    """The moments of a step that other ranks share: ends of nodes whose name or label holds `marker`."""
    found: dict[str, list[int]] = defaultdict(list)
    with_streams = any("/stream:" in device.device and not device.device.endswith(":all") for device in step.dev_stats)
    for device in step.dev_stats:
        if "/memcpy" in device.device or (with_streams and device.device.endswith("/stream:all")):
            continue
        for node in device.node_stats:
            if marker.search(node.node_name) or marker.search(node.timeline_label):
                times = node_times(node)
                if times is not None:
                    name = _LAUNCH_DETAILS.sub("", node.timeline_label) or node.node_name
                    found[name].append(sum(times))
    return {(step_number, name): sorted(ends) for name, ends in found.items()}


def estimate_offsets(markers: Mapping[int, Markers]) -> dict[int, ClockOffset]:
    """The offset of each rank's clock to that of the lowest rank, from common moments.

    Moments are paired in order, within one step and name, where both ranks saw equally many. A rank that shares none
    is left as it is, with source "none".

    Args:
        markers: rank -> its moments.
    """
    offsets: dict[int, ClockOffset] = {}
    if not markers:
        return offsets
    reference = min(markers)
    offsets[reference] = ClockOffset(0, None, 0, "reference")
    for rank in sorted(markers):
        if rank == reference:
            continue
        differences = [
            end - reference_end
            for key, ends in markers[rank].items()
            if len(ends) == len(markers[reference].get(key, ()))
            for end, reference_end in zip(ends, markers[reference][key], strict=True)
        ]
        if differences:
            offset_ns = round(median(differences))
            error_ns = round(median(abs(difference - offset_ns) for difference in differences))
            offsets[rank] = ClockOffset(offset_ns, error_ns, len(differences), "estimated")
        else:
            offsets[rank] = ClockOffset(0, None, 0, "none")
    return offsets
