"""How far ranks' clocks are apart, told from what they did together.

A collective ends on all its ranks at nearly the same moment: none can leave before the last has arrived. So the ends of
the same collective on two ranks are one moment read from two clocks: the differences of those that do belong together
crowd at the clocks' offset. Others, as of traces that hold a sample of what ran, lie anywhere; they are told apart by
how unlikely the crowd would be by chance.
"""

from __future__ import annotations

import math
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
_RESOLUTION_NS = 1000
"""Differences nearer than this are as good as equal: GPUs leave a collective no closer together."""
_LAUNCH_DETAILS = re.compile(r" [a-z_]+:[\w,.]+(?=$| )")


@dataclass(frozen=True)
class ClockOffset:
    """How one rank's clock was moved to fit the others'."""

    offset_ns: int
    """What was subtracted from the rank's times."""
    error_ns: int | None
    """Half of the markers agree within this; None where the offset was given, or stands on one moment or none."""
    markers: int
    """How many common moments the estimate stands on."""
    source: str
    """given, estimated, reference, or none."""
    disagreeing: int = 0
    """Moments of the same name and place in order that are further off, as they are where each trace misses some."""


def collective_ends(step: StepStats, step_number: int, marker: re.Pattern[str] = COLLECTIVE) -> Markers:
    """The moments of a step that other ranks share: ends of nodes whose name or label holds `marker`.

    Where GPUs ran such nodes the host's are left out: it only asked for them, each rank when it came to it.
    """
    on_gpu: dict[str, list[int]] = defaultdict(list)
    on_host: dict[str, list[int]] = defaultdict(list)
    with_streams = any("/stream:" in device.device and not device.device.endswith(":all") for device in step.dev_stats)
    for device in step.dev_stats:
        if "/memcpy" in device.device or (with_streams and device.device.endswith("/stream:all")):
            continue
        found = on_gpu if "gpu:" in device.device.lower() else on_host
        for node in device.node_stats:
            if marker.search(node.node_name) or marker.search(node.timeline_label):
                times = node_times(node)
                if times is not None:
                    name = _LAUNCH_DETAILS.sub("", node.timeline_label) or node.node_name
                    found[name].append(sum(times))
    return {(step_number, name): sorted(ends) for name, ends in (on_gpu or on_host).items()}


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
            agreeing = _crowd(differences)
            offset_ns = round(median(agreeing))
            error_ns = round(median(abs(difference - offset_ns) for difference in agreeing))
            beside = len(differences) - len(agreeing)
            offsets[rank] = ClockOffset(
                offset_ns, error_ns if len(agreeing) > 1 else None, len(agreeing), "estimated", beside
            )
        else:
            offsets[rank] = ClockOffset(0, None, 0, "none")
    return offsets


def _crowd(differences: list[int]) -> list[int]:
    """The neighbours among all differences that are least likely to be so near each other by chance.

    A scan statistic (Kulldorff 1997): by chance a stretch of the range holds as many as its share of it says; the
    stretch whose count exceeds that by the greatest logarithm of Poisson likelihoods wins, the larger of equals.
    """
    ordered = sorted(differences)
    total = len(ordered)
    all_ns = max(ordered[-1] - ordered[0], _RESOLUTION_NS)
    best = (0.0, total, 0)
    count = total
    while count >= 2:
        at = min(range(total - count + 1), key=lambda first: ordered[first + count - 1] - ordered[first])
        expected = total * max(ordered[at + count - 1] - ordered[at], _RESOLUTION_NS) / all_ns
        if count > expected:
            best = max(best, (count * math.log(count / expected) - (count - expected), count, at))
        count = min(count - 1, count * 15 // 16)
    _, count, at = best
    return ordered[at : at + count]
