"""Offsets between the clocks of ranks, estimated from the ends of collectives.

A collective ends on all its ranks at nearly the same time, because no rank can leave before the last one has arrived.
The ends of one collective on two ranks are thus one time read from two clocks, and their difference is the clocks'
offset.

The ends cannot be paired by their number: traces begin and stop at different times, miss some ends or contain only a
sample, and ranks belong to several groups that run collectives of the same name. Therefore the differences between all
ends of one name are clustered: those of true pairs are close to the offset, all others are spread.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from collector.checked_arguments import whole_number
from collector.stepstats.node_times import NodeTimes, node_times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats

Markers = dict[tuple[int, str], "NDArray[np.int64]"]
"""Step number and name of a collective -> its runs on one rank: rows of start and end in ns of that rank's clock,
sorted by end."""

_Shared = list[tuple["NDArray[np.int64]", "NDArray[np.int64]"]]
"""Name of a collective -> its ends on two ranks."""

COLLECTIVE = re.compile(r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
"""Occurs in the names or labels of nodes that several ranks run together. Sends and receives are among them, because
NCCL implements an all-to-all with them."""
RESOLUTION_NS = 1000
"""Smaller differences count as equal: GPUs do not leave a collective closer together than this."""
_MOST_DIFFERENCES = 1_000_000
"""Above this many differences only a sample is clustered; the offset found is then applied to all."""
CHANCE = 0.001
"""A cluster that would arise by chance with a higher probability than this is discarded."""
_DETAIL = re.compile(r" ([a-z_]+):([\w,.]+)(?=$| )")
_TELLING = ("collective", "group", "seq", "dtype", "grid", "block")
"""Launch details that are equal on all ranks of a collective."""
SAME_LENGTH = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|broadcast", re.IGNORECASE)
"""Collectives to which each rank contributes the same number of elements."""
ONE_WAY = frozenset({"send", "recv"})
PAIR = "pair"
"""The word that replaces the kinds of `ONE_WAY` in the name that two ranks share."""


ClockOffsets: TypeAlias = "Mapping[int, int] | Literal['estimate'] | None"
"""The offsets of the ranks' clocks: ns that each rank is ahead, ``estimate``, or None if the clocks agree."""


def checked_offsets(given: ClockOffsets) -> ClockOffsets:
    """Check the offsets, and return them with plain integers.

    Raises:
        ValueError: a text other than ``estimate``.
        TypeError: the offsets have another type, or a rank or an offset is not a whole number.
    """
    if given is None or (isinstance(given, str) and given == "estimate"):
        return given
    if isinstance(given, str):
        raise ValueError(f"clock_offsets={given!r}: estimate, the offset of each rank, or None")
    if not isinstance(given, Mapping):
        raise TypeError(f"clock_offsets={given!r}: estimate, the offset of each rank such as {{1: -2500}}, or None")
    return {
        whole_number("a rank of clock_offsets", rank): whole_number(f"clock_offsets[{rank!r}]", offset_ns)
        for rank, offset_ns in given.items()
    }


@dataclass(frozen=True)
class ClockOffset:
    """The offset of one rank's clock, and its uncertainty."""

    offset_ns: int
    """Subtracted from the rank's times."""
    error_ns: int | None
    """Half of the markers agree within this; None if the offset was given or is based on at most one marker, or if that
    of the rank between is."""
    markers: int
    """Number of common moments that the estimate uses."""
    source: str
    """given, estimated, reference, or none."""
    disagreeing: int = 0
    """Markers of a name that both ranks have, but without an agreeing partner on the other rank: one of the traces does
    not contain the partner, or other ranks ran the collective."""
    spread_ns: int | None = None
    """The range of all markers. It grows with the clocks' drift over the duration of the traces."""
    out_of_order: int = 0
    """Markers that the offset would put in an impossible order: one rank left before the other began."""
    through: int | None = None
    """The rank that it was compared with if it shares no markers with the lowest rank; the errors are added."""


class _Fit(NamedTuple):
    """The estimate from the markers of two ranks."""

    differences: NDArray[np.int64]
    """Differences of the pairs that agree."""
    possible: int
    """Largest possible number of pairs."""
    out_of_order: int

    def offset(self, base: ClockOffset, through: int | None) -> ClockOffset:
        """The clock's offset, given that of the rank it was compared with."""
        middle_ns = _median(self.differences)
        away = np.abs(self.differences - middle_ns)
        is_known = len(away) > 1 and (base.source == "reference" or base.error_ns is not None)
        return ClockOffset(
            offset_ns=base.offset_ns + middle_ns,
            error_ns=_median(away) + (base.error_ns or 0) if is_known else None,
            markers=len(away),
            source="estimated",
            disagreeing=self.possible - len(away),
            spread_ns=int(away.max()) + (base.spread_ns or 0) if is_known else None,
            out_of_order=self.out_of_order,
            through=through,
        )


