"""What a client of CUPTI leaves behind when it has ended, and whether cuptiFinalize removes it without harm."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from raw_cupti import DRIVER_DOMAIN, RUNTIME_DOMAIN

if TYPE_CHECKING:
    from asked_card import Card
    from notes import Notes

EVERYTHING = (
    "EXTERNAL_CORRELATION", "RUNTIME", "DRIVER", "CONCURRENT_KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "OVERHEAD",
)  # fmt: skip
KINDS = {
    "none": (),
    "kernels": ("CONCURRENT_KERNEL",),
    "runtime calls": ("RUNTIME",),
    "driver calls": ("DRIVER",),
    "waits": ("SYNCHRONIZATION",),
    "overheads": ("OVERHEAD",),
    "external ids": ("EXTERNAL_CORRELATION",),
    "kernels and runtime calls": ("CONCURRENT_KERNEL", "RUNTIME"),
    "kernels and driver calls": ("CONCURRENT_KERNEL", "DRIVER"),
    "everything but runtime calls": tuple(kind for kind in EVERYTHING if kind != "RUNTIME"),
    "everything but driver calls": tuple(kind for kind in EVERYTHING if kind != "DRIVER"),
    "everything": EVERYTHING,
}
"""What a client enables, by the name in the table."""
ROUNDS, BATCHES, LAUNCHES = 3, 5, 400
CYCLES, GRAPH_NODES, OWN_LAUNCHES, OTHER_THREADS = 60, 5, 20, 4
LARGE_BUFFER = 4 << 20
"""The bytes of a buffer that no batch of launches fills, because a new one is requested in Python."""
BLOCK_X = 64
"""The place of blockX in the record of a kernel."""
API_EXIT = 1
"""`callbackSite` of the data of a callback."""
WHEN = ("before", "under it", "after it", "after cuptiFinalize")
IN_TURN, DIRECTLY, AT_EXIT = "kinds in turn", "again and again", "again and again, at the end of a call"
PARTS = (IN_TURN, DIRECTLY, AT_EXIT)


def detach(notes: Notes, card: Card, part: str) -> None:
    """The cost of launches after each set of kinds, or many sessions of one process that each end by cuptiFinalize."""
    if part == IN_TURN:
        _kinds_in_turn(notes, card)
    else:
        _again_and_again(notes, card, at_exit=part == AT_EXIT)


def _kinds_in_turn(notes: Notes, card: Card) -> None:
    """The time of a launch before, under and after clients of different kinds, each of which detaches at its end."""
    cupti = card.cupti
    card.cuda.synchronize()
    what, launch = _launched(card)
    notes.did(
        f"Median ns of {what}, of {BATCHES} batches of {LAUNCHES} with a wait after each; {ROUNDS} rounds over all "
        "kinds in random order, with cuptiFinalize after each client"
    )

    def measured() -> float:
        return _median_ns(card, launch)

    found: dict[str, list[list[float]]] = {name: [[] for _ in WHEN] for name in KINDS}
    results: Counter[str] = Counter()
    measured()  # warms up
    order = list(KINDS)
    for _ in range(ROUNDS):
        random.shuffle(order)
        for name in order:
            before = measured()
            cupti.collect(*KINDS[name], buffer_bytes=LARGE_BUFFER)
            under = measured()
            cupti.end()
            after = measured()
            results[cupti.name_of(cupti.call("cuptiFinalize"))] += 1
            cupti.completed.clear()
            for times, value in zip(found[name], (before, under, after, measured()), strict=True):
                times.append(value)
    notes.table(
        ("kinds", *(f"{when}, ns" for when in WHEN)),
        [
            [name, *(", ".join(f"{value:.0f}" for value in times) for times in columns)]
            for name, columns in found.items()
        ],
    )
    residues = {
        f"residue {name}": float(np.median(np.array(columns[2]) - np.array(columns[0])))
        for name, columns in found.items()
    }
    notes.saw(f"cuptiFinalize returned {dict(results)}", **residues)


def _launched(card: Card) -> tuple[str, Callable[[], None]]:
    """What is launched, and the call that does it: a kernel of PyTorch where there is one."""
    try:
        import torch

        if card.is_simulated or not torch.cuda.is_available():
            raise ImportError
    except ImportError:
        stream = card.cuda.stream()
        return "an empty kernel, launched by cuda-bindings", lambda: card.cuda.launch_empty(1, stream)
    values = torch.zeros(16, device="cuda")
    return f"`x.add_(1)` of PyTorch {torch.__version__}", lambda: values.add_(1)


def _median_ns(card: Card, launch: Callable[[], object]) -> float:
    launches = 20 if card.is_simulated else LAUNCHES
    batches = []
    for _ in range(BATCHES):
        begin = time.perf_counter_ns()
        for _ in range(launches):
            launch()
        batches.append((time.perf_counter_ns() - begin) / launches)
        card.cuda.synchronize()
    return float(np.median(batches))


def _again_and_again(notes: Notes, card: Card, *, at_exit: bool) -> None:
    """Sessions that detach at their end, while other threads launch."""
    cupti, cuda = card.cupti, card.cuda
    stream = cuda.stream()
    with cuda.captured(stream) as graphs:
        cuda.launch_empty(GRAPH_NODES, stream)
    has_ended = threading.Event()
    launched: Counter[int] = Counter()

    def keep_launching(number: int) -> None:
        cuda.use()
        own = cuda.stream()
        while not has_ended.is_set():
            cuda.launch_empty(50, own)
            cuda.synchronize()
            launched[number] += 50

    cycles = 5 if card.is_simulated else CYCLES
    how = "inside the exit callback of a call" if at_exit else "directly"
    notes.did(
        f"{cycles} times all kinds enabled, {OWN_LAUNCHES} kernels and a graph of {GRAPH_NODES} launched, "
        f"cuCtxSynchronize, the kinds disabled, a forced flush, and cuptiFinalize {how}, while {OTHER_THREADS} threads "
        "launch"
    )
    threads = [threading.Thread(target=keep_launching, args=(number,)) for number in range(OTHER_THREADS)]
    for thread in threads:
        thread.start()
    results: Counter[str] = Counter()
    missing = []
    try:
        for cycle in range(cycles):
            cupti.collect(*EVERYTHING, buffer_bytes=LARGE_BUFFER)
            cuda.launch_numbered(range(1, OWN_LAUNCHES + 1), stream)
            cuda.launch_graph(graphs[0], stream)
            cuda.synchronize()
            cupti.end()
            seen = sum(record.u32(BLOCK_X) > 1 for record in cupti.records("CONCURRENT_KERNEL"))  # all others have 1
            if seen != OWN_LAUNCHES:
                missing.append((cycle, seen))
            cupti.completed.clear()
            results[_finalized_at_exit(card) if at_exit else cupti.name_of(cupti.call("cuptiFinalize"))] += 1
            if cycle % 20 == 19:
                notes.saw(f"{cycle + 1} cycles ended", cycles=cycle + 1)
    finally:
        has_ended.set()
        for thread in threads:
            thread.join()
    notes.saw(
        f"{cycles} cycles; cuptiFinalize returned {dict(results)}; the threads made {sum(launched.values())} launches; "
        f"cycles with other than {OWN_LAUNCHES} of their own kernels: {missing or 'none'}",
        cycles=cycles, incomplete=len(missing),
    )  # fmt: skip


def _finalized_at_exit(card: Card) -> str:
    """Subscribe to all calls, and detach inside the first callback of a call's end, as Kineto does on request."""
    cupti = card.cupti
    results: list[int] = []
    lock, may_detach, is_detached = threading.Lock(), threading.Event(), threading.Event()

    def called(_domain: int, _callback_id: int, data: int) -> None:
        is_exit = ctypes.c_uint32.from_address(data).value == API_EXIT
        if not (may_detach.is_set() and is_exit and lock.acquire(blocking=False)):
            return
        cupti.unsubscribe()
        results.append(cupti.call("cuptiFinalize"))
        is_detached.set()

    subscriber = cupti.subscribe(called)
    for domain in (DRIVER_DOMAIN, RUNTIME_DOMAIN):
        cupti.must("cuptiEnableDomain", 1, subscriber, domain)
    may_detach.set()
    card.cuda.synchronize()  # a call with an end, if no other thread makes one
    is_detached.wait(5)
    return cupti.name_of(results[0]) if results else "was not called"
