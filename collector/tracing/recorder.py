"""The flight recorder: the last seconds of GPU work, always at hand, written out when something goes wrong.

>>> import collector
>>> recorder = collector.record(keep="30s")
>>> train()
>>> recorder.dump("slow_step.pftrace")
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import re
import shutil
import sys
import threading
import time
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError, NotTracedError, OutputError, SessionActiveError
from collector.files.atomic_files import absolute, check_folder, check_writable, expanded, output_error
from collector.formats.conversion import Conversion
from collector.formats.output_paths import filled_path
from collector.formats.registry import output_of
from collector.options import KINDS, TraceOptions, kind_names
from collector.runtime.original_functions import getpid
from collector.runtime.process_threads import thread_names
from collector.runtime.signal_handlers import error_of_handler
from collector.text.quantities import size_text, time_text
from collector.tracing import nvtx, session_slot
from collector.tracing.annotate import send_annotations_to
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.recorder_ring import Keep, RecorderSource, Ring
from collector.tracing.recorder_triggers import ExceptionHooks, unended_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType


_DUMPS = "collector-dumps"
"""The folder of dumps if none is given."""
_OF_RUN = "`collector run` records this process"
"""The beginning of the native library's message, whose rest is about steps."""
_WATCH_PERIOD_S = 0.25
_AUTOMATIC_DUMPS = 5
"""Dumps that triggers make in one process: a program that fails in a loop must not fill the disk."""


class Dump:
    """The records that a recorder had at one time."""

    def __init__(self, journal: Path, reason: str, conversion: Conversion | None) -> None:
        """Hold the facts."""
        self.journal = journal
        """The folder of the dumped segments, which `collector.load` and every command read."""
        self.reason = reason
        self._conversion = conversion

    @property
    def path(self) -> Path:
        """The requested file, which another process may still be writing, or the journal."""
        return self.journal if self._conversion is None else self._conversion.target

    def wait(self, timeout_s: float | None = None) -> Path:
        """Wait until the file is there; return its path. Raises `collector.OutputError` if it cannot be written."""
        if self._conversion is not None:
            self._conversion.wait(timeout_s)
        return self.path

    def __repr__(self) -> str:
        return f"<Dump {self.path}: {self.reason}>"


