"""The question which records cuptiActivityFlushAll returns while a kernel runs, and after one has failed."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from notes import Notes, counted
from raw_cupti import FORCE, NO_FORCE, RawCupti, Record

if TYPE_CHECKING:
    from asked_card import Card

SPIN_SECONDS = 2.0
BEFORE, AFTER = 5, 3
"""Launches before the long kernel's, and after it on another stream."""
OTHER_THREADS = 20
"""Launches of another thread."""


def flush(notes: Notes, card: Card, part: str) -> None:
    """What comes back, and when."""
    PARTS[part](notes, card)


def _prepared(card: Card) -> RawCupti:
    """Collect kernels and calls, with nothing of the preparation in the records."""
    cupti, cuda = card.cupti, card.cuda
    cupti.collect("CONCURRENT_KERNEL", "DRIVER")
    cuda.launch_empty(3, cuda.stream())
    cuda.synchronize()
    cupti.flush(FORCE)
    cupti.completed.clear()
    return cupti


def _spin(card: Card) -> float:
    """Launch a long kernel; returns its seconds."""
    seconds = 1.0 if card.is_simulated else SPIN_SECONDS
    card.cuda.launch("spin", ctypes.c_longlong(int(seconds * 1e9)), stream=card.cuda.stream())
    return seconds


def _one_thread(notes: Notes, card: Card) -> None:
    """The records of the launching thread, from before and after the launch."""
    cupti, cuda = _prepared(card), card.cuda
    streams = [cuda.stream() for _ in range(2)]
    requested = cupti.requested_by.total()
    cuda.launch_empty(BEFORE, streams[0])
    time.sleep(0.1)  # until they have ended
    requested_before = cupti.requested_by.total() - requested
    launched = cupti.timestamp()
    seconds = _spin(card)
    time.sleep(0.1)
    requested_by_launch = cupti.requested_by.total() - requested - requested_before
    cuda.launch_empty(AFTER, streams[1])
    time.sleep(0.1)
    notes.did(
        f"{BEFORE} empty kernels, a kernel that spins for {seconds} s, {AFTER} empty kernels on another stream, and "
        "while it runs cuptiActivityFlushAll(0), (0) and (1); then cuCtxSynchronize and (0), (1)"
    )
    notes.saw(
        f"buffers requested: {requested_before} by the launches before, {requested_by_launch} by the long kernel's "
        "launch before it ends",
        requested_by_launch=requested_by_launch,
    )  # fmt: skip
    rows = []
    for when, flag in (("it runs", NO_FORCE), ("it runs", NO_FORCE), ("it runs", FORCE), ("", None),
                       ("it has ended", NO_FORCE), ("it has ended", FORCE)):  # fmt: skip
        if flag is None:
            cuda.synchronize()
            continue
        cupti.completed.clear()
        held, requested = ", ".join(map(str, cupti.bytes_held())) or "none", cupti.requested_by.total()
        cupti.flush(flag)
        requested = cupti.requested_by.total() - requested
        launches = [record for record in cupti.records("DRIVER") if "Launch" in cupti.callback_name(record)]
        before = sum(record.u64(8) < launched for record in launches)
        kernels = Counter(_kernel_text(record) for record in cupti.records("CONCURRENT_KERNEL"))
        calls = before, len(launches) - before
        rows.append((when, f"FlushAll({flag})", *calls, counted(kernels), len(cupti.completed), requested, held))
        time.sleep(0.1)
    notes.table(
        (
            "while", "call", f"calls of the {BEFORE} launches before", f"of the {AFTER + 1} after", "kernels",
            "buffers", "requested by it", "bytes in those that had not come back before",
        ),
        rows,
    )  # fmt: skip
    notes.saw(
        f"the first FlushAll(0) returned {rows[0][2]} of {BEFORE} calls before the launch, {rows[0][3]} of {AFTER + 1} "
        "from it on",
        calls_before=rows[0][2], calls_after=rows[0][3],
    )  # fmt: skip


