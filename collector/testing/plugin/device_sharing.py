"""Workers of pytest-xdist share the devices: a test begins when its devices have room for its declared memory.

The workers' claims are in one file, changed under a lock. A claim waits until the earlier claims on its devices leave
enough memory for it: first come, first served, so that small tests cannot delay a large one for ever. A test that
declares no memory claims its worker's share. Claims of dead processes are void.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PAUSE_S = 0.02


@dataclass(frozen=True)
class Claim:
    """The memory that one test needs on some devices."""

    process: int
    num_bytes: Mapping[str, int]
    """Device name (any text that all workers agree on) -> bytes."""


def granted(claims: Sequence[Claim], index: int, total_bytes: Mapping[str, int]) -> bool:
    """Whether the claim at ``index``, in order of arrival, has room beside the claims before it. Pure.

    Args:
        claims: all claims, the oldest first.
        index: the index of the claim.
        total_bytes: the devices' memory.
    """
    for device, wanted in claims[index].num_bytes.items():
        taken = sum(claim.num_bytes.get(device, 0) for claim in claims[:index])
        if taken and taken + wanted > total_bytes[device]:  # a claim alone on a device is always granted
            return False
    return True


class Sharing:
    """The claims of all workers of one test run on one machine."""

    def __init__(self, file: Path, total_bytes: Mapping[str, int]) -> None:
        """Store the claims in ``file``. ``total_bytes``: the devices' memory by name."""
        self._file = file
        self._total_bytes = dict(total_bytes)

    def claim(self, num_bytes: Mapping[str, int]) -> None:
        """Wait until each device has room for its ``num_bytes``; `release` returns the memory."""
        mine = Claim(os.getpid(), dict(num_bytes))
        with self._claims() as claims:
            claims.append(mine)
        while True:
            with self._claims() as claims:
                position = next(i for i, claim in enumerate(claims) if claim.process == mine.process)
                if granted(claims, position, self._total_bytes):
                    return
            time.sleep(_PAUSE_S)

    def release(self) -> None:
        """Return the memory that this process claimed."""
        with self._claims() as claims:
            claims[:] = [claim for claim in claims if claim.process != os.getpid()]

    @contextlib.contextmanager
    def _claims(self) -> Iterator[list[Claim]]:
        """The claims of living processes; the block may change them."""
        with self._file.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            rows: list[dict[str, Any]] = json.loads(file.read() or "[]")
            claims = [Claim(row["process"], row["num_bytes"]) for row in rows if _alive(row["process"])]
            try:
                yield claims
            finally:
                file.seek(0)
                file.truncate()
                file.write(json.dumps([{"process": c.process, "num_bytes": dict(c.num_bytes)} for c in claims]))
                file.flush()
                fcntl.flock(file, fcntl.LOCK_UN)  # closing would leave the lock to a child forked meanwhile


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"  # a dead worker whose parent has not waited for it yet


def device_names(visible: str | None, count: int) -> list[str]:
    """Names that are equal in all workers: the entries of CUDA_VISIBLE_DEVICES, or the devices' numbers."""
    names = [name.strip() for name in (visible or "").split(",") if name.strip()]
    return names or [str(number) for number in range(count)]


def rotated(names: Sequence[str], worker: int) -> list[str]:
    """The devices in the order in which a worker sees them: each worker has another first device."""
    start = worker % len(names) if names else 0
    return [*names[start:], *names[:start]]
