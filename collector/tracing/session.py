"""One traced step, from the first launch to the file."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from collector.errors import CollectorError, NotTracedError, OutputError, SessionActiveError
from collector.files.atomic_files import check_writable
from collector.files.working_directory import WorkingDirectory
from collector.formats.conversion import Conversion
from collector.formats.output_paths import (
    FolderLock,
    check_variables,
    file_of_this_process,
    mark_as_written_here,
    rank_of_this_process,
)
from collector.formats.step import TracedStep
from collector.options import TraceOptions
from collector.runtime.interpreters import check_main_interpreter
from collector.runtime.uncompiled import uncompiled
from collector.sources import open_source
from collector.sources.native import NativeSource
from collector.text.surrogates import without_surrogates
from collector.tracing import session_slot
from collector.tracing.annotate import load_annotations, send_annotations_to
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.facts_at_end import FactsAtEnd
from collector.tracing.graph_names import graph_names
from collector.tracing.nvtx import prepare
from collector.tracing.recorded_process import RecordedWindow, window_of_recording
from collector.tracing.scheduled_windows import ScheduledWindows
from collector.tracing.step_journal import StepJournal, path_of_journal
from collector.tracing.traced_calls import traced_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from collector.recording.capture import Instant
    from collector.recording.recording import Recording
    from collector.sources import Source

    Function = TypeVar("Function", bound=Callable[..., Any])


_MOST_WARNINGS = 16
"""Different reasons that are warned of while a session follows a schedule."""
_MOST_WARNED_OF = 256
"""Different paths that are warned of in a process."""
_warned_of: set[str] = set()
_DIGITS = re.compile(r"\d+")
_following: weakref.WeakSet[Session] = weakref.WeakSet()
"""The sessions that follow a schedule."""


@atexit.register  # after that of `session_slot`, and so called before it
def _end_schedules() -> None:
    for session in list(_following):
        session._leave_schedule(None)


_WARNED_LOSSES = ("annotations_mixed", "annotations_unfollowed", "annotations_suspended")
"""Losses of which a warning is given at the end, because the program can be changed."""


class Session(TracedStep):
    """The session of a traced step: open during the step, and afterwards its results. Made by `collector.trace`.

    A context manager and a decorator. It can be reused: every use begins anew, and the results are those of the last
    use. A process can have one open session.
    """

    def __init__(self, options: TraceOptions) -> None:
        """Store the options; nothing happens before the block is entered."""
        self.options = options
        """The options of the session."""
        self.path: Path | None = None
        """The path of the last step's file: the given path, or that of this rank or process.

        It is absolute where the program has changed its working directory during the step.
        """
        self._directory = WorkingDirectory()
        """The one in which the last step or schedule began: of the relative paths among the options."""
        self.unavailable: str | None = None
        """The reason why the last step was not traced: cause and remedy in one line. None if it was traced."""
        self._use: session_slot.Use | None = None  # the use that traces
        self._entered: list[session_slot.Use] = []  # by `with`: a second one while the first is open traces nothing
        self._recording: Recording | None = None
        self._streamed: Path | None = None  # the journal that is the result of the last step
        self._writable = True
        self._has_dataset = True
        self._number = -1
        """Of the last step, counted from 0: ``{step}`` in paths."""
        self._windows: ScheduledWindows | None = None
        """The windows of the schedule that the session follows now."""
        self._told: set[str] = set()
        """The reasons of windows that were not traced: each is one warning."""

    def _state(self) -> str:
        if self._use:
            return "open"
        return self.unavailable or (super()._state() if self._recording is not None else "not used yet")

    # The begin and end of a step are excluded from torch.compile as a whole. These two methods cannot be excluded,
    # because then a Ctrl-C between them and their callers would go unnoticed.
    def __enter__(self) -> Session:
        if self.options.schedule is not None:
            self._enter_schedule(self.options.schedule)
            return self
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
        if self.options.schedule is not None:
            self._leave_schedule(exc)
            return
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
        """Begin as a ``with`` block does, where a block does not fit; `stop` ends the session."""
        return self.__enter__()

    def stop(self) -> None:
        """End what `start` began.

        Raises:
            collector.CollectorError: nothing was begun.
        """
        if self._windows is None and self._last_entered() is None:
            raise CollectorError("stop() was called, but the session was not started", "Call start() before it")
        self.__exit__(None, None, None)

    @uncompiled
    def step(self) -> None:
        """End a step of the program and begin the next one, as the schedule requires.

        Raises:
            collector.CollectorError: the session has no schedule, or is not open.
        """
        if self.options.schedule is None:
            raise CollectorError(
                "step() was called, but this session has no schedule",
                "Write collector.trace(schedule=collector.schedule(...)), or trace each step with a block",
            )
        if self._windows is None:
            raise CollectorError(
                "step() was called, but the session is not open",
                "Call it inside `with collector.trace(...) as session`",
            )
        self._windows.next_step()

    @uncompiled
    def _enter_schedule(self, schedule: Callable[[int], Any]) -> None:
        if self._windows is not None:
            raise SessionActiveError("this session follows its schedule already", "Leave its block first")
        self._told.clear()
        self._directory = WorkingDirectory()
        self._windows = ScheduledWindows(schedule, self, self.options.path, self.options.rank)
        _following.add(self)
        try:
            self._windows.next_step()
        except BaseException:
            self._leave_schedule(None)
            raise

    @uncompiled
    def _leave_schedule(self, exc: BaseException | None) -> None:
        windows = self._windows
        _following.discard(self)
        try:
            if windows is not None and windows.process_id == os.getpid():
                try:
                    windows.end(exc)
                finally:
                    self._save_windows(windows, exc)
        finally:
            self._windows = None

    def _save_windows(self, windows: ScheduledWindows, exc: BaseException | None) -> None:
        """Write the file of all windows, where they are in one."""
        if windows.files is None:
            return
        try:
            self.path = windows.files.write()
        except Exception as error:
            message = f"the trace is not saved: {_in_words(error)}{windows.files.remains()}"
            if exc is None:
                self._trouble(error, message)
            else:
                warn_caller(message)

    def open_window(self, step: int) -> None:
        """Begin to record. For `collector.tracing.scheduled_windows`."""
        self._number = step - 1
        use = session_slot.new_use(self)
        try:
            self.begin_use(use, by_with=True)
        except BaseException:
            self.abandon(use)
            raise

    def begin_window(self, step: int) -> None:
        """Discard the records of the warm-up. For `collector.tracing.scheduled_windows`."""
        self._number = step
        use = self._last_entered()
        if use is None or use.source is None:
            return
        if isinstance(use.source, RecordedWindow):
            use.discarded = "its warm-up"
            with contextlib.suppress(CollectorError, OSError):  # the end will find the cause
                use.source.start(self.options)
        else:
            use.begin = _present_instant(use.source)

    def close_window(self, exc: BaseException | None) -> None:
        """End and save. For `collector.tracing.scheduled_windows`."""
        use = self._last_entered()
        if use is None:
            return
        try:
            self.end_use(use, exc)
        finally:
            self.abandon(use)
        if self.options.on_window is not None and self.unavailable is None:
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

    def __del__(self) -> None:
        use = getattr(self, "_use", None)
        if use is not None:
            session_slot.keep_dropped(use, self)

    def __call__(self, function: Function) -> Function:
        """Trace every call of ``function``; for coroutine and generator functions, from the first step to the last.

        The session is the wrapper's attribute ``session``. A call inside the traced call, as in a recursion, is part of
        it; a call of another task, or of the code that a generator yields to, is none.
        """
        if self.options.schedule is not None:
            raise TypeError("a schedule counts the steps of a block: write `with collector.trace(..., schedule=...)`")
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
    def idle(self) -> bool:
        """Whether the session is open and has recorded nothing yet; False if the source cannot tell."""
        source = self._use and self._use.source
        return source is not None and bool(getattr(source, "is_idle", bool)())

    @property
    def device_prefix(self) -> str:  # type: ignore[override]
        """The prefix of device names: ``/job:worker/replica:0/task:3``."""
        return self.options.device_prefix

    def _check_path(self) -> None:
        if self.options.dataset is not None:
            try:
                check_variables(self.options.dataset)
            except OutputError as error:
                self._trouble(error, f"the step will not be in the dataset: {error}")
                self._has_dataset = False
        path = self._find_path()
        if path is None:
            return
        try:
            check_writable(path)
        except CollectorError as error:
            self._trouble(error, f"the trace will not be saved: {error}")
            self._writable = False

    def _find_path(self) -> Path | None:
        """Set `path`; warn once if it differs from the given path."""
        asked = self.options.path
        self.path = None
        if asked is not None:
            try:
                place = self._directory.anchored(asked)
                self.path, reason = file_of_this_process(place, self.options.rank, self._number)
            except OutputError as error:
                self._writable = False
                self._trouble(error, f"the trace will not be saved: {error}")
            else:
                if reason:
                    _warn_once(asked, reason)
        return self.path

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
        self._number += 1
        if self._windows is None:
            self._directory = WorkingDirectory()
        self._forget_results()
        self._check_path()
        self._start(use)
        use.has_begun = True

    def _forget_results(self, unavailable: str | None = None) -> None:
        self.unavailable, self._recording, self._writable, self._has_dataset = unavailable, None, True, True
        self._streamed = None
        self.__dict__.pop("run_metadata", None)

    def _start(self, use: session_slot.Use) -> None:
        source, options = self.options.source, self.options
        if session_slot.torch_profiler_is_idle():
            options = replace(options, share_subscription=True)
        try:
            check_main_interpreter()
            prepare(options.nvtx)
            use.source = open_source(source) if isinstance(source, str) else source
            if options.journal is not None:
                options = replace(options, journal=self._journal_path(options.journal, use.source))
            self._refuse_without_budget(use.source)
            load_annotations()
            try:
                use.source.start(options)
                use.enabled = _present_instant(use.source)  # from here on, the time is that of the step
            except SessionActiveError:  # of `collector run`, or of another extension module
                window = window_of_recording(options)
                if window is None:
                    raise
                self._refuse_without_budget(window)
                use.source = window
        except Exception as error:  # whatever it is, the user's program continues
            use.source, self.unavailable = None, _in_words(error)
            self._trouble(error, f"GPU activity is not traced: {self.unavailable}")
            return
        # The annotations of a window are sent to the recording already, and its journal is that of the recording.
        is_window = isinstance(use.source, RecordedWindow)
        if options.journal is not None and not is_window:
            use.journal = StepJournal(use.source, options.journal, is_result=options.stream)
        if missing := self._missing_budget(use.source):
            self._trouble(missing, f"the step has no budget of its own: {missing}")
        _start_sampler(use, options)
        if is_window:
            return
        check_kinds = functools.partial(_check_kinds, self.options.missing_for_annotations)
        send_annotations_to(use.source, stacks=options.stacks, on_first=check_kinds, is_bounded=options.stream)

    @uncompiled
    def end_use(self, use: session_slot.Use, exc: BaseException | None, *, at_exit: bool = False) -> None:
        """End, and take and save the results. For `collector.tracing.traced_calls`."""
        if use.is_ended_elsewhere:
            return
        use.thread_id, use.is_ending = threading.get_ident(), True
        if use is not self._use or use.process_id != os.getpid():  # another use was open, or the parent owns this one
            self.abandon(use)
            return
        try:
            with session_slot.ending(use):
                self._take_results(use, at_exit)
        except Exception as error:
            # The body's own exception takes precedence over ours.
            if exc is None:
                raise
            with contextlib.suppress(Exception):
                warn_caller(f"the trace of a step that raised is incomplete: {error}")
        finally:
            session_slot.tell_background(use, self)

    def _take_results(self, use: session_slot.Use, at_exit: bool) -> None:
        in_place = False
        try:
            unseen = self._stop(use, at_exit)
            in_place = self._save_at_end()
        finally:
            _end_journal(use, keep=not in_place)
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
            if use.source is not None:
                is_window = isinstance(use.source, RecordedWindow)
                ended = None if is_window else send_annotations_to(None)
                facts = FactsAtEnd(self.options, ended, use.sampler, at_exit)
                if self.options.stream and not is_window:
                    unseen = self._stop_stream(use, facts)
                else:
                    unseen = self._stop_in_memory(use, facts)
        except Exception as error:
            self.unavailable = _in_words(error)
            self._trouble(error, f"the trace is lost: {self.unavailable}")
        finally:
            self._release(use)
        return unseen

    def _stop_in_memory(self, use: session_slot.Use, facts: FactsAtEnd) -> str:
        assert use.source is not None
        capture = use.source.stop(synchronize=self.options.synchronize, timeout_ms=self.options.timeout_ms)
        # Not before: numpy and these take tenths of a second, and a sub-interpreter may have no numpy.
        from collector.recording.capture_window import begin_at, begin_when_enabled, copied
        from collector.recording.graph_attribution import attribute_graphs
        from collector.recording.recording import Recording

        unseen = facts.add_to(capture)
        attribute_graphs(capture, graph_names())
        if use.begin is not None:
            if use.is_awaited:
                use.whole = Recording.from_capture(copied(capture))
            begin_at(capture, use.begin)
        elif use.enabled is not None:
            begin_when_enabled(capture, use.enabled.cupti_ns)
        self._recording = Recording.from_capture(capture)
        use.source = None
        return unseen

    def _stop_stream(self, use: session_slot.Use, facts: FactsAtEnd) -> str:
        """End a recording whose journal is the result."""
        assert isinstance(use.source, NativeSource)
        assert use.journal is not None
        unseen = facts.write_to_journal(use.source)
        use.source.stop(synchronize=self.options.synchronize, timeout_ms=self.options.timeout_ms)
        use.source = None
        if use.journal.is_removed():
            raise NotTracedError(f"its journal {use.journal.path} was removed before the step ended")
        self._streamed = use.journal.path.absolute()  # it is read later
        return unseen

    def _save_at_end(self) -> bool:
        """Write the requested file; return whether the step's results are saved."""
        if self.unavailable is not None:
            return False
        is_in_dataset = self._add_to_dataset()
        if not self._writable:
            return False
        if self.path is None:
            return is_in_dataset
        if self._windows is not None and self._windows.files is not None:
            try:
                self._windows.files.add(self, self._number)
            except Exception as error:
                self._trouble(error, f"the trace is not saved: {_in_words(error)}")
                return False
            return is_in_dataset
        try:
            with FolderLock(self._directory.anchored(self.path).parent):
                path = self._find_path()  # again, because another process may have created the file meanwhile
                if path is not None and self._streamed is not None:
                    Conversion(self._streamed, path).wait()
                elif path is not None:
                    self.save(path)
                    mark_as_written_here(path)
        except Exception as error:
            self._trouble(error, f"the trace is not saved: {_in_words(error)}")
            return False
        return is_in_dataset

    def _add_to_dataset(self) -> bool:
        """Write the step into the requested dataset; return whether that is done, or nothing was requested."""
        if self.options.dataset is None:
            return True
        if not self._has_dataset:
            return False
        try:
            from collector.dataset.dataset_writer import DatasetWriter

            with DatasetWriter(
                self._directory.anchored(self.options.dataset),
                rank=rank_of_this_process(self.options.rank) or 0,
                label=without_surrogates(self.options.label),
            ) as writer:
                writer.write(self.recording)
        except Exception as error:
            self._trouble(error, f"the step is not in the dataset: {_in_words(error)}")
            return False
        return True

    def _journal_path(self, asked: Path, source: Source) -> Path | None:
        """The path at which ``source`` writes the journal; None, with a warning, if it cannot."""
        try:
            return path_of_journal(
                asked, source, rank=self.options.rank, step=self._number, is_result=self.options.stream
            )
        except CollectorError as error:
            if self.options.stream:
                raise
            self._trouble(error, f"no journal is kept: {error}")
            return None

    def _missing_budget(self, source: Source) -> NotTracedError | None:
        """The reason why the step has no budget of its own: the source leaves nothing out by itself."""
        if not self.options.budget or getattr(source, "keeps_budget", False):
            return None
        is_window = isinstance(source, RecordedWindow)
        return NotTracedError(
            "this process is recorded already" if is_window else f"the source {source.name!r} cannot keep one"
        )

    def _refuse_without_budget(self, source: Source) -> None:
        """Raise in a strict session, before the source starts: nobody would end it."""
        if self.options.strict and (missing := self._missing_budget(source)):
            raise missing

    def _trouble(self, error: Exception, message: str) -> None:
        """Report ``error`` as the options require: raised, or as a warning."""
        if self.options.strict:
            raise error
        if self._windows is None:
            warn_caller(message)
        elif str(error) not in self._told and len(self._told) < _MOST_WARNINGS:
            self._told.add(str(error))
            warn_caller(message)

    @uncompiled
    def abandon(self, use: session_slot.Use) -> None:
        """End ``use`` without results, as far as it has not ended. For `collector.tracing.session_slot`."""
        if use.is_ended_elsewhere:
            return
        if use.process_id != os.getpid():  # forked inside the body: only the parent records
            if use is self._use:
                self.unavailable = "this process was forked while the trace was open; its parent has the trace"
            self._forget(use)
            return
        try:
            self._release(use)
        finally:
            _end_journal(use, keep=use.has_begun)
            session_slot.tell_background(use, self)

    def end_at_exit(self, use: session_slot.Use) -> None:
        """End ``use`` at the exit of the interpreter; the requested file is saved."""
        is_kept = self.options.path is not None or self.options.dataset is not None or self.options.stream
        if use.has_begun and not use.is_ending and is_kept:
            self.end_use(use, None, at_exit=True)
        else:
            self.abandon(use)

    def _release(self, use: session_slot.Use) -> None:
        """Release the source, if it has not been stopped, and the session slot."""
        try:
            # The source may not have reached the point where it releases CUPTI.
            if use is session_slot.open_use() and use.source is not None:
                if not isinstance(use.source, RecordedWindow):
                    send_annotations_to(None)
                self.unavailable = self.unavailable or "the step was broken off where it began or ended"
                use.source.abort()
        finally:
            self._forget(use)

    def _forget(self, use: session_slot.Use) -> None:
        sampler, use.sampler = use.sampler, None
        if sampler is not None and use.process_id == os.getpid():  # a forked child has no such thread
            sampler.stop()
        session_slot.release(use)
        use.source = None
        if self._use is use:
            self._use = None
        with contextlib.suppress(ValueError):
            self._entered.remove(use)