class Recorder:
    """A recorder that is running, made by `record`. A context manager."""

    def __init__(
        self, keep: Keep, folder: Path, kinds: Sequence[str], hang_s: float | None, suffix: str, budget: str = ""
    ) -> None:
        """Take the options; `_begin` starts the recording."""
        self.keep = keep
        self.folder = folder
        """The folder of the dumps."""
        self.unavailable: str | None = None
        """The reason why nothing is recorded; None if the recorder runs."""
        self.dumps: list[Dump] = []
        """The dumps that were made, the latest last."""
        self._kinds, self._hang_s, self._suffix, self._budget = kinds, hang_s, suffix, budget
        self._source: RecorderSource | None = None
        self._nvtx_facts: tuple[dict[str, str], dict[str, int]] = ({}, {})
        """Environment and counters for the journals, about NVTX copies that were used before the handler was armed."""
        self._gets_annotations = False
        self._process_id = getpid()
        self._ring: Ring | None = None
        self._dumping = threading.RLock()  # which a signal handler can acquire that interrupts a dump
        self._is_busy = False
        """Whether the thread that has the lock dumps, or ends the recording."""
        self._is_stop_asked = False
        """Whether a signal handler that interrupted a dump has called `stop`."""
        self._ended = threading.Event()
        self._hooks: ExceptionHooks | None = None
        self._automatic = 0
        self._has_failed = False
        """Whether a CUDA error has lost a context."""
        self._has_all_in_dump = False
        """Whether all that was recorded before the recording broke off is in a dump."""
        self._lacks_dump = False
        """Whether the last dump that something else than the program asked for could not be made."""
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it records now, in this process. A recording that broke off, as on a full disk, does not."""
        source = self._source  # read once: another thread may end it
        return source is not None and self._process_id == getpid() and not source.is_broken

    @property
    def _has_ring(self) -> bool:
        """Whether there is something to dump and to end, in this process."""
        return self._source is not None and self._process_id == getpid()

    def dump(self, path: str | os.PathLike[str] | None = None, *, reason: str = "asked for") -> Dump | None:
        """Write what is kept; the program, and the recorder, go on.

        Args:
            path: the file, whose suffix is the format, with the placeholders of `record`; another process writes it
                from the segments, which stay in a folder of `folder` (`Dump.journal`), and `Dump.wait` waits for it.
                None: the segments alone.
            reason: the reason of the dump, for its name and `Dump.reason`.

        Returns:
            The dump; None, with one warning, if nothing can be written. Of two dumps at a time the second waits; if a
            signal handler asks for it while the first is made, it is not made.

        Raises:
            collector.UnknownFormatError: no format has the suffix of ``path``.
        """
        try:
            target = None if path is None else absolute(filled_path(expanded(path), None))
        except OutputError as error:
            warn_caller(f"nothing is dumped: {error}")
            return None
        if target is not None:
            output_of(target)
        return self._dump_or_report(target, reason, warn_caller)

    def _dump_or_report(
        self, target: Path | None, reason: str, report: Callable[[str], None], *, running: bool = False
    ) -> Dump | None:
        """``report`` is called with one line if the dump is not made, or is incomplete."""
        if not self._can_dump(report):  # before the lock, which a forked child may have inherited
            return None
        try:
            return self._dump_alone(target, reason, report, running=running)
        finally:
            if self._is_stop_asked:
                self.stop()

    def _dump_alone(
        self, target: Path | None, reason: str, report: Callable[[str], None], *, running: bool
    ) -> Dump | None:
        with self._dumping:
            if self._is_busy:
                report("nothing is dumped: this signal handler interrupts a dump, or the end of the recorder")
                return None
            if not self._can_dump(report):  # another thread has ended it meanwhile
                return None
            self._is_busy = True
            try:
                if target is not None:
                    check_writable(target)
                return self._dump(target, reason, report, running=running)
            except (CollectorError, OSError) as error:
                if (interruption := error_of_handler(error)) is not None:
                    raise interruption from None
                report(self._no_dump(error))
                return None
            finally:
                self._is_busy = False

    def _no_dump(self, error: CollectorError | OSError) -> str:
        """The line about a dump that is not made."""
        told = output_error(str(self.folder), error) if isinstance(error, OSError) else error
        return f"nothing is dumped: {told}"

    def _can_dump(self, report: Callable[[str], None]) -> bool:
        """Whether there is something to dump; otherwise ``report`` is called with the reason."""
        if not self._has_ring:
            report(f"nothing is dumped: {self.unavailable or 'the recorder does not run in this process'}")
        return self._has_ring

    def _dump(self, target: Path | None, reason: str, report: Callable[[str], None], *, running: bool = False) -> Dump:
        """``running``: with the work that is not finished, which CUPTI then hands out without its end."""
        assert self._source is not None
        assert self._ring is not None
        threads = {f"thread.{number}": name for number, name in thread_names().items()}
        self._source.note_facts(threads | self._nvtx_facts[0], self._nvtx_facts[1])
        if not self._ring.is_there:
            raise OutputError(self._ring.removal)
        next_segment = self._source.cut(running=running)
        is_broken = self._source.is_broken
        self.folder.mkdir(parents=True, exist_ok=True)
        name = self._free_name(reason)
        journal = self.folder / f"{name}.journal"
        self._ring.copy(journal, next_segment, is_broken=is_broken)
        if target is None and self._suffix:
            target = self.folder / f"{name}{self._suffix}"
        self._has_all_in_dump = is_broken
        conversion, trouble = None, ""
        if target is not None:
            try:
                conversion = Conversion(journal, target, on_failure=_say)
            except OutputError as error:
                trouble = str(error)
        dump = Dump(journal, reason, conversion)
        self.dumps.append(dump)
        if trouble:
            report(f"{trouble}; the dump is in {journal}")
        if not self._source.is_up_to_date:
            report(f"the latest records are not in {journal}: they were not written in time")
        return dump

    def _free_name(self, reason: str) -> str:
        """The name of the next dump in the folder, where earlier recorders of the process may have left theirs."""
        words = re.sub(r"[^A-Za-z0-9]+", "-", reason).strip("-")[:40]
        names = (f"{words}-{getpid()}-{number}" for number in itertools.count(len(self.dumps) + 1))
        suffixes = {".journal", self._suffix or ".journal"}
        return next(name for name in names if not any((self.folder / f"{name}{each}").exists() for each in suffixes))

    def dump_after(self, reason: str, *, running: bool = False) -> Dump | None:
        """Dump for a trigger; one line on standard error says where. Raises nothing.

        ``running``: with unfinished work, whose end is then unknown. CUPTI holds back the launches beside it otherwise,
        and work whose context is lost never finishes.
        """
        if self._automatic >= _AUTOMATIC_DUMPS or not self._has_ring:
            return None
        self._automatic += 1
        # No warning: a program may turn warnings into errors, and a thread of ours must not change the filters of all.
        self._lacks_dump = True
        with contextlib.suppress(Exception):
            dump = self._dump_or_report(None, reason, _say, running=running)
            self._lacks_dump = dump is None
            if dump is not None:
                _say(f"{reason}: the last of what the GPU did is in {dump.path}")
            return dump
        return None

    def stop(self) -> None:
        """End the recording; dumps are kept, the ring is deleted.

        If the recording broke off, as on a full disk, and no dump has been made since, the ring stays: one warning says
        where it is. It stays, too, if the last dump after an error or a hang could not be made.

        A signal handler may call it: if it interrupts a dump, the recording ends after that.
        """
        if not self._has_ring:
            return
        self._ended.set()
        with self._dumping:
            if self._is_busy:
                self._is_stop_asked = True
                return
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._look_at_end()
        with self._dumping:
            source = self._source
            if source is None or self._ring is None:
                return
            self._is_busy = True
            try:
                with session_slot.source_changes():
                    self._end_source(source)
                trouble = source.journal_trouble()
                is_wanted = not self._has_all_in_dump if trouble else self._lacks_dump
                is_kept = is_wanted and self._ring.holds_records()
                if not is_kept:
                    self._ring.remove()
                _running.pop("recorder", None)
                self._source = None  # at last: after a Ctrl-C in this method, it can be called again
            finally:
                self._is_busy = False
        if trouble:
            place = f". Its records are in {self._ring.path}" if is_kept else ""
            warn_caller(f"the recorder can no longer write: {trouble}{place}")
        elif is_kept:
            warn_caller(f"no dump could be made of the recorder's records, which stay in {self._ring.path}")

    def __repr__(self) -> str:
        kept = size_text(self.keep.num_bytes) if self.keep.num_bytes else time_text(self.keep.seconds * 1e9)
        state = "" if self.is_running else f": {self.unavailable or 'ended'}"
        return f"<Recorder of {kept}, dumps in {self.folder}{state}>"

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if exc is not None and isinstance(exc, Exception):
                self.dump_after(f"{type(exc).__name__}", running=True)
        finally:
            self.stop()

    def _begin(self, strict: bool) -> None:
        try:
            if _running.setdefault("recorder", self) is not self:
                raise SessionActiveError("this process has a recorder already", "Use that one: collector.record() once")
            self._ring = Ring(self.folder)
            source = self._source = RecorderSource()
            source.begin(self._ring.path, self.keep, self._kinds, TraceOptions(budget=self._budget))
            self._follow_program(source)
        except (CollectorError, OSError) as error:
            self._undo_begin()
            if (interruption := error_of_handler(error)) is not None:
                raise interruption from None
            if isinstance(error, SessionActiveError) and str(error).startswith(_OF_RUN):
                error = SessionActiveError(
                    f"{_OF_RUN} already, and its trace has all of it", "Leave `collector.record` or `collector run` out"
                )
            self.unavailable = " ".join(str(error).split())
            if strict:
                raise error
            warn_caller(f"nothing is recorded: {self.unavailable}")
        except BaseException:
            self._undo_begin()
            raise

    def _follow_program(self, source: RecorderSource) -> None:
        """Pass annotations to the recording, and watch for events that trigger dumps."""
        texts, counters = nvtx.missed_facts() if nvtx.is_armed() else ({}, {})
        self._nvtx_facts = {f"environment.{name}": text for name, text in texts.items()}, counters
        self._gets_annotations = True
        send_annotations_to(source, is_bounded=True)
        atexit.register(self.stop)
        self._hooks = ExceptionHooks(lambda reason, ends: self.dump_after(reason, running=ends))
        thread = threading.Thread(target=self._watch, name="collector recorder", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise NotTracedError(
                f"no thread can be started ({error})", "Raise the limit of threads (ulimit -u, pids.max of the cgroup)"
            ) from error
        self._thread = thread

    def _undo_begin(self) -> None:
        """Leave the process as it was before `_begin`."""
        self._ended.set()
        source, self._source = self._source, None
        if source is not None:
            self._end_source(source)
        if self._ring is not None:
            self._ring.remove()
        if _running.get("recorder") is self:
            del _running["recorder"]

    def _end_source(self, source: RecorderSource) -> None:
        """End the recording, and remove the recorder's hooks from the program."""
        try:
            if self._gets_annotations:  # else they are those of the session that is open
                send_annotations_to(None)
                self._gets_annotations = False
            if self._hooks is not None:
                self._hooks.restore()
                self._hooks = None
            atexit.unregister(self.stop)
        finally:
            with contextlib.suppress(NotTracedError):
                source.stop(synchronize=False, timeout_ms=TraceOptions.timeout_ms)

    def _watch(self) -> None:
        """Look for errors and hangs until the end."""
        rows, quiet_since, is_reported = -1, time.monotonic(), False
        ring = self._ring
        assert ring is not None
        while not self._ended.wait(_WATCH_PERIOD_S):
            source = self._source
            state = None if source is None or not self._has_ring else source.state()
            if state is None:
                return
            if state["is_broken"]:
                kept = f" (is the disk full?): it keeps what it has, for dumps, in {ring.path}"
                _say(f"the recorder cannot write any more{kept if ring.is_there else f': {ring.removal}'}")
                return
            self._look_at_error(state)
            if state["rows"] != rows:
                rows, quiet_since, is_reported = state["rows"], time.monotonic(), False
            elif self._hang_s is not None and not is_reported and time.monotonic() - quiet_since >= self._hang_s:
                is_reported = True
                # CUPTI may hold back the launches together with the kernel that does not end.
                if state["outstanding"] or state["buffers_held"]:
                    with contextlib.suppress(Exception):
                        self._look_at_hang(self._hang_s)

    def _look_at_error(self, state: Any) -> None:
        """Dump once after an error that has lost a context."""
        if state["error"] and not self._has_failed:
            self._has_failed = True
            self.dump_after(f"CUDA error {state['error']} of {state['error_function']}", running=True)

    def _look_at_end(self) -> None:
        """Look for an error in the records that CUPTI has held back until now."""
        if self._source is None or self._has_failed:
            return
        with contextlib.suppress(Exception):
            self._source.cut(running=True)
            state = self._source.state()
            if state is not None and not state["is_broken"]:
                self._look_at_error(state)

    def _look_at_hang(self, seconds: float) -> None:
        """Dump if launches are outstanding that are not part of a graph's capture; say which kernels run."""
        with self._dumping:
            if self._source is None or self._automatic >= _AUTOMATIC_DUMPS:
                return
            try:
                dump = self._dump(None, f"no GPU work ended for {seconds:g} s", _say, running=True)
            except (CollectorError, OSError) as error:
                self._lacks_dump = True
                _say(f"no GPU work ended for {seconds:g} s although work was launched; {self._no_dump(error)}")
                return
            self._lacks_dump = False
            kernels = unended_kernels(dump.journal)
            if kernels is None:
                self.dumps.remove(dump)
                with contextlib.suppress(OutputError):
                    dump.wait()
                shutil.rmtree(dump.journal, ignore_errors=True)
                if dump.path != dump.journal:
                    dump.path.unlink(missing_ok=True)
                return
            self._automatic += 1
        which = f"; running: {', '.join(kernels)}" if kernels else ""
        _say(f"{dump.reason} although work was launched{which}. The last of what the GPU did is in {dump.path}")


