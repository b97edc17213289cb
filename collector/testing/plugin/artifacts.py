"""The trace of one test as a file: its name, its content, and the selection of files to keep."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from collector.recording.recording import Recording

SUFFIX = ".trace.json"
_LONGEST = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9_.=-]+")


def safe_name(nodeid: str) -> str:
    """A unique, readable and portable file name for a test, without suffix, of at most 129 characters.

    Letters, digits, ``_``, ``.``, ``=`` and ``-`` stay, other characters become ``-``. If this or the length could give
    two tests the same name, nine characters of a digest of the node id are added.
    """
    plain = nodeid.replace("::", "--").replace("/", "-")
    name = _UNSAFE.sub("-", plain).strip("-.")
    if name == plain and "-" not in nodeid and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(nodeid.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[:_LONGEST].rstrip('-.')}-{digest}"


def writable_folder(folder: Path) -> str | None:
    """Create ``folder`` and return the error of that or of writing into it; None if there is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except FileExistsError:
        return f"{folder} is not a folder"
    except OSError as error:
        return f"cannot write to the folder {folder}: {error.strerror or error}"
    return None


def save_trace(recordings: Sequence[Recording], path: Path) -> str | None:
    """Write a test's trace, its recordings in order of time, to ``path``.

    Returns:
        The error without the path, which differs, or None.
    """
    from collector.recording.joined_captures import joined_captures
    from collector.recording.recording import Recording

    recording = recordings[0]
    if len(recordings) > 1:
        captures = [each.to_capture() for each in recordings]
        recording = Recording.from_capture(joined_captures(captures, one_process=True))
    try:
        recording.save(path)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def save_page(parts: Sequence[tuple[str, Recording]], path: Path, title: str) -> str | None:
    """Write a page about a test's recordings, each with its name, to ``path``; return the error, or None."""
    from collector.formats.step import Step
    from collector.formats.step_sources import RecordingSource
    from collector.web.report_file import write_report

    try:
        write_report(path, [(name, Step(RecordingSource(recording))) for name, recording in parts], title=title)
    except (CollectorError, OSError) as error:
        return _cause_of(error)
    return None


def _cause_of(error: Exception) -> str:
    """The error without the path."""
    cause = error.__cause__ or error
    return str(getattr(cause, "strerror", None) or cause)


def longest(traces: Iterable[tuple[int, str]], count: int) -> set[str]:
    """The paths of the ``count`` traces with the most device time; equal ones are ordered by name."""
    return {path for _, path in sorted(traces, key=lambda trace: (-trace[0], trace[1]))[:count]}
