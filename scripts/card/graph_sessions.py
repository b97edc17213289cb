"""The question whether the kernels of graphs have the correlation ids of their launches in every session of a process.

CUPTI's release notes of 13.1 Update 1: "Fixed incorrect correlation IDs for cudaGraphLaunch API calls and their
associated kernel launches in profiling sessions after the first session". They do not say what ends a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from notes import Notes, counted
from raw_cupti import FORCE, RawCupti

if TYPE_CHECKING:
    from asked_card import Card

KINDS = ("CONCURRENT_KERNEL", "DRIVER", "RUNTIME")
SESSIONS, LAUNCHES, NODES, PLAIN = 3, 4, 5, 3


class _Subscription:
    """The client's subscription, which a boundary between sessions may renew."""

    def __init__(self, cupti: RawCupti) -> None:
        self.cupti = cupti
        cupti.subscribe()

    def disable_and_enable(self) -> None:
        """Disable the kinds and enable them again."""
        self.cupti.enable(*KINDS, disable=True)
        self.cupti.flush(FORCE)
        self.cupti.enable(*KINDS)

    def renew(self) -> None:
        """Disable the kinds, unsubscribe, subscribe and enable them."""
        self.cupti.enable(*KINDS, disable=True)
        self.cupti.flush(FORCE)
        self.cupti.unsubscribe()
        self.cupti.subscribe()
        self.cupti.register()
        self.cupti.enable(*KINDS)

    def flush(self) -> None:
        """Flush only."""
        self.cupti.flush(FORCE)


BOUNDARIES: dict[str, Callable[[_Subscription], None]] = {
    "sessions, disable and enable": _Subscription.disable_and_enable,
    "sessions, unsubscribe and subscribe": _Subscription.renew,
    "sessions, flush only": _Subscription.flush,
}
"""Part of the question -> what lies between two sessions."""


def graph_sessions(notes: Notes, card: Card, part: str) -> None:
    """Compare the ids of launches with those of kernels in three sessions."""
    boundary = BOUNDARIES[part]
    cupti, cuda = card.cupti, card.cuda
    subscription = _Subscription(cupti)
    cupti.collect(*KINDS)
    stream = cuda.stream()
    first = _captured(card, stream)
    notes.did(
        f"cuptiGetVersion {cupti.version()}. {SESSIONS} sessions, between them: {boundary.__doc__} Each has {PLAIN} "
        f"plain launches, and {LAUNCHES} launches of each of two graphs with {NODES} kernels: one captured in the "
        "first session, one in this"
    )
    for number in range(1, SESSIONS + 1):
        if number > 1:
            boundary(subscription)
            cupti.completed.clear()
        graphs = (first, _captured(card, stream))
        cuda.launch_empty(PLAIN, stream)
        for _ in range(LAUNCHES):
            for graph in graphs:
                cuda.launch_graph(graph, stream)
        cuda.synchronize()
        cupti.flush()
        cupti.flush(FORCE)
        _compare(notes, cupti, number)
        cupti.completed.clear()


def _captured(card: Card, stream: Any) -> Any:
    with card.cuda.captured(stream) as graphs:
        card.cuda.launch_empty(NODES, stream)
    return graphs[0]


def _compare(notes: Notes, cupti: RawCupti, number: int) -> None:
    calls = cupti.records("DRIVER", "RUNTIME")
    launches = {record.u32(32) for record in calls if "graphlaunch" in cupti.callback_name(record).lower()}
    others = {record.u32(32) for record in calls} - launches
    kernels = cupti.records("CONCURRENT_KERNEL")
    of_graphs = Counter(record.u32(92) for record in kernels if record.u32(156))
    plain = {record.u32(92) for record in kernels if not record.u32(156)}
    matched = launches & of_graphs.keys()
    notes.saw(
        f"session {number}: {len(matched)} of {len(launches)} graph launches have kernels with their id; "
        f"{of_graphs.total()} kernels of graphs with {len(of_graphs)} ids, {len(of_graphs.keys() & others)} of them "
        f"ids of other calls; plain kernels with the id of a call: {len(plain & others)} of {len(plain)}",
        **{f"session {number}": [len(matched), len(launches), of_graphs.total()]},
    )
    if matched != launches or matched != of_graphs.keys():
        notes.saw(
            f"session {number}: ids of launches {sorted(launches)}; kernels by id "
            f"{counted({f'id {each}': count for each, count in sorted(of_graphs.items())})}"
        )
