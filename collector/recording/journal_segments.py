"""Journals that are cut into segments: a folder of files, each of which can be read by itself."""

from __future__ import annotations

import contextlib
import mmap
import re
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import InvalidFileError, OutputError
from collector.files.linked_files import link_or_copy
from collector.recording.journal import load_files, load_ranges
from collector.recording.journal_facts import Extent, extent_of, places_of, process_of, span_of
from collector.recording.journal_frames import DAMAGE, MAGIC, check_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.recording.journal_contents import WindowNs
    from collector.recording.journal_facts import JournalProcess
    from collector.recording.journal_frames import Buffer
    from collector.recording.recording import Recording

_NAME = re.compile(r"(\d{6,})\.journal")


def segment_number(path: Path) -> int:
    """The number in the name of a segment; 0 if it is not a segment's name."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else 0


def segments_of(folder: Path, first: int = 0) -> list[Path]:
    """The segments in a folder from number ``first`` on, in order. Empty: it is not a journal."""
    numbered = sorted((segment_number(path), path) for path in folder.iterdir() if segment_number(path))
    return [path for number, path in numbered if number >= first]


def is_closed(segment: Path) -> bool:
    """Whether a segment is complete, according to its last frame."""
    with contextlib.suppress(OSError, *DAMAGE):
        return span_of(contents_of(segment)).is_closed
    return False


def link_segments(journal: Path, folder: Path, is_wanted: Callable[[Path], bool]) -> None:
    """Give some segments of a journal a second name in another folder, or copy them to another file system.

    Raises:
        collector.OutputError: none is wanted.
        OSError: a segment cannot be copied, or the journal cannot be listed.
    """
    count = 0
    for segment in filter(is_wanted, segments_of(journal)):
        with contextlib.suppress(FileNotFoundError):  # a recording with a limit may have removed it meanwhile
            link_or_copy(segment, folder / segment.name)
            count += 1
    if not count:
        raise OutputError("nothing has been recorded yet", "Dump again when the program has used the GPU")


def load_segments(folder: Path, window_ns: WindowNs = (None, None)) -> Recording:
    """Read a journal that is a folder of segments, or a part of it.

    One segment is in memory at a time besides the rows that are kept. Of segments without rows of the window only the
    streams are read, from which the streams of the window have their names.

    Raises:
        collector.InvalidFileError: there is no segment, or one that is not readable.
    """
    segments = segments_of(folder)
    kept = _in_window(segments, window_ns)
    others = _contents([path for path in segments if path not in kept])
    places = {place for _, data in others for place in places_of(data)}
    removed = None if kept == segments else _rows_before(segments)
    return load_files(_contents(kept, with_empty=True), folder, window_ns, places, removed)


def load_journal_file(path: Path, window_ns: WindowNs) -> Recording:
    """Read a part of a journal that is one file, of which only that part is in memory.

    Raises:
        collector.InvalidFileError: it is not readable.
    """
    return load_files(_contents([path]), path, window_ns)


def load_captured_ranges(path: Path) -> list[Recording]:
    """The recordings of the ranges in a journal, a file or a folder; see `collector.recording.journal.load_ranges`.

    Raises:
        collector.InvalidFileError: it is not readable.
    """
    return load_ranges(_contents(segments_of(path) if path.is_dir() else [path]), path)


def process_of_segments(folder: Path) -> JournalProcess:
    """The facts about the process in the first segment of a folder."""
    for _, data in _contents(segments_of(folder)[:1]):
        return process_of(data)
    raise InvalidFileError(f"{folder}: there is no segment of a journal in this folder")


def session_start_ns(folder: Path) -> int:
    """The start of the session whose segments are in a folder, on CUPTI's clock.

    Raises:
        collector.InvalidFileError: no segment has a whole beginning.
    """
    for _, data in _contents(segments_of(folder)):
        with contextlib.suppress(*DAMAGE):
            return span_of(data).session_start_ns
    raise InvalidFileError(f"{folder}: there is no segment of a journal in this folder")


def extent_of_journal(path: Path) -> Extent:
    """The first start and the last end of the rows in a journal, a file or a folder; no rows are kept.

    Of a folder only these segments are read: the first ones, up to one with rows, and the last one, if the program was
    killed in it. The others state their times. The result may lack a table that only the last segment has.

    Raises:
        collector.InvalidFileError: it is not readable.
    """
    start_ns, first_ns, last_ns = 0, 0, 0
    tables = frozenset[str]()
    for name, data in _contents(segments_of(path) if path.is_dir() else [path]):
        check_version(name, data)
        with contextlib.suppress(*DAMAGE):
            span = span_of(data)
            start_ns, tables = start_ns or span.session_start_ns, tables | span.tables_before
            if not first_ns or not span.is_closed:
                extent = extent_of(data)
                first_ns, last_ns = first_ns or extent.first_ns, max(last_ns, extent.last_ns)
                tables |= extent.tables
            else:
                last_ns = max(last_ns, span.last_ns)
    return Extent(start_ns, first_ns, last_ns, tables)


def is_journal(path: Path) -> bool:
    """Whether a file begins as journals do."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def contents_of(path: Path) -> Buffer:
    """The bytes of a file, mapped where that is possible."""
    with path.open("rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # it is empty
            return b""


def _contents(paths: list[Path], *, with_empty: bool = False) -> Iterator[tuple[Path, Buffer]]:
    """The segments that exist: a recorder may be removing the oldest. One that has just been begun is empty."""
    found = False
    for path in paths:
        try:
            data = contents_of(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidFileError(f"{path}: {error.strerror or error}") from error
        if not data and found and not with_empty:
            continue
        found = True
        yield path, data


def _rows_before(segments: list[Path]) -> int:
    """The number of rows before the first of some segments that has a whole beginning."""
    for _, data in _contents(segments):
        with contextlib.suppress(*DAMAGE):
            return span_of(data).rows_before.total()
    return 0


def _in_window(paths: list[Path], window_ns: WindowNs) -> list[Path]:
    if window_ns == (None, None) or not paths:
        return paths
    first, last = window_ns
    kept = []
    for path, data in _contents(paths):
        check_version(path, data)
        try:
            span = span_of(data)
        except DAMAGE:
            continue  # not even a beginning
        start = span.session_start_ns
        is_before = span.is_closed and first is not None and span.last_ns < start + first
        is_after = span.is_closed and last is not None and span.first_ns > start + last
        if path == paths[-1] or not (is_before or is_after):  # the last one has the facts of the end
            kept.append(path)
    return kept
