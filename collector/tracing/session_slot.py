"""The process-wide session slot, and the background tracer that pauses for the session in it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
import weakref
from typing import TYPE_CHECKING, Protocol

from collector.errors import NotTracedError, SessionActiveError
from collector.runtime.original_functions import get_ident, getpid
from collector.runtime.uncompiled import uncompiled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from collector.options import TraceOptions
    from collector.recording.recording import Recording
    from collector.tracing.step_tracer import StepTracer


class OpenSession(Protocol):
    """The methods of `collector.tracing.session.Session` that this module uses."""

    options: TraceOptions
    unavailable: str | None
    """The reason why nothing was traced."""

    @property
    def recording(self) -> Recording:
        """The recording of the last step. Raises `collector.NotTracedError` if there is none."""

    def abandon(self, use: Use) -> None:
        """End ``use`` without results, as far as it has not ended."""

    def end_at_exit(self, use: Use) -> None:
        """End ``use`` at the exit of the interpreter."""


class Background(Protocol):
    """A tracer of a whole program, such as a test runner's, that pauses for the sessions which the program opens."""

    def step_aside(self, session: OpenSession) -> None:
        """``session`` is about to open: end your own session, if it is another one."""

    def come_back(self, session: OpenSession, use: Use) -> None:
        """``use`` of ``session`` has ended. Must not raise."""

    def source_changes(self) -> contextlib.AbstractContextManager[None]:
        """The block begins or ends a recording of the whole process: your session ends before, and goes on after it."""


_OF_BEGIN_AND_END = ("begin_use", "end_use")
"""The methods of `collector.tracing.session.Session` that begin and end a use, which they call ``use``."""


class Use:
    """One use of a session, from its beginning to its end: the state to undo, also after an interruption."""

    def __init__(self, session: OpenSession) -> None:
        """Begin; the use does not keep the session alive."""
        self._session = weakref.ref(session)
        self.dropped: OpenSession | None = None
        """The session, after the program's last reference to it is gone."""
        self.path = session.options.path
        self.process_id = getpid()
        self.thread_id = get_ident()
        self.has_begun = False
        """Whether the body was reached."""
        self.is_ending = False
        self.tracer: StepTracer | None = None
        """The tracer that records the step; None: it is not tracing."""
        self.is_resumed = False
        """Whether its body runs in turns with other code of the thread: that of a coroutine or generator."""
        self.background_waits = False
        """Whether the background tracer waits for `resume_background`."""
        self.whole: Recording | None = None
        """The recording with the warm-up, for the background tracer; None: there was no warm-up, or it is lost."""
        self.discarded = ""
        """The part of the step whose work is in no recording, in words; empty: there is none."""
        self.is_dropped = False
        """Whether it ends without results, as a schedule asked for."""

    def last_session(self) -> OpenSession | None:
        """The session, also after the program has dropped its last reference to it."""
        return self.dropped or self._session()

    @property
    def is_here(self) -> bool:
        """Whether it began on this thread of this process."""
        return (self.process_id, self.thread_id) == (getpid(), get_ident())

    @property
    def is_ended_elsewhere(self) -> bool:
        """Whether another thread is ending it."""
        return self.is_ending and self.thread_id != get_ident() and self.thread_id in sys._current_frames()

    @property
    def is_abandoned(self) -> bool:
        """Whether no code can end it any more, as after a Ctrl-C during its beginning or its end."""
        if self.dropped is not None:
            return True
        if self.has_begun and not self.is_ending:
            return False
        if self.thread_id == get_ident():
            return not self._is_interrupted
        return self.thread_id not in sys._current_frames()

    @property
    def _is_interrupted(self) -> bool:
        """Whether this thread is beginning or ending it, and runs a signal handler or a finalizer meanwhile."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_name in _OF_BEGIN_AND_END and frame.f_locals.get("use") is self:
                return True
            frame = frame.f_back
        return False


@uncompiled
def new_use(session: OpenSession) -> Use:
    """A use of ``session`` that begins now."""
    return Use(session)


_uses: dict[str, Use] = {}
"""The process-wide session slot: `_OPEN` is the key of the open use. There is one slot, because CUPTI has one
subscription.

