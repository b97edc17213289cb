"""The trace of the running test: consecutive sessions, which pause while another tracer needs CUPTI.

A process can trace one step at a time. The test runner traces everything, so its session ends whenever a test opens its
own session (`gpu_trace`, `collector.trace`) or runs PyTorch's profiler, and another session begins afterwards; the
recordings of the test's own sessions are counted too. A session without any records stays open for the next test, so
that tests without GPU work cost almost nothing.

An error of a session is a loss of the trace. The exception of a signal handler, such as that of a time limit, is the
test's own: it is raised where it interrupts a session, and the trace of what follows goes on.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from collector.errors import (
    CuptiNotFoundError,
    CuptiUnusableError,
    DriverNotFoundError,
    NotTracedError,
    PermissionDeniedError,
    SessionActiveError,
)
from collector.options import KINDS, TraceOptions
from collector.runtime.signal_handlers import error_of_handler
from collector.tracing.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.recording.recording import Recording
    from collector.tracing.session_slot import OpenSession, Use

BUFFER_BYTES, MAX_BUFFERS = 512 << 10, 512
"""Smaller buffers than a session's default, with the same total size: few tests fill one, and each takes time to
prepare."""

_LASTING = (DriverNotFoundError, CuptiNotFoundError, CuptiUnusableError, PermissionDeniedError)
"""Errors that would occur again at the next attempt in this process."""


def trace_options(also: tuple[str, ...]) -> TraceOptions:
    """The options of the plugin's sessions; ``also``: the kinds on request that they record."""
    kinds = (*KINDS, *also)
    return TraceOptions(strict=True, kinds=kinds, buffer_bytes=BUFFER_BYTES, max_buffers=MAX_BUFFERS)


