"""Events that trigger the dumps of a recorder: uncaught exceptions, and kernels that do not end."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from collector.recording.launch_figures import LaunchFates
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType


class ExceptionHooks:
    """Hooks that notice an uncaught exception before it is reported; hooks of others are called as before."""

    def __init__(self, notice: Callable[[str, bool], object]) -> None:
        """Set the hooks. ``notice`` is called with the reason and whether the process ends, and raises nothing."""
        self._notice = notice
        self._before, self._before_in_thread = sys.excepthook, threading.excepthook
        # Each access to a method makes another object, and `restore` compares them.
        self._hook, self._hook_in_thread = self._noticed, self._noticed_in_thread
        sys.excepthook, threading.excepthook = self._hook, self._hook_in_thread

    def _noticed(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, Exception):
            self._notice(f"uncaught {kind.__name__}", not hasattr(sys, "ps1"))
        self._before(kind, error, traceback)

    def _noticed_in_thread(self, arguments: threading.ExceptHookArgs) -> None:
        if issubclass(arguments.exc_type, Exception):
            self._notice(f"uncaught {arguments.exc_type.__name__}", False)
        self._before_in_thread(arguments)

    def restore(self) -> None:
        """Set the earlier hooks again, unless others have been set since."""
        if sys.excepthook is self._hook:
            sys.excepthook = self._before
        if threading.excepthook is self._hook_in_thread:
            threading.excepthook = self._before_in_thread


def unended_kernels(journal: Path) -> list[str] | None:
    """The names of kernels that have begun and not ended, or else of those that wait; None: nothing is outstanding."""
    import numpy as np

    from collector.recording.journal_segments import load_segments

    recording = load_segments(journal)
    tables = list(recording.parts)
    activities = [
        {"correlation_id": np.concatenate([getattr(part, name).correlation_id for part in tables])}
        for name in LAUNCHED_TABLES
    ]
    unended = recording.invalid.kernels
    begun = unended[unended.start_ns > 0]
    names = list(dict.fromkeys((begun if len(begun) else unended).names()))
    fates = LaunchFates.of(activities, recording.api_calls.columns, recording.strings)
    return names if names or fates.without_activity.any() else None
