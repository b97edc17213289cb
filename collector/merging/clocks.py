"""Offsets between the clocks of ranks, estimated from the ends of collectives.

A collective ends on all its ranks at nearly the same moment: none can leave before the last has arrived. So the ends of
the same collective on two ranks are one moment read from two clocks, and their difference is the clocks' offset.

The ends cannot be paired by their number: traces begin and stop at different moments, miss some ends or hold a sample,
and ranks belong to groups that run collectives of the same name without each other. So the differences between all ends
of one name are clustered: those of true pairs lie close to the offset, the others anywhere.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.stepstats.node_times import node_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats

Markers = dict[tuple[int, str], "NDArray[np.int64]"]
"""Step number and name of a collective -> its runs on one rank: rows of start and end in ns of that rank's clock, in
order of their ends."""

_Shared = list[tuple["NDArray[np.int64]", "NDArray[np.int64]"]]
"""Name of a collective -> its ends on two ranks."""

COLLECTIVE = re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
"""What the name or label of a node holds that several ranks run together. Sends and receives are among them: it is how
NCCL does an all-to-all."""
_RESOLUTION_NS = 1000
"""Differences nearer than this are as good as equal: GPUs leave a collective no closer together."""
_MOST_DIFFERENCES = 1_000_000
"""Above this many differences only a sample is clustered; the offset found is then applied to all."""
_CHANCE = 0.001
"""A crowd that would come about more often than this by chance is none."""
_DETAIL = re.compile(r" ([a-z_]+):([\w,.]+)(?=$| )")
_TELLING = ("collective", "group", "seq", "dtype", "grid", "block")
"""Details of a launch that are the same on all ranks of a collective."""
_SAME_LENGTH = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|broadcast", re.IGNORECASE)
"""Collectives to which each rank brings equally many elements."""
_ONE_WAY = frozenset({"send", "recv"})


@dataclass(frozen=True)
class ClockOffset:
    """The offset of one rank's clock, and how certain it is."""

    offset_ns: int
    """Subtracted from the rank's times."""
    error_ns: int | None
    """Half of the markers agree within this; None where the offset was given, or stands on one moment or none."""
    markers: int
    """Number of common moments that the estimate uses."""
    source: str
    """given, estimated, reference, or none."""
    disagreeing: int = 0
    """Moments of a name that both ranks have, but without a partner on the other that agrees: one of the traces does
    not hold it, or others than these two ran it."""
    spread_ns: int | None = None
    """All the markers agree within this. It grows with the clocks' drift over the time that the traces span."""
    out_of_order: int = 0
    """Markers that the offset puts in an impossible order: one rank left before the other began."""
    through: int | None = None
    """The rank that it was compared with, where it has nothing in common with the lowest; errors are summed up."""


class _Fit(NamedTuple):
    """The estimate from the moments of two ranks."""

    differences: NDArray[np.int64]
    """Differences of the pairs that agree."""
    possible: int
    """Largest possible number of pairs."""
    out_of_order: int

    def offset(self, base: ClockOffset, through: int | None) -> ClockOffset:
        """The clock's offset, given that of the rank it was compared with."""
        middle_ns = float(np.median(self.differences))
        away = np.abs(self.differences - middle_ns)
        alone = len(away) == 1
        return ClockOffset(
            offset_ns=base.offset_ns + round(middle_ns),
            error_ns=None if alone else round(float(np.median(away))) + (base.error_ns or 0),
            markers=len(away),
            source="estimated",
            disagreeing=self.possible - len(away),
            spread_ns=None if alone else math.ceil(away.max()) + (base.spread_ns or 0),
            out_of_order=self.out_of_order,
            through=through,
        )


def collective_moments(step: StepStats, step_number: int, marker: re.Pattern[str] = COLLECTIVE) -> Markers:
    """The moments of a step that other ranks share: nodes whose name or label holds `marker`.

    Where GPUs ran such nodes the host's are left out: it only asked for them, each rank when it came to it.
    """
    streams = [device for device in step.dev_stats if re.search(r"/stream:(?!all$)", device.device)]
    on_gpu = _moments(streams or [each for each in step.dev_stats if each.device.endswith("/stream:all")], marker)
    found = on_gpu or _moments((each for each in step.dev_stats if "gpu:" not in each.device.lower()), marker)
    return {(step_number, name): _in_order(rows) for name, rows in found.items()}


