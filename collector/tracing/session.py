"""One traced step, from the first launch to the file."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from collector.errors import CollectorError, CollectorWarning, NotTracedError, OutputError, SessionActiveError
from collector.files.atomic_files import check_writable, expanded
from collector.formats.output_paths import file_of_this_process, mark_as_written_here
from collector.formats.registry import output_of
from collector.formats.step import TracedStep
from collector.options import KINDS, TraceOptions
from collector.runtime.interpreters import check_main_interpreter
from collector.runtime.uncompiled import uncompiled
from collector.sources import SOURCE_NAMES, open_source
from collector.tracing import session_slot
from collector.tracing.annotate import send_annotations_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from collector.recording.recording import Recording
    from collector.sources import Source

    Function = TypeVar("Function", bound=Callable[..., Any])


def _names(kinds: str | Iterable[str]) -> tuple[str, ...]:
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds) if isinstance(kinds, Iterable) else (kinds,)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"kinds takes names, not {name!r}")
    return names


_HERE = str(Path(__file__).parent.parent)


@overload
def trace(path: Function, /) -> Function: ...


@overload
def trace(
    path: str | os.PathLike[str] | None = None,
    *,
    strict: bool = ...,
    source: str | Source = ...,
    synchronize: bool = ...,
    kinds: str | Iterable[str] = ...,
    buffer_bytes: int = ...,
    max_buffers: int = ...,
    timeout_ms: int = ...,
    rank: int | None = ...,
    job: str = ...,
    stacks: bool = ...,
    journal: str | os.PathLike[str] | None = ...,
) -> Session: ...


def trace(
    path: str | os.PathLike[str] | Function | None = None,
    *,
    strict: bool = False,
    source: str | Source = "auto",
    synchronize: bool = True,
    kinds: str | Iterable[str] = KINDS,
    buffer_bytes: int = TraceOptions.buffer_bytes,
    max_buffers: int = TraceOptions.max_buffers,
    timeout_ms: int = TraceOptions.timeout_ms,
    rank: int | None = None,
    job: str = TraceOptions.job,
    stacks: bool = False,
    journal: str | os.PathLike[str] | None = None,
) -> Session | Function:
    """Return a session that traces what the GPU does in a block or a function.

    >>> with collector.trace("step.json") as step:
    ...     train_step()
    >>> print(step.summary())

    As a decorator without options it needs no parentheses: ``@collector.trace``.

    Where nothing can be traced the body runs all the same, one `collector.CollectorWarning` says why and what to do,
    and `Session.unavailable` holds the reason.

    While a trace is open another profiler in this process records no GPU activity, and PyTorch's never does again if
    its first use falls into our trace: use ``torch.profiler`` before or after, not within. Its earlier use is no
    obstacle: torch keeps CUPTI's one subscription for good, so while its profiler is idle we collect without one.

    Args:
        path: where to write the trace at the end. The suffix decides: ``.json`` Chrome trace, ``.pftrace`` Perfetto's,
            both also with ``.gz``; ``.pb`` and ``.pbtxt`` RunMetadata; ``.gpurec`` the recording itself. An existing
            file is replaced, of a link the one that it points to; ``~`` is the home folder. Of many ranks or processes
            each writes a file of its own: `Session.path`.
        strict: raise a `collector.CollectorError` instead of warning.
        source: ``auto``, ``native``, ``cupti-python``, or a `collector.sources.Source`.
        synchronize: wait at the end for what the devices have not finished, so that it is in the trace.
        kinds: what to record, a name or several, out of `collector.options.KINDS` (all of them by default)
            and `collector.options.KINDS_ON_REQUEST`.
        buffer_bytes: bytes of one activity buffer.
        max_buffers: how many buffers there may be at once.
        timeout_ms: how long the end waits for outstanding buffers.
        rank: this process's rank, put before the device names together with ``job``.
        job: the job's name there.
        stacks: remember the Python stack at every annotation, for the code view of `collector.profiler`.
        journal: where to keep what is recorded while the step is open, should the program be killed or crash in it.
            `collector.load` and every command read such a file. It goes away when the step has ended and its results
            are where they belong; one that is there already is never written over. Only the native source keeps one.

    Raises:
        collector.UnknownFormatError: the suffix of ``path`` says no format.
        ValueError: an option has a value that it cannot have.
        TypeError: an option is not of its type.
    """
    if isinstance(source, str) and source not in SOURCE_NAMES:
        raise ValueError(f"unknown source {source!r}: choose one of {', '.join(SOURCE_NAMES)}")
    function, path = (path, None) if callable(path) and not isinstance(path, os.PathLike) else (None, path)
    target = None if path is None else expanded(path)
    if target is not None:
        output_of(target)
    options = TraceOptions(
        path=target,
        strict=strict,
        source=source,
        synchronize=synchronize,
        kinds=_names(kinds),
        buffer_bytes=buffer_bytes,
        max_buffers=max_buffers,
        timeout_ms=timeout_ms,
        rank=rank,
        job=job,
        stacks=stacks,
        journal=None if journal is None else expanded(journal),
    )
    if function is None:
        return Session(options)
    if options != TraceOptions():
        raise TypeError("a function and options do not go together: write @collector.trace(...) above the function")
    return Session(options)(function)


class Session(TracedStep):
    """Open while a step is traced, and afterwards holds what came out. Made by `trace`.

    A context manager and a decorator. It can be used again: every use begins anew, and the results are the last use's.
    One process can have one open session.
    """

    def __init__(self, options: TraceOptions) -> None:
        """Take the options; nothing happens before the block is entered."""
        self.options = options
        """The options of the session."""
        self.path: Path | None = None
        """The path of the last step's file: the path asked for, or that of this rank or process."""
        self.unavailable: str | None = None
        """Why the last step was not traced: cause and remedy in one line. None when it was."""
        self._use: session_slot.Use | None = None  # the one that traces
        self._entered: list[session_slot.Use] = []  # by `with`: a second one while the first is open traces nothing
        self._recording: Recording | None = None
        self._writable = True

    def _state(self) -> str:
        if self._use:
            return "open"
        return self.unavailable or (super()._state() if self._recording is not None else "not used yet")

    # What begins and ends a step is kept from torch.compile as a whole; these two cannot be, for then a Ctrl-C between
    # them and their callers would go unnoticed.
    def __enter__(self) -> Session:
        use = _new_use(self)
        try:
            self._begin(use, by_with=True)
            return self
        except BaseException:
            self.abandon(use)  # also what a Ctrl-C left half done
            raise

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        use = None
        try:
            use = self._last_entered()
            if use is not None:
                self._end(use, exc)
        finally:
            use = use or self._last_entered()
            if use is not None:
                self.abandon(use)  # nothing is left to be done, unless the end was broken off

    async def __aenter__(self) -> Session:
        """As `__enter__`: nothing is awaited."""
        return self.__enter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `__exit__`: nothing is awaited."""
        self.__exit__(exc_type, exc, traceback)

    def __del__(self) -> None:
        use = getattr(self, "_use", None)
        if use is not None:
            session_slot.keep_dropped(use, self)

    def __call__(self, function: Function) -> Function:
        """Trace every call of ``function``, also a coroutine or generator function, from its first step to its last.

        The session is the wrapper's attribute ``session``. A call made inside the traced call, as in a recursion, is
        part of it.
        """
        import inspect

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with _Call(self):
                    async with contextlib.aclosing(function(*args, **kwargs)) as values:
                        async for value in values:
                            yield value

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with _Call(self):
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with _Call(self):
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if self._is_open_here():
                    return function(*args, **kwargs)
                with _Call(self):
                    return function(*args, **kwargs)

        wrapper.session = self  # type: ignore[attr-defined]
        return cast("Function", wrapper)

    @uncompiled
    def _is_open_here(self) -> bool:
        return self._use is not None and self._use.is_here

    @property
    def recording(self) -> Recording:
        """The recording; empty when nothing could be traced. `NotTracedError` before the step has ended."""
        if self._recording is None:
            if self._use is not None:
                raise NotTracedError("the step is still being traced: its results are there when the block has ended")
            if self.unavailable is None:
                raise NotTracedError("this session has not traced a step yet")
            self._recording = _nothing()
        return self._recording

    @property
    def idle(self) -> bool:
        """Whether the session is open and nothing was recorded in it yet; False where the source cannot say."""
        source = self._use and self._use.source
        return source is not None and bool(getattr(source, "is_idle", bool)())

    @property
    def device_prefix(self) -> str:  # type: ignore[override]
        """Put before the names of devices: ``/job:worker/replica:0/task:3``."""
        return self.options.device_prefix

    def _check_path(self) -> None:
        path = self._find_path()
        if path is None:
            return
        try:
            check_writable(path)
        except CollectorError as error:
            self._trouble(error, f"the trace will not be saved: {error}")
            self._writable = False

    def _find_path(self) -> Path | None:
        """Set `path`; warn once if it differs from the path that was asked for."""
        self.path, reason = self.options.path, ""
        if self.path is not None:
            self.path, reason = file_of_this_process(self.path, self.options.rank)
        if reason:
            _warn_once(reason)
        return self.path

    @uncompiled
    def _last_entered(self) -> session_slot.Use | None:
        """The use that the present block entered; a session may end on another thread than it began on."""
        here = [use for use in self._entered if use.is_here]
        uses = here or self._entered
        return uses[-1] if uses else None

    @uncompiled
    def _begin(self, use: session_slot.Use, *, by_with: bool = False) -> None:
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
        self._check_path()
        self._start(use)
        use.has_begun = True

    def _forget_results(self, unavailable: str | None = None) -> None:
        self.unavailable, self._recording, self._writable = unavailable, None, True
        self.__dict__.pop("run_metadata", None)

    def _start(self, use: session_slot.Use) -> None:
        source, options = self.options.source, self.options
        if session_slot.torch_profiler_is_idle():
            options = replace(options, share_subscription=True)
        try:
            check_main_interpreter()
            use.source = open_source(source) if isinstance(source, str) else source
            if options.journal is not None:
                journal, _ = file_of_this_process(options.journal, options.rank)
                options = replace(options, journal=journal if self._can_keep(journal, use.source) else None)
            use.source.start(options)
        except Exception as error:  # whatever it is, the user's program goes on
            use.source, self.unavailable = None, _in_words(error)
            self._trouble(error, f"GPU activity is not traced: {self.unavailable}")
            return
        if options.journal is not None:
            use.journal_keeper, use.journal = use.source, options.journal
        check_kinds = functools.partial(_check_kinds, self.options.missing_for_annotations)
        send_annotations_to(use.source, stacks=options.stacks, on_first=check_kinds)

    @uncompiled
    def _end(self, use: session_slot.Use, exc: BaseException | None, *, at_exit: bool = False) -> None:
        if use.is_ended_elsewhere:
            return
        use.thread_id, use.is_ending = threading.get_ident(), True
        if use is not self._use or use.process_id != os.getpid():  # another one was open; or ours is the parent's
            self.abandon(use)
            return
        try:
            with session_slot.ending(use):
                self._take_results(use, at_exit)
        except Exception as error:
            # The body's own exception goes first, whatever happened to us.
            if exc is None:
                raise
            with contextlib.suppress(Exception):
                _warn(f"the trace of a step that raised is incomplete: {error}")
        finally:
            session_slot.tell_background(use, self)

    def _take_results(self, use: session_slot.Use, at_exit: bool) -> None:
        in_place = False
        try:
            self._stop(use, at_exit)
            in_place = self._save_at_end()
        finally:
            self._end_journal(use, keep=not in_place)
        losses = () if self._recording is None else self.ledger.explained_losses()
        for line in (line for name, line in losses if name == "annotations_mixed"):
            _warn(line)

    def _stop(self, use: session_slot.Use, at_exit: bool) -> None:
        try:
            ended = send_annotations_to(None)
            if use.source is not None:
                from collector.recording.recording import Recording  # not before: a sub-interpreter may have no numpy

                capture = use.source.stop(synchronize=self.options.synchronize, timeout_ms=self.options.timeout_ms)
                capture["environment"].setdefault("thread_names", session_slot.thread_names())
                capture.setdefault("details", tuple(ended.details))
                if ended.mixed:
                    capture["counters"]["annotations_mixed"] = ended.mixed
                if at_exit:
                    capture["counters"]["open_at_exit"] = 1
                self._recording = Recording.from_capture(capture)
                use.source = None
        except Exception as error:
            self.unavailable = _in_words(error)
            self._trouble(error, f"the trace is lost: {self.unavailable}")
        finally:
            self._release(use)

    def _save_at_end(self) -> bool:
        """Write the file that was asked for; return whether the step's results are where they belong."""
        if self.unavailable is not None or not self._writable:
            return False
        path = self._find_path()  # again, for another process may have written there meanwhile
        if path is None:
            return True
        try:
            self.save(path)
            mark_as_written_here(path)
        except Exception as error:
            self._trouble(error, f"the trace is not saved: {_in_words(error)}")
            return False
        return True

    def _can_keep(self, journal: Path, source: Source) -> bool:
        """Whether ``source`` can keep a journal at that path; warns if it cannot."""
        try:
            if not hasattr(source, "journal_trouble"):
                raise OutputError(f"the source {source.name!r} keeps no journal", "Use source='native'")
            check_writable(journal)
            if journal.exists():
                raise OutputError(
                    f"{journal} is there already, as if a program had ended before its step did",
                    "Read it (collector timeline does) and take it away, or name another file",
                )
        except CollectorError as error:
            self._trouble(error, f"no journal is kept: {error}")
            return False
        return True

    def _end_journal(self, use: session_slot.Use, *, keep: bool) -> None:
        """Take the journal away, or say where it is."""
        keeper, use.journal_keeper = use.journal_keeper, None
        journal = use.journal
        if keeper is None or journal is None:
            return
        trouble = keeper.journal_trouble()
        is_empty = keep and trouble and not _holds_records(journal)
        if is_empty or not keep:
            keeper.remove_journal()
        if is_empty:
            _warn(f"the journal {journal} broke off before anything was in it: {trouble}")
        elif trouble:
            kept = "; what was recorded until then is in it" if keep else ""
            _warn(f"the journal {journal} broke off before the step ended: {trouble}{kept}")
        elif keep:
            _warn(f"what was recorded is in the journal {journal}")

    def _trouble(self, error: Exception, message: str) -> None:
        """Tell of ``error`` as the options say: raised, or as a warning."""
        if self.options.strict:
            raise error
        _warn(message)

    @uncompiled
    def abandon(self, use: session_slot.Use) -> None:
        """End ``use`` without results as far as it has not ended. For `collector.tracing.session_slot`."""
        if use.is_ended_elsewhere:
            return
        if use.process_id != os.getpid():  # a fork inside the body: the parent records, the child must touch nothing
            if use is self._use:
                self.unavailable = "this process was forked while the trace was open; its parent has the trace"
            self._forget(use)
            return
        try:
            self._release(use)
        finally:
            self._end_journal(use, keep=use.has_begun)
            session_slot.tell_background(use, self)

    def end_at_exit(self, use: session_slot.Use) -> None:
        """End ``use`` as the interpreter ends: saved where a file was asked for."""
        if use.has_begun and not use.is_ending and self.options.path is not None:
            self._end(use, None, at_exit=True)
        else:
            self.abandon(use)

    def _release(self, use: session_slot.Use) -> None:
        """Let go of the source, if it has not been stopped, and of the process."""
        try:
            if use is session_slot.open_use():
                send_annotations_to(None)
                if use.source is not None:  # it may not have come as far as to let go of CUPTI
                    self.unavailable = self.unavailable or "the step was broken off where it began or ended"
                    use.source.abort()
        finally:
            self._forget(use)

    def _forget(self, use: session_slot.Use) -> None:
        session_slot.release(use)
        use.source = None
        if self._use is use:
            self._use = None
        with contextlib.suppress(ValueError):
            self._entered.remove(use)


