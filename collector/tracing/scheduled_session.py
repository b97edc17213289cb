"""A session that follows a schedule: it traces windows of steps, each of which is one use of the session."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.errors import CollectorError, SessionActiveError, in_words
from collector.files.working_directory import WorkingDirectory
from collector.runtime.original_functions import getpid
from collector.runtime.signal_handlers import error_of_handler
from collector.runtime.uncompiled import uncompiled
from collector.tracing import session_slot
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.scheduled_windows import ScheduledWindows
from collector.tracing.session import Session
from collector.tracing.step_outputs import StepOutputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from collector.options import TraceOptions
    from collector.recording.recording import Recording
    from collector.tracing.scheduled_windows import MergedWindows
    from collector.tracing.session import Function

_MOST_WARNINGS = 16
"""The maximum number of different reasons of which a session warns while it follows its schedule."""
_OF_WORK = ("kernels", "memcpys", "memsets", "graph_launches", "memory_operations", "annotations", "nvtx_ranges")
"""Tables of what a program does in a step."""

_following: weakref.WeakSet[ScheduledSession] = weakref.WeakSet()
"""The sessions that follow their schedule now."""


@atexit.register  # after that of `session_slot`, and so called before it
def _end_schedules() -> None:
    for session in list(_following):
        session.__exit__(None, None, None)


class _Results(NamedTuple):
    """The results of a window."""

    unavailable: str | None
    recording: Recording | None
    outputs: StepOutputs


class ScheduledSession(Session):
    """The session of a block in which `step` ends each step of the program, and a schedule names the traced ones.

    Its results are those of the last window. Made by `collector.trace`.
    """

    def __init__(self, options: TraceOptions, schedule: Callable[[int], Any]) -> None:
        """Store the options and their schedule; nothing happens before the block is entered."""
        super().__init__(options)
        self._schedule = schedule
        self._windows: ScheduledWindows | None = None
        """The windows of the block that is open."""
        self._before: _Results | None = None
        """The results before the open window, which are those of the session again if it is dropped."""
        self._warned_reasons: set[str] = set()
        """The reasons for untraced windows that were warned of already."""

    def __enter__(self) -> Session:
        if self._windows is not None:
            raise SessionActiveError("this session follows its schedule already", "Leave its block first")
        try:
            self._enter_schedule()
            return self
        except BaseException:
            self.__exit__(None, None, None)  # also what a Ctrl-C left half done
            raise

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._leave_schedule(exc)
        finally:
            self._forget_schedule()

    def __call__(self, function: Function) -> Function:
        """Raise TypeError: a call is one step, and a schedule counts the steps of a block."""
        raise TypeError("a schedule counts the steps of a block: write `with collector.trace(..., schedule=...)`")

    @property
    def _is_started(self) -> bool:
        return self._windows is not None

    @uncompiled
    def step(self) -> None:
        """End a step of the program and begin the next one, as the schedule requires.

        Raises:
            collector.CollectorError: the session is not open.
        """
        if self._windows is None:
            raise CollectorError(
                "step() was called, but the session is not open",
                "Call it inside `with collector.trace(...) as session`",
            )
        self._windows.next_step()

    @uncompiled
    def _enter_schedule(self) -> None:
        self._warned_reasons.clear()
        self._directory = WorkingDirectory()
        self._windows = ScheduledWindows(self._schedule, self, self.options.path, self.options.rank)
        _following.add(self)
        self._windows.next_step()

    @uncompiled
    def _leave_schedule(self, exc: BaseException | None) -> None:
        windows = self._windows
        if windows is None or windows.process_id != getpid():
            return
        try:
            windows.end(exc)
        finally:
            if windows.files is not None and windows is self._windows:  # else `on_window` has stopped the session
                self._save_windows(windows.files, exc)

    @uncompiled
    def _forget_schedule(self) -> None:
        """Let the session be entered again; a use that an interruption left open is abandoned."""
        self._windows = None
        _following.discard(self)
        use = self._last_entered()
        if use is not None:
            self.abandon(use)

    def _save_windows(self, files: MergedWindows, exc: BaseException | None) -> None:
        """Write the file of all windows."""
        try:
            self._outputs.path = files.write()
        except BaseException as error:
            if not isinstance(error, Exception) or error_of_handler(error) is not None:  # a Ctrl-C, another signal
                with contextlib.suppress(Exception):
                    warn_caller(f"the trace is not saved, because that was interrupted{files.remains()}")
                raise
            message = f"the trace is not saved: {in_words(error)}{files.remains()}"
            if exc is None:
                self._trouble(error, message)
            else:
                warn_caller(message)

    def open_window(self, step: int) -> None:
        """Begin to record. For `collector.tracing.scheduled_windows`."""
        if self.unavailable is not None or self._recording is not None:
            self._before = _Results(self.unavailable, self._recording, self._outputs)
        self._outputs.number = step - 1
        use = session_slot.new_use(self)
        try:
            self.begin_use(use, by_with=True)
        except BaseException:
            self.abandon(use)
            raise

    def begin_window(self, step: int) -> None:
        """Discard the records of the warm-up. For `collector.tracing.scheduled_windows`."""
        self._outputs.number = step
        use = self._last_entered()
        if use is None or use.tracer is None:
            return
        if use.tracer.is_window:
            use.discarded = "its warm-up"
        use.tracer.discard_warm_up()

    def close_window(self, exc: BaseException | None) -> None:
        """End and save. For `collector.tracing.scheduled_windows`."""
        use = self._last_entered()
        if use is None:
            return
        try:
            self.end_use(use, exc)
        finally:
            self._before = None
            self.abandon(use)
        if self.options.on_window is not None and self.unavailable is None and not use.is_dropped:
            self.options.on_window(self)

    def drop_window(self) -> None:
        """End without results. For `collector.tracing.scheduled_windows`."""
        use = self._last_entered()
        if use is not None:
            use.has_begun = False  # there is nothing to keep
            use.is_dropped, use.discarded = True, "" if self.idle else "its warm-up"
            reason = self.unavailable
            self.abandon(use)
            self.unavailable = reason
        self._restore()

    def _restore(self) -> None:
        """Have the results before the open window, if there were any."""
        before, self._before = self._before, None
        if before is not None:
            self._forget_results(before.unavailable)
            self._recording, self._outputs = before.recording, before.outputs

    def _next_outputs(self) -> StepOutputs:
        files = None if self._windows is None else self._windows.files
        return StepOutputs(self.options, self._outputs.number + 1, self._directory, files)

    def _save(self, use: session_slot.Use) -> bool:
        if self._windows is not None and self._windows.is_after_last_step and _is_idle(self._recording):
            use.is_dropped = True
            use.whole = self._recording if use.whole is None else use.whole
            self._restore()
            return True  # nothing is to be kept
        return super()._save(use)

    def _warn(self, error: Exception, message: str) -> None:
        """Warn of each reason once in a block."""
        if str(error) not in self._warned_reasons and len(self._warned_reasons) < _MOST_WARNINGS:
            self._warned_reasons.add(str(error))
            warn_caller(message)


def _is_idle(recording: Recording | None) -> bool:
    """Whether nothing was launched or named: there may be calls that wait."""
    if recording is None or recording.ledger.launches_seen or recording.ledger.record_losses():
        return False
    return not any(len(getattr(recording, table)) for table in _OF_WORK)