def joined(moments: NDArray[np.int64] | None, more: NDArray[np.int64]) -> NDArray[np.int64]:
    """Moments of one name from several files."""
    return more if moments is None else _in_order(np.concatenate([moments, more]))


def _moments(devices: Iterable[DeviceStepStats], marker: re.Pattern[str]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for device in devices:
        for node in device.node_stats:
            if marker.search(node.node_name) or marker.search(node.timeline_label):
                times = node_times(node)
                if times is not None:
                    found[_shared_name(node)].append((times[0], sum(times)))
    return found


def _in_order(rows: list[tuple[int, int]] | NDArray[np.int64]) -> NDArray[np.int64]:
    array = np.asarray(rows, dtype=np.int64)
    return array[np.argsort(array[:, 1], kind="stable")]


def _shared_name(node: NodeExecStats) -> str:
    """The name of a collective on all ranks, without details that differ between ranks, such as registers."""
    details = dict(_DETAIL.findall(node.timeline_label))
    collective = details.get("collective", "")
    if collective in _ONE_WAY:
        details["collective"] = "pair"
        details.pop("seq", None)  # each side counts its own
    telling = [f"{key}:{details[key]}" for key in _TELLING if key in details]
    if "elements" in details and _SAME_LENGTH.search(collective):
        telling.append(f"elements:{details['elements']}")
    return " ".join([_DETAIL.sub("", node.timeline_label) or node.node_name, *telling])


def estimate_offsets(markers: Mapping[int, Markers]) -> dict[int, ClockOffset]:
    """The offset of each rank's clock to that of the lowest rank, from common moments.

    A rank that shares nothing with the lowest is compared with those that are placed already. A rank that shares
    nothing with any, or whose moments agree no better than chance, is left as it is, with source "none".

    Args:
        markers: rank -> its moments.
    """
    if not markers:
        return {}
    reference = min(markers)
    offsets = {reference: ClockOffset(0, None, 0, "reference")}
    frontier = [reference]
    waiting = sorted(set(markers) - {reference})
    while frontier and waiting:  # from those placed last to those that they share something with
        reached: dict[int, tuple[int, int, _Fit]] = {}
        for rank in waiting:
            for other in frontier:
                fit = _fit(markers[other], markers[rank])
                if fit is not None and (rank not in reached or len(fit.differences) > reached[rank][0]):
                    reached[rank] = (len(fit.differences), other, fit)
        for rank, (_, other, fit) in reached.items():
            offsets[rank] = fit.offset(offsets[other], None if other == reference else other)
        frontier = sorted(reached)
        waiting = [rank for rank in waiting if rank not in reached]
    for rank in waiting:
        possible = _possible(_shared(markers[reference], markers[rank]))
        offsets[rank] = ClockOffset(0, None, 0, "none", possible)
    return dict(sorted(offsets.items()))


def _shared(reference: Markers, own: Markers) -> _Shared:
    """Moments of the names that both have, the reference's first."""
    return [(reference[key], moments) for key, moments in own.items() if key in reference]


def _possible(shared: _Shared) -> int:
    """The largest possible number of moments that the two have in common."""
    return sum(min(len(theirs), len(ours)) for theirs, ours in shared)


def _fit(reference: Markers, own: Markers) -> _Fit | None:
    """The estimated offset of two ranks' clocks; None where their moments give none."""
    shared = _shared(reference, own)
    if not shared:
        return None
    window = _crowd(shared)
    if window is not None:
        return _paired(shared, *window)
    return _counted(shared)


def _crowd(shared: _Shared) -> tuple[float, float] | None:
    """The densest cluster of differences between ends, if it is denser than chance: first and last, in ns.

    A scan statistic (Kulldorff 1997): by chance a stretch holds as many differences as its share of the whole range
    says, in the middle of the range twice that (as of the sums of two dice); the stretch whose count exceeds that by
    the greatest logarithm of Poisson likelihoods wins. No stretch counts more than there are moments to be paired, so
    that a long one that holds many pairings at once gains nothing.
    """
    total = sum(len(theirs) * len(ours) for theirs, ours in shared)
    stride = -(-total // _MOST_DIFFERENCES)
    sampled = [(theirs[:, 1], ours[::stride, 1]) for theirs, ours in shared]
    differences = np.sort(np.concatenate([(ours[:, None] - theirs).ravel() for theirs, ours in sampled]))
    possible = _possible(sampled)
    total = len(differences)
    elapsed_ns = max(max(np.ptp(theirs), np.ptp(ours)) for theirs, ours in sampled)
    range_ns = max(int(differences[-1] - differences[0]), int(elapsed_ns), _RESOLUTION_NS)
    counts = _counts(min(possible, total))
    best: tuple[float, float, float] | None = None
    least = math.log(total * max(len(counts), 1) / _CHANCE)  # as many stretches are tried
    for count in counts:
        widths = np.maximum(differences[count - 1 :] - differences[: total - count + 1], _RESOLUTION_NS)
        shortest = int(widths.min())
        expected = 2 * total * shortest / range_ns
        if count <= expected:
            continue
        likelihood = count * math.log(count / expected) - (count - expected)
        if likelihood > least and (best is None or likelihood > best[0]):
            # Of equals the nearest to clocks that agree.
            starts = np.flatnonzero(widths == shortest)
            at = int(starts[np.argmin(np.abs(differences[starts] + shortest / 2))])
            best = (likelihood, float(differences[at]), float(differences[at + count - 1]))
    return best[1:] if best else None


def _counts(most: int) -> list[int]:
    """The sizes of clusters to look for: from all differences down to two, each time a sixteenth fewer."""
    counts = []
    while most >= 2:
        counts.append(most)
        most = min(most - 1, most * 15 // 16)
    return counts


def _paired(shared: _Shared, first_ns: float, last_ns: float) -> _Fit | None:
    """Pairs of moments that are nearest to each other on both ranks and have the given difference."""
    middle_ns = round((first_ns + last_ns) / 2)
    reach_ns = max((last_ns - first_ns) * 0.75, _RESOLUTION_NS)
    theirs_kept, ours_kept = [], []
    for theirs, ours in shared:
        ends, moved = theirs[:, 1], ours[:, 1] - middle_ns
        to_theirs, to_ours = _nearest(ends, moved), _nearest(moved, ends)
        mutual = to_ours[to_theirs] == np.arange(len(moved))
        near = mutual & (np.abs(moved - ends[to_theirs]) <= reach_ns)
        theirs_kept.append(theirs[to_theirs[near]])
        ours_kept.append(ours[near])
    return _fit_of(np.concatenate(theirs_kept), np.concatenate(ours_kept), _possible(shared))


def _nearest(among: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.intp]:
    """For each one wanted the index of the nearest; both in order."""
    after = np.clip(np.searchsorted(among, wanted), 1, max(len(among) - 1, 1))
    if len(among) == 1:
        return np.zeros(len(wanted), dtype=np.intp)
    return np.where(wanted - among[after - 1] <= among[after] - wanted, after - 1, after)


def _counted(shared: _Shared) -> _Fit | None:
    """The moments paired by their place in order, where none seems to be missing and that tells an offset at all.

    That is for few moments, or such as do not end together sharply: an offset that is not larger than what the moments
    disagree by is none, nor is one that puts more than half of them in an impossible order.
    """
    if any(len(theirs) != len(ours) for theirs, ours in shared):
        return None
    fit = _fit_of(
        np.concatenate([theirs for theirs, _ in shared]),
        np.concatenate([ours for _, ours in shared]),
        _possible(shared),
    )
    if fit is None or 2 * fit.out_of_order > len(fit.differences):
        return None
    middle_ns = float(np.median(fit.differences))
    return fit if abs(middle_ns) > np.abs(fit.differences - middle_ns).max() else None


def _fit_of(theirs: NDArray[np.int64], ours: NDArray[np.int64], possible: int) -> _Fit | None:
    if not len(ours):
        return None
    differences = ours[:, 1] - theirs[:, 1]
    offset_ns = round(float(np.median(differences)))
    # None can have left before the other began.
    impossible = (ours[:, 1] - offset_ns < theirs[:, 0]) | (theirs[:, 1] < ours[:, 0] - offset_ns)
    return _Fit(differences, possible, int(impossible.sum()))
