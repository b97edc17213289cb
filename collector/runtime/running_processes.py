"""Processes of this machine."""

from __future__ import annotations

import contextlib
import os
import re
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def process_exists(process_id: int, pid_namespace: str = "") -> bool:
    """Whether the process with this id is running, under any user.

    A zombie, which has ended but was not waited for by its parent, still has its id and counts as ended.

    Args:
        process_id: the number of the process.
        pid_namespace: the namespace in which it has this number, as ``/proc`` names it; ``""``: that of this process. A
            process of another namespace that cannot be seen from here counts as ended.
    """
    if pid_namespace not in ("", _pid_namespace("self")):
        return any(process_exists(number) for number in _numbers_here(process_id, pid_namespace))
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return not ends_within(process_id, 0)


def _numbers_here(process_id: int, pid_namespace: str) -> Iterator[int]:
    """The number that a process of a namespace below this one has here, if it is visible."""
    for folder in Path("/proc").glob("[0-9]*"):
        if _pid_namespace(folder.name) != pid_namespace:
            continue
        with contextlib.suppress(OSError):  # it has ended meanwhile
            numbers = re.search(r"(?m)^NSpid:(.*)$", (folder / "status").read_text("utf-8", errors="replace"))
            if numbers is not None and numbers[1].split()[-1:] == [str(process_id)]:
                yield int(folder.name)


def _pid_namespace(process: str) -> str:
    """The namespace of a process as ``/proc`` names it; ``""`` if it cannot be seen."""
    try:
        return os.fspath(Path("/proc", process, "ns", "pid").readlink())
    except OSError:
        return ""


def ends_within(process_id: int, seconds: float) -> bool:
    """Wait until a process has ended, at most for this time; return whether it has ended.

    Without pidfd_open (before Linux 5.3, in a container that forbids it, in a Python built for an older Linux) it waits
    for the whole time and returns False.
    """
    deadline = time.monotonic() + seconds
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    except (OSError, AttributeError):
        time.sleep(seconds)
        return False
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        while True:
            left = min(deadline - time.monotonic(), _LONGEST_POLL_S)
            if ended.poll(max(0.0, left * 1000)):
                return True
            if time.monotonic() >= deadline:
                return False
    finally:
        os.close(descriptor)


_LONGEST_POLL_S = 86_400.0
"""Its milliseconds fit into a C ``int``."""