def record(
    keep: str = "30s",
    *,
    folder: str | os.PathLike[str] = _DUMPS,
    kinds: Iterable[str] = KINDS,
    hang: float | None = 30.0,
    suffix: str = "",
    strict: bool = False,
    budget: str | None = None,
) -> Recorder:
    """Record all GPU work of this process from now on, and keep the latest part of it.

    The records are in a ring of files, not in memory. `Recorder.dump` writes them to a file; so does the recorder
    itself when an exception is not caught, when a call returns a CUDA error after which the context is lost, and when
    launched work does not end. The program goes on in each case. `collector.trace` works as always: its step is a part
    of this recording.

    A second recorder, or a process where nothing can be traced, gets one warning and a recorder that does nothing;
    `Recorder.unavailable` has the reason.

    Args:
        keep: a time (``30s``, ``5min``) or a size on disk (``512MB``).
        folder: the folder of dumps, made with the first of them; ``{rank}``, ``{pid}``, ``{host}`` and
            ``{env:VARIABLE}`` are filled in.
        kinds: the kinds of activity, as in `collector.trace`.
        hang: the seconds without any record, while launches are outstanding, that count as a hang; None: never.
        suffix: the format of dumps that the recorder makes by itself, such as ``.pftrace``; by default they are
            journals, which need no conversion.
        strict: raise a `collector.CollectorError` instead of warning.
        budget: the maximum cost of recording, as in `collector.trace`. Once API calls are left out (as the fourth kind
            at the latest), no hangs are noticed, and only those CUDA errors that a wait returns.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option has an invalid value.
    """
    if not isinstance(keep, str):
        raise TypeError(f"keep takes text such as '30s' or '512MB', not {keep!r}")
    kept = Keep.of(keep)
    names = kind_names(kinds)
    limit = "" if budget is None else budget
    TraceOptions(kinds=names, budget=limit)
    if hang is not None and not (isinstance(hang, Real) and not isinstance(hang, bool)):
        raise TypeError(f"hang takes a number of seconds or None, not {hang!r}")
    if hang is not None and not hang > 0:
        raise ValueError(f"hang is {hang}: a number of seconds above 0 is needed, or None")
    if suffix:
        output_of(Path(f"dump{suffix}"))
    try:
        dumps = _dump_folder(folder, strict=strict)
    except OutputError as error:
        if strict:
            raise
        recorder = Recorder(kept, Path(folder), names, hang, suffix, limit)
        recorder.unavailable = str(error)
        warn_caller(f"nothing is recorded: {error}")
        return recorder
    recorder = Recorder(kept, dumps, names, hang, suffix, limit)
    try:
        with session_slot.source_changes():
            recorder._begin(strict)
        return recorder
    except BaseException:
        recorder.stop()  # a Ctrl-C may come after its beginning
        raise


def _dump_folder(folder: str | os.PathLike[str], *, strict: bool) -> Path:
    """The folder with its placeholders filled in; where it cannot be made, with a warning, the default.

    Raises:
        collector.OutputError: neither can be made.
    """
    try:
        place = absolute(filled_path(expanded(folder), None))
        check_folder(place, place, is_made=True)
        return place
    except OutputError as error:
        if strict:
            raise
        default = absolute(Path(_DUMPS))
        warn_caller(f"dumps are put into {_DUMPS}: {error}")
        return default


def open_recorder() -> Recorder | None:
    """The recorder of this process, which may have broken off: for tests, and for code that dumps it from outside."""
    recorder = _running.get("recorder")
    return recorder if recorder is not None and recorder._has_ring else None


_running: dict[str, Recorder] = {}
"""The recorder of the process. A dictionary, because no signal can interrupt its insertion."""


def _forget_in_child() -> None:
    """After a fork the recorder is the parent's."""
    for recorder in _running.values():
        if recorder._hooks is not None:
            recorder._hooks.restore()
        atexit.unregister(recorder.stop)
    _running.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(f"collector: {text}", file=sys.stderr, flush=True)
