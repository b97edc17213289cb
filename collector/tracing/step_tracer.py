"""The tracer of one step: a source of records with its journal, its sampled counters and its annotations."""

from __future__ import annotations

import contextlib
import functools
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from collector.errors import CollectorError, NotTracedError, SessionActiveError
from collector.runtime.interpreters import check_main_interpreter
from collector.runtime.original_functions import getpid
from collector.runtime.signal_handlers import error_of_handler
from collector.sources import open_source
from collector.sources.native import NativeSource
from collector.tracing.annotate import load_annotations, records_stacks, send_annotations_to
from collector.tracing.caller_warnings import warn_caller
from collector.tracing.facts_at_end import FactsAtEnd
from collector.tracing.graph_names import graph_names
from collector.tracing.nvtx import prepare
from collector.tracing.recorded_process import RecordedWindow, window_of_recording
from collector.tracing.step_journal import StepJournal, path_of_journal

if TYPE_CHECKING:
    from pathlib import Path

    from collector.options import TraceOptions
    from collector.recording.capture import Instant
    from collector.recording.recording import Recording
    from collector.sources import Source
    from collector.tracing.counter_sampler import CounterSampler
    from collector.tracing.step_outputs import Trouble


class StepResults(NamedTuple):
    """The results of a step that has ended."""

    recording: Recording | None
    """The recording; None: the records are in a journal."""
    streamed: Path | None
    """The journal, if it is the only result; otherwise None."""
    whole: Recording | None
    """The recording including the warm-up; None: there was no warm-up, or it was not requested."""
    unseen: str
    """One line about what the NVTX handler could not see, for a warning; empty: nothing."""