def collective_moments(step: StepStats, step_number: int, marker: re.Pattern[str] = COLLECTIVE) -> Markers:
    """The markers of a step: nodes whose name or label contains `marker`, which other ranks share.

    If GPUs ran such nodes, the host's nodes are left out: the host only launches collectives, at a different time on
    each rank.
    """
    devices = list(zip(step.dev_stats, node_times(step), strict=True))
    streams = [each for each in devices if re.search(r"/stream:(?!all$)", each[0].device)]
    on_gpu = _moments(streams or [each for each in devices if each[0].device.endswith("/stream:all")], marker)
    found = on_gpu or _moments((each for each in devices if "gpu:" not in each[0].device.lower()), marker)
    return {(step_number, name): in_order(rows) for name, rows in found.items()}


def joined(moments: NDArray[np.int64] | None, more: NDArray[np.int64]) -> NDArray[np.int64]:
    """Markers of one name from several files."""
    return more if moments is None else in_order(np.concatenate([moments, more]))


def _moments(
    devices: Iterable[tuple[DeviceStepStats, NodeTimes]], marker: re.Pattern[str]
) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for device, of_device in devices:
        for node, times in zip(device.node_stats, of_device, strict=True):
            if times and (marker.search(node.node_name) or marker.search(node.timeline_label)):
                found[_shared_name(node)].append((times[0], sum(times)))
    return found


