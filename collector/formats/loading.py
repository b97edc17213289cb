"""Loads traces: StepStats and RunMetadata, recordings, Chrome traces and files of other tools.

>>> import collector
>>> step = collector.load("step.pb")  # doctest: +SKIP
>>> step.step_stats, step.recording, step.kind, step.skipped  # doctest: +SKIP
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError
from collector.files.atomic_files import expanded
from collector.files.path_kinds import is_folder, is_regular_file
from collector.formats.file_content import content_of
from collector.formats.journal_format import read_part, read_segments
from collector.formats.named_steps import named_steps
from collector.formats.registry import (
    check_head,
    format_of,
    is_likely,
    readable_sentence,
    refuse_foreign,
)
from collector.recording.journal_frames import holds_records
from collector.recording.journal_segments import is_journal, segments_of
from collector.runtime.later_modules import later_function

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from collector.formats.step import Step

_FAR_NS = float(1 << 61)
"""More than any trace is long; added to a time of today it has 63 bits."""


def load(path: str | os.PathLike[str], *, window: tuple[float | None, float | None] | None = None) -> Step:
    """Read one trace, whose format is recognised by its content, not by its name. Gzip is decompressed.

    If a file is damaged, its intact part is read, and `Step.skipped` and `Step.warning` state the missing part. Times
    are those of the file: a Chrome trace without a stated base may have any origin. Columns and messages are computed
    when they are first requested.

    Args:
        path: the file, the folder of a journal that is cut into segments, or the name of a step in a dataset
            (`collector.formats.named_steps`).
        window: the part of the trace to keep, in seconds from its start; either end may be None. Of a journal only this
            part is ever in memory, however long the journal is.

    Raises:
        collector.InvalidFileError: the file is missing, is not a trace, or nothing in it can be read. The message is
            one line that names the file and the place.
        TypeError: the window is not a pair of numbers.
        ValueError: the window ends before it begins, or an end of it is not a number (NaN).
    """
    name = expanded(path)
    window_ns = _window_ns(window)
    named = named_steps(name)
    if named is not None:
        step: Step = later_function("load_named_step")(named)
        return _part(step, window_ns)
    if is_folder(name):
        if _segments_of(name):
            return read_segments(name, window_ns)
        raise InvalidFileError(
            f"{name}: this is a folder, and not a journal",
            "Name a file in it, or merge its traces: collector merge FOLDER -o FILE",
        )
    if window_ns == (None, None):
        return _load(name)
    if is_journal(name):
        return read_part(name, window_ns)
    return _part(_load(name), window_ns)


def _part(step: Step, window_ns: tuple[int | None, int | None]) -> Step:
    """The part of a step between two times from its start."""
    if window_ns == (None, None):
        return step
    start_ns = step.recording.clock.cupti_start_ns
    first, last = (None if side is None else start_ns + side for side in window_ns)
    return step.with_recording(step.recording.between(first, last))


def is_trace(path: Path) -> bool:
    """Whether a file of a folder is to be read as a trace; see `collector.formats.registry.is_likely`.

    A journal (a file or a folder of segments) counts if it has any records. A pipe, for which this function would have
    to wait, and an empty file do not count. Raises nothing.
    """
    try:
        if is_folder(path):
            return bool(segments_of(path))
        if not is_regular_file(path):
            return False
        if is_journal(path):
            return holds_records(path)
        content = content_of(path, lambda *_: None, "")
        refuse_foreign(content.head, path)
        return not content.is_blank and is_likely(content)
    except (OSError, InvalidFileError):
        return False


def _segments_of(folder: Path) -> list[Path]:
    try:
        return segments_of(folder)
    except OSError as error:
        raise InvalidFileError(f"{folder}: {error.strerror or error}") from error


def _window_ns(window: tuple[float | None, float | None] | None) -> tuple[int | None, int | None]:
    if window is None:
        return None, None
    sides = tuple(window) if isinstance(window, (tuple, list)) else ()
    if len(sides) != 2 or not all(side is None or _is_number(side) for side in sides):
        raise TypeError(f"window takes a pair of numbers in seconds, or None for an open end, not {window!r}")
    if any(side is not None and side != side for side in sides):  # NaN
        raise ValueError(f"window is {window!r}: NaN is not a time")
    first, last = (None if side is None else float(side) for side in sides)
    if first is not None and last is not None and last < first:
        raise ValueError(f"the window ends at {sides[1]} s, before it begins at {sides[0]} s")
    return _nanoseconds(first), _nanoseconds(last)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _nanoseconds(seconds: float | None) -> int | None:
    """The nanoseconds of a side of a window, which may be infinite."""
    return None if seconds is None else round(max(-_FAR_NS, min(seconds * 1e9, _FAR_NS)))


def _load(name: Path) -> Step:
    content = content_of(name, check_head, readable_sentence())
    refuse_foreign(content.head, content.name)
    if content.is_blank:  # a message without fields has no bytes either, and TensorFlow writes such files
        reasons = "".join(f" ({reason}: {count})" for reason, count in content.skipped.items())
        raise InvalidFileError(f"{content.name}: the file is empty{reasons}", "Record the step again")
    read = format_of(content).read
    assert read is not None
    return read(content)
