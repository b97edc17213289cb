"""Hooks of a framework that can be removed again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType


class InstalledHooks:
    """The hooks that an adapter installed. As a context manager it removes them at the end of the block."""

    def __init__(self, removals: Iterable[Callable[[], object]]) -> None:
        self._removals = list(removals)

    def remove(self) -> None:
        """Remove the hooks; a second call does nothing."""
        while self._removals:
            self._removals.pop()()

    def __enter__(self) -> InstalledHooks:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


class SharedHooks:
    """Hooks that a process has once, however often they are installed, until the last installation is removed."""

    def __init__(self, install: Callable[[], Iterable[Callable[[], object]]]) -> None:
        """Store the function that installs the hooks and returns the functions that remove them."""
        self._install = install
        self._lock = threading.Lock()
        self._num_users = 0
        self._hooks = InstalledHooks([])

    def installed(self) -> InstalledHooks:
        """Install the hooks, if they are not installed; the result removes them if no other user is left."""
        with self._lock:
            if not self._num_users:
                self._hooks = InstalledHooks(self._install())
            self._num_users += 1
        return InstalledHooks([self._end_use])

    def _end_use(self) -> None:
        with self._lock:
            self._num_users -= 1
            if not self._num_users:
                self._hooks.remove()
