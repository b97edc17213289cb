"""The windows of a session that follows a schedule, and the file that holds them together."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from collector.files.folder_lock import in_locked_folder
from collector.files.new_folders import new_folder
from collector.files.working_directory import WorkingDirectory
from collector.formats.output_paths import (
    file_of_this_process,
    filled_path,
    mark_as_written_here,
    placeholders_of,
)
from collector.formats.registry import merged_suffixes, suffix_of
from collector.runtime.original_functions import getpid
from collector.tracing.schedule import Action, Schedule, action_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.formats.step import TracedStep


class WindowedSession(Protocol):
    """The methods of `collector.tracing.scheduled_session.ScheduledSession` that this module uses."""

    def open_window(self, step: int) -> None:
        """Begin to record, in this step."""

    def begin_window(self, step: int) -> None:
        """Let the results begin now."""

    def close_window(self, exc: BaseException | None) -> None:
        """End and save."""

    def drop_window(self) -> None:
        """End without results."""


def check_path_of_windows(path: Path, schedule: Callable[[int], Any]) -> None:
    """Raise ValueError if the windows of a schedule cannot be saved as ``path``."""
    if _is_file_of_one_window(path, schedule) or suffix_of(path.name) in merged_suffixes():
        return
    raise ValueError(
        f"the windows of the schedule cannot be in one file {path.name}: put {{step}} into its name, so that each has "
        f"a file of its own, or take a format that holds several steps ({', '.join(sorted(merged_suffixes()))})"
    )


def _is_file_of_one_window(path: Path, schedule: Callable[[int], Any]) -> bool:
    return "step" in placeholders_of(path) or (isinstance(schedule, Schedule) and schedule.has_one_window)


_LONGEST_WAIT_S = 60.0
"""The maximum time that the end of a block waits for a step that another thread is ending."""


class ScheduledWindows:
    """The place of a session in its schedule. Threads that end steps at once do so one after the other."""

    def __init__(
        self, schedule: Callable[[int], Any], session: WindowedSession, path: Path | None, rank: int | None
    ) -> None:
        """Begin before the first step. ``path`` and ``rank`` are those of the session's options."""
        self._schedule, self._session = schedule, session
        self._changing = threading.RLock()  # which `on_window` and a signal handler can acquire that stop the session
        self._step = -1
        self._action = Action.NONE
        self._is_open = self._has_begun = False
        self._has_step = self._has_window = self._has_ended = False
        self.process_id = getpid()
        is_merged = path is not None and not _is_file_of_one_window(path, schedule)
        self.files = MergedWindows(path, rank) if path is not None and is_merged else None
        """The windows that are written at the end, if all are in one file; otherwise None."""

    @property
    def is_after_last_step(self) -> bool:
        """Whether the open window may be none: a loop that ends each round with `step` begins one step more.

        There was a window before, and no step of this one has ended.
        """
        return self._has_window and not self._has_step

    def next_step(self) -> None:
        """End the step, if one has begun, and begin the next one."""
        if self.process_id != getpid():  # only the parent records
            return
        with self._changing:
            if not self._has_ended:
                self._end_step()

    def _end_step(self) -> None:
        self._has_step = self._has_begun
        try:
            if self._action is Action.RECORD_AND_SAVE:
                self._close(None)
        finally:  # the next step begins also where `on_window` raises: the program may catch that, and go on
            self._step += 1
            before, self._action = self._action, action_of(self._schedule(self._step))
            try:
                if before is Action.RECORD and self._action < Action.RECORD:  # the schedule did not name a last step
                    self._close(None)
            finally:
                self._follow()

    def _follow(self) -> None:
        """Open or drop the window, as the action of the present step requires."""
        if self._has_ended:  # `on_window` or the schedule has stopped the session: no code would end another window
            return
        if self._action is Action.NONE:
            self._drop()
            return
        is_new = not self._is_open
        if is_new:
            self._is_open = True
            self._session.open_window(self._step)
        if self._action >= Action.RECORD and not self._has_begun:
            self._has_begun = True
            if is_new:
                return
            self._session.begin_window(self._step)

    def end(self, exc: BaseException | None) -> None:
        """End the open window, which is saved as far as it was recorded."""
        is_acquired = self._changing.acquire(timeout=_LONGEST_WAIT_S)  # `on_window` of another thread may wait for us
        try:
            self._has_ended = True
            if self._has_begun:
                self._close(exc)
            else:
                self._drop()
        finally:
            if is_acquired:
                self._changing.release()

    def _close(self, exc: BaseException | None) -> None:
        self._is_open = self._has_begun = False
        try:
            self._session.close_window(exc)
        finally:
            self._has_step, self._has_window = False, True

    def _drop(self) -> None:
        if self._is_open:
            self._is_open = self._has_begun = False
            self._session.drop_window()


class MergedWindows:
    """The windows of one file, each in a file of a hidden folder until the last one has ended."""

    def __init__(self, path: Path, rank: int | None) -> None:
        """Take the path and the rank that the program gave; None: the environment decides. Nothing is made yet."""
        self._asked, self._rank, self._directory = path, rank, WorkingDirectory()
        self._folder: Path | None = None
        self._files: list[Path] = []

    def add(self, step: TracedStep, number: int) -> None:
        """Write a window. Raises `collector.OutputError` if that is impossible."""
        if self._folder is None:
            self._folder = new_folder(self._parent(), ".collector-windows-")
        file = self._folder / f"step{number}.pb"
        step.save(file)
        self._files.append(file)

    @property
    def _path(self) -> Path:
        return self._directory.anchored(self._asked)

    def _parent(self) -> Path:
        """The folder of the file, which is made if its name has placeholders."""
        return filled_path(self._path, self._rank, 0).absolute().parent

    def write(self) -> Path | None:
        """Write the file; return its path, or None if no window was recorded.

        Raises:
            collector.CollectorError: it cannot be written. The windows then stay where they are.
        """
        from collector.merging.merged_trace import merge_windows

        if self._folder is None:
            return None
        path = None

        def write() -> None:
            nonlocal path
            path, _ = file_of_this_process(self._path, self._rank, 0)
            merge_windows(self._files, path)
            mark_as_written_here(path)

        if self._files:
            in_locked_folder(self._parent(), write)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        return path

    def remains(self) -> str:
        """Where the windows are, as the end of a message."""
        return "" if self._folder is None else f"; the windows are in {self._folder}, which `collector merge` reads"
