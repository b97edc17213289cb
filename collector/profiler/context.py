"""Profiles of chosen steps of a running program.

>>> with ProfileContext("/tmp/profiles", trace_steps=[10, 20], dump_steps=[20]) as pctx:  # doctest: +SKIP
...     for batch in batches:
...         with pctx.step():
...             train(batch)

A step is one ``with pctx.step():`` block, counted from 0. Errors of tracing and writing are reported in the log
``collector.profiler``, and the program continues.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import text_format

from collector.checked_arguments import check_function, whole_numbers
from collector.errors import OutputError, SessionActiveError
from collector.files.atomic_files import atomic_write
from collector.files.working_directory import WorkingDirectory
from collector.profiler.api import Profiler
from collector.profiler.profiler_errors import ProfilerError
from collector.profiler.step_session import StepSession, new_session
from collector.profiler.views.view import Message
from collector.profiler.views.view_registry import VIEWS
from collector.runtime.signal_handlers import error_of_handler
from collector.runtime.uncompiled import uncompiled
from collector.tracing.schedule import Action, action_of

if TYPE_CHECKING:
    import os
    from types import TracebackType

log = logging.getLogger("collector.profiler")

WARMUP_STEPS = 10
"""Steps up to this number are not traced automatically."""
LAST_RANDOM_STEP = 100
MAX_TRACED_STEPS = 100
_SEED = 111


class ProfileContext:
    """Traces steps, collects their profile, and writes it at chosen steps.

    Args:
        profile_dir: the folder for files, created when the first is written.
        trace_steps: the steps to trace, at most 100. None: automatic: after ten warm-up steps, every kind of step (see
            ``step``) that is new, and occasionally one more until half of a graph is covered.
        schedule: chooses the steps instead of ``trace_steps``, such as `collector.schedule` or
            ``torch.profiler.schedule`` makes one; at most 100 are traced. Its warm-up steps are traced, and their
            records are discarded.
        dump_steps: the steps after which to write ``profile_<step>``, the profile of all steps so far. None: after 100.
        enabled: False makes all methods do nothing.
        debug: also write ``run_meta_<step>`` as text, and log each action.
        open_trace: makes the session that traces a step; `collector.trace` by default.

    Raises:
        ValueError: no folder, too many steps, or steps and a schedule; only if enabled.
        TypeError: the steps are not several whole numbers, or the schedule or ``open_trace`` is not a function.
    """

    def __init__(
        self,
        profile_dir: str | os.PathLike[str],
        trace_steps: Iterable[int] | None = None,
        dump_steps: Iterable[int] | None = None,
        enabled: bool = True,
        debug: bool = False,
        *,
        schedule: Callable[[int], Any] | None = None,
        open_trace: Callable[[], StepSession] = new_session,
    ) -> None:
        if enabled:
            for name, value in (("schedule", schedule), ("open_trace", open_trace)):
                if value is not None:
                    check_function(name, value)
        self._trace_steps = None if trace_steps is None else whole_numbers("trace_steps", trace_steps)
        self._schedule = schedule
        if enabled and schedule is not None and trace_steps is not None:
            raise ValueError("trace_steps and schedule are both given; give one")
        if enabled and not str(profile_dir):
            raise ValueError("a folder for the profiles is needed")
        if enabled and self._trace_steps is not None and len(self._trace_steps) > MAX_TRACED_STEPS:
            raise ValueError(f"{len(self._trace_steps)} steps to trace; at most {MAX_TRACED_STEPS} can be")
        self._folder, self._directory = Path(profile_dir), WorkingDirectory()
        self._dump_steps = {100} if dump_steps is None else whole_numbers("dump_steps", dump_steps)
        self._enabled = enabled
        self._debug = debug
        self._open_trace = open_trace
        self.profiler = Profiler() if enabled else None
        """The profile of the steps traced so far; None if not enabled."""
        self._next_step = 0
        self._seen: set[str] = set()
        self._traced: set[int] = set()
        self._ended: set[int] = set()
        """The steps after which a profile would be written."""
        self._force_trace = self._force_dump = False
        self._under_way = contextlib.ExitStack()
        """Ends the trace of the last traced step."""
        self._automatic: list[tuple[str, Any, set[int]]] = []
        self._profiles: dict[str, dict[int, Message]] = {}
        self._lock = threading.Lock()
        self._count_lock = threading.Lock()
        self._random = random.Random(_SEED)

    def __enter__(self) -> ProfileContext:
        global _active
        if self._enabled:
            if _active is not None:
                raise ProfilerError("a ProfileContext is open already", "They do not nest: use that one")
            _active = self
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _active
        if _active is not self:
            return
        _active = None
        self._under_way.close()  # a step without an end, as when no callback is called for a batch that failed
        if not self._traced:
            return
        missed = sorted(self._dump_steps - self._ended)
        if not_ended := [f"profile_{step}" for step in missed if 0 <= step < self._next_step]:
            names = ", ".join(not_ended)
            log.warning("not written: %s: these steps raised an error, or began inside another", names)
        if not_made := [step for step in missed if step >= self._next_step]:
            log.warning("not written: profile_%d; the program made %d steps", not_made[0], self._next_step)

    def trace_next_step(self) -> None:
        """Trace the next step, whether or not it was chosen."""
        self._force_trace = True

    def dump_next_step(self) -> None:
        """Write the profile after the next step, with all steps traced by then."""
        self._force_dump = True

    def add_auto_profiling(self, cmd: str, options: Any, profile_steps: Iterable[int]) -> None:
        """Trace these steps and answer ``cmd`` after each.

        Raises:
            ValueError: the view does not exist.
            TypeError: the steps are not several whole numbers.
        """
        if cmd not in VIEWS:
            raise ValueError(f"no view {cmd!r}; there are {', '.join(VIEWS)}")
        self._automatic.append((cmd, options, whole_numbers("profile_steps", profile_steps)))

    def get_profiles(self, cmd: str) -> Mapping[int, Message]:
        """Step -> answer of ``cmd``.

        Raises:
            ValueError: ``cmd`` was never answered.
        """
        if cmd not in self._profiles:
            raise ValueError(f"{cmd!r} was never profiled: see add_auto_profiling")
        return self._profiles[cmd]

    @contextlib.contextmanager
    def step(self, kind: str = "") -> Iterator[int]:
        """One step of the program; yields its number.

        A step that begins while another thread's step is traced is not traced.

        Args:
            kind: the type of step, such as ``train`` or ``eval``: automatic tracing traces each kind at least once.

        Raises:
            ProfilerError: the context is not open.
        """
        if self._enabled and _active is not self:
            raise ProfilerError("this ProfileContext is not open", "Write: with ProfileContext(…) as pctx")
        with self._count_lock:
            number = self._next_step
            self._next_step += 1
        if self.profiler is None or not self._lock.acquire(blocking=False):
            yield number
            return
        try:
            action = self._action_in(number, kind)
            if action is Action.NONE:
                yield number
            else:
                with self._tracing(number) as session:
                    yield number
                if session is not None and _active is self and action is not Action.WARMUP:
                    self._keep(number, kind, session)
            self._dump(number)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _tracing(self, step: int) -> Iterator[StepSession | None]:
        """The open session of a step; None if the program itself traces, which is no reason to stop it."""
        with contextlib.ExitStack() as stack:
            session = self._open_trace()
            try:
                stack.enter_context(session)
            except SessionActiveError as error:
                log.warning("step %d is not traced: %s", step, error)
                yield None
                return
            self._under_way = stack
            yield session

    def _action_in(self, step: int, kind: str) -> Action:
        scheduled = Action.NONE if self._schedule is None else action_of(self._schedule(step))
        if self._force_trace or any(step in steps for _, _, steps in self._automatic):
            return Action.RECORD
        if len(self._traced) >= MAX_TRACED_STEPS:
            return Action.NONE
        if self._schedule is not None:
            return scheduled
        return Action.RECORD if self._is_to_trace(step, kind) else Action.NONE

    def _is_to_trace(self, step: int, kind: str) -> bool:
        if self._trace_steps is not None:
            return step in self._trace_steps
        if step <= WARMUP_STEPS:
            return False
        if kind not in self._seen:
            return True
        coverage = self.profiler.coverage if self.profiler else 1.0
        return coverage < 0.5 and step < LAST_RANDOM_STEP and self._random.randint(0, 10) < 2

    @uncompiled
    def _keep(self, step: int, kind: str, session: StepSession) -> None:
        self._force_trace = False
        if session.unavailable or self.profiler is None:
            return
        metadata = session.run_metadata
        self._traced.add(step)
        self._seen.add(kind)
        self.profiler.add_recorded_step(step, metadata)
        if self._debug:
            log.warning("traced step %d", step)
            self._write(f"run_meta_{step}", text_format.MessageToString(metadata).encode())
        for view, options, steps in self._automatic:
            if step in steps:
                self._profiles.setdefault(view, {})[step] = self.profiler.answer(view, options)

    @uncompiled
    def _dump(self, step: int) -> None:
        if step in self._dump_steps:
            self._ended.add(step)
        if self.profiler is None or not (self._force_dump or step in self._dump_steps):
            return
        self._force_dump = False
        if self._write(f"profile_{step}", self.profiler.serialize_to_string()) and self._debug:
            log.warning("wrote profile_%d", step)

    def _write(self, name: str, content: bytes) -> bool:
        return write_or_warn(self._directory.anchored(self._folder) / name, content)


def write_or_warn(path: Path, content: bytes) -> bool:
    """Write a file and its folder; return whether that succeeded. A full disk must not end hours of training."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(content)
    except OutputError as error:
        log.warning("%s", error)
        return False
    except OSError as error:
        if error_of_handler(error) is not None:
            raise
        log.warning("cannot write %s: %s", path, error.strerror or error)
        return False
    return True


_active: ProfileContext | None = None
"""The open context of this process."""