def _present_instant(source: Source) -> Instant | None:
    instant: Callable[[], Instant | None] | None = getattr(source, "instant", None)
    return None if instant is None else instant()


def _start_sampler(use: session_slot.Use, options: TraceOptions) -> None:
    if options.counters:
        from collector.tracing.counter_sampler import CounterSampler

        use.sampler = CounterSampler()
        use.sampler.start()


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


def _end_journal(use: session_slot.Use, *, keep: bool) -> None:
    """Remove the journal, or report its path."""
    journal, use.journal = use.journal, None
    if journal is not None and (line := journal.end(keep=keep)):
        warn_caller(line)


def _check_kinds(missing: str) -> None:
    """Warn at the first annotation if the trace will not contain its name."""
    if missing:
        warn_caller(f"annotations name only the nodes of CUDA graphs in this trace: add {missing} to its kinds")


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, CollectorError) else f"unexpected {type(error).__name__}: {error}"


def _warn_once(asked: Path, message: str) -> None:
    """Warn of a path that differs from the given one, once for all paths that differ only in numbers, as of steps."""
    name = _DIGITS.sub("0", os.fspath(asked))
    if name not in _warned_of and len(_warned_of) < _MOST_WARNED_OF:
        _warned_of.add(name)
        warn_caller(message)
