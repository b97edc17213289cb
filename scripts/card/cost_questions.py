"""What single calls of CUPTI cost a program that is traced."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from asked_card import compiled
from raw_cupti import CUSTOM2, SUCCESS

if TYPE_CHECKING:
    from asked_card import Card
    from notes import Notes

TURNS, ROUNDS, THREADS = 10_000, 5, (1, 8)
KINDS = ("CONCURRENT_KERNEL", "DRIVER", "EXTERNAL_CORRELATION")
CALLS = {
    "clock": "clock_gettime",
    "stamp": "cuptiGetTimestamp",
    "push_pop": "cuptiActivityPushExternalCorrelationId and its Pop",
    "range": "two stamps, push and pop",
}
"""The name of a figure -> the calls of a turn, in the order of their numbers in call_costs.c."""
PARTS = ("nothing enabled", "kinds enabled", "kinds enabled, subscribed")


def call_costs(notes: Notes, card: Card, part: str) -> None:
    """The calls of which an annotation or an NVTX range consists, on one thread and on eight."""
    file = card.folder / "call_costs.so"
    if trouble := compiled("call_costs.c", file, "-pthread"):
        notes.saw(trouble)
        return
    costs = ctypes.CDLL(str(file))
    costs.call_cost.restype = ctypes.c_double
    cupti = card.cupti
    if part != PARTS[0]:
        cupti.register(4 << 20)
        refused = {kind: cupti.name_of(code) for kind, code in cupti.enable(*KINDS).items() if code != SUCCESS}
        if refused:
            notes.saw(f"refused: {refused}")
    if part == PARTS[2]:
        cupti.subscribe()
    card.cuda.synchronize()  # CUPTI is ready when the driver has been called
    functions = [
        ctypes.cast(getattr(cupti.library, name), ctypes.c_void_p)
        for name in (
            "cuptiGetTimestamp", "cuptiActivityPushExternalCorrelationId", "cuptiActivityPopExternalCorrelationId",
        )
    ]  # fmt: skip
    turns = 2_000 if card.is_simulated else TURNS
    notes.did(f"{turns} turns in C on each of {' and '.join(map(str, THREADS))} threads, the lowest of {ROUNDS} rounds")
    rows, figures = [], {}
    for number, (name, calls) in enumerate(CALLS.items()):
        cells = []
        for threads in THREADS:
            found = [costs.call_cost(number, *functions, CUSTOM2, turns, threads) for _ in range(ROUNDS)]
            failed = [value for value in found if value < 0]
            cells.append(f"{cupti.name_of(int(-failed[0]))}" if failed else f"{min(found):.0f}")
            if not failed:
                figures[f"{name}_{threads}"] = min(found)
        rows.append([calls, *cells])
    notes.table(["ns of a turn", *(f"{threads} threads" if threads > 1 else "1 thread" for threads in THREADS)], rows)
    notes.saw(f"a range costs {figures.get('range_1', 0):.0f} ns on one thread", **figures)