A dictionary inserts and removes in one step that no signal and no thread can interrupt, and there is no lock that an
exception could leave locked.
"""
_OPEN = "open"
_ending: dict[Use, None] = {}
"""The uses whose results are being taken and saved, each on its thread."""
_LONGEST_WAIT_S = 60.0
"""The maximum time that the interpreter's exit waits for them."""
_is_exiting = False
_background: Background | None = None


def set_background(background: Background | None) -> Background | None:
    """Let ``background`` pause for every session from now on; returns the previous one."""
    global _background
    before, _background = _background, background
    return before


def claim(use: Use, session: OpenSession) -> None:
    """Make ``use`` of ``session`` the open one.

    Raises:
        collector.SessionActiveError: another session is open.
        collector.NotTracedError: the interpreter is exiting.
    """
    if _is_exiting:
        raise NotTracedError("the interpreter is ending", "Wait for the threads that trace before the program ends")
    background = _background  # read once, because another thread may change it
    if background is not None:
        use.background_waits = True
        background.step_aside(session)
    holder = _uses.setdefault(_OPEN, use)
    if holder is not use:
        use.background_waits = False  # the background tracer paused for the session that is open
        where = "this" if holder.last_session() is session else "another"
        raise SessionActiveError(
            f"{where} session is already tracing in this process ({holder.path or 'in memory'})",
            "End it first; one process can trace one step at a time, and annotate() names the parts of a step",
        )


def open_use() -> Use | None:
    """The use that is open in this process."""
    return _uses.get(_OPEN)


def release(use: Use) -> None:
    """Free the slot for another session. Does nothing if ``use`` is not the open one."""
    if open_use() is use:
        _uses.pop(_OPEN, None)


def keep_dropped(use: Use, session: OpenSession) -> None:
    """Keep ``session``, whose last reference is gone, if ``use`` is open: the next session or the exit ends it."""
    if open_use() is use and use.process_id == getpid():
        use.dropped = session


def resume_background(use: Use, session: OpenSession) -> None:
    """Let the background tracer continue, after ``use`` of ``session`` has ended and its results are saved."""
    background_waits, use.background_waits = use.background_waits, False
    background = _background
    if background_waits and background is not None:
        background.come_back(session, use)


@contextlib.contextmanager
def source_changes() -> Iterator[None]:
    """The block begins or ends a recording of the whole process, of which the background tracer records a part."""
    background = _background
    with contextlib.nullcontext() if background is None else background.source_changes():
        yield


@contextlib.contextmanager
def ending(use: Use) -> Iterator[None]:
    """The block saves the results of ``use``; the interpreter's exit waits for such blocks on other threads."""
    _ending[use] = None
    try:
        yield
    finally:
        _ending.pop(use, None)


def _end_at_exit() -> None:
    """Release CUPTI before the interpreter exits: the driver must not call into freed code.

    A daemon thread that ends a session is waited for: its file would be lost, and extensions that release the GIL, as
    numpy does, may crash in a thread that continues after the interpreter's end.
    """
    global _is_exiting
    _is_exiting = True
    until = time.monotonic() + _LONGEST_WAIT_S
    while any(use.is_ended_elsewhere for use in list(_ending)) and time.monotonic() < until:
        time.sleep(0.005)
    use = open_use()
    if use is not None and (session := use.last_session()) is not None:
        session.end_at_exit(use)


def _forget_in_child() -> None:
    """After a fork: CUPTI's state belongs to the parent, and the child must not call it."""
    global _background
    _background = None
    _uses.clear()
    _ending.clear()


atexit.register(_end_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)
