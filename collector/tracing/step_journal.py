"""The journal of a step, for the case that its program ends before the step does, or as the step's only result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.errors import OutputError
from collector.files.atomic_files import check_writable
from collector.files.path_kinds import exists, is_folder
from collector.files.working_directory import WorkingDirectory
from collector.formats.output_paths import file_of_this_process

if TYPE_CHECKING:
    from pathlib import Path

    from collector.sources import Source


def path_of_journal(asked: Path, source: Source, *, rank: int | None, step: int, is_result: bool) -> Path:
    """The path at which ``source`` writes the journal of a step.

    Args:
        asked: the path of the session's options.
        source: the source that will record.
        rank: the rank of the session's options.
        step: the number of the step, counted from 0.
        is_result: the journal is the only result of the step.

    Raises:
        collector.OutputError: the source keeps no journal, or there is a journal already.
        collector.CollectorError: nothing can be written there.
    """
    journal, _ = file_of_this_process(asked, rank, step)
    if not hasattr(source, "journal_trouble"):
        raise OutputError(f"the source {source.name!r} keeps no journal", "Use source='native'")
    if exists(journal) and is_result:
        raise OutputError(
            f"{journal} is there already: it is the journal of another step",
            "Put {step} into its name, so that each use of a session has its own, or remove it",
        )
    check_writable(journal)
    if exists(journal):
        raise OutputError(
            f"{journal} exists already: a program may have ended before its step did",
            "Read it, for example with collector timeline, and remove it, or name another file",
        )
    return journal


class StepJournal:
    """The journal that a source writes during a step."""

    def __init__(self, source: Any, path: Path, *, is_result: bool) -> None:
        """``path``: the journal, which the source has made; ``is_result``: it is the only result, and is kept."""
        self._source = source
        self._path, self._directory = path, WorkingDirectory()
        self._was_made = exists(path)
        self._is_result = is_result

    @property
    def path(self) -> Path:
        """The path, also after the program has changed its working directory."""
        return self._directory.anchored(self._path)

    def end(self, *, keep: bool) -> str:
        """Remove the journal, unless it is the result, or ``keep`` is set and it has records.

        Returns:
            One line for a warning: where the records are, or what is missing of them; ``""``: nothing is to be said.
        """
        trouble = self._source.journal_trouble()
        broke_off = f"the journal {self.path} broke off before"
        if self.is_removed():
            return "" if self._is_result or not keep else f"the journal {self.path} was removed before the step ended"
        if self._is_result:
            return f"{broke_off} the step ended: {trouble}" if trouble else ""
        is_empty = keep and trouble and not self._has_records()
        if is_empty or not keep:
            self._source.remove_journal()
        if is_empty:
            return f"{broke_off} anything was in it: {trouble}"
        if trouble:
            return f"{broke_off} the step ended: {trouble}" + ("; it contains the records until then" if keep else "")
        return f"the records are in the journal {self.path}" if keep else ""

    def is_removed(self) -> bool:
        """Whether the journal, or all of its content, was removed, by this program or another one."""
        if not self._was_made or not is_folder(self.path):
            return self._was_made and not exists(self.path)
        from collector.recording.journal_segments import segments_of  # not before: it needs numpy

        return not segments_of(self.path)

    def _has_records(self) -> bool:
        from collector.recording.journal_frames import holds_records  # not before: it needs numpy

        return holds_records(self.path)
