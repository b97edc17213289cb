"""Workers of pytest-xdist share the devices: a test begins when its devices have room for what it declared.

The workers' claims lie in one file, changed under a lock. A claim waits until the claims before it on its devices leave
enough memory for its own: first come, first served, so that a large test is not kept waiting by small ones. A test that
declares no memory claims its worker's share. Claims of a process that died are void.
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
    """Memory that one test wants on some devices."""

    process: int
    num_bytes: Mapping[str, int]
    """Device name (any text that all workers agree on) -> bytes."""


def granted(claims: Sequence[Claim], index: int, total_bytes: Mapping[str, int]) -> bool:
    """Whether the claim at ``index``, in order of arrival, has room beside those before it. Pure.

    Args:
        claims: all claims, the oldest first.
        index: the claim asked about.
        total_bytes: the devices' memory.
    """
    for device, wanted in claims[index].num_bytes.items():
        taken = sum(claim.num_bytes.get(device, 0) for claim in claims[:index])
        if taken and taken + wanted > total_bytes[device]:  # alone on a device it fits whatever it declares
            return False
    return True


class Sharing:
    """The claims of all workers of one test run on one machine."""

    def __init__(self, file: Path, total_bytes: Mapping[str, int]) -> None:
        """Keep the claims in ``file``. ``total_bytes``: the devices' memory by their names."""
        self._file = file
        self._total_bytes = dict(total_bytes)

    def claim(self, num_bytes: Mapping[str, int]) -> None:
        """Wait until the devices have room for ``num_bytes`` each; `release` gives it back."""
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
        """Give back what this process claimed."""
        with self._claims() as claims:
            claims[:] = [claim for claim in claims if claim.process != os.getpid()]

    @contextlib.contextmanager
    def _claims(self) -> Iterator[list[Claim]]:
        """The claims of living processes, to be changed in the block."""
        with self._file.open("a+") as file:
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


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"  # a dead worker that nobody has waited for yet


def device_names(visible: str | None, count: int) -> list[str]:
    """Names that all workers agree on: the entries of CUDA_VISIBLE_DEVICES, or the devices' numbers."""
    names = [name.strip() for name in (visible or "").split(",") if name.strip()]
    return names or [str(number) for number in range(count)]


def rotated(names: Sequence[str], worker: int) -> list[str]:
    """The devices in the order in which a worker sees them: each worker's first device is another one."""
    start = worker % len(names) if names else 0
    return [*names[start:], *names[:start]]
