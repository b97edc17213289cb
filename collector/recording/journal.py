"""Journals: the records of an open session in a file, in case the program ends before the session does.

``trace(journal=...)`` lets the native source write a journal while the step is open, and the programs of
``collector run`` write one each. A journal consists of frames (`journal_frames`), each of which adds rows, names and
counts (`journal_contents`). The last frame of a session that ended says so. If there is none, records that CUPTI had
not delivered when the program ended are missing, and the ledger reports this; the last frame may then be truncated.
`journal_capture` makes the capture of the session. `collector.recording.journal_segments` reads journals that are cut
into segments.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from collector.errors import InvalidFileError
from collector.recording.capture_window import FOREVER_NS, candidates, forget_decoding
from collector.recording.distinct import are_among
from collector.recording.graph_attribution import attribute_graphs
from collector.recording.journal_capture import JournalCapture, selected_rows
from collector.recording.journal_contents import WINDOW_MARGIN_NS, JournalContents
from collector.recording.journal_frames import DAMAGE, check_version
from collector.recording.journal_ranges import calls_and_work, capture_ranges, keep_ranges
from collector.recording.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.recording.capture import Capture
    from collector.recording.journal_contents import WindowNs
    from collector.recording.journal_frames import Buffer, Columns


def load_journal(name: Path, data: bytes) -> Recording:
    """Read the complete part of the journal ``data``, which begins with `MAGIC`; ``name`` is used in errors.

    Raises:
        collector.InvalidFileError: another version, or not even a complete beginning.
    """
    return load_files([(name, data)], name)


def load_files(
    files: Iterable[tuple[Path, Buffer]],
    name: Path,
    window_ns: WindowNs = (None, None),
    places: Iterable[tuple[int, int, int]] = (),
    rows_removed: int | None = None,
) -> Recording:
    """Read the complete parts of the segments of one journal, or of a journal that is one file.

    Args:
        files: the names and contents of segments, in order.
        name: the name of the journal, for errors.
        window_ns: the part that is kept. Other rows are dropped block by block, so that they are never all in memory.
        places: device, stream and context of the activities in further segments, which are not read.
        rows_removed: the number of rows of segments that are not there any more; None: all that were before ``files``.

    Raises:
        collector.InvalidFileError: no file is of a known version and has a complete beginning.
    """
    journal, capture = _read_files(files, name, window_ns, places, rows_removed)
    try:
        if (spans := capture_ranges(journal)) is not None:
            keep_ranges(capture, spans)
        if window_ns != (None, None):
            _drop_links_of_others(capture, journal.window_bounds()[1])
        _begin_with_step(capture)
        recording = Recording.from_capture(capture)
        return recording if window_ns == (None, None) else recording.between(*journal.window_bounds())
    except DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged journal ({' '.join(str(error).split())})") from error


def load_ranges(files: Iterable[tuple[Path, Buffer]], name: Path) -> list[Recording]:
    """Read a journal that has only ranges of a program (``collector run --capture-range``), each as a recording.

    For the arguments and errors see `load_files`.
    """
    journal, whole = _read_files(files, name)
    spans = capture_ranges(journal) or []
    found = []
    try:
        for span, capture in zip(spans, candidates(whole, spans), strict=True):
            keep_ranges(capture, [span])
            if len(spans) > 1:
                forget_decoding(capture)
            _begin_with_step(capture)
            found.append(Recording.from_capture(capture))
    except DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged journal ({' '.join(str(error).split())})") from error
    return found


def _read_files(
    files: Iterable[tuple[Path, Buffer]],
    name: Path,
    window_ns: WindowNs = (None, None),
    places: Iterable[tuple[int, int, int]] = (),
    rows_removed: int | None = None,
) -> tuple[JournalContents, Capture]:
    journal = JournalContents(window_ns)
    journal.rows_removed = rows_removed
    journal.places.update(places)
    bytes_cut, problem = 0, InvalidFileError(f"{name}: there is no segment of a journal in this folder")
    for path, data in files:
        if not data and journal.num_files:  # a segment that was being begun when the program ended
            journal.numbers.pop("segment.closed", None)
            continue
        try:
            check_version(path, data)
            bytes_cut += journal.take_file(data)
        except InvalidFileError as error:
            bytes_cut, problem = bytes_cut + len(data), error
            journal.numbers.pop("segment.closed", None)
        except DAMAGE as error:
            bytes_cut += len(data)
            journal.numbers.pop("segment.closed", None)  # it was going on in this one
            why = "it is cut off" if isinstance(error, struct.error) else error
            problem = InvalidFileError(f"{path}: a journal without even a whole beginning ({why})")
    if not journal.num_files:
        raise problem
    try:
        capture = JournalCapture(journal).capture(bytes_cut=bytes_cut)
        attribute_graphs(capture, ranges=capture_ranges(journal))
        return journal, capture
    except DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged journal ({' '.join(str(error).split())})") from error


def _drop_links_of_others(capture: Capture, window_end_ns: int | None) -> None:
    """Remove the external correlations of launches that were not read, or that are far behind the window.

    Their annotations may not have been read either, which is not a loss.
    """
    tables: dict[str, Columns] = capture["tables"]
    end_ns = FOREVER_NS if window_end_ns is None else window_end_ns + WINDOW_MARGIN_NS
    if (links := tables.get("external_correlations")) is not None:
        read = [columns["correlation_id"][columns["start_ns"] <= end_ns] for columns in calls_and_work(tables)]
        tables["external_correlations"] = selected_rows(links, are_among(links["correlation_id"], np.concatenate(read)))


def _begin_with_step(capture: Capture) -> None:
    """Let rows of before begin with the step: annotations and ranges that were open, and graphs that existed."""
    if "part" not in capture:
        return
    tables: dict[str, Columns] = capture["tables"]
    for table in ("annotations", "nvtx_ranges", "graph_changes"):
        if table in tables:
            columns = tables[table]
            columns["start_ns"] = np.maximum(columns["start_ns"], capture["clock"]["cupti_start_ns"])
            if "end_ns" in columns:
                columns["end_ns"] = np.maximum(columns["end_ns"], columns["start_ns"])
