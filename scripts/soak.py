"""Record two programs for a long time, with dumps, starts and stops from outside; fail if anything grows or is lost.

One program has a flight recorder of its own, the other is recorded by `collector attach`. Both number their launches,
so that every recording is held against what was launched: each launch of a part is in it once, whoever cut it. Memory,
file descriptors, threads and disk of the programs are sampled throughout. Runs on the simulated GPU.

    soak.py [--seconds=N] [--seed=N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import collector
from collector.errors import CollectorError
from collector.launching.attached_process import AttachedProcess
from collector.launching.shared_recording import copied_segments
from collector.recording.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

RING_BYTES = 4 << 20
LEAST_SAMPLES = 8
MOST_UNFINISHED = 200
"""Launches that may be under way when a recording begins or stops."""
MEMORY_SLACK_BYTES = 12 << 20
"""What the last quarter of a run may take beyond the second: allocators keep what they had once."""
RING_SLACK = 2.0
"""The disk of a ring beside its limit: the segment that is being written, and one that is still linked."""

PROGRAM = """
import sys, threading, collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
collector.listen(strict=True)
if sys.argv[1] == "record":
    recorder = collector.record(keep=sys.argv[3], folder=sys.argv[2], hang=None, strict=True)
ended = threading.Event()
def launch():
    number = 0
    while not ended.is_set():
        with collector.annotate("step"), collector.annotate("layer"):
            for _ in range(20):
                number += 1
                gpu.launch("numbered", grid=(number, 1, 1))
        gpu.synchronize()
