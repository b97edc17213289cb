"""The lock of a folder in which processes that end together choose names."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from collector.files.locked_files import unlock

_LONGEST_WAIT_S = 30.0
_PAUSE_S = 0.005


class FolderLock:
    """While it is held, no other process chooses a name and writes a file in a folder, if the file system can tell.

    Without it, processes that end together would all find that a name is free. The wait ends after `_LONGEST_WAIT_S`: a
    process that was killed may have left the lock to a child that it forked. A thread that holds the lock does not wait
    for itself, as it would in a signal handler that saves a trace.
    """

    _number = -1
    _held: _HeldLock | None = None

    def __init__(self, folder: Path) -> None:
        """Take the folder; entering the block locks it."""
        self._folder = folder

    def __enter__(self) -> FolderLock:
        with contextlib.suppress(OSError):  # such as a network file system without locks
            self._number = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            folder = os.fstat(self._number)
            held = _HeldLock(folder.st_dev, folder.st_ino, os.getpid(), threading.get_ident())
            if held not in _held_locks:
                self._held = held
                _held_locks.add(held)
                _wait_for_lock(self._number)
        return self

    def __exit__(self, *_: object) -> None:
        self.unlock()

    def unlock(self) -> None:
        """Let others have the folder; nothing happens where the lock is not held."""
        if self._number >= 0:
            unlock(self._number)
            number, self._number = self._number, -1
            os.close(number)
        if self._held is not None:  # not before: a signal handler would wait for this thread
            _held_locks.discard(self._held)
            self._held = None


def in_locked_folder(folder: Path, write: Callable[[], None]) -> None:
    """Call ``write`` under the lock of a folder; see `FolderLock`.

    A Ctrl-C, or the exception of another signal's handler, may arrive in the begin or in the end of the lock's block.
    The program may keep its traceback, which refers to the lock: its destruction would unlock late.
    """
    lock = FolderLock(folder)
    try:
        with lock:
            write()
    finally:
        lock.unlock()


class _HeldLock(NamedTuple):
    """The lock of a folder that a thread holds or waits for."""

    device: int
    inode: int
    process_id: int
    """A forked child does not hold the lock of its parent."""
    thread_id: int


_held_locks: set[_HeldLock] = set()


def _wait_for_lock(number: int) -> None:
    until = time.monotonic() + _LONGEST_WAIT_S
    while time.monotonic() < until:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
