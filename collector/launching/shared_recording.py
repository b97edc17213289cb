"""Recordings of a listening process that several `collector attach` use, and the journals that are taken from them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import CollectorError, OutputError
from collector.files.locked_files import unlock
from collector.formats.journal_format import read_segments
from collector.launching.attached_process import Cut, NotListeningError
from collector.recording.journal_segments import link_segments, segment_number, segments_of, session_start_ns

if TYPE_CHECKING:
    from collector.formats.step import Step
    from collector.launching.attached_process import AttachedProcess

_USED_BEFORE_END = ": its records up to half a second before are used"
_OF_RECORD = "ends-with-record"
"""A file in a journal that is to be ended by the last `collector attach record` that uses it."""
_MOST_ATTEMPTS = 10


class SharedRecording:
    """A recording that several `collector attach record` use at a time; the last one ends it if one of them began it.

    Each holds a shared lock on the folder of the journal. If it is killed, the lock is released.
    """

    def __init__(self, process: AttachedProcess) -> None:
        """Take the process; entering the block connects to it."""
        self._process = process
        self._lock = -1
        self._has_ended = False
        self.journal = Path()
        self.begin: Cut | None = None
        """The instant of joining; None: the recording was begun for this."""
        self.trouble = ""
        """The trouble that the recording had."""
        self.is_left = False
        """Whether the recording ended because of an error, and its journal was left."""

    def __enter__(self) -> SharedRecording:
        """Join the recording of the process, or begin one. Raises `collector.CollectorError` if neither is possible."""
        for _ in range(_MOST_ATTEMPTS):
            state = self._process.status()
            if state.journal is None:
                if self._is_begun():
                    return self
            elif self._is_locked(state.journal):
                if self._process.status().journal == state.journal:
                    try:
                        self.begin = self._process.cut()
                    except BaseException:
                        self._unlock()
                        raise
                    self.journal = self.begin.journal
                    if self.journal == state.journal:
                        return self
                self._unlock()
            elif self._process.status().journal == state.journal:
                raise _unreachable(state.journal, "it is not there")
        raise CollectorError(
            f"process {self._process.process_id}: its recordings keep beginning and ending", "Try again"
        )

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        """End a recording of which this is the last user; after an error its journal stays."""
        try:
            if not self._has_ended and self.end_if_last():
                self.is_left = exc_type is not None
                if not self.is_left:
                    remove_journal(self.journal)
        finally:
            self._unlock()

    def end_if_last(self) -> bool:
        """End the recording if one of its users began it and this is the last one; return whether it has ended."""
        if self._has_ended:
            return True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # others use it
            return False
        except OSError:  # a file system without locks: nobody can tell
            pass
        if not (self.journal / _OF_RECORD).exists():
            return False
        self._has_ended = True
        cause = self._cause_of_end()  # the recording of another program is not ended
        if not cause:
            try:
                _, self.trouble = self._process.stop()
            except CollectorError:
                cause = self._cause_of_end()
                if not cause:
                    raise
        if cause:
            self.trouble = cause + _USED_BEFORE_END
        return True

    def end(self) -> Cut:
        """The present instant, or the end of the recording if it has ended: `trouble` is then the reason.

        Raises:
            collector.CollectorError: the recording continues, but cannot be read now; or its records are removed.
        """
        cause = ""
        try:
            present = self._process.cut()
            if present.journal == self.journal:
                return present
        except CollectorError:
            cause = self._cause_of_end()
            if not cause:
                raise
        cause = cause or self._cause_of_end()
        try:
            last = max(map(segment_number, segments_of(self.journal)), default=0)
        except OSError as error:  # a flight recorder removes its own, and `collector run` those of a program
            raise CollectorError(f"{cause}, and its records are removed already") from error
        self.trouble = cause + _USED_BEFORE_END
        return Cut(self.journal, last + 1, None)

    def _cause_of_end(self) -> str:
        """The reason why the process records nothing more into the journal; ``""`` while it does."""
        try:
            if self._process.status().journal == self.journal:
                return ""
        except NotListeningError as error:
            return error.cause
        return f"process {self._process.process_id} has executed another program or ended the recording"

    def _is_begun(self) -> bool:
        """Begin a recording; return False if another user has done so meanwhile."""
        try:
            self.journal = self._process.start()
        except CollectorError:
            if self._process.status().journal is None:
                raise
            return False
        try:
            if not self._is_locked(self.journal):
                raise FileNotFoundError(errno.ENOENT, "it is not there")
            (self.journal / _OF_RECORD).touch()  # not before it is locked, else another user could end it
        except BaseException as error:
            self._unlock()
            self._process.stop()
            if isinstance(error, OSError):
                raise _unreachable(self.journal, error.strerror or str(error)) from error
            raise
        return True

    def _is_locked(self, journal: Path) -> bool:
        """Hold the lock, if the file system has any; return False if the journal is gone."""
        try:
            self._lock = os.open(journal, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreachable(journal, error.strerror or str(error)) from error
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        return True

    def _unlock(self) -> None:
        if self._lock >= 0:
            unlock(self._lock)
            number, self._lock = self._lock, -1
            os.close(number)


def _unreachable(journal: Path, reason: str) -> CollectorError:
    return CollectorError(
        f"the journal {journal} cannot be used here: {reason}",
        "Attach where the process has its temporary files (TMPDIR), or as its user",
    )


def check_unused(journal: Path) -> None:
    """Raise `collector.CollectorError` if a `collector attach record` uses the recording of this journal."""
    with suppress(OSError):
        number = os.open(journal, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CollectorError(
                "`collector attach record` uses this recording now, and would lose its records",
                "Wait for its end, or interrupt it",
            ) from None
        finally:
            unlock(number)
            os.close(number)


def copied_segments(cut: Cut, folder: Path) -> Path:
    """A journal in ``folder`` of the segments that are closed now: a second name of each, or a copy.

    Raises:
        collector.OutputError: there is no closed segment, or the folder cannot be written.
    """
    journal = folder / "dump.journal"
    try:
        journal.mkdir(parents=True)
        link_segments(cut.journal, journal, lambda segment: segment_number(segment) < cut.segment)
    except OSError as error:
        raise OutputError(f"the segments of {cut.journal} cannot be copied: {error.strerror or error}") from error
    return journal


def part_between(journal: Path, begin: Cut, end: Cut) -> Step:
    """The part of a journal between two instants. Raises `collector.InvalidFileError` if it cannot be read."""
    start_ns = session_start_ns(journal)
    begin_ns, end_ns = (None if each.cupti_ns is None else each.cupti_ns - start_ns for each in (begin, end))
    return read_segments(journal, (begin_ns, end_ns))


def remove_journal(journal: Path) -> None:
    """Remove a journal that has been written as a file, and the folder that was made for it."""
    shutil.rmtree(journal, ignore_errors=True)
    with suppress(OSError):
        if journal.parent.name.startswith("collector-"):
            journal.parent.rmdir()