def _thread_ids() -> tuple[int, int]:
    """This thread's ids: the kernel's, and the C library's in the width of a record."""
    return threading.get_native_id(), threading.get_ident() & 0xFFFFFFFF


def _kernel_text(record: Record) -> str:
    return record.text(104) + ("" if record.u64(24) else ", end 0")


def _two_threads(notes: Notes, card: Card) -> None:
    """The records of a thread that goes on to live, while a kernel of another one runs."""
    cupti, cuda = _prepared(card), card.cuda
    stream = cuda.stream()
    has_launched, may_end = threading.Event(), threading.Event()
    ids = dict.fromkeys(_thread_ids(), "the thread that flushes")

    def work() -> None:
        ids.update(dict.fromkeys(_thread_ids(), "the other thread"))
        cuda.use()
        cuda.launch_empty(OTHER_THREADS, stream)
        has_launched.set()
        may_end.wait(10)

    requested = Counter(cupti.requested_by)
    seconds = _spin(card)
    thread = threading.Thread(target=work)
    thread.start()
    has_launched.wait(10)
    time.sleep(0.1)
    asked = Counter({ids.get(thread_id, "a third thread"): count
                     for thread_id, count in (cupti.requested_by - requested).items()})  # fmt: skip
    notes.did(
        f"A kernel that spins for {seconds} s; meanwhile another thread makes {OTHER_THREADS} launches and waits; "
        "cuptiActivityFlushAll from the first thread"
    )
    notes.saw(f"buffers requested meanwhile: {counted(asked)}", requested=dict(asked))
    figures = {}
    for flag in (NO_FORCE, FORCE):
        cupti.completed.clear()
        cupti.flush(flag)
        calls = Counter(ids.get(record.u32(28), "a third thread") for record in cupti.records("DRIVER"))
        kernels = Counter(_kernel_text(record) for record in cupti.records("CONCURRENT_KERNEL"))
        figures[f"calls of the other thread, flush {flag}"] = calls["the other thread"]
        notes.saw(f"FlushAll({flag}) while it runs: calls {counted(calls)}; kernels {counted(kernels)}")
    may_end.set()
    thread.join()
    cuda.synchronize()
    cupti.completed.clear()
    cupti.flush(FORCE)
    notes.saw(f"FlushAll(1) after its end: {counted(cupti.counts())}", **figures)


def _failed_kernel(notes: Notes, card: Card) -> None:
    """The buffer of a kernel that fails with error 700."""
    cupti, cuda = _prepared(card), card.cuda
    stream = cuda.stream()
    cuda.launch_empty(BEFORE, stream)
    cuda.synchronize()
    results = []
    for call in (lambda: cuda.launch("write_to", ctypes.c_void_p(0), stream=stream), cuda.synchronize):
        try:
            call()
            results.append("success")
        except Exception as error:  # CudaError of the program
            results.append(str(error))
    notes.did(
        f"{BEFORE} empty kernels and cuCtxSynchronize; a kernel that writes to address 0: {results[0]}; "
        f"cuCtxSynchronize: {results[1]}"
    )
    figures = {}
    for flag in (NO_FORCE, NO_FORCE, FORCE):
        result = cupti.flush(flag)
        kernels = Counter(_kernel_text(record) for record in cupti.records("CONCURRENT_KERNEL"))
        figures[f"outstanding after flush {flag}"] = cupti.outstanding
        notes.saw(
            f"FlushAll({flag}): {cupti.name_of(result)}; so far {len(cupti.completed)} buffers came back, "
            f"{cupti.outstanding} did not; kernels {counted(kernels)}; calls {len(cupti.records('DRIVER'))}"
        )
        time.sleep(0.1)
    notes.saw("the buffers that did not come back are those of the failed kernel, or still in use", **figures)


PARTS: dict[str, Callable[[Notes, Card], None]] = {
    "one thread": _one_thread,
    "two threads": _two_threads,
    "a failed kernel": _failed_kernel,
}
"""Part of the question -> its function."""