class StepTracer:
    """Traces one step, from the start of its source until that has stopped.

    A Ctrl-C may interrupt every line, also of `start` and `stop`: `abort` undoes what has been done until then.
    """

    def __init__(self, options: TraceOptions) -> None:
        """Nothing is opened yet."""
        self._options = options
        self._process_id = getpid()
        self._source: Source | None = None  # that records, or is about to start
        self._journal: StepJournal | None = None
        self._journal_path: Path | None = None
        self._sampler: CounterSampler | None = None
        self._enabled: Instant | None = None  # when the source recorded everything; None: it is not known
        self._begin: Instant | None = None  # the begin of the results, where the source started earlier to warm up

    @property
    def is_open(self) -> bool:
        """Whether it records, or is about to."""
        return self._source is not None

    @property
    def is_window(self) -> bool:
        """Whether the step is a part of a recording of the whole process, which goes on after it."""
        return isinstance(self._source, RecordedWindow)

    @property
    def is_idle(self) -> bool:
        """Whether it is open and has recorded nothing yet; False if the source cannot tell."""
        return self._source is not None and bool(getattr(self._source, "is_idle", bool)())

    def start(self, number: int, trouble: Trouble) -> None:
        """Start to record, on its own or as a part of a recording of the whole process.

        Args:
            number: the number of the step, counted from 0.
            trouble: reports options that cannot be fulfilled.

        Raises:
            Exception: nothing can be recorded. Unless it is that of a signal handler, the instance is not open then.
        """
        options = self._options
        if _torch_profiler_is_idle():
            options = replace(options, share_subscription=True)
        try:
            check_main_interpreter()
            prepare(options.nvtx)
            self._source = open_source(options.source) if isinstance(options.source, str) else options.source
            if options.journal is not None:
                options = replace(options, journal=self._find_journal(options.journal, self._source, number, trouble))
            self._refuse_in_part(self._source)
            load_annotations()
            try:
                self._source.start(options)
                self._enabled = _present_instant(self._source)  # from here on, the time is that of the step
            except SessionActiveError:  # of `collector run`, or of another extension module
                window = window_of_recording(options)
                if window is None:
                    raise
                self._refuse_in_part(window)
                self._source = window
        except Exception as error:
            if error_of_handler(error) is None:  # else the source may have started
                self._source = None
            raise
        self._journal_path = options.journal

    def accompany(self, trouble: Trouble) -> None:
        """Take over the journal, start to sample counters, and receive the annotations of the program."""
        source, options = self._source, self._options
        assert source is not None
        # The annotations of a window are sent to the recording already, and its journal is that of the recording.
        if self._journal_path is not None and not self.is_window:
            self._journal = StepJournal(source, self._journal_path, is_result=options.stream)
        if missing := self._missing_budget(source):
            trouble(missing, f"the step has no budget of its own: {missing}")
        if missing := self._missing_journal(source):
            trouble(missing, f"the journal {options.journal} is not written: {missing}")
        if missing := self._missing_stacks(source):
            trouble(missing, f"the Python stacks of annotations are not recorded: {missing}")
        if options.counters:
            from collector.tracing.counter_sampler import CounterSampler

            self._sampler = CounterSampler()
            self._sampler.start()
        if not self.is_window:
            check_kinds = functools.partial(_check_kinds, options.missing_for_annotations)
            send_annotations_to(source, stacks=options.stacks, on_first=check_kinds, is_bounded=options.stream)

    def _find_journal(self, asked: Path, source: Source, number: int, trouble: Trouble) -> Path | None:
        """The path at which ``source`` writes the journal; None if it cannot."""
        options = self._options
        try:
            return path_of_journal(asked, source, rank=options.rank, step=number, is_result=options.stream)
        except CollectorError as error:
            if options.stream:
                raise
            trouble(error, f"no journal is kept: {error}")
            return None

    def _missing_budget(self, source: Source) -> NotTracedError | None:
        """The reason why the step has no budget of its own: the source leaves nothing out by itself."""
        if not self._options.budget or getattr(source, "keeps_budget", False):
            return None
        is_window = isinstance(source, RecordedWindow)
        return NotTracedError(
            "this process is recorded already" if is_window else f"the source {source.name!r} cannot keep one"
        )

    def _missing_journal(self, source: Source) -> NotTracedError | None:
        """The reason why the journal that was to be the result is not written: a recording has one journal."""
        if not self._options.stream or not isinstance(source, RecordedWindow):
            return None
        return NotTracedError(
            "this process is recorded already, and the step is a part of that recording",
            "Save the step, or leave stream=True out",
        )

    def _missing_stacks(self, source: Source) -> NotTracedError | None:
        """The reason why annotations have no Python stacks: they are those of the recording that contains the step."""
        if not self._options.stacks or not isinstance(source, RecordedWindow) or records_stacks():
            return None
        return NotTracedError(
            "this process is recorded already, without them",
            "Give annotations stack=True, or record with collector run --python",
        )

    def _refuse_in_part(self, source: Source) -> None:
        """Raise in a strict session what would be missing, before the source starts: nobody would end it."""
        missing = self._missing_budget(source) or self._missing_journal(source) or self._missing_stacks(source)
        if self._options.strict and missing:
            raise missing

    def discard_warm_up(self) -> None:
        """Let the results begin now."""
        if self._source is None:
            return
        if self.is_window:
            with contextlib.suppress(CollectorError, OSError):  # the end will find the cause
                self._source.start(self._options)
        else:
            self._begin = _present_instant(self._source)

    def stop(self, *, at_exit: bool, keeps_warm_up: bool) -> StepResults:
        """End the recording. The instance is open until `forget` is called: the results may not be stored yet.

        Args:
            at_exit: whether the exit of the interpreter ends the step.
            keeps_warm_up: whether the recording with the warm-up is asked for, too.

        Raises:
            Exception: the results are lost.
        """
        assert self._source is not None
        ended = None if self.is_window else send_annotations_to(None)
        facts = FactsAtEnd(self._options, ended, self._sampler, at_exit)
        if self._options.stream and not self.is_window:
            return self._stop_stream(facts)
        return self._stop_in_memory(facts, keeps_warm_up=keeps_warm_up)

    def _stop_in_memory(self, facts: FactsAtEnd, *, keeps_warm_up: bool) -> StepResults:
        assert self._source is not None
        capture = self._source.stop(synchronize=self._options.synchronize, timeout_ms=self._options.timeout_ms)
        # Not before: numpy and these take tenths of a second, and a sub-interpreter may have no numpy.
        from collector.recording.capture_window import begin_at, begin_when_enabled, copied
        from collector.recording.graph_attribution import attribute_graphs
        from collector.recording.recording import Recording

        unseen = facts.add_to(capture)
        attribute_graphs(capture, graph_names())
        whole = None
        if self._begin is not None:
            if keeps_warm_up:
                whole = Recording.from_capture(copied(capture))
            begin_at(capture, self._begin)
        elif self._enabled is not None:
            begin_when_enabled(capture, self._enabled.cupti_ns)
        return StepResults(Recording.from_capture(capture), None, whole, unseen)

    def _stop_stream(self, facts: FactsAtEnd) -> StepResults:
        """End a recording whose journal is the result."""
        assert isinstance(self._source, NativeSource)
        assert self._journal is not None
        unseen = facts.write_to_journal(self._source)
        self._source.stop(synchronize=self._options.synchronize, timeout_ms=self._options.timeout_ms)
        if self._journal.is_removed():
            raise NotTracedError(f"its journal {self._journal.path} was removed before the step ended")
        return StepResults(None, self._journal.path.absolute(), None, unseen)  # absolute, because it is read later

    def end_journal(self, *, keep: bool) -> None:
        """Remove the journal, or report its path."""
        journal, self._journal = self._journal, None
        if journal is not None and (line := journal.end(keep=keep)):
            warn_caller(line)

    def abort(self) -> None:
        """Release the source without results."""
        if self._source is None:
            return
        try:
            if not self.is_window:
                send_annotations_to(None)
        finally:
            self._source.abort()

    def forget(self) -> None:
        """Stop counters and annotations, and forget the source, which has ended or belongs to a parent process."""
        sampler, self._sampler = self._sampler, None
        if sampler is not None and self._process_id == getpid():  # a forked child has no such thread
            sampler.stop()
        self._source = None


def _present_instant(source: Source) -> Instant | None:
    instant = getattr(source, "instant", None)
    present: Instant | None = None if instant is None else instant()
    return present


def _check_kinds(missing: str) -> None:
    """Warn at the first annotation if the trace will not contain its name."""
    if missing:
        warn_caller(f"annotations name only the nodes of CUDA graphs in this trace: add {missing} to its kinds")


def _torch_profiler_is_idle() -> bool:
    """Whether PyTorch is loaded and its profiler is not running.

    Kineto subscribes to CUPTI at its first use and never unsubscribes (pytorch/pytorch#191944), so a held subscription
    does not show whether it records.
    """
    torch = sys.modules.get("torch")
    profiler = getattr(getattr(torch, "autograd", None), "profiler", None)
    return profiler is not None and not getattr(profiler, "_is_profiler_enabled", True)
