"""Questions about programs that go wrong or end: a sticky error, a kernel that does not end, and the ways to exit."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notes import Notes, counted
from raw_cupti import FORCE, NO_FORCE, Record

if TYPE_CHECKING:
    from asked_card import Card

SOURCE = Path(__file__).with_name("ending_program.c")
GOOD_LAUNCHES = 100
FAILING_PROGRAM = (
    f"{GOOD_LAUNCHES} kernels, cuCtxSynchronize, {GOOD_LAUNCHES} kernels, a kernel that writes to address 0, "
    "cuCtxSynchronize, one more launch"
)
SPIN_SECONDS = 2.5
ENDS = ("return", "exit", "_exit", "_exit later", "abort", "abort later", "unsynchronized", "running")
"""The ways in which the program ends; "later" is after 1.2 s, when the journal has been written."""
END_SECONDS = 10
LAUNCHES = 1_000


def sticky_error(notes: Notes, card: Card, part: str) -> None:
    """What is recorded around a kernel that writes to a bad address."""
    if part == "raw":
        _sticky_raw(notes, card)
    else:
        _sticky_traced(notes, card)


def _fail(card: Card) -> list[str]:
    """Launch good kernels, a bad one, and more; returns the result of each later call, or its error."""
    cuda = card.cuda
    stream = cuda.stream()
    cuda.launch_empty(GOOD_LAUNCHES, stream)
    cuda.synchronize()
    cuda.launch_empty(GOOD_LAUNCHES, stream)
    results = []
    calls: tuple[tuple[str, Callable[[], None]], ...] = (
        ("the launch of the bad kernel", lambda: cuda.launch("write_to", ctypes.c_void_p(0), stream=stream)),
        ("cuCtxSynchronize", cuda.synchronize),
        ("a launch after it", lambda: cuda.launch_empty(1, stream)),
    )
    for what, call in calls:
        try:
            call()
            results.append(f"{what}: success")
        except Exception as error:  # CudaError of the program
            results.append(f"{what}: {error}")
    return results


def _sticky_raw(notes: Notes, card: Card) -> None:
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL", "DRIVER")
    card.cuda.synchronize()
    notes.did(f"{FAILING_PROGRAM}, then cuptiActivityFlushAll(0) and (1)")
    for result in _fail(card):
        notes.saw(result)
    for flag in (NO_FORCE, FORCE):
        flushed = cupti.flush(flag)
        counts = Counter(_kernel_text(record) for record in cupti.records("CONCURRENT_KERNEL"))
        notes.saw(
            f"cuptiActivityFlushAll({flag}): {cupti.name_of(flushed)}; kernel records so far: {counted(counts)}",
            **{f"flush {flag}": flushed},
        )
    codes = Counter(record.u32(36) for record in cupti.records("DRIVER"))
    notes.saw(f"return values in DRIVER records: {counted(codes)}; dropped: {cupti.dropped()}")
    disabled = cupti.enable("CONCURRENT_KERNEL", "DRIVER", disable=True)
    notes.saw(f"cuptiActivityDisable: {', '.join(f'{kind} {cupti.name_of(code)}' for kind, code in disabled.items())}")


def _kernel_text(record: Record) -> str:
    start, end = record.u64(16), record.u64(24)
    ending = (
        "" if start and end else ", start 0, end 0" if not start and not end else ", end 0" if start else ", start 0"
    )
    return f"{record.text(104)}{ending}"


def _sticky_traced(notes: Notes, card: Card) -> None:
    import collector

    card.cuda.synchronize()
    notes.did(f"Inside collector.trace(strict=True): {FAILING_PROGRAM}")
    ended = "the block ended without an exception"
    step = collector.trace(strict=True)
    try:
        with step:
            for result in _fail(card):
                notes.saw(result)
    except collector.CollectorError as error:
        ended = f"the end of the block raised: {error}"
    notes.saw(ended)
    _saw_recording(notes, step)


def _saw_recording(notes: Notes, step: Any) -> None:
    """Note the kernels and the losses of a step that ended or was loaded."""
    recording = step.recording
    kernels = Counter(recording.kernels.names())
    invalid = Counter(recording.invalid.kernels.names())
    ledger = recording.ledger
    notes.saw(
        f"kernels kept: {counted(kernels)}; with impossible times: {counted(invalid)}; launches seen "
        f"{ledger.launches_seen}, failed {ledger.launches_failed}, without a kernel {ledger.launches_without_kernel}",
        kernels=sum(kernels.values()), invalid=sum(invalid.values()), launches=ledger.launches_seen,
    )  # fmt: skip
    notes.saw(f"losses: {'; '.join(ledger.losses()) or 'none'}", losses=ledger.losses())


def hang(notes: Notes, card: Card, part: str) -> None:
    """What a forced flush hands out while a kernel runs, and what the recorder does."""
    seconds = 1.5 if card.is_simulated else SPIN_SECONDS
    if part == "raw":
        _hang_raw(notes, card, seconds)
    else:
        _hang_recorded(notes, card, seconds)


def _spin(card: Card, seconds: float) -> None:
    card.cuda.launch("spin", ctypes.c_longlong(int(seconds * 1e9)), stream=card.cuda.stream())


def _hang_raw(notes: Notes, card: Card, seconds: float) -> None:
    cupti = card.cupti
    cupti.collect("CONCURRENT_KERNEL", "DRIVER")
    cuda = card.cuda
    notes.did(
        f"3 empty kernels that have ended, a kernel that spins for {seconds} s, and while it runs "
        "cuptiActivityFlushAll(0), (1), (1) and (1), 0.3 s apart; then cuCtxSynchronize and both again"
    )
    cuda.launch_empty(3, cuda.stream())
    cuda.synchronize()
    begin = time.monotonic()
    _spin(card, seconds)
    unfinished = 0
    for flag in (NO_FORCE, FORCE, FORCE, FORCE, None, NO_FORCE, FORCE):
        if flag is None:
            cuda.synchronize()
            continue
        time.sleep(0.3)
        at = time.monotonic()
        cupti.completed.clear()
        result = cupti.flush(flag)
        took = time.monotonic() - at
        kernels = Counter(_kernel_text(record) for record in cupti.records("CONCURRENT_KERNEL"))
        unfinished += sum(count for name, count in kernels.items() if name.startswith("spin") and "end 0" in name)
        notes.saw(
            f"at {at - begin:.1f} s cuptiActivityFlushAll({flag}): {cupti.name_of(result)} after {took * 1000:.1f} ms; "
            f"kernels {counted(kernels)}; DRIVER {len(cupti.records('DRIVER'))}"
        )
    notes.saw(f"records of the spinning kernel with end 0: {unfinished}", unfinished=unfinished)


def _hang_recorded(notes: Notes, card: Card, seconds: float) -> None:
    import collector

    card.cuda.synchronize()
    notes.did(f"collector.record(keep='30s', hang=0.5), 3 empty kernels, and a kernel that spins for {seconds} s")
    recorder = collector.record(keep="30s", folder=card.folder / "dumps", hang=0.5, strict=True)
    card.cuda.launch_empty(3, card.cuda.stream())
    card.cuda.synchronize()
    _spin(card, seconds)
    begin = time.monotonic()
    while not recorder.dumps and time.monotonic() - begin < seconds:
        time.sleep(0.05)
    notes.saw(
        f"{len(recorder.dumps)} dump(s) {time.monotonic() - begin:.1f} s after the launch", dumps=len(recorder.dumps)
    )
    card.cuda.synchronize()
    card.cuda.launch_empty(2, card.cuda.stream())
    card.cuda.synchronize()
    for dump in [*recorder.dumps, recorder.dump(reason="after it ended")]:
        if dump is not None:
            dump.wait()
            notes.saw(f"dump {dump.reason!r}:")
            _saw_recording(notes, collector.load(dump.journal))
    recorder.stop()


def endings(notes: Notes, card: Card, part: str) -> None:
    """What ``collector run`` records of programs that end in several ways."""
    programs = dict(_programs(notes, card))
    notes.did(
        f"{LAUNCHES} launches in a program that imports nothing, under `collector run`; each program ends in "
        f"{len(ENDS)} ways. It calls cuCtxGetDevice in two functions registered with atexit: before its first CUDA "
        "call, which therefore runs last, and after it"
    )
    with ThreadPoolExecutor(2 if card.is_simulated else 6) as pool:
        asked = [(label, end, program) for label, program in programs.items() for end in ENDS]
        answers = list(pool.map(lambda each: _ended(card, *each), asked))
    rows = [
        (label, end, found["status"], found["kernels"], "; ".join(found["losses"]) or "none", found["printed"])
        for (label, end, _), found in zip(asked, answers, strict=True)
    ]
    notes.table(("program", "end", "exit status", "recorded kernels", "losses", "printed"), rows)
    figures = {f"{label}, {end}": found["kernels"] for (label, end, _), found in zip(asked, answers, strict=True)}
    whole = sum(f"work {LAUNCHES}" in text for text in figures.values())
    notes.saw(f"all {LAUNCHES} launches are recorded in {whole} of {len(rows)} cases", **figures)


def _programs(notes: Notes, card: Card) -> Iterator[tuple[str, Path]]:
    """Label -> program, of each way to compile that this machine has."""
    compilers = {"driver API": (shutil.which("cc") or shutil.which("gcc"), ["-std=gnu11", "-O1"])}
    if not card.is_simulated:
        from nvcc import find_nvcc

        arch = "sm_{}{}".format(*card.cuda.capability)
        compilers["static cudart"] = (find_nvcc(), ["-x", "cu", "-cudart", "static", "-arch", arch])
    for label, (compiler, options) in compilers.items():
        if compiler is None:
            notes.saw(f"{label}: there is no compiler")
            continue
        program = card.folder / label.replace(" ", "_")
        command = [compiler, *options, "-o", str(program), str(SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            notes.saw(f"{label}: {SOURCE.name} cannot be compiled: {done.stderr.strip()[-300:]}")
        else:
            yield label, program


def _ended(card: Card, label: str, end: str, program: Path) -> dict[str, Any]:
    """Run one program to its end; its exit status, the recorded kernels and the losses."""
    import collector

    trace = card.folder / f"{program.name}-{end.replace(' ', '_')}.gpurec"
    command = [sys.executable, "-m", "collector", "run", "-o", str(trace), "--", str(program), end, str(LAUNCHES)]
    found: dict[str, Any] = {"kernels": "no trace", "losses": [], "printed": ""}
    try:
        # Away from the checkout, whose `collector` folder has no extension.
        done = subprocess.run(
            command, cwd=card.folder, capture_output=True, text=True, timeout=END_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return found | {"status": f"none within {END_SECONDS} s"}
    found["status"] = done.returncode
    found["printed"] = "; ".join(line for line in done.stdout.splitlines() if line.startswith("program: "))
    if not trace.exists():
        return found | {"losses": done.stderr.strip().splitlines()[-2:]}
    with contextlib.suppress(Exception):
        step = collector.load(trace)
        kernels = Counter(step.recording.kernels.names())
        found["kernels"] = ", ".join(f"{name} {count}" for name, count in kernels.items()) or "none"
        found["losses"] = step.ledger.losses()
    return found
