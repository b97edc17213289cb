"""Processes of this machine."""

from __future__ import annotations

import os
import select
import time


def process_exists(process_id: int) -> bool:
    """Whether a process of this number has not ended, whoever its user is.

    One that has ended, and whose parent does not know it yet, still has its number.
    """
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return not ends_within(process_id, 0)


def ends_within(process_id: int, seconds: float) -> bool:
    """Wait until a process has ended, or for so long; return whether it has.

    Where that is not told (before Linux 5.3, in a container that forbids it, in a Python built for an older Linux), it
    waits for the whole time.
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
