"""Descriptors of files that are locked by `fcntl.flock`."""

from __future__ import annotations

import contextlib
import fcntl


def unlock(number: int) -> None:
    """Unlock a file that is about to be closed: closing alone leaves the lock to a child that was forked meanwhile.

    The owner forgets the descriptor after this call and before it closes it. A Ctrl-C in between then leaves no lock,
    which others would wait for, and no second close, which would close a file of the program.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_UN)
