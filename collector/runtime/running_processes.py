"""Processes of this machine."""

from __future__ import annotations

import os
import select
import time


def process_exists(process_id: int) -> bool:
    """Whether the process with this id is running, under any user.

    A zombie, which has ended but was not waited for by its parent, still has its id and counts as ended.
    """
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return not ends_within(process_id, 0)


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