class _Call:
    """A call of a decorated function, as a block. Where not even its end is reached, the object's end is that."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._use = _new_use(session)

    def __enter__(self) -> None:
        try:
            self._session._begin(self._use)
        except BaseException:
            self._session.abandon(self._use)
            raise

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._session._end(self._use, exc)
        finally:
            self._session.abandon(self._use)

    def __del__(self) -> None:
        if self._use is session_slot.open_use():
            self._session.abandon(self._use)


@uncompiled
def _new_use(session: Session) -> session_slot.Use:
    return session_slot.Use(session)


def _let_go_of_abandoned() -> None:
    """End a use that nobody can end any more, so that the process can trace again."""
    use = session_slot.open_use()
    if use is None or not use.is_abandoned:
        return
    session = use.last_session()
    if session is None:
        session_slot.release(use)
        return
    session.abandon(use)
    if use.has_begun and not use.is_ending:
        _warn(f"a trace ({use.path or 'in memory'}) was never ended and nothing refers to its session: it is lost")


def _nothing() -> Recording:
    from collector.recording.capture import empty_capture
    from collector.recording.recording import Recording

    capture = empty_capture()
    capture["counters"]["untraced"] = 1
    return Recording.from_capture(capture)


def _holds_records(journal: Path) -> bool:
    from collector.recording.journal import holds_records

    return holds_records(journal)


def _check_kinds(missing: str) -> None:
    """Say where the first annotation is entered if the trace will not have its name."""
    if missing:
        _warn(f"annotations name nothing in this trace: add {missing} to its kinds")


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, CollectorError) else f"unexpected {type(error).__name__}: {error}"


@functools.cache
def _warn_once(message: str) -> None:
    _warn(message)


def _warn(message: str) -> None:
    """Warn at the caller's line, which is the first one outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CollectorWarning, stacklevel=level)
