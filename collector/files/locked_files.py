"""Descriptors of files that are locked by `fcntl.flock`."""

from __future__ import annotations

import contextlib
import fcntl
import os


def close_locked(number: int) -> None:
    """Unlock and close a file. Closing alone would leave the lock to a child that was forked meanwhile."""
    with contextlib.suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_UN)
    os.close(number)
