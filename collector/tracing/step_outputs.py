"""The file and the dataset of a step: checked before the step, and written after it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError, CollectorWarning, OutputError, in_words
from collector.files.atomic_files import check_writable
from collector.files.folder_lock import in_locked_folder
from collector.formats.conversion import Conversion
from collector.formats.output_paths import (
    check_placeholders,
    file_of_this_process,
    mark_as_written_here,
    rank_of_this_process,
)
from collector.runtime.signal_handlers import error_of_handler
from collector.text.surrogates import without_surrogates
from collector.tracing.caller_warnings import warn_caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.files.working_directory import WorkingDirectory
    from collector.formats.step import TracedStep
    from collector.options import TraceOptions
    from collector.recording.recording import Recording
    from collector.tracing.scheduled_windows import MergedWindows

    Trouble = Callable[[Exception, str], Any]
    """Reports an error and a message about it as the options require: raised, or as a warning."""

_MOST_WARNED_OF = 256
"""The maximum number of different paths of which a process warns."""
_warned_of: set[str] = set()
_DIGITS = re.compile(r"\d+")


class StepOutputs:
    """The outputs of one step, as the options of its session request them."""

    def __init__(
        self,
        options: TraceOptions,
        number: int,
        directory: WorkingDirectory,
        windows: MergedWindows | None = None,
    ) -> None:
        """Nothing is checked or written yet.

        Args:
            options: the options of the session.
            number: the number of the step.
            directory: the directory to which relative paths among the options refer.
            windows: the file that holds all windows of a schedule, if there is one.
        """
        self.path: Path | None = None
        """The file of this rank or process; None: none was asked for, or its name cannot be found."""
        self.number = number
        """The number of the step, counted from 0: ``{step}`` in paths. That of a window is known after its warm-up."""
        self._options, self._directory, self._windows = options, directory, windows
        self._is_writable = self._has_dataset = True

    def check(self, trouble: Trouble) -> None:
        """Find the path, and report now what would be impossible at the end of the step."""
        try:
            self._check(trouble)
        except (CollectorError, CollectorWarning):
            raise  # of `trouble`, where the session is strict or warnings are errors
        except Exception as error:  # whatever it is, the user's program continues
            self._is_writable = False
            trouble(error, f"the trace will not be saved: {in_words(error)}")

    def _check(self, trouble: Trouble) -> None:
        if self._options.dataset is not None:
            from collector.dataset.dataset_folder import check_output

            try:
                check_placeholders(self._options.dataset)
                check_output(self._directory.anchored(self._options.dataset))
            except CollectorError as error:
                trouble(error, f"the step will not be in the dataset: {error}")
                self._has_dataset = False
        try:
            path = self._find_path()
            if path is not None:
                check_writable(path)
        except CollectorError as error:
            trouble(error, f"the trace will not be saved: {error}")
            self._is_writable = False

    def _find_path(self) -> Path | None:
        """Set `path`; warn once if it differs from the given path. Raises `collector.OutputError` if there is none."""
        asked = self._options.path
        if asked is not None:
            self.path, reason = file_of_this_process(self._directory.anchored(asked), self._options.rank, self.number)
            if reason:
                _warn_once(asked, reason)
        return self.path

    def save(self, step: TracedStep, streamed: Path | None, trouble: Trouble) -> bool:
        """Write the requested outputs.

        Args:
            step: the results of the step.
            streamed: the journal that is the result of the step; None: the results are in memory.
            trouble: reports why an output cannot be written.

        Returns:
            Whether the results are in a file or a dataset.
        """
        is_in_dataset = self._add_to_dataset(step, trouble)
        if not self._is_writable:
            return False
        if self.path is None:
            return is_in_dataset
        try:
            if self._windows is not None:
                self._windows.add(step, self.number)
            else:
                self._write(self.path, step, streamed)
        except Exception as error:
            is_in_memory = self._windows is None and streamed is None
            is_refused = isinstance(error, OutputError) and error_of_handler(error) is None
            beside = self._saved_beside(self.path, step) if is_in_memory and is_refused else None
            if beside is None:
                trouble(error, f"the trace is not saved: {in_words(error)}")
                return False
            self.path = beside
            trouble(error, f"the trace is in {beside} instead: {error}")
        return is_in_dataset

    def _write(self, path: Path, step: TracedStep, streamed: Path | None) -> None:
        def write() -> None:
            free_path = self._find_path()  # again, because another process may have created the file meanwhile
            if free_path is not None and streamed is not None:
                Conversion(streamed, free_path).wait()
            elif free_path is not None:
                step.save(free_path)
                mark_as_written_here(free_path)

        in_locked_folder(self._directory.anchored(path).parent, write)

    def _saved_beside(self, path: Path, step: TracedStep) -> Path | None:
        """Write the step beside ``path`` as a recording, the smallest file; return it, or None if that fails too."""
        beside = path.with_name(f"{path.name}.gpurec")
        try:
            step.save(beside)
        except OutputError:
            return None
        mark_as_written_here(beside)
        return beside

    def _add_to_dataset(self, step: TracedStep, trouble: Trouble) -> bool:
        """Write the step into the requested dataset; return whether that is done, or nothing was requested."""
        if self._options.dataset is None:
            return True
        if not self._has_dataset:
            return False
        try:
            self._write_to_dataset(self._directory.anchored(self._options.dataset), step.recording)
        except Exception as error:
            trouble(error, f"the step is not in the dataset: {in_words(error)}")
            return False
        return True

    def _write_to_dataset(self, folder: Path, recording: Recording) -> None:
        from collector.dataset.dataset_writer import DatasetWriter

        rank = rank_of_this_process(self._options.rank) or 0
        with DatasetWriter(folder, rank=rank, label=without_surrogates(self._options.label)) as writer:
            writer.write(recording)


def _warn_once(asked: Path, message: str) -> None:
    """Warn of a path that differs from the given one, once for all paths that differ only in numbers, as of steps."""
    name = _DIGITS.sub("0", os.fspath(asked))
    if name not in _warned_of and len(_warned_of) < _MOST_WARNED_OF:
        _warned_of.add(name)
        warn_caller(message)
