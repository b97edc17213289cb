"""One traced step, from the first launch to the file.

Each use of a session goes the same way: `Session.begin_use` claims the process-wide slot (`session_slot`), checks the
outputs (`StepOutputs`) and starts the tracer (`StepTracer`); the body of the program runs; `Session.end_use` stops the
tracer, takes its results and saves them. `Session.abandon` undoes what an interruption left half done. Blocks, calls of
a decorated function (`traced_calls`) and windows of a schedule (`scheduled_session`) are such uses.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from collector.errors import CollectorError, NotTracedError, SessionActiveError, in_words
from collector.files.working_directory import WorkingDirectory
from collector.formats.step import TracedStep
from collector.options import TraceOptions
from collector.runtime.original_functions import get_ident, getpid
from collector.runtime.signal_handlers import error_of_handler
from collector.runtime.uncompiled import uncompiled
from collector.tracing import session_slot
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.step_outputs import StepOutputs
from collector.tracing.step_tracer import StepTracer
from collector.tracing.traced_calls import traced_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from collector.recording.recording import Recording

    Function = TypeVar("Function", bound=Callable[..., Any])


_WARNED_LOSSES = ("annotations_mixed", "annotations_unfollowed", "annotations_suspended")
"""Losses that cause a warning at the end of a step, because a change of the program can avoid them."""


class Session(TracedStep):
    """The session of a traced step: open during the step, and afterwards its results. Made by `collector.trace`.

    A context manager and a decorator. It can be reused: every use begins anew, and the results are those of the last
    use. A process can have one open session.
    """

    def __init__(self, options: TraceOptions) -> None:
        """Store the options; nothing happens before the block is entered."""
        self.options = options
        """The options of the session."""
        self._directory = WorkingDirectory()
        """The directory in which the last step or schedule began, to which relative paths among the options refer."""
        self._outputs = StepOutputs(options, -1, self._directory)
        self.unavailable: str | None = None
        """The reason why the last step was not traced: cause and remedy in one line. None if it was traced."""
        self._use: session_slot.Use | None = None  # the use that traces
        self._entered: list[session_slot.Use] = []  # by `with`: a second one while the first is open traces nothing
        self._recording: Recording | None = None
        self._streamed: Path | None = None  # the journal that is the result of the last step

    def _state(self) -> str:
        if self._use:
            return "open"
        return self.unavailable or (super()._state() if self._recording is not None else "not used yet")

    # The begin and end of a step are excluded from torch.compile as a whole. These two methods cannot be excluded,
    # because then a Ctrl-C between them and their callers would go unnoticed.
    def __enter__(self) -> Session:
        use = session_slot.new_use(self)
        try:
            self.begin_use(use, by_with=True)
            return self
        except BaseException:
            self.abandon(use)  # also a use that a Ctrl-C left half done
            raise

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        use = None
        try:
            use = self._last_entered()
            if use is not None:
                self.end_use(use, exc)
        finally:
            use = use or self._last_entered()
            if use is not None:
                self.abandon(use)  # does nothing unless the end was interrupted

    async def __aenter__(self) -> Session:
        """Like `__enter__`: nothing is awaited."""
        return self.__enter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Like `__exit__`: nothing is awaited."""
        self.__exit__(exc_type, exc, traceback)

    def start(self) -> Session:
        """Begin like a ``with`` block, in code where a block does not fit; `stop` ends the session."""
        return self.__enter__()

    def stop(self) -> None:
        """End the session that `start` began.

        Raises:
            collector.CollectorError: the session was not started.
        """
        if not self._is_started:
            raise CollectorError("stop() was called, but the session was not started", "Call start() before it")
        self.__exit__(None, None, None)

    @property
    def _is_started(self) -> bool:
        return self._last_entered() is not None

    def step(self) -> None:
        """End a step of the program and begin the next one, as the schedule requires.

        Raises:
            collector.CollectorError: the session has no schedule, or is not open.
        """
        raise CollectorError(
            "step() was called, but this session has no schedule",
            "Write collector.trace(schedule=collector.schedule(...)), or trace each step with a block",
        )

    def __del__(self) -> None:
        use = getattr(self, "_use", None)
        if use is not None:
            session_slot.keep_dropped(use, self)

    def __call__(self, function: Function) -> Function:
        """Trace every call of ``function``; for coroutine and generator functions, from the first step to the last.

        The session is the wrapper's attribute ``session``. A call inside the traced call, as in a recursion, is part of
        it; a call of another task, or of the code that a generator yields to, is none.
        """
        return traced_function(function, self)

    @property
    def recording(self) -> Recording:
        """The recording; empty if nothing could be traced. Raises `NotTracedError` before the step has ended."""
        if self._recording is None and self._streamed is not None:
            from collector.recording.recording import Recording

            self._recording = Recording.load(self._streamed)
        if self._recording is None:
            if self._use is not None:
                raise NotTracedError("the step is still being traced: its results are there when the block has ended")
            if self.unavailable is None:
                raise NotTracedError("this session has not traced a step yet")
            self._recording = _nothing()
        return self._recording

    @property
    def path(self) -> Path | None:  # type: ignore[override]
        """The path of the last step's file: the given path, or that of this rank or process.

        It is that of a recording (``step.pb.gpurec``) where the file itself cannot be written. It is absolute where the
        program has changed its working directory since the step began.
        """
        path = self._outputs.path
        return None if path is None else self._directory.anchored(path)

    @property
    def idle(self) -> bool:
        """Whether the session is open and has recorded nothing yet; False if the source cannot tell."""
        tracer = None if self._use is None else self._use.tracer
        return tracer is not None and tracer.is_idle

    @property
    def device_prefix(self) -> str:  # type: ignore[override]
        """The prefix of device names: ``/job:worker/replica:0/task:3``."""
        return self.options.device_prefix

    @uncompiled
    def _last_entered(self) -> session_slot.Use | None:
        """The use that the current block entered; a session may end on another thread than it began on."""
        here = [use for use in self._entered if use.is_here]
        uses = here or self._entered
        return uses[-1] if uses else None

    @uncompiled
    def begin_use(self, use: session_slot.Use, *, by_with: bool = False) -> None:
        """Begin to trace, or report why that is impossible. For `collector.tracing.traced_calls`."""
        if by_with:
            self._entered.append(use)
        _let_go_of_abandoned()
        try:
            session_slot.claim(use, self)
        except (SessionActiveError, NotTracedError) as error:
            if self._use is None:
                self._forget_results(str(error))
            self._trouble(error, f"this step is not traced: {error}")
            return
        self._use = use
        self._forget_results()
        self._outputs = self._next_outputs()
        self._outputs.check(self._trouble)
        self._start(use)
        use.has_begun = True

    def _next_outputs(self) -> StepOutputs:
        """The outputs of the step that begins."""
        self._directory = WorkingDirectory()
        return StepOutputs(self.options, self._outputs.number + 1, self._directory)

    def _forget_results(self, unavailable: str | None = None) -> None:
        self.unavailable, self._recording, self._streamed = unavailable, None, None
        self.__dict__.pop("run_metadata", None)

    def _start(self, use: session_slot.Use) -> None:
        use.tracer = StepTracer(self.options)
        try:
            use.tracer.start(self._outputs.number, self._trouble)
        except Exception as error:  # whatever it is, the user's program continues
            self.unavailable = in_words(error)
            self._trouble(error, f"GPU activity is not traced: {self.unavailable}")
        else:
            use.tracer.accompany(self._trouble)

    @uncompiled
    def end_use(self, use: session_slot.Use, exc: BaseException | None, *, at_exit: bool = False) -> None:
        """End, and take and save the results. For `collector.tracing.traced_calls`."""
        if use.is_ended_elsewhere:
            return
        use.thread_id, use.is_ending = get_ident(), True
        if use is not self._use or use.process_id != getpid():  # another use was open, or the parent owns this one
            self.abandon(use)
            return
        try:
            with session_slot.ending(use):
                self._take_results(use, at_exit)
        except Exception as error:
            # The body's own exception takes precedence over ours.
            if exc is None or error_of_handler(error) is not None:
                raise
            with contextlib.suppress(Exception):
                warn_caller(f"the trace of a step that raised is incomplete: {error}")
        finally:
            session_slot.resume_background(use, self)

    def _take_results(self, use: session_slot.Use, at_exit: bool) -> None:
        is_saved = False
        try:
            unseen = self._stop(use, at_exit)
            is_saved = self._save(use)
        finally:
            if use.tracer is not None:
                use.tracer.end_journal(keep=not is_saved)
        if use.is_dropped:
            return
        if unseen:
            warn_caller(unseen)
        losses = () if self._recording is None else self.ledger.explained_losses()
        for line in (line for name, line in losses if name in _WARNED_LOSSES):
            warn_caller(line)

    def _stop(self, use: session_slot.Use, at_exit: bool) -> str:
        """End the recording; return one line about what the NVTX handler could not see, for a warning.

        Where the program turns warnings into errors, the results must be there before.
        """
        unseen = ""
        try:
            if use.tracer is not None and use.tracer.is_open:
                results = use.tracer.stop(at_exit=at_exit, keeps_warm_up=use.background_waits)
                self._recording, self._streamed, use.whole, unseen = results
                use.tracer.forget()
        except Exception as error:
            self.unavailable = in_words(error)
            self._trouble(error, f"the trace is lost: {self.unavailable}")
        finally:
            self._release(use)
        return unseen

    def _save(self, use: session_slot.Use) -> bool:
        """Write the requested outputs; return whether the results of ``use`` are saved."""
        if self.unavailable is not None:
            return False
        return self._outputs.save(self, self._streamed, self._trouble)

    def _trouble(self, error: Exception, message: str) -> None:
        """Report ``error`` as the options require: raised, or as a warning. That of a signal handler is raised."""
        interruption = error_of_handler(error)
        if interruption is not None:
            raise interruption
        if self.options.strict:
            raise error
        self._warn(error, message)

    def _warn(self, error: Exception, message: str) -> None:
        """Warn of ``error``."""
        warn_caller(message)

    @uncompiled
    def abandon(self, use: session_slot.Use) -> None:
        """End ``use`` without results, as far as it has not ended. For `collector.tracing.session_slot`."""
        if use.is_ended_elsewhere:
            return
        if use.process_id != getpid():  # forked inside the body: only the parent records
            if use is self._use:
                self.unavailable = "this process was forked while the trace was open; its parent has the trace"
            self._forget(use)
            return
        try:
            self._release(use)
        finally:
            if use.tracer is not None:
                use.tracer.end_journal(keep=use.has_begun)
            session_slot.resume_background(use, self)

    def end_at_exit(self, use: session_slot.Use) -> None:
        """End ``use`` at the exit of the interpreter; the requested file is saved."""
        is_kept = self.options.path is not None or self.options.dataset is not None or self.options.stream
        if use.has_begun and not use.is_ending and is_kept:
            self.end_use(use, None, at_exit=True)
        else:
            self.abandon(use)

    def _release(self, use: session_slot.Use) -> None:
        """Release the tracer, if it has not been stopped, and the session slot."""
        try:
            # The tracer may not have reached the point where it releases CUPTI.
            if use.tracer is not None and use.tracer.is_open and use is session_slot.open_use():
                self.unavailable = self.unavailable or "the step was broken off where it began or ended"
                try:
                    use.tracer.abort()
                except Exception as error:  # whatever it is, the user's program continues
                    if error_of_handler(error) is not None:
                        raise
                    warn_caller(f"the session could not be ended: {in_words(error)}")
        finally:
            self._forget(use)

    def _forget(self, use: session_slot.Use) -> None:
        if use.tracer is not None:
            use.tracer.forget()
        session_slot.release(use)
        if self._use is use:
            self._use = None
        with contextlib.suppress(ValueError):
            self._entered.remove(use)


def _let_go_of_abandoned() -> None:
    """End a use that no code can end any more, so that the process can trace again."""
    use = session_slot.open_use()
    if use is None or not use.is_abandoned:
        return
    session = use.last_session()
    if session is None:
        session_slot.release(use)
        return
    session.abandon(use)
    if use.has_begun and not use.is_ending:
        place = use.path or "in memory"
        warn_caller(f"a trace ({place}) was never ended and nothing refers to its session: it is lost")


def _nothing() -> Recording:
    from collector.recording.capture import empty_capture
    from collector.recording.recording import Recording

    capture = empty_capture()
    capture["counters"]["untraced"] = 1
    return Recording.from_capture(capture)
