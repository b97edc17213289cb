"""Collectives that ranks ran together: matches each run on one rank with the runs on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.merging.clocks import RESOLUTION_NS, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from collector.merging.clocks import ClockOffset, Markers


class Collective(NamedTuple):
    """One collective on the ranks that ran it."""

    step: int
    """Number of the step."""
    name: str
    """Its name with the details that distinguish it: kind, group, sequence number, data type, launch shape."""
    ordinal: int
    """Index among the collectives with this name and step, from 0, in order of time."""
    start_ns: Mapping[int, int]
    """Rank -> its begin there in ns of the common clock."""
    end_ns: Mapping[int, int]
    """Rank -> its end there in ns of the common clock."""


def matched_collectives(
    markers: Mapping[int, Markers], offsets: Mapping[int, ClockOffset]
) -> tuple[list[Collective], int]:
    """Pair the collectives of ranks whose clocks are corrected.

    Two runs of the same name (and group and sequence number, where the trace states these) belong together if their
    ends are nearest to each other on both ranks. A collective cannot have ended on one rank before it began on another.

    Args:
        markers: rank -> its collectives.
        offsets: rank -> offset of its clock; ranks without one are left out.

    Returns:
        The collectives in order of time, and the number of runs without a partner on another rank.
    """
    moments: dict[tuple[int, str], dict[int, NDArray[np.int64]]] = {}
    for rank, offset in sorted(offsets.items()):
        for key, rows in markers.get(rank, {}).items():
            moments.setdefault(key, {})[rank] = rows - offset.offset_ns
    found, alone = [], 0
    for (step, name), by_rank in moments.items():
        together = _matched(by_rank, {rank: _reach(offsets[rank]) for rank in by_rank})
        alone += sum(map(len, by_rank.values())) - sum(map(len, together))
        together.sort(key=lambda rows: min(int(start) for start, _ in rows.values()))
        found += [
            Collective(
                step,
                name,
                ordinal,
                {rank: int(start) for rank, (start, _) in rows.items()},
                {rank: int(end) for rank, (_, end) in rows.items()},
            )
            for ordinal, rows in enumerate(together)
        ]
    return sorted(found, key=lambda each: (min(each.start_ns.values()), each.name, each.ordinal)), alone


def _matched(
    by_rank: Mapping[int, NDArray[np.int64]], reach_ns: Mapping[int, int | None]
) -> list[dict[int, NDArray[np.int64]]]:
    """The runs of one name that belong together, each as rank -> start and end.

    Ranks may belong to groups that run the same without each other: what the lowest rank has no part in is matched
    among the others.
    """
    together = []
    waiting = dict(by_rank)
    while len(waiting) > 1:
        first = min(waiting)
        theirs = waiting.pop(first)
        partners = {
            rank: _partners(theirs, ours, _sum(reach_ns[first], reach_ns[rank])) for rank, ours in waiting.items()
        }
        for place, own in enumerate(theirs):
            rows = {rank: waiting[rank][at[place]] for rank, at in partners.items() if at[place] >= 0}
            if rows:
                together.append({first: own, **rows})
        waiting = {rank: np.delete(ours, partners[rank][partners[rank] >= 0], axis=0) for rank, ours in waiting.items()}
    return together


def _reach(offset: ClockOffset) -> int | None:
    """The largest distance between the end of a collective on a rank and on the reference; None: it is unknown.

    The clocks of both may drift, so that the ends on two other ranks are apart by up to the sum.
    """
    if offset.source == "reference":
        return 0
    return None if offset.spread_ns is None else max(offset.spread_ns, RESOLUTION_NS)


def _sum(*reach_ns: int | None) -> int | None:
    return None if None in reach_ns else sum(each for each in reach_ns if each is not None)


def _partners(theirs: NDArray[np.int64], ours: NDArray[np.int64], reach_ns: int | None) -> NDArray[np.int64]:
    """For each of ``theirs`` the index of the same collective in ``ours``; -1: there is none."""
    if not len(theirs) or not len(ours):
        return np.full(len(theirs), -1, np.int64)
    to_ours, to_theirs = nearest(ours[:, 1], theirs[:, 1]), nearest(theirs[:, 1], ours[:, 1])
    own = ours[to_ours]
    is_same = to_theirs[to_ours] == np.arange(len(theirs))
    is_same &= (own[:, 1] >= theirs[:, 0]) & (theirs[:, 1] >= own[:, 0])
    if reach_ns is not None:
        is_same &= np.abs(own[:, 1] - theirs[:, 1]) <= reach_ns
    return np.where(is_same, to_ours, -1)
