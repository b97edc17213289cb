"""The records left of a step whose program is killed during it (SIGKILL): the share of its launches in files.

The program launches empty kernels until it is killed, for two seconds at least, and writes the number of launches that
have ended; records in the collector's memory are lost. Each collector and each program runs in a separate process,
alternating in random order.
"""

from __future__ import annotations

import math
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _traces
from _collectors import COLLECTORS, JOURNAL_SUFFIX, KERNEL, Collector
from _program import Program, collectors_but, main, program_for

FIGURES = {"recoverable": "of the launches"}
BATCH = 1000
VICTIM = "--victim"
SECONDS = 60
LEAST_SECONDS = 2
"""The least time from the first launches to the end: files that are written every half second have records by then."""
_COUNT = struct.Struct("<Q")


class Killed(Collector):
    """A collector that records a killed program: only its name and its requirements are used here."""

    def __init__(self, name: str) -> None:
        self.name = name
        of = COLLECTORS[name]()
        self.records, self.needs, self.on_simulator = of.records, of.needs, of.on_simulator


def measure(killed: Collector, program: Program, launches: int) -> dict[str, Any]:
    """Start the victim, kill it after that many launches or later, and examine the files that it left."""
    assert isinstance(killed, Killed)
    with tempfile.TemporaryDirectory() as folder:
        left = Path(folder) / "left"
        left.mkdir()
        progress = Path(folder) / "progress"
        progress.write_bytes(_COUNT.pack(0))
        launched, trouble = kill(killed.name, left, progress, launches)
        if trouble:
            return {"recoverable": trouble}
        found, files = recovered(left)
    return {
        "recoverable": min(found / launched, 1) if found else "it left nothing",
        "recoverable: launched": launched,
        "recoverable: in files": found,
        "recoverable: files": ", ".join(files) or "none",
    }


def kill(name: str, left: Path, progress: Path, launches: int) -> tuple[int, str]:
    """Run the victim until it has made ``launches``, and for `LEAST_SECONDS`.

    Returns:
        The number of launches that had ended by then, and any error.
    """
    command = [sys.executable, __file__, VICTIM, name, str(progress)]
    environment = os.environ | {"TMPDIR": str(left)}
    victim = subprocess.Popen(command, env=environment, cwd=left, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + SECONDS
    ends = math.inf
    while (count := _COUNT.unpack(progress.read_bytes())[0]) < launches or time.monotonic() < ends:
        if count and ends == math.inf:
            ends = time.monotonic() + LEAST_SECONDS
        if victim.poll() is not None or time.monotonic() > until:
            victim.kill()
            message = victim.communicate()[1].strip().splitlines()
            return 0, f"its program ended by itself, or hung: {message[-1] if message else 'without a word'}"
        time.sleep(0.001)
    # Read before the signal: launches between the read and the signal are not counted as launched.
    (launched,) = _COUNT.unpack(progress.read_bytes())
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    return launched, ""


def recovered(left: Path) -> tuple[int, list[str]]:
    """The number of kernels in the files in ``left``, and the names of these files."""
    import collector

    found, names = 0, []
    for path in sorted(path for path in left.rglob("*") if path.is_file()):
        names.append(f"{path.name}, {path.stat().st_size} bytes")
        if path.suffix == JOURNAL_SUFFIX:
            recording = collector.load(path).recording
            found += 0 if recording is None else len(recording.kernels)
        else:
            found += _traces.facts(path, KERNEL)[0]
    return found, names


def be_killed(name: str, progress: Path) -> None:
    """Launch until the process is killed; write the number of launches that have ended to ``progress``."""
    collector = COLLECTORS[name]()
    program = program_for(collector)
    with progress.open("r+b") as file, mmap.mmap(file.fileno(), 0) as count:
        collector.start(program)
        launched = 0
        while True:
            program.launch(BATCH)
            launched += BATCH
            count[:] = _COUNT.pack(launched)


if __name__ == "__main__":
    if sys.argv[1:2] == [VICTIM]:
        be_killed(sys.argv[2], Path(sys.argv[3]))
    else:
        recording = {name: (lambda name=name: Killed(name)) for name in collectors_but("none", "floor")}
        main(__file__, __doc__, FIGURES, measure, recording, launches=200_000, rounds=3)
