"""The question whether launches of CUDA graphs fail after a session that recorded copies between GPUs (MEMCPY2).

The collector records these copies on request only, because launches failed with error 719: see docs/cupti.md.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from asked_apart import ask_apart
from notes import Notes, counted
from raw_cupti import FORCE, SUCCESS, CallFailedError

if TYPE_CHECKING:
    from asked_card import Card

    Client = Callable[[Card], Callable[[], AbstractContextManager[Any]]]
    """Prepares the process; returns a function that opens a session."""

PROCESSES, PROCESS_SECONDS = 5, 25
COPIES, COPY_BYTES = 60, 13 << 20
GRAPHS, KERNELS, SPIN_NS = 2, 5, 40_000
SESSIONS, LAUNCHES = 3, 30
KERNEL_SPIN_NS = 20_000
SYSTEM_THREAD_IDS = 1
"""CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM."""


def _raw(*kinds: str, has_system_thread_ids: bool = False) -> Client:
    """Direct calls, without code of the collector."""

    def prepare(card: Card) -> Callable[[], AbstractContextManager[Any]]:
        cupti = card.cupti
        cupti.subscribe()
        cupti.register()
        if has_system_thread_ids:
            cupti.must("cuptiSetThreadIdType", SYSTEM_THREAD_IDS)

        @contextmanager
        def session() -> Iterator[None]:
            for name, result in cupti.enable(*kinds).items():
                if result != SUCCESS:
                    raise CallFailedError(f"cuptiActivityEnable({name}) returned {cupti.name_of(result)}")
            yield
            cupti.flush()
            cupti.enable(*reversed(kinds), disable=True)
            cupti.flush(FORCE)

        return session

    return prepare


def _collector(*further: str) -> Client:
    """Sessions of the collector with its default kinds and further ones."""

    def prepare(card: Card) -> Callable[[], AbstractContextManager[Any]]:
        import collector
        from collector.options import KINDS

        del card
        return lambda: collector.trace(strict=True, kinds=(*KINDS, *further))

    return prepare


DEFAULT_KINDS = "collector, default kinds"
_CLIENTS: dict[str, Client] = {
    "raw, MEMCPY": _raw("CONCURRENT_KERNEL", "MEMCPY"),
    "raw, MEMCPY and MEMCPY2": _raw("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2"),
    "raw, MEMCPY2 and thread ids": _raw("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", has_system_thread_ids=True),
    DEFAULT_KINDS: _collector(),
    "collector, peer copies": _collector("peer_copies"),
}
"""Part of the question -> the client of CUPTI."""
PARTS = tuple(_CLIENTS)


def peer_copies(notes: Notes, card: Card, part: str) -> None:
    """In how many processes a launch of a graph fails."""
    notes.did(
        f"cuptiGetVersion {card.probe.get('cupti_api_version')}; {PROCESSES} processes, each with one session of "
        f"{COPIES} kernels and copies of {COPY_BYTES >> 20} MB within the device, then, outside, the capture of "
        f"{GRAPHS} graphs of {KERNELS} kernels, then {SESSIONS} sessions with {LAUNCHES} launches of each, waiting "
        "after every one"
    )
    with ThreadPoolExecutor(2 if card.is_simulated else PROCESSES) as pool:
        answers = list(
            pool.map(lambda _: ask_apart(card, "graph_after_copies", part, PROCESS_SECONDS), range(PROCESSES))
        )
    failures = Counter(str(answer.figures.get("failure", f"no answer: it {answer.end}")) for answer in answers)
    passed = failures.pop("", 0)
    notes.saw(
        f"{PROCESSES - passed} of {PROCESSES} processes failed: {counted(failures)}",
        failed=PROCESSES - passed, processes=PROCESSES, failures=dict(failures),
    )  # fmt: skip


def graph_after_copies(notes: Notes, card: Card, part: str) -> None:
    """One process of it."""
    from cuda_program import CudaError

    steps, place = _steps(card, part), ""
    try:
        while place := next(steps, ""):
            card.cuda.synchronize()
    except CudaError as error:
        notes.saw(f"{error} after {place}", failure=f"{error} after {place}")
    else:
        notes.saw("no launch failed", failure="")


def _steps(card: Card, part: str) -> Iterator[str]:
    """Run the program; yields after each launch, with its place, for a wait."""
    cuda = card.cuda
    source, target = cuda.allocate(COPY_BYTES), cuda.allocate(COPY_BYTES)
    stream = cuda.stream()
    spin, short = ctypes.c_longlong(SPIN_NS), ctypes.c_longlong(KERNEL_SPIN_NS)
    cuda.launch("spin", short)
    yield "a kernel without a session"
    session = _CLIENTS[part](card)
    with session():
        for number in range(COPIES):
            cuda.launch("spin", short)
            cuda.copy_on_device(target, source, COPY_BYTES, 0)
            yield f"copy {number}"
    executables = []
    for _ in range(GRAPHS):
        with cuda.captured(stream) as graphs:
            for _ in range(KERNELS):
                cuda.launch("spin", spin, stream=stream)
        executables.append(graphs[0])
    for again in range(SESSIONS):
        with session():
            for number in range(LAUNCHES):
                for graph, executable in enumerate(executables):
                    cuda.launch_graph(executable, 0)
                    yield f"launch {number} of graph {graph} in session {again}"
