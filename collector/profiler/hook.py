"""A hook for running programs that writes a timeline file at intervals, or by a schedule.

>>> hook = ProfilerHook(save_steps=100, output_dir="/tmp/timelines")  # doctest: +SKIP
>>> for step, batch in enumerate(batches):  # doctest: +SKIP
...     train(batch)
...     hook.after_step(step)
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collector.checked_arguments import check_function, real_number, whole_number
from collector.errors import CollectorError, OutputError, SessionActiveError
from collector.files.working_directory import WorkingDirectory
from collector.formats.output_paths import check_words, filled_path, rank_of_this_process
from collector.profiler.context import write_or_warn
from collector.profiler.step_session import StepSession, new_session
from collector.runtime.optional_packages import optional_package
from collector.runtime.signal_handlers import error_of_handler
from collector.runtime.uncompiled import uncompiled
from collector.tracing.schedule import Action, action_of

log = logging.getLogger("collector.profiler")


class ProfilerHook:
    """Writes ``<output_dir>/timeline-<step>.json`` at intervals of steps or seconds, or by a schedule.

    The first step of an interval's hook is never traced; it only starts the interval: with ``save_steps=3`` the third,
    sixth and ninth step are traced. Each file contains one step.

    Args:
        save_steps: steps between files.
        save_secs: seconds between files.
        output_dir: the folder for files, created when the first is written.
        show_dataflow: with arrows between ops.
        show_memory: with memory counters.
        output: the folder of a dataset to which each traced step is added, together with the events of its timeline;
            see `collector.dataset`. Needs pyarrow.
        schedule: the steps to trace, such as `collector.schedule` or ``torch.profiler.schedule`` makes one; steps are
            counted from 0, whatever their numbers. Each of its active steps has a file of its own. In its steps of
            warming up the trace is open and forgets what it records. Without `before_step`, the first step cannot be
            traced, because it has begun when the hook is called. Exactly one of ``save_steps``, ``save_secs`` and
            ``schedule`` is given.
        open_trace: makes the session that traces a step; `collector.trace` by default.
        clock: seconds, increasing.

    Raises:
        ValueError: none or several of ``save_steps``, ``save_secs`` and ``schedule``, or an impossible number.
        TypeError: one of them has a wrong type, or ``open_trace`` is not a function.
        collector.MissingDependencyError: ``output`` is given, and pyarrow is not installed.
        collector.OutputError: a path has a word in braces that is not a placeholder.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
        *,
        output: str | os.PathLike[str] | None = None,
        schedule: Callable[[int], Any] | None = None,
        open_trace: Callable[[], StepSession] = new_session,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        choices = {"save_steps": save_steps, "save_secs": save_secs, "schedule": schedule}
        given = [name for name, value in choices.items() if value is not None]
        if len(given) != 1:
            stated = f"{' and '.join(given)} are given" if given else "no interval is given"
            raise ValueError(f"{stated}; give one of save_steps, save_secs and schedule")
        if save_steps is not None:
            save_steps = whole_number("save_steps", save_steps, least=1)
        if save_secs is not None and not real_number("save_secs", save_secs) >= 0:
            raise ValueError(f"save_secs is {save_secs}: a number of seconds from 0 on is needed")
        for name, value in (("schedule", schedule), ("open_trace", open_trace)):
            if value is not None:
                check_function(name, value)
        self._save_steps = save_steps
        self._save_secs = save_secs
        self._schedule = schedule
        if output is not None:
            optional_package("pyarrow.parquet")
        for path in (output_dir, output):
            if path is not None:
                check_words(Path(path))
        self._folder = Path(output_dir)
        self._directory = WorkingDirectory()
        self._dataset = None if output is None else Path(output)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._open_trace = open_trace
        self._clock = clock
        self._last: tuple[int, float] | None = None
        """Step and time of the last file; before the first file, those of the first step."""
        self._session: StepSession | None = None
        self._action = Action.NONE
        """The action that the schedule chose for the current step."""
        self._ended = 0
        """The steps that have ended."""
        self._asked: tuple[int, Action] | None = None
        """The last step of which the schedule was asked, counted like `_ended`, and its answer."""
        self._is_announced = False
        """Whether `before_step` was called for the current step."""

    @uncompiled
    def before_step(self, step: int) -> None:
        """May be called before each step, if the program does other work between its steps.

        The step is then traced from this call on, and not from the end of the previous step.
        """
        self._is_announced = True
        self._begin(step)
        if self._last is None:
            self._last = (step - 1, self._clock())

    @uncompiled
    def after_step(self, step: int) -> Path | None:
        """Must be called after each step with its number; returns the file, if one was written.

        Without `before_step`, a step is traced from this call to the next. Errors of tracing and writing are reported
        in the log ``collector.profiler``.
        """
        session = self._session if self._action >= Action.RECORD else None
        if session is not None:
            self.close()
        self._ended += 1
        if self._last is None:
            self._last = (step - 1, self._clock())
        elif session is not None:
            self._last = (step, self._clock())
        written = self._write(step, session) if session is not None and not session.unavailable else None
        if not self._is_announced:
            self._begin(step + 1)
        self._is_announced = False
        return written

    def close(self) -> None:
        """Ends an open trace without a file."""
        session, self._session = self._session, None
        if session is not None:
            session.__exit__(None, None, None)

    def _begin(self, step: int) -> None:
        """Begin a step as its action says: a trace that is open to warm up goes on."""
        is_warm = self._action is Action.WARMUP and self._session is not None
        self._action = self._action_in(step)
        if is_warm and self._action is Action.WARMUP:
            return
        begin_window = getattr(self._session, "begin_window", None)
        if is_warm and self._action >= Action.RECORD and begin_window is not None:
            begin_window(step)
            return
        self.close()
        if self._action is not Action.NONE:
            self._open()

    def _action_in(self, step: int) -> Action:
        if self._schedule is None:
            return Action.RECORD if self._is_due(step) else Action.NONE
        if self._asked is None or self._asked[0] != self._ended:  # a schedule is asked once for each step
            self._asked = (self._ended, action_of(self._schedule(self._ended)))
        return self._asked[1]

    def _open(self) -> None:
        session = self._open_trace()
        try:
            session.__enter__()
        except SessionActiveError as error:  # the program itself traces, which is no reason to stop it
            log.warning("no timeline now: %s", error)
        else:
            self._session = session

    def __getstate__(self) -> dict[str, Any]:
        """A copy, also in another process, does not share this hook's open trace."""
        return self.__dict__ | {"_session": None, "_action": Action.NONE, "_is_announced": False}

    def __enter__(self) -> ProfilerHook:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _is_due(self, step: int) -> bool:
        if self._last is None:
            return False
        last_step, last_time = self._last
        if step == last_step:
            return False
        if self._save_steps is not None:
            return step >= last_step + self._save_steps
        return self._save_secs is not None and self._clock() >= last_time + self._save_secs

    def _write(self, step: int, session: StepSession) -> Path | None:
        from collector.timeline import Timeline

        timeline = Timeline(session.run_metadata.step_stats)
        text = timeline.generate_chrome_trace_format(show_dataflow=self._show_dataflow, show_memory=self._show_memory)
        if self._dataset is not None:
            self._add_to_dataset(step, session, text)
        try:
            path = filled_path(self._directory.anchored(self._folder) / f"timeline-{step}.json", None, step)
        except OutputError as error:
            log.warning("no timeline of step %d: %s", step, error)
            return None
        if not write_or_warn(path, text.encode()):
            return None
        log.info("wrote %s", path)
        return path

    def _add_to_dataset(self, step: int, session: StepSession, timeline: str) -> None:
        """Write a step with its timeline's events; a full disk must not end hours of training."""
        from collector.dataset.dataset_tables import TRACE_EVENTS
        from collector.dataset.dataset_writer import DatasetWriter
        from collector.dataset.trace_events import trace_events
        from collector.formats.chrome_events import ChromeEvents

        assert self._dataset is not None
        try:
            with DatasetWriter(self._directory.anchored(self._dataset), rank=rank_of_this_process(None) or 0) as writer:
                events = trace_events(ChromeEvents([timeline.encode()]))
                writer.write(session.recording, step=step, copied={TRACE_EVENTS.name: events})
        except (CollectorError, OSError) as error:
            if error_of_handler(error) is not None:
                raise
            log.warning("step %d is not in the dataset: %s", step, error)
