"""Runs that were opened: their steps are kept in memory up to a bound, and each answer is computed once."""

from __future__ import annotations

import json
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError
from collector.web.run_folder import PROFILE, reason_of
from collector.web.sized_cache import SizedCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.analysis.answer import Answer
    from collector.formats.step import Step, TracedStep
    from collector.profiler.api import Profiler
    from collector.recording.recording import Recording
    from collector.web.report_lanes import Lanes
    from collector.web.run_folder import Run, RunFolder

MAX_BYTES = 1 << 30
"""Memory that the steps of opened runs may take together."""
MAX_ANSWER_BYTES = 64 << 20
"""Memory that answers may take together."""
_FORMS = 3
"""The approximate number of copies of a step's columns in memory: as read, as lanes, and in values that answers
keep."""

Latest = dict[tuple[str, "tuple[int, int] | None"], "tuple[TracedStep, Answer]"]
"""Key and part of the latest question whose answer has more rows than a page gets -> that part, and the answer."""


class RefusedError(CollectorError):
    """A run that cannot be opened, or a question that cannot be answered about it."""


class OpenedRun:
    """A run with all values that were computed from it so far."""

    def __init__(self, run: Run) -> None:
        """Take a run, which is read on request."""
        self.run = run
        self.latest: Latest = {}

    @cached_property
    def step(self) -> Step:
        """The step in the file.

        Raises:
            collector.CollectorError: it cannot be read.
        """
        from collector.formats.loading import load

        if self.run.kind == PROFILE:
            raise RefusedError("a profile has no timeline: it holds the sums of its steps", "See the views of tfprof")
        step = load(self.run.path)
        _ = step.recording  # so that what is wrong with it is known now
        return step

    @cached_property
    def lanes(self) -> Lanes:
        """The lanes of the timeline."""
        from collector.web.report_lanes import lanes_of

        return lanes_of(self.step.recording)

    @cached_property
    def profiler(self) -> Profiler:
        """The profile of the step, or that in the file."""
        from collector.profiler.api import Profiler

        if self.run.kind == PROFILE:
            return Profiler.from_profile(self.run.path)
        profiler = Profiler()
        profiler.add_recorded_step(0, self.step)
        return profiler

    @property
    def num_bytes(self) -> int:
        """The memory that it takes, roughly."""
        made = self.__dict__
        recording = made["step"].recording if "step" in made else None
        return (_FORMS * _size(recording) if recording is not None else 0) + self.run.num_bytes


def _size(recording: Recording) -> int:
    """Bytes of the columns."""
    return sum(
        values.nbytes
        for tables in recording.parts
        for table in vars(tables).values()
        for values in table.columns.values()
    )


class OpenedRuns:
    """Opens runs by their ids. One value is computed at a time; values that are already known are returned at once."""

    def __init__(self, folder: RunFolder, *, max_bytes: int = MAX_BYTES) -> None:
        """Open runs of a folder."""
        self.folder = folder
        self._opened: SizedCache[OpenedRun] = SizedCache(max_bytes, lambda opened: opened.num_bytes)
        self._answers: SizedCache[bytes] = SizedCache(MAX_ANSWER_BYTES, len)
        self._refused: dict[str, tuple[str, str]] = {}
        """Id -> version of the file, and why it could not be opened."""
        self._work = threading.RLock()
        self._known = threading.Lock()

    def refusal(self, run: Run) -> str:
        """The reason why a run cannot be opened; ``""``: none is known."""
        version, why = self._refused.get(run.id, ("", ""))
        return run.refused or (why if version == run.version else "")

    def answer(self, ids: list[str], asked: str, compute: Callable[[list[OpenedRun]], Any]) -> bytes:
        """An answer about runs as it is sent, computed where it is not known yet.

        Args:
            ids: the ids of the runs.
            asked: the question with all of its options, as one text.
            compute: takes the runs and returns bytes, or a value that JSON can represent.

        Raises:
            RefusedError: there is no such run, or the answer cannot be given.
        """
        runs = [self._run(id_) for id_ in ids]
        key = "\0".join([*(f"{run.id} {run.version}" for run in runs), asked])
        with self._known:
            known = self._answers.get(key)
        if known is not None:
            return known
        with self._work:
            opened = [self._open(run) for run in runs]
            try:
                found = compute(opened)
            except RefusedError:
                raise
            except CollectorError as error:
                raise self._as_refused(runs, error) from error
            except Exception as error:  # whatever a damaged file provokes must not end in a stack trace
                raise RefusedError(f"this cannot be answered ({type(error).__name__}: {error})") from error
            for each in opened:  # their sizes are known now
                self._opened.add(each.run.id, each)
        answer = found if isinstance(found, bytes) else json.dumps(found, allow_nan=False).encode()
        with self._known:
            self._answers.add(key, answer)
        return answer

    def _run(self, id_: str) -> Run:
        run = self.folder.find(id_)
        if run is None:
            raise RefusedError("there is no such run: it was removed, or never existed")
        if why := self.refusal(run):
            raise RefusedError(f"{run.name}: {why}")
        return run

    def _open(self, run: Run) -> OpenedRun:
        opened = self._opened.get(run.id)
        if opened is not None and opened.run.version == run.version:
            return opened
        if not self.folder.is_inside(run):
            raise RefusedError(f"{run.name}: a link that leads out of the folder")
        opened = OpenedRun(run)
        try:
            _ = opened.profiler if run.kind == PROFILE else opened.step
        except CollectorError as error:
            self._refused[run.id] = run.version, reason_of(error, run.path)
            raise RefusedError(f"{run.name}: {self._refused[run.id][1]}", error.remedy) from error
        except Exception as error:
            self._refused[run.id] = run.version, f"it cannot be read ({type(error).__name__}: {error})"
            raise RefusedError(f"{run.name}: {self._refused[run.id][1]}") from error
        self._refused.pop(run.id, None)
        self._opened.add(run.id, opened)
        return opened

    @staticmethod
    def _as_refused(runs: list[Run], error: CollectorError) -> RefusedError:
        cause = error.cause
        for run in runs:
            cause = cause.replace(f"{run.path}", run.name)
        return RefusedError(cause, error.remedy)