class Tracing:
    """Traces between `begin` and `end`; implements `collector.tracing.session_slot.Background`."""

    def __init__(self) -> None:
        """Nothing is traced before `begin`."""
        self._session: Session | None = None
        self._also: tuple[str, ...] = ()
        self._libraries = _libraries()
        self._wanted = False
        self._paused = False
        self._changing = False
        self._away: OpenSession | None = None
        self._pieces: list[Recording] = []
        self._losses: list[str] = []
        self.unavailable: str | None = None
        """The reason why nothing can be traced in this process, once it is known."""

    def begin(self, also: tuple[str, ...] = ()) -> None:
        """Start tracing, if possible; ``also``: the kinds on request that are recorded."""
        if also != self._also:
            self.finish()
            self._also = also
        if self._libraries != _libraries():  # a simulated GPU has opened or closed since
            self.finish()
            self._restart()
        self._wanted = True
        try:
            self._open()
        except BaseException:
            self.end()
            raise

    def end(self) -> tuple[list[Recording], list[str]]:
        """Return the recordings since `begin`, and one line for each reason why they are incomplete.

        No recordings and no reasons mean that there was no GPU work.
        """
        self._wanted = False
        if self._away is not None:
            self._losses.append("the test opened a trace of its own and did not end it")
        self._away = None
        try:
            if self._session is not None and not self._session.idle:
                self._close()
        finally:
            pieces, losses = self._pieces, self._losses
            self._pieces, self._losses = [], []
        return pieces, losses

    def finish(self) -> None:
        """End the session that was kept open for the next test."""
        try:
            self._close()
        finally:
            self._pieces, self._losses = [], []

    @contextlib.contextmanager
    def libraries_change(self) -> Iterator[None]:
        """Around a change of the process's libraries, as when a simulated GPU opens or closes."""
        if self._changing:
            yield
            return
        self._close()
        self._changing, losses = True, list(self._losses)
        try:
            yield
        finally:
            self._changing = False
            self._restart()
            if self.unavailable is not None:  # nothing can run that the trace would miss
                self._losses = losses

    def recorded(self) -> list[Recording]:
        """The recording since `begin`, which is cut here: later work is in other recordings."""
        if self._session is not None and not self._session.idle:
            self._close()
            self._open()
        return list(self._pieces)

    @contextlib.contextmanager
    def apart(self) -> Iterator[list[Recording]]:
        """Excludes the block's work from the test's: if the test is traced, the list then contains its recording."""
        traced = self._wanted and self._away is None
        self._close()
        found: list[Recording] = []
        pieces, losses = self._pieces, self._losses
        self._pieces, self._losses = found, []
        try:
            if traced:
                self._open()
            yield found
        finally:
            try:
                self._close()
            finally:
                self._pieces, self._losses = pieces, losses
            if traced:
                self._open()

    def step_aside(self, session: OpenSession) -> None:
        """See `collector.tracing.session_slot.Background`."""
        if session is self._session:
            return
        self._close()
        if self._wanted and self._away is None:  # a second session within that one traces nothing
            self._away = session

    def come_back(self, session: OpenSession, use: Use) -> None:
        """See `collector.tracing.session_slot.Background`: the records of ``session`` count too."""
        if session is self._away:
            self._away = None
            self._add_of_test(session, use)
        if self._wanted:
            self._open()

    @contextlib.contextmanager
    def source_changes(self) -> Iterator[None]:
        """See `collector.tracing.session_slot.Background`."""
        self._close()
        try:
            yield
        finally:
            if self._wanted and self._away is None:
                self._open()

    def pause(self, reason: str) -> None:
        """Release CUPTI for another client until `resume`; ``reason`` states why the trace is then incomplete."""
        self._close()
        self._paused = True
        if self._wanted:
            self._losses.append(reason)

    def resume(self) -> None:
        """See `pause`."""
        self._paused = False
        if self._wanted:
            self._open()

    def _restart(self) -> None:
        """Continue with the libraries that are loaded now."""
        self._close()
        if self.unavailable is not None:
            self._losses = [loss for loss in self._losses if loss != self.unavailable]
        self._libraries, self.unavailable = _libraries(), None
        if self._wanted and self._away is None:
            self._open()

    def _open(self) -> None:
        if self._session is not None or self._paused:
            return
        if self.unavailable is not None:
            self._losses.append(self.unavailable)
            return
        try:
            session = self._session = Session(trace_options(self._also))
            session.__enter__()
        except SessionActiveError:
            self._session = None
            self._losses.append("a trace that was opened earlier was still open")
        except BaseException as error:  # a strict session raises any error of its source
            self._session = None
            self._lose(error)
            if isinstance(error, _LASTING):
                self.unavailable = str(error)

    def _close(self) -> None:
        session = self._session
        if session is None:
            return
        idle = session.idle
        try:
            session.__exit__(None, None, None)
        except BaseException as error:
            self._lose(error)
        else:
            if not idle and session.unavailable is None:
                self._pieces.append(session.recording)
        finally:
            self._session = None

    def _lose(self, error: BaseException) -> None:
        """Note the error of a session; raise what has interrupted the session."""
        interruption = error_of_handler(error) if isinstance(error, Exception) else error
        if interruption is not None:
            self._losses.append(f"the trace was interrupted by {type(interruption).__name__}")
            raise interruption
        self._losses.append(str(error) or repr(error))

    def _add_of_test(self, session: OpenSession, use: Use) -> None:
        """Take the recording of a session that the test has opened, and note what it does not have."""
        its = "a trace that the test made itself"
        missing = [kind for kind in KINDS if kind not in session.options.kinds]
        if use.discarded:
            self._losses.append(f"{its} discarded {use.discarded}")
        if use.is_dropped and use.whole is None:
            return
        if session.unavailable is not None:
            self._losses.append(f"{its} recorded nothing: {session.unavailable}")
            return
        if missing:
            self._losses.append(f"{its} recorded no {', '.join(missing)}")
        with contextlib.suppress(NotTracedError):
            self._pieces.append(session.recording if use.whole is None else use.whole)


def _libraries() -> tuple[str | None, str | None]:
    return os.environ.get("COLLECTOR_LIBCUPTI"), os.environ.get("COLLECTOR_LIBCUDA")
