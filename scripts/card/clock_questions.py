"""Questions about the clock of records, also in a process in which torch.profiler has run."""

from __future__ import annotations

import ctypes
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from notes import Notes, counted
from raw_cupti import FORCE

if TYPE_CHECKING:
    from asked_card import Card

CLOCK_SECONDS = 5
RATE_SECONDS = 1.0
SPIN_NS = 100_000_000


def clocks(notes: Notes, card: Card, part: str) -> None:
    """Compare CUPTI's clock with others."""
    PARTS[part](notes, card)


def _alone(notes: Notes, card: Card) -> None:
    """Compare cuptiGetTimestamp with the system's clocks, and find the resolution of kernels' time stamps."""
    seconds = 0.5 if card.is_simulated else CLOCK_SECONDS
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL")
    cuda = card.cuda
    stream = cuda.stream()
    cuda.launch_empty(2_000, stream)
    cuda.synchronize()
    notes.did(f"cuptiGetTimestamp between two reads of each clock, best of 200, twice with {seconds} s between")
    first, begin = cupti.timestamps(), time.monotonic()
    time.sleep(seconds)
    later, passed = cupti.timestamps(), time.monotonic() - begin
    for name, (ahead, width) in later.items():
        drift = ahead - first[name][0]
        notes.saw(
            f"ahead of {name} by {first[name][0]} ns (two reads {first[name][1]} ns apart), {passed:.1f} s later by "
            f"{ahead} ns ({width} ns): {drift:+} ns, {drift / passed / 1000:+.3f} ppm",
            **{f"drift_{name}": drift},
        )
    cupti.flush(FORCE)
    stamps = [(record.u64(16), record.u64(24)) for record in cupti.records("CONCURRENT_KERNEL")]
    starts = sorted(start for start, _ in stamps)
    durations = sorted(end - start for start, end in stamps)
    if len(starts) < 2:
        notes.saw(f"only {len(starts)} kernel records")
        return
    steps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    figures: dict[str, Any] = {
        "kernels": len(stamps),
        "gcd_of_differences": math.gcd(*steps),
        "gcd_of_durations": math.gcd(*durations),
        "gcd_of_starts": math.gcd(*starts),
    }
    notes.saw(
        f"{len(stamps)} kernels: greatest common divisor of the starts {figures['gcd_of_starts']}, of their "
        f"differences {figures['gcd_of_differences']}, of the durations {figures['gcd_of_durations']} ns; durations "
        f"{durations[0]} to {durations[-1]} ns, median {durations[len(durations) // 2]} ns; lowest digits of starts: "
        f"{counted(dict(Counter(start % 32 for start in starts).most_common(5)))} (modulo 32)",
        **figures,
    )


def _after_profiler(notes: Notes, card: Card) -> None:
    """The rate of CUPTI's clock, durations of ours, and the clocks of records, after torch.profiler has run once.

    Kineto registers a function for time stamps, cuptiActivityRegisterTimestampCallback, which reads the processor's
    counter of ticks. Nothing takes it back.
    """
    if not _profiled(notes, card):
        return
    cupti, cuda = card.cupti, card.cuda
    cuda.launch_empty(1, cuda.stream())
    cuda.synchronize()
    first = cupti.timestamp(), time.time_ns()
    time.sleep(RATE_SECONDS)
    later = cupti.timestamp(), time.time_ns()
    rate = (later[0] - first[0]) / (later[1] - first[1])
    notes.saw(
        f"cuptiGetTimestamp is ahead of CLOCK_REALTIME by {first[0] - first[1]} ns, and its rate is {rate:.6f} of it",
        rate=rate,
    )
    _our_spin(notes, card)
    _raw_spin(notes, card)


def _profiled(notes: Notes, card: Card) -> bool:
    """Run torch.profiler around three kernels; returns whether the question can go on."""
    if card.is_simulated:
        notes.did("Without torch.profiler, which needs a card")
        return True
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError as error:
        notes.saw(f"not asked: {error}")
        return False
    x = torch.ones(1024, device="cuda")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(3):
            x.add_(1)
        torch.cuda.synchronize()
    kernels = sum("DeviceType.CUDA" in str(event.device_type) for event in profiler.events())
    notes.did(f"torch.profiler of torch {torch.__version__} around three kernels, of which it has {kernels}")
    return True


def _spin(card: Card) -> float:
    """A kernel of 0.1 s; returns its nanoseconds by CUDA events."""
    cuda = card.cuda
    stream, duration = cuda.stream(), ctypes.c_longlong(SPIN_NS)
    elapsed = 1e6 * cuda.timed_ms(lambda: cuda.launch("spin", duration, stream=stream), stream)
    cuda.synchronize()
    return elapsed


def _our_spin(notes: Notes, card: Card) -> None:
    import collector

    with collector.trace(strict=True) as step:
        events = _spin(card)
    recording = step.recording
    durations = [
        end - start
        for start, end in zip(recording.kernels.start_ns.tolist(), recording.kernels.end_ns.tolist(), strict=True)
    ]
    apart = {
        name: len(getattr(recording, name).kernels) + len(getattr(recording, name).api_calls)
        for name in ("early", "late", "invalid")
    }
    notes.saw(
        f"a kernel of {SPIN_NS / 1e6:.0f} ms inside collector.trace: {durations} ns, by CUDA events {events:.0f} ns; "
        f"API calls {len(recording.api_calls)}; kept apart: {counted(apart)}; "
        f"losses: {'; '.join(step.ledger.losses()) or 'none'}",
        durations=durations, events=events, kept_apart=apart,
    )  # fmt: skip


def _raw_spin(notes: Notes, card: Card) -> None:
    """The same through direct calls: the clock in which each record's time lies."""
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL", "DRIVER")
    begin = cupti.timestamp(), time.time_ns()
    events = _spin(card)
    end = cupti.timestamp(), time.time_ns()
    cupti.flush()
    cupti.flush(FORCE)
    cupti.enable("CONCURRENT_KERNEL", "DRIVER", disable=True)
    places: Counter[str] = Counter()
    durations, examples = [], {}
    for record in cupti.records("CONCURRENT_KERNEL", "DRIVER"):
        kind, at = ("kernels", 16) if record.kind == 10 else ("calls", 8)
        start, stop = record.u64(at), record.u64(at + 8)
        clock = "neither"
        for name, since, until in zip(("cuptiGetTimestamp", "CLOCK_REALTIME"), begin, end, strict=True):
            if since <= start <= until:
                clock = name
                break
        places[f"{kind} in {clock}"] += 1
        examples.setdefault(f"{kind} in {clock}", f"{start} to {stop}")
        if kind == "kernels":
            durations.append(stop - start)
    notes.saw(
        f"a kernel of {SPIN_NS / 1e6:.0f} ms with direct calls: {durations} ns, by CUDA events {events:.0f} ns; "
        f"records by the clock in which they start (a start in both counts for the first): {counted(places)}",
        raw_durations=durations, raw_events=events, places=dict(places),
    )  # fmt: skip
    windows = (f"cuptiGetTimestamp {begin[0]} to {end[0]}", f"CLOCK_REALTIME {begin[1]} to {end[1]}")
    notes.saw(f"{'; '.join(windows)}; for example {'; '.join(f'{name}: {times}' for name, times in examples.items())}")


PARTS: dict[str, Callable[[Notes, Card], None]] = {"alone": _alone, "after torch.profiler": _after_profiler}
"""Part of the question -> its function."""