def in_order(rows: list[tuple[int, int]] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of start and end as markers have them, sorted by end."""
    array = np.asarray(rows, dtype=np.int64)
    return array[np.argsort(array[:, 1], kind="stable")]


def _shared_name(node: NodeExecStats) -> str:
    """The name of a collective that is equal on all ranks, from what its label states."""
    stated = dict(_DETAIL.findall(node.timeline_label))
    return shared_collective_name(_DETAIL.sub("", node.timeline_label) or node.node_name, stated)


def shared_collective_name(name: str, stated: Mapping[str, str]) -> str:
    """The name of a collective that is equal on all ranks, without details that differ, such as registers.

    Args:
        name: the name of its kernel.
        stated: its details: ``collective``, ``group``, ``seq``, ``dtype``, ``elements``, ``grid``, ``block``.
    """
    details = dict(stated)
    collective = details.get("collective", "")
    if collective in ONE_WAY:
        details["collective"] = PAIR
        details.pop("seq", None)  # each side counts its own
    telling = [f"{key}:{details[key]}" for key in _TELLING if key in details]
    if "elements" in details and SAME_LENGTH.search(collective):
        telling.append(f"elements:{details['elements']}")
    return " ".join([name, *telling])


def estimate_offsets(markers: Mapping[int, Markers]) -> dict[int, ClockOffset]:
    """The offset of each rank's clock from that of the lowest rank, estimated from shared markers.

    A rank that shares no markers with the lowest is compared with the ranks that already have an offset. A rank that
    shares no markers with any of them, or whose markers agree no better than by chance, keeps its times, with source
    "none".

    Args:
        markers: rank -> its markers.
    """
    if not markers:
        return {}
    reference = min(markers)
    offsets = {reference: ClockOffset(0, None, 0, "reference")}
    frontier = [reference]
    waiting = sorted(set(markers) - {reference})
    while frontier and waiting:  # from the ranks placed last to ranks that share a name with them
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
    """The markers of the names that both ranks have, the reference's first."""
    return [(reference[key], moments) for key, moments in own.items() if key in reference]


def _possible(shared: _Shared) -> int:
    """The largest possible number of markers that both ranks share."""
    return sum(min(len(theirs), len(ours)) for theirs, ours in shared)


def _fit(reference: Markers, own: Markers) -> _Fit | None:
    """The estimated offset of two ranks' clocks; None if their markers do not determine it."""
    shared = _shared(reference, own)
    if not shared:
        return None
    have_unique_names = _have_unique_names(reference, own)
    window = _crowd(shared, _elapsed(reference, own, have_unique_names))
    fit = _counted(shared) if window is None else _paired(shared, *window)
    # More than half of the markers in an impossible order are those of strangers, e.g. with the same numbers.
    return None if fit is None or 2 * fit.out_of_order > len(fit.differences) else fit


def _have_unique_names(*of_ranks: Markers) -> bool:
    """Whether each name occurs once in its step on each rank, as with sequence numbers: the name alone makes a pair."""
    return all(len(rows) == 1 for own in of_ranks for rows in own.values())


def _elapsed(reference: Markers, own: Markers, have_unique_names: bool) -> int:
    """The time in which a marker could have been any other of its rank, in ns.

    It is the longest time from the first to the last marker of one step, or of all steps where the names alone make
    pairs.
    """
    ends: dict[tuple[int, int], list[NDArray[np.int64]]] = defaultdict(list)
    for rank, markers in enumerate((reference, own)):
        for (step, _), rows in markers.items():
            ends[rank, 0 if have_unique_names else step].append(rows[:, 1])
    return max(int(np.ptp(np.concatenate(each))) for each in ends.values())


def _crowd(shared: _Shared, elapsed_ns: int) -> tuple[float, float] | None:
    """The densest cluster of differences between ends, if it is denser than chance: first and last, in ns.

    A scan statistic (Kulldorff 1997): by chance, an interval contains a share of the differences that is proportional
    to its length, and in the middle of the range twice that share (as for the sums of two dice). The interval whose
    count exceeds this by the greatest logarithm of Poisson likelihoods wins. No interval counts more than the possible
    number of pairs, so that a long interval with several pairings gains nothing.

    Args:
        shared: the markers of the names that both ranks have.
        elapsed_ns: the range of the differences if the pairs were made by chance, unless they have a larger one.
    """
    total = sum(len(theirs) * len(ours) for theirs, ours in shared)
    stride = -(-total // _MOST_DIFFERENCES)
    sampled = [(theirs[:, 1], ours[::stride, 1]) for theirs, ours in shared]
    differences = np.sort(np.concatenate([(ours[:, None] - theirs).ravel() for theirs, ours in sampled]))
    possible = _possible(sampled)
    total = len(differences)
    range_ns = max(int(differences[-1] - differences[0]), elapsed_ns, RESOLUTION_NS)
    counts = _counts(min(possible, total))
    best: tuple[float, float, float] | None = None
    least = math.log(total * max(len(counts), 1) / CHANCE)  # the number of intervals tried
    for count in counts:
        widths = np.maximum(differences[count - 1 :] - differences[: total - count + 1], RESOLUTION_NS)
        shortest = int(widths.min())
        expected = 2 * total * shortest / range_ns
        if count <= expected:
            continue
        likelihood = count * math.log(count / expected) - (count - expected)
        if likelihood > least and (best is None or likelihood > best[0]):
            # Of equal intervals, the one nearest to offset 0.
            starts = np.flatnonzero(widths == shortest)
            at = int(starts[np.argmin(np.abs(differences[starts] + shortest / 2))])
            best = (likelihood, float(differences[at]), float(differences[at + count - 1]))
    return best[1:] if best else None


def _counts(most: int) -> list[int]:
    """The cluster sizes to try: from all differences down to two, in steps of one sixteenth."""
    counts = []
    while most >= 2:
        counts.append(most)
        most = min(most - 1, most * 15 // 16)
    return counts


def _paired(shared: _Shared, first_ns: float, last_ns: float) -> _Fit | None:
    """Pairs of markers that are nearest neighbours on both ranks and whose difference is in the range."""
    middle_ns = round((first_ns + last_ns) / 2)
    reach_ns = max((last_ns - first_ns) * 0.75, RESOLUTION_NS)
    theirs_kept, ours_kept = [], []
    for theirs, ours in shared:
        ends, moved = theirs[:, 1], ours[:, 1] - middle_ns
        to_theirs, to_ours = nearest(ends, moved), nearest(moved, ends)
        mutual = to_ours[to_theirs] == np.arange(len(moved))
        near = mutual & (np.abs(moved - ends[to_theirs]) <= reach_ns)
        theirs_kept.append(theirs[to_theirs[near]])
        ours_kept.append(ours[near])
    return _fit_of(np.concatenate(theirs_kept), np.concatenate(ours_kept), _possible(shared))


def nearest(among: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.intp]:
    """The index of the element of ``among`` nearest to each element of ``wanted``; both are sorted."""
    after = np.clip(np.searchsorted(among, wanted), 1, max(len(among) - 1, 1))
    if len(among) == 1:
        return np.zeros(len(wanted), dtype=np.intp)
    return np.where(wanted - among[after - 1] <= among[after] - wanted, after - 1, after)


def _counted(shared: _Shared) -> _Fit | None:
    """The markers paired by their order, if none seems to be missing and the result is a valid offset.

    This is for few markers, or for markers whose ends scatter. An offset that is not larger than the scatter of its
    markers is discarded.
    """
    if any(len(theirs) != len(ours) for theirs, ours in shared):
        return None
    fit = _fit_of(
        np.concatenate([theirs for theirs, _ in shared]),
        np.concatenate([ours for _, ours in shared]),
        _possible(shared),
    )
    if fit is None:
        return None
    middle_ns = _median(fit.differences)
    return fit if abs(middle_ns) > np.abs(fit.differences - middle_ns).max() else None


def _fit_of(theirs: NDArray[np.int64], ours: NDArray[np.int64], possible: int) -> _Fit | None:
    if not len(ours):
        return None
    differences = ours[:, 1] - theirs[:, 1]
    offset_ns = _median(differences)
    # No rank can leave a collective before the other has begun it.
    impossible = (ours[:, 1] - offset_ns < theirs[:, 0]) | (theirs[:, 1] < ours[:, 0] - offset_ns)
    return _Fit(differences, possible, int(impossible.sum()))


def _median(values: NDArray[np.int64]) -> int:
    """The median; of an even number of values the mean of the two in the middle, rounded down.

    Two markers have an error that way, which the lower one of their distances from the lower difference would not be.
    """
    ordered = np.sort(values)
    low, high = int(ordered[(len(values) - 1) // 2]), int(ordered[len(values) // 2])
    return low + (high - low) // 2