thread = threading.Thread(target=launch)
thread.start()
print("ready", flush=True)
sys.stdin.read()
ended.set()
thread.join()
"""


@dataclass(frozen=True)
class Sample:
    """What a process takes at one time."""

    memory_bytes: int
    descriptors: int
    threads: int
    disk_bytes: int


@dataclass
class Soaked:
    """One program, with what was seen of it."""

    mode: str
    child: subprocess.Popen[str]
    folder: Path
    samples: list[Sample] = field(default_factory=list)
    recordings: int = 0
    launches: int = 0

    @property
    def process(self) -> AttachedProcess:
        """For requests."""
        return AttachedProcess(self.child.pid)

    def sample(self) -> None:
        """Note what it takes now."""
        status = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines()
            if ":" in line
        )
        disk = 0
        for file in self.folder.rglob("*.journal"):
            with contextlib.suppress(FileNotFoundError):
                disk += file.stat().st_size if file.is_file() else 0
        self.samples.append(
            Sample(
                int(status["VmRSS"].split()[0]) << 10,
                sum(1 for _ in Path(f"/proc/{self.child.pid}/fd").iterdir()),
                int(status["Threads"]),
                disk,
            )
        )


def check(recording: Recording, *, is_attached: bool = False) -> int:
    """The launches of a part of a recording, each of which is in it once. Raises SystemExit otherwise.

    ``is_attached``: it began, and perhaps ended, while the program launched. The launches that were under way then may
    be early, unfinished, late or not handed over, which the ledger has to say.
    """
    parts = recording.parts if is_attached else recording.parts[:1]
    numbers = np.sort(np.concatenate([part.kernels["grid_x"].astype(np.int64) for part in parts]))
    ledger = recording.ledger
    if not len(numbers):
        if ledger.launches_seen > MOST_UNFINISHED:
            raise SystemExit("a recording has calls, and no kernel")
        return 0
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    if is_attached and ledger.losses():
        gaps = gaps[(gaps >= MOST_UNFINISHED) & (gaps < len(numbers) - MOST_UNFINISHED)]
    uneven = ledger.records_dropped + ledger.rows_missing
    if not is_attached:
        uneven += ledger.kernels_without_launch + ledger.early + ledger.late + ledger.invalid_timestamps
    if len(gaps) or uneven:
        raise SystemExit(
            f"launches {numbers[0]} to {numbers[-1]}: some are missing, after {numbers[gaps][:3].tolist()}, or the "
            f"ledger is not even: {ledger.losses()}"
        )
    return len(numbers)


def check_flat(samples: list[Sample], limit_bytes: int) -> None:
    """Raise SystemExit if the last quarter of the samples is above the second one."""
    if len(samples) < LEAST_SAMPLES:
        raise SystemExit(f"only {len(samples)} samples: let it run for longer")
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    grown = statistics.median(s.memory_bytes for s in after) - statistics.median(s.memory_bytes for s in before)
    if grown > MEMORY_SLACK_BYTES:
        raise SystemExit(f"memory has grown by {grown / 1e6:.1f} MB")
    for name in ("descriptors", "threads"):
        first, last = (statistics.median(getattr(s, name) for s in part) for part in (before, after))
        if last > first:
            raise SystemExit(f"{name}: {first:g} have become {last:g}")
    if (most := max(s.disk_bytes for s in samples)) > limit_bytes * RING_SLACK:
        raise SystemExit(f"the ring took {most / 1e6:.1f} MB of the disk, its limit is {limit_bytes / 1e6:.1f} MB")


def dump(program: Soaked, scratch: Path) -> None:
    """Copy the closed segments, and check them."""
    folder = scratch / "dump"
    try:
        recording = Recording.load(copied_segments(program.process.cut(), folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    program.launches += check(recording, is_attached=program.mode == "attach")
    program.recordings += 1


def record(program: Soaked, scratch: Path, chance: random.Random) -> None:
    """Start, dump some times, stop, and check the whole."""
    journal = program.process.start(total_bytes=RING_BYTES)
    for _ in range(chance.randint(0, 3)):
        time.sleep(chance.random() * 0.5)
        with contextlib.suppress(CollectorError):  # there may be no record yet
            dump(program, scratch)
    time.sleep(0.05 + chance.random() * 0.5)
    program.sample()
    stopped, trouble = program.process.stop()
    if trouble or stopped != journal:
        raise SystemExit(f"the recording {journal} broke off: {trouble}")
    recording = collector.load(journal).recording
    shutil.rmtree(journal.parent)
    program.launches += check(recording, is_attached=True)
    program.recordings += 1


@contextlib.contextmanager
def programs(scratch: Path) -> Iterator[list[Soaked]]:
    """Both programs, which have to end well."""
    started = []
    try:
        for mode in ("record", "attach"):
            folder = scratch / mode
            folder.mkdir()
            child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, mode, str(folder), f"{RING_BYTES >> 20}MB"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": str(folder)},
            )
            started.append(Soaked(mode, child, folder))
        for program in started:
            assert program.child.stdout is not None
            if program.child.stdout.readline() != "ready\n":
                raise SystemExit(f"the program that is to {program.mode} did not begin")
        yield started
        for program in started:
            program.child.communicate(timeout=60)
            if program.child.returncode != 0:
                raise SystemExit(f"the program that is to {program.mode} ended with {program.child.returncode}")
    finally:
        for program in started:
            program.child.kill()
            program.child.wait()


def soak(seconds: float, seed: int) -> str:
    """Run; return a line of figures. Raises SystemExit at the first thing that is wrong."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-") as made, programs(Path(made)) as (recorder, attached):
        scratch, until = Path(made), time.monotonic() + seconds
        time.sleep(1)
        while time.monotonic() < until or len(recorder.samples) < LEAST_SAMPLES:
            record(attached, scratch, chance)
            dump(recorder, scratch)
            recorder.sample()
        for program in (recorder, attached):
            try:
                check_flat(program.samples, RING_BYTES)
            except SystemExit as error:
                raise SystemExit(f"the program that is to {program.mode}: {error}") from None
    last, launches = recorder.samples[-1], recorder.launches + attached.launches
    return (
        f"{recorder.recordings + attached.recordings} recordings of {launches:,} launches, "
        f"none missing; the recorder's program takes {last.memory_bytes / 1e6:.0f} MB, {last.descriptors} files, "
        f"{last.threads} threads"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(soak(options.seconds, options.seed))
