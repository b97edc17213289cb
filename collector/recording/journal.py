"""Journals: the records of an open session in a file, in case the program ends before the session does.

``trace(journal=...)`` lets the native source write a journal while the step is open, and the programs of
``collector run`` write one each; ``native/capture/journal_format.h`` describes the format. A journal consists of
frames, each of which adds rows, names and counts. The last frame of a session that ended says so. If there is none,
records that CUPTI had not delivered when the program ended are missing, and the ledger reports this; the last frame may
then be truncated. `collector.recording.journal_segments` reads journals that are cut into segments.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import InvalidFileError
from collector.recording.annotation_numbers import ANNOTATION_BITS
from collector.recording.capture import Part
from collector.recording.capture_window import FOREVER_NS, Span, candidates, keep_spans
from collector.recording.counter_rows import add_counters
from collector.recording.counter_texts import series_in
from collector.recording.distinct import are_among
from collector.recording.graph_attribution import attribute_graphs
from collector.recording.ledger import BROKE_OFF, PEER_COPIES
from collector.recording.numbered_texts import NumberedTexts
from collector.recording.packed_rows import unpack_rows
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES, SCHEMA
from collector.recording.shed_kinds import BUDGET, HIGHEST, LAST, SHED, calls_end_ns, in_part
from collector.recording.stream_devices import first_contexts, with_first_contexts
from collector.recording.stream_names import device_labels
from collector.recording.text_columns import text_column
from collector.recording.unfinished_work import NOT_AWAITED

if TYPE_CHECKING:
    import mmap
    from pathlib import Path
    from typing import TypeAlias

    import numpy.typing as npt

    from collector.recording.capture import Capture, Instant

    Buffer: TypeAlias = bytes | mmap.mmap
    Columns: TypeAlias = dict[str, npt.NDArray[Any]]

MAGIC = b"GPUJRNL"
"""The first bytes of a journal; one byte with the version follows."""
VERSION = 4
HEAD_BYTES = len(MAGIC) + 1

_FRAME = struct.Struct("<IIQ")  # a mark, flags, bytes
_FRAME_MARK = 0x4D415246
_RETOLD = 1
"""The flag of a frame that repeats rows of earlier segments."""
_BROKE_OFF = 2
"""The flag of the first frame of a file that could not be written to its end, although the session went on."""
_BLOCK = struct.Struct("<IIQ")  # kind, count, bytes
_BLOCK_KINDS = (
    "texts", "numbers", "layout", "callback_names", "strings", "rows", "annotation_paths", "annotation_ends", "details",
    "packed_rows", "numbered_paths",
)  # fmt: skip
"""The names of the block kinds in the order of their numbers, which start at 1."""
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_KEY = struct.Struct("<III")  # device, context, stream
_END = struct.Struct("<Qq")
_COLUMN = struct.Struct("<III")  # offset, bytes, whether signed
_KEY_COLUMNS = ("device_id", "context_id", "stream_id")
_KEPT_BEFORE_WINDOW = ("annotations", "contexts", "streams", "devices", "graph_changes")
"""Tables whose rows from before a window count in it: annotations may still be open in it, and objects still exist."""
_RETOLD_TABLES = _KEPT_BEFORE_WINDOW
_BUFFERS_HELD = "segment.buffers_held"
"""The number of a closed segment that counts the buffers whose rows are in the next ones although they are older."""
_TIMED_TABLES = tuple(
    table for table, columns in SCHEMA.items() if "start_ns" in columns and table not in _KEPT_BEFORE_WINDOW
)
_MOST_NS = 1 << 62
"""Times that any clock can have are smaller, and so are their sums."""
_WINDOW_MARGIN_NS = 2_000_000_000
"""Rows this close to a window are read as well, to find the calls of its kernels and the kernels of its calls."""
DAMAGE = (struct.error, ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""The errors that damaged bytes lead to."""

WindowNs = tuple[int | None, int | None]
"""A part of a recording, from its start on, in ns; either end may be open."""


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
) -> Recording:
    """Read the complete parts of the segments of one journal, or of a journal that is one file.

    Args:
        files: the names and contents of segments, in order.
        name: of the journal, for errors.
        window_ns: the part that is kept. Other rows are dropped block by block, so that they are never all in memory.
        places: device, stream and context of the activities in further segments, which are not read.

    Raises:
        collector.InvalidFileError: no file is of a known version and has a complete beginning.
    """
    journal, capture = _read_files(files, name, window_ns, places)
    try:
        if (spans := journal.capture_ranges()) is not None:
            _keep_ranges(capture, spans)
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
    spans = journal.capture_ranges() or []
    found = []
    try:
        for span, capture in zip(spans, candidates(whole, spans), strict=True):
            _keep_ranges(capture, [span])
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
) -> tuple[_Journal, Capture]:
    journal = _Journal(window_ns)
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
        capture = journal.capture(bytes_cut=bytes_cut)
        attribute_graphs(capture, ranges=journal.capture_ranges())
        return journal, capture
    except DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged journal ({' '.join(str(error).split())})") from error


def check_version(name: Path, data: Buffer) -> None:
    """Raise `collector.InvalidFileError` if the journal is of a version that is not known."""
    version = data[len(MAGIC)] if len(data) >= HEAD_BYTES else None
    if version is None or not 1 <= version <= VERSION:
        raise InvalidFileError(
            f"{name}: a journal of version {'?' if version is None else version}, this program reads version {VERSION}",
            "Read it with the version of cupti-collector that wrote it",
        )


def journal_window(
    files: Iterable[Buffer],
    first_byte: int,
    start: Instant,
    stop: Instant,
    own_calls: tuple[int, int],
    buffers_held: int = 0,
) -> Capture:
    """The part of an open session between two instants, of the files of its journal.

    Annotations that were open at the start begin there, and those that are open at the end end there. Work belongs to
    the part if it was launched in it; see `_Launches`.

    Args:
        files: the journal, or its segments from the one on that was written at the start; they have all rows up to the
            end.
        first_byte: the size of the first file at the start of the window: rows from there on may belong to the window,
            earlier rows do not.
        start: the first instant.
        stop: the last one.
        own_calls: a thread and a time: the calls of this thread from this time on are the collector's own.
        buffers_held: the number of buffers with rows of the window that the files do not have yet.

    Raises:
        collector.InvalidFileError: the journal is damaged.
    """
    journal = _Journal()
    before = dict[str, int]()
    try:
        for number, data in enumerate(files):
            journal.take_file(data, first_byte if number == 0 else 0)
            before = dict(journal.numbers_before) if number == 0 else before
        return journal.window(before, start, stop, own_calls, buffers_held)
    except DAMAGE as error:
        raise InvalidFileError(f"the journal of this process is damaged ({error})") from error


class JournalProcess(NamedTuple):
    """What a journal states about its process. Those of `trace` state the prefix of devices alone."""

    process_id: int | None
    variables: Mapping[str, str]
    """Variables of its environment."""
    is_python: bool = False
    """Whether it is a Python program."""
    device_prefix: str = ""
    """What the program put before the names of devices, such as ``/job:worker/replica:0/task:3``, or nothing."""


DEVICE_PREFIX = "process.device_prefix"
"""The text of a journal that states `JournalProcess.device_prefix`."""


def process_of(data: Buffer) -> JournalProcess:
    """The facts about the process in the first frame of the journal ``data``."""
    journal = _Journal()
    with contextlib.suppress(*DAMAGE):
        journal.take_frame(data, HEAD_BYTES)
    process_id = journal.texts.get("process.id", "")
    stated = (name.partition(".") for name in journal.texts)
    variables = {name: journal.texts[f"{room}.{name}"] for room, _, name in stated if room == "variable"}
    is_python = journal.texts.get("process.interpreter") == "python"
    prefix = journal.texts.get(DEVICE_PREFIX, "")
    return JournalProcess(int(process_id) if process_id.isdecimal() else None, variables, is_python, prefix)


class SegmentSpan(NamedTuple):
    """The times of a segment's rows, CUPTI's ns."""

    session_start_ns: int
    first_ns: int
    last_ns: int
    is_closed: bool
    """Whether these are the times of all its rows; a segment that was not closed states none."""
    tables_before: frozenset[str] = frozenset()
    """The tables that have rows in earlier segments."""


def span_of(data: Buffer) -> SegmentSpan:
    """The times of a segment, without reading its rows. Raises one of `DAMAGE` for a damaged one."""
    journal, at, last = _Journal(), HEAD_BYTES, HEAD_BYTES
    journal.take_frame(data, HEAD_BYTES)
    session_start_ns = journal.numbers["clock.cupti_start_ns"]
    prefix = "segment.rows_before."
    stated = (name.removeprefix(prefix) for name, n in journal.numbers.items() if name.startswith(prefix) and n)
    before = frozenset(stated)
    while at + _FRAME.size <= len(data):
        last, (mark, _, num_bytes) = at, _FRAME.unpack_from(data, at)
        at += _FRAME.size + int(num_bytes)
        if mark != _FRAME_MARK or at > len(data):
            return SegmentSpan(session_start_ns, 0, 0, is_closed=False, tables_before=before)
    journal.take_frame(data, last, kept_rows=())
    numbers = journal.numbers
    is_closed = bool(numbers.get("segment.closed") or numbers.get("journal.ended"))
    first, final = numbers.get("segment.first_ns", 0), numbers.get("segment.last_ns", 0)
    return SegmentSpan(session_start_ns, first, final, is_closed and "segment.last_ns" in numbers, before)


def places_of(data: Buffer) -> set[tuple[int, int, int]]:
    """Device, stream and context of the activities in a segment, whose rows are not read."""
    places, at = set[tuple[int, int, int]](), HEAD_BYTES
    with contextlib.suppress(*DAMAGE):
        while at < len(data):
            end = _Journal.end_of_frame(data, at)
            at += _FRAME.size
            while at < end:
                kind, _, num_bytes = _BLOCK.unpack_from(data, at)
                at += _BLOCK.size
                if _BLOCK_KINDS[kind - 1] in ("rows", "packed_rows"):
                    reader = _Reader(data, at, min(at + num_bytes, end))
                    if reader.text() in ACTIVITY_TABLES:
                        device, context, stream = reader.take(_KEY)
                        places.add((device, stream, context))
                at += num_bytes
    return places


class Extent(NamedTuple):
    """The times of rows, CUPTI's ns; 0: there are none."""

    session_start_ns: int
    first_ns: int
    """The first start."""
    last_ns: int
    """The last end."""
    tables: frozenset[str]
    """The tables that have rows."""


def extent_of(data: Buffer) -> Extent:
    """The times of the rows of the journal or segment ``data``, without repeated rows of earlier segments.

    At most one block of rows is in memory. Raises one of `DAMAGE` for damaged bytes before the first row.
    """
    journal = _Extent()
    journal.take_file(data)
    start_ns = journal.numbers["clock.cupti_start_ns"]
    return Extent(start_ns, journal.first_ns, journal.last_ns, frozenset(journal.tables))


def _selected(columns: dict[str, npt.NDArray[Any]], mask: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    return {name: column[mask] for name, column in columns.items()}


def _distinct(columns: Columns) -> Columns:
    """The rows without those that repeat an earlier one."""
    if not len(next(iter(columns.values()))):
        return columns
    _, first = np.unique(np.rec.fromarrays(list(columns.values())), return_index=True)
    first.sort()
    return {name: column[first] for name, column in columns.items()}


def _latest(annotations: Columns) -> Columns:
    """The last row of each annotation: one that was told while it was open is told again with its end."""
    ids = annotations["external_id"]
    _, from_end = np.unique(ids[::-1], return_index=True)
    last = np.sort(len(ids) - 1 - from_end)
    return {name: column[last] for name, column in annotations.items()}


def holds_records(path: Path) -> bool:
    """Whether the journal at ``path``, which may be truncated, contains any records.

    It does if there is a second complete frame: the first frame only describes how to read the others.
    """
    with contextlib.suppress(OSError, struct.error), path.open("rb") as file:
        end = HEAD_BYTES
        for _ in range(2):
            file.seek(end)
            mark, _, num_bytes = _FRAME.unpack(file.read(_FRAME.size))
            end += _FRAME.size + num_bytes
            if mark != _FRAME_MARK or end > os.fstat(file.fileno()).st_size:
                return False
        return True
    return False


def _keep_ranges(capture: Capture, spans: Sequence[Span]) -> None:
    """Let a capture be what was recorded of these ranges: from the begin of the first to the end of the last one."""
    counts = capture["counters"]
    keep_spans(capture, spans, has_other_calls=calls_end_ns(counts, 0) is not None)
    if not spans:
        return
    clock = capture["clock"]
    last_ns = spans[-1].end_ns
    if last_ns != FOREVER_NS:
        tables: dict[str, Columns] = capture["tables"]
        for columns in _calls_and_work(tables):  # work may run on after the range
            last_ns = max(last_ns, int(columns["end_ns"].max(initial=0)))
        stop_ns = min(last_ns, clock["cupti_stop_ns"])
        clock["wall_stop_ns"] += stop_ns - clock["cupti_stop_ns"]
        clock["cupti_stop_ns"] = stop_ns
    begin_ns = min(spans[0].begin_ns, clock["cupti_stop_ns"])
    shed = in_part(counts, begin_ns - clock["cupti_start_ns"], clock["cupti_stop_ns"] - begin_ns)
    capture["counters"] = {name: count for name, count in counts.items() if name not in SHED} | shed
    clock["wall_start_ns"] += begin_ns - clock["cupti_start_ns"]
    clock["cupti_start_ns"] = begin_ns
    annotations = capture["tables"]["annotations"]
    annotations["end_ns"] = np.minimum(annotations["end_ns"], clock["cupti_stop_ns"])
    capture["part"] = Part(begin_ns, 1, is_continued=False)


def _drop_links_of_others(capture: Capture, window_end_ns: int | None) -> None:
    """Remove the names of launches that were not read, or that are far behind the window.

    Their annotations may not have been read either, which is no loss.
    """
    tables: dict[str, Columns] = capture["tables"]
    end_ns = FOREVER_NS if window_end_ns is None else window_end_ns + _WINDOW_MARGIN_NS
    if (links := tables.get("external_correlations")) is not None:
        read = [columns["correlation_id"][columns["start_ns"] <= end_ns] for columns in _calls_and_work(tables)]
        tables["external_correlations"] = _selected(links, are_among(links["correlation_id"], np.concatenate(read)))


def _calls_and_work(tables: Mapping[str, Columns]) -> list[Columns]:
    """The tables of API calls and of what they launched."""
    return [columns for table, columns in tables.items() if table in ("api_calls", *LAUNCHED_TABLES)]


def _begin_with_step(capture: Capture) -> None:
    """Let what was told again begin with the step: annotations that were open, and graphs that existed."""
    if "part" not in capture:
        return
    tables: dict[str, Columns] = capture["tables"]
    for table in ("annotations", "graph_changes"):
        if table in tables:
            columns = tables[table]
            columns["start_ns"] = np.maximum(columns["start_ns"], capture["clock"]["cupti_start_ns"])
            if "end_ns" in columns:
                columns["end_ns"] = np.maximum(columns["end_ns"], columns["start_ns"])


_DRIVER_API = 1
"""CUPTI_CB_DOMAIN_DRIVER_API."""


def _follows(later: Any, earlier: int) -> Any:
    """Whether a correlation id, or each of several, is that of a later call or the same; they begin again at 2**32."""
    return (later - earlier) % (1 << 32) < 1 << 31


class _Launches(NamedTuple):
    """The launches of a part of a session. The correlation ids of calls are in the order of the calls."""

    inside: npt.NDArray[np.uint32]
    """Correlation ids of the part's calls."""
    outside: npt.NDArray[np.uint32]
    """Those of other calls, as far as they are known."""
    first: int | None
    """Earlier calls have lower ids; None: nothing is known about earlier calls."""
    is_empty: bool
    """Whether it is known that there are none."""

    def among(self, ids: npt.NDArray[np.uint32], starts_inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether work was launched in the part; if its call is not known, its own start decides."""
        known = are_among(ids, self.inside)
        if self.is_empty:
            return known
        possible = starts_inside & ~are_among(ids, self.outside)
        if self.first is not None:
            possible &= _follows(ids.astype("i8"), self.first) | (ids == 0)
        return known | possible


class _Rows(NamedTuple):
    """The rows of one block."""

    key: tuple[int, int, int]
    num_rows: int
    columns: Mapping[str, npt.NDArray[Any]] | npt.NDArray[Any]
    """By name."""


class _Journal:
    """The capture that the frames of a journal add up to."""

    def __init__(self, window_ns: WindowNs = (None, None)) -> None:
        self._window_ns = window_ns
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.numbers_before: dict[str, int] = {}
        """The numbers before the first kept byte of the last file."""
        self._layouts: dict[str, np.dtype[Any]] = {}
        self._callback_names: dict[tuple[int, int], str] = {}
        self._strings = NumberedTexts()
        self._strings.add(0, "")
        self._first_string = 0
        """The number of the first string that a segment tells again."""
        self._rows: dict[str, list[_Rows]] = defaultdict(list)
        self._annotation_texts = NumberedTexts()
        self._annotation_ends: list[tuple[int, int]] = []
        self._details: list[Any] = []
        self._kept_rows: Container[str] | None = None
        self._is_retold = False
        self._num_rows = Counter[str]()
        """Rows read, without those that were told again."""
        self._first_part: Part | None = None
        """The begin of the first segment, if it is a later one of its session."""
        self._rows_before = Counter[str]()
        """Rows of segments before the first."""
        self.num_files = 0
        """Of which the beginning could be read."""
        self._last_segment = 0
        self._has_gap = False
        self._missing = Counter[str]()
        """Rows of segments that are missing or damaged."""
        self._calls_before: Callable[[], Any] | None = None
        """Reads the last calls that are not kept."""
        self.places = set[tuple[int, int, int]]()
        """Device, stream and context of all activities, also of those that are not kept."""
        self._has_own_calls = False
        """Whether calls of the driver by the collector itself were recorded."""

    def take_file(self, data: Buffer, first_byte: int = 0) -> int:
        """Add all complete frames of one file; return the number of bytes behind them.

        From frames before ``first_byte`` only the tables of `_KEPT_BEFORE_WINDOW` are added.

        Raises:
            ValueError: not even the first frame is complete, or it is of another session.
        """
        at = self._take_head(data)
        with contextlib.suppress(*DAMAGE):
            while at < len(data):
                if at < first_byte:
                    at = self.take_frame(data, at, kept_rows=_KEPT_BEFORE_WINDOW)
                    self.numbers_before = dict(self.numbers)
                else:
                    at = self.take_frame(data, at)
        return len(data) - at

    def _take_head(self, data: Buffer) -> int:
        """Add the first frame of a file; skip the second if it tells again what the file before has told."""
        session = self.numbers.get("clock.cupti_start_ns"), self.texts.get("process.id")
        counters, self.numbers = self.numbers, {}
        try:
            at = self.take_frame(data, HEAD_BYTES)
        finally:
            numbers, self.numbers = self.numbers, counters
        number = numbers.get("segment.number", 0)
        if self.num_files and (numbers.get("clock.cupti_start_ns"), self.texts.get("process.id")) != session:
            raise ValueError("it is of another session")
        prefix = "segment.rows_before."
        before = Counter({name.removeprefix(prefix): n for name, n in numbers.items() if name.startswith(prefix)})
        if not self.num_files:
            self._rows_before = before
            if number > 1:
                begin_ns = numbers.get("segment.begin_ns", numbers["clock.cupti_start_ns"])
                # Since version 3 a segment tells again the annotations that its rows need, as far as they fit into it.
                first_annotation = 1 if data[len(MAGIC)] >= 3 else before["annotations"] + 1
                self._first_part = Part(begin_ns, first_annotation, False, has_calls_before=before["api_calls"] > 0)
        follows = self.num_files > 0 and number == self._last_segment + 1 and bool(counters.get("segment.closed"))
        if self.num_files and not follows:
            self._has_gap = True
        self._missing = before - self._rows_before - self._num_rows
        self.num_files += 1
        self._last_segment = number
        self._first_string = numbers.get("segment.first_string", 0)
        for name in ("segment.closed", _BUFFERS_HELD, "journal.ended", "clock.cupti_stop_ns", "clock.wall_stop_ns"):
            counters.pop(name, None)
        self.numbers |= numbers
        if self._flags_of_frame(data, HEAD_BYTES) & _BROKE_OFF:
            self.numbers[BROKE_OFF] = 1
        if follows and self._flags_of_frame(data, at) & _RETOLD:
            # Before version 4 the strings of the segment before go on.
            return self._take_strings(data, at) if data[len(MAGIC)] >= 4 else self.end_of_frame(data, at)
        return at

    @staticmethod
    def _flags_of_frame(data: Buffer, at: int) -> int:
        return int(_FRAME.unpack_from(data, at)[1]) if at + _FRAME.size <= len(data) else 0

    @staticmethod
    def end_of_frame(data: Buffer, at: int) -> int:
        """The byte behind the frame at byte ``at``."""
        mark, _, num_bytes = _FRAME.unpack_from(data, at)
        end = at + _FRAME.size + int(num_bytes)
        if mark != _FRAME_MARK:
            raise ValueError(f"no frame at byte {at}")
        if end > len(data):
            raise ValueError("the frame is cut off")
        return end

    def _take_strings(self, data: Buffer, at: int) -> int:
        """Add only the strings of the frame at byte ``at``, which tells them again; return the start of the next."""
        self._strings.count_from(self._first_string)
        for kind, reader, count in self._blocks(data, at):
            if kind == "strings":
                self._read_strings(reader, count)()
        return self.end_of_frame(data, at)

    def _blocks(self, data: Buffer, at: int) -> Iterator[tuple[str, _Reader, int]]:
        """The kinds, contents and counts of the blocks of the frame at byte ``at``."""
        end = self.end_of_frame(data, at)
        at += _FRAME.size
        while at < end:
            kind, count, num_bytes = _BLOCK.unpack_from(data, at)
            at += _BLOCK.size
            if at + num_bytes > end or not 1 <= kind <= len(_BLOCK_KINDS):
                raise ValueError(f"no block at byte {at - _BLOCK.size}")
            yield _BLOCK_KINDS[kind - 1], _Reader(data, at, at + num_bytes), count
            at += num_bytes

    def take_frame(self, data: Buffer, at: int, kept_rows: Container[str] | None = None) -> int:
        """Add the frame at byte ``at``; return the start of the next. A damaged frame raises and adds nothing.

        ``kept_rows``: the tables whose rows are added; None: all.
        """
        self._kept_rows = kept_rows
        self._is_retold = bool(self._flags_of_frame(data, at) & _RETOLD)
        additions: list[Callable[[], object]] = [self._forget_texts] if self._is_retold else []
        for kind, reader, count in self._blocks(data, at):
            additions.append(getattr(self, f"_read_{kind}")(reader, count))
        for add in additions:
            add()
        return self.end_of_frame(data, at)

    def _forget_texts(self) -> None:
        """All details are told again; texts have numbers, which stay."""
        self._details = []
        self._strings.count_from(self._first_string)
        self._annotation_texts.count_from(0)

    def _read_texts(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = {reader.text(): reader.text() for _ in range(count)}
        return lambda: self.texts.update(found)

    def _read_numbers(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = {reader.text(): int(reader.take(_I64)[0]) for _ in range(count)}
        return lambda: self.numbers.update(found)

    def _read_layout(self, reader: _Reader, count: int) -> Callable[[], object]:
        table, num_bytes = reader.text(), reader.take(_U32)[0]
        names, formats, offsets = [], [], []
        for _ in range(count):
            names.append(reader.text())
            offset, width, signed = reader.take(_COLUMN)
            formats.append(f"<{'i' if signed else 'u'}{width}")
            offsets.append(offset)
        layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": num_bytes})
        return lambda: self._layouts.update({table: layout})

    def _read_callback_names(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = {(reader.take(_U32)[0], reader.take(_U32)[0]): reader.text() for _ in range(count)}
        return lambda: self._callback_names.update(found)

    def _read_strings(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [reader.text() for _ in range(count)]
        return lambda: self._strings.append(found)

    def _read_annotation_paths(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [reader.text() for _ in range(count)]
        return lambda: self._annotation_texts.append(found)

    def _read_numbered_paths(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [(int(reader.take(_U32)[0]), reader.text()) for _ in range(count)]

        def add() -> None:
            for number, text in found:
                self._annotation_texts.add(number, text)

        return add

    def _read_annotation_ends(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [reader.take(_END) for _ in range(count)]
        return lambda: self._annotation_ends.extend(found)

    def _read_details(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [json.loads(reader.text()) for _ in range(count)]
        return lambda: self._details.extend(found)

    def _read_rows(self, reader: _Reader, count: int) -> Callable[[], object]:
        table, key = reader.text(), reader.take(_KEY)
        return self._addition(table, key, count, lambda layout: reader.rows(layout, count))

    def _read_packed_rows(self, reader: _Reader, count: int) -> Callable[[], object]:
        table, key = reader.text(), reader.take(_KEY)
        return self._addition(table, key, count, lambda layout: reader.packed_rows(layout, count))

    def _addition(
        self, table: str, key: tuple[Any, ...], count: int, read: Callable[[np.dtype[Any]], Any]
    ) -> Callable[[], object]:
        is_retold = self._is_retold

        def note() -> None:
            self._num_rows[table] += 0 if is_retold else count
            if table in ACTIVITY_TABLES:
                device, context, stream = key
                self.places.add((device, stream, context))

        if self._kept_rows is not None and table not in self._kept_rows:
            if table == "api_calls":
                layout = self._layouts[table]
                self._calls_before = lambda: read(layout)
            return note
        rows = _Rows((key[0], key[1], key[2]), count, read(self._layouts[table]))
        if self._is_far_from_window(table, rows):
            return note

        def add() -> None:
            note()
            self._rows[table].append(rows)

        return add

    def window_bounds(self) -> WindowNs:
        """The window in CUPTI's ns."""
        start_ns = self.numbers["clock.cupti_start_ns"]
        first, last = (None if side is None else start_ns + side for side in self._window_ns)
        return first, last

    def _is_far_from_window(self, table: str, rows: _Rows) -> bool:
        """Whether no row can be needed for the window."""
        names = self._layouts[table].names or ()
        if self._window_ns == (None, None) or "start_ns" not in names:
            return False
        first, last = self.window_bounds()
        begins, ends = rows.columns["start_ns"], rows.columns["end_ns" if "end_ns" in names else "start_ns"]
        if last is not None and bool((begins > last + _WINDOW_MARGIN_NS).all()):
            return True
        if first is None or table in _KEPT_BEFORE_WINDOW:
            return False
        return bool((np.maximum(begins, ends) < first - _WINDOW_MARGIN_NS).all())

    def capture_ranges(self) -> list[Span] | None:
        """The ranges of the program that were recorded, as far as the journal has them; None: all was recorded."""
        if "capture_ranges_recorded" not in self.numbers:
            return None
        prefix, begin = "range.", ".begin_ns"
        numbers = [name[len(prefix) : -len(begin)] for name in self.numbers if name.endswith(begin)]
        bounds = sorted(
            Span(self.numbers[f"{prefix}{n}{begin}"], self.numbers.get(f"{prefix}{n}.end_ns", FOREVER_NS))
            for n in numbers
            if f"{prefix}{n}{begin}" in self.numbers
        )
        first_ns = self.numbers["clock.cupti_start_ns"]
        if self._first_part is not None and self._first_part.begin_ns is not None:
            first_ns = self._first_part.begin_ns
        found: list[Span] = []
        for span in bounds:
            begin_ns = max(span.begin_ns, first_ns, found[-1].end_ns + 1 if found else first_ns)
            if begin_ns <= span.end_ns <= FOREVER_NS:
                found.append(Span(begin_ns, span.end_ns))
        return found

    def capture(self, bytes_cut: int) -> Capture:
        """The capture of the session, which ends with the last frame if it had not ended when the program did."""
        has_ended = bool(self.numbers.get("journal.ended") or self.numbers.get("segment.closed"))
        tables = {table: self._columns(table) for table in SCHEMA if table in self._layouts}
        self._remove_own_calls(tables)
        strings = [*self._strings.texts]
        self._name_calls(tables["api_calls"], strings)
        clock = self._clock(tables, has_ended=has_ended)
        self._end_annotations(tables["annotations"], strings, clock["cupti_stop_ns"] if has_ended else 0)
        capture: Capture = {
            "tables": tables,
            "strings": strings,
            "counters": {
                **{name: value for name, value in self.numbers.items() if "." not in name},
                "interrupted": 0 if has_ended else 1,
                "journal_bytes_cut": bytes_cut,
            },
            "clock": clock,
            "environment": self._environment(tables),
            "details": self._details,
        }
        series, unreadable = series_in(self.texts)
        if series:
            add_counters(capture, series)
        if unreadable:
            capture["counters"]["counters_not_sampled"] = 1
        capture["counters"] |= in_part(self.numbers, clock["cupti_start_ns"] - self.numbers["clock.cupti_start_ns"])
        if forgotten := self._rows_before.total():
            capture["counters"]["rows_forgotten"] = forgotten
        if held := self.numbers.get(_BUFFERS_HELD):
            capture["counters"]["buffers_held"] = held
        if not has_ended or self.numbers.get("segment.closed"):
            capture["counters"][NOT_AWAITED] = 1
        if self._window_ns == (None, None) and (missing := self._missing.total()):
            capture["counters"]["rows_missing"] = missing
        if (part := self._part()) is not None:
            capture["part"] = part
        return capture

    def _part(self) -> Part | None:
        """The place of what was read in the session; None: it is the whole."""
        begin_ns, end_ns = self.window_bounds()
        first_annotation, has_calls_before = 1, False
        if self._first_part is not None:
            has_calls_before = self._first_part.has_calls_before
            first_annotation = self._first_part.first_annotation
            begin_ns = self._first_part.begin_ns if begin_ns is None else begin_ns
        is_continued = end_ns is not None or bool(self.numbers.get("segment.closed"))
        if begin_ns is None and not is_continued:
            return None
        return Part(begin_ns, first_annotation, is_continued, has_calls_before)

    def window(
        self, before: Mapping[str, int], start: Instant, stop: Instant, own_calls: tuple[int, int], buffers_held: int
    ) -> Capture:
        """See `journal_window`; ``before`` are the counts at the start."""
        self.numbers |= {"own_calls.thread_id": own_calls[0], "own_calls.from_ns": own_calls[1], "journal.ended": 1}
        session_start_ns = self.numbers["clock.cupti_start_ns"]
        self.numbers |= {"clock.cupti_start_ns": start.cupti_ns, "clock.wall_start_ns": start.wall_ns}
        self.numbers |= {"clock.cupti_stop_ns": stop.cupti_ns, "clock.wall_stop_ns": stop.wall_ns}
        self.numbers["clock.uncertainty_ns"] = max(start.uncertainty_ns, stop.uncertainty_ns)
        self._first_part = None  # the window is later
        self._rows_before.clear()
        self.numbers.pop("segment.closed", None)
        self.numbers[_BUFFERS_HELD] = buffers_held
        capture = self.capture(bytes_cut=0)
        tables: dict[str, dict[str, npt.NDArray[Any]]] = capture["tables"]
        launches = self._launches_of_window(tables["api_calls"], start.cupti_ns, stop.cupti_ns)
        late_ns = 0
        for table, columns in tables.items():
            if "start_ns" in columns:
                begins = columns["start_ns"] if table != "annotations" else columns["end_ns"]
                is_inside = (begins >= start.cupti_ns) & (columns["start_ns"] <= stop.cupti_ns)
                if table in LAUNCHED_TABLES:
                    is_inside = launches.among(columns["correlation_id"], is_inside)
                    is_late = is_inside & (columns["start_ns"] > stop.cupti_ns)
                    late_ns = max(late_ns, int(columns["end_ns"][is_late].max(initial=0)) - stop.cupti_ns)
                tables[table] = _selected(columns, is_inside)
        capture["clock"]["cupti_stop_ns"] += late_ns  # launched in the window by threads for which nothing waited
        capture["clock"]["wall_stop_ns"] += late_ns
        spans = tables["annotations"]
        spans["start_ns"] = np.maximum(spans["start_ns"], start.cupti_ns)
        spans["end_ns"] = np.minimum(spans["end_ns"], stop.cupti_ns)
        links = tables.get("external_correlations")
        if links is not None:
            calls = tables["api_calls"]["correlation_id"]
            tables["external_correlations"] = _selected(links, np.isin(links["correlation_id"], calls))
        capture["part"] = Part(start.cupti_ns, 1, is_continued=buffers_held > 0)
        shed = in_part(capture["counters"], start.cupti_ns - session_start_ns, stop.cupti_ns - start.cupti_ns)
        kept = {name: count for name, count in capture["counters"].items() if name in (BUDGET, HIGHEST, LAST)} | shed
        capture["counters"] = {
            **{
                name: count - before.get(name, 0)
                for name, count in capture["counters"].items()
                if name not in SHED and not name.startswith("capture_ranges_")
            },
            **kept,
        }
        return capture

    def _launches_of_window(self, calls: Columns, start_ns: int, stop_ns: int) -> _Launches:
        """The launches between two times, of which other calls may be unknown."""
        ids, starts = calls["correlation_id"], calls["start_ns"]
        is_before = starts < start_ns
        is_inside = ~is_before & (starts <= stop_ns)
        bounds = []
        if is_before.any():
            bounds.append(int(ids[is_before][starts[is_before].argmax()]) + 1)
        if self._calls_before is not None:
            earlier = self._calls_before()
            earlier = earlier if isinstance(earlier, Mapping) else {name: earlier[name] for name in earlier.dtype.names}
            at = np.where(earlier["start_ns"] < start_ns, earlier["start_ns"], 0).argmax()
            bounds.append(int(earlier["correlation_id"][at]) + 1)
        inside = ids[is_inside]
        if len(inside) and (self._has_own_calls or not bounds):
            bounds.append(int(inside[starts[is_inside].argmin()]))
        first = next((each for each in bounds if all(_follows(each, other) for other in bounds)), None)
        return _Launches(inside, ids[~is_inside], first, is_empty=not len(inside) and self._has_own_calls)

    def _clock(self, tables: dict[str, dict[str, npt.NDArray[Any]]], *, has_ended: bool) -> dict[str, int]:
        start_ns, wall_start_ns = self.numbers["clock.cupti_start_ns"], self.numbers["clock.wall_start_ns"]
        if self._first_part is not None and self._first_part.begin_ns is not None:  # it begins with its first row
            begin_ns = self._first_part.begin_ns
            begins = [t["start_ns"][t["start_ns"] > 0] for name, t in tables.items() if name in _TIMED_TABLES]
            begin_ns = min(begin_ns, *(int(column.min(initial=begin_ns)) for column in begins))
            start_ns, wall_start_ns = begin_ns, wall_start_ns + begin_ns - start_ns
        if has_ended:
            stop_ns, wall_stop_ns = self.numbers["clock.cupti_stop_ns"], self.numbers["clock.wall_stop_ns"]
        else:
            times = [columns[side] for columns in tables.values() for side in ("start_ns", "end_ns") if side in columns]
            stop_ns = max(start_ns, *(int(column.max(initial=start_ns)) for column in times))
            wall_stop_ns = wall_start_ns + stop_ns - start_ns
        uncertainty_ns = self.numbers["clock.uncertainty_ns"]
        if not all(0 <= time < _MOST_NS for time in (start_ns, stop_ns, wall_start_ns, wall_stop_ns, uncertainty_ns)):
            raise ValueError("its clocks are impossible")
        return {
            "cupti_start_ns": start_ns,
            "cupti_stop_ns": stop_ns,
            "wall_start_ns": wall_start_ns,
            "wall_stop_ns": wall_stop_ns,
            "uncertainty_ns": uncertainty_ns,
        }

    def _remove_own_calls(self, tables: dict[str, dict[str, npt.NDArray[Any]]]) -> None:
        """Remove the calls of the collector itself, as ``native/capture/own_calls.h`` does in memory."""
        calls = tables["api_calls"]
        is_own = np.zeros(len(calls["thread_id"]), bool)
        if "own_calls.thread_id" in self.numbers:
            is_own |= (calls["thread_id"] == self.numbers["own_calls.thread_id"]) & (
                calls["start_ns"] >= self.numbers["own_calls.from_ns"]
            )
        if decode_thread_id := self.numbers.get("own_calls.decode_thread_id"):
            is_own |= calls["thread_id"] == decode_thread_id
        if not is_own.any():
            return
        self._has_own_calls = bool((calls["domain"][is_own] == _DRIVER_API).any())
        own = calls["correlation_id"][is_own]
        tables["api_calls"] = _selected(calls, ~is_own)
        for table in ("external_correlations", "synchronizations"):
            if table in tables:
                tables[table] = _selected(tables[table], ~np.isin(tables[table]["correlation_id"], own))

    def _environment(self, tables: Mapping[str, Columns]) -> dict[str, Any]:
        found: dict[str, Any] = {"source": "native"}
        for name, value in {**self.numbers, **self.texts}.items():
            room, _, rest = name.partition(".")
            if room == "environment":
                found[rest] = value
        for flag in ("simulated", "shared_subscription"):
            found[flag] = bool(found.get(flag))
        if PEER_COPIES in found:
            found[PEER_COPIES] = bool(found[PEER_COPIES])
        if threads := self._names("thread"):
            found["thread_names"] = threads
        found["devices"] = self._names("device")
        streams = {
            (int(context), int(stream)): text
            for name, text in self.texts.items()
            if name.startswith("nvtx.stream.")
            for context, _, stream in [name.removeprefix("nvtx.stream.").partition(".")]
        }
        first = first_contexts(self.places)
        if labels := device_labels(tables, self._names("nvtx.device"), self._names("nvtx.context"), streams, first):
            found["device_labels"] = labels
        return with_first_contexts(found, first)

    def _names(self, room: str) -> dict[int, str]:
        """The texts of numbered objects."""
        prefix = f"{room}."
        return {int(name.removeprefix(prefix)): text for name, text in self.texts.items() if name.startswith(prefix)}

    def _columns(self, table: str) -> Columns:
        parts = self._rows.pop(table, [])
        names = self._layouts[table].names or ()
        columns = {}
        for column, dtype in SCHEMA[table].items():
            if column in names:
                values = [rows.columns[column] for rows in parts]
                columns[column] = (
                    np.concatenate(values).astype(dtype, casting="equiv") if values else np.zeros(0, dtype)
                )
        if table in ACTIVITY_TABLES:
            counts = [rows.num_rows for rows in parts]
            for at, column in enumerate(_KEY_COLUMNS):
                columns[column] = np.repeat(np.array([rows.key[at] for rows in parts], "u4"), counts)
        if self._has_gap and table in _RETOLD_TABLES:
            columns = _latest(columns) if table == "annotations" else _distinct(columns)
        if table != "annotations":  # their names are in a list of their own
            for column in filter(text_column, columns):
                places = self._strings.places(columns[column])
                if (places < 0).any():
                    raise ValueError(f"a text of {table}.{column} is missing")
                columns[column] = places.astype("u4")
        return columns

    def _name_calls(self, calls: dict[str, npt.NDArray[Any]], strings: list[str]) -> None:
        """Set the names of API calls from the library's table."""
        number = calls["domain"].astype("u8") << np.uint64(32) | calls["callback_id"]
        known, where = np.unique(number, return_inverse=True)
        first = len(strings)
        for each in known.tolist():
            domain, callback = each >> 32, each & 0xFFFFFFFF
            strings.append(self._callback_names.get((domain, callback), f"callback {callback}"))
        calls["name_id"] = (first + where).astype("u4")

    def _end_annotations(self, annotations: dict[str, npt.NDArray[Any]], strings: list[str], last_end_ns: int) -> None:
        """Set the ends and names of annotations that reached the journal while they were open.

        ``last_end_ns`` is the end of those that no one closed.
        """
        if self._annotation_ends:
            rows, ends = zip(*self._annotation_ends, strict=True)
            numbers = (annotations["external_id"] & np.uint64((1 << ANNOTATION_BITS) - 1)) - np.uint64(1)
            order = np.argsort(numbers, kind="stable")
            at = np.searchsorted(numbers, np.array(rows, "u8"), sorter=order)
            is_known = at < len(order)
            at = order[np.where(is_known, at, 0)] if len(order) else at
            is_known[is_known] = numbers[at[is_known]] == np.array(rows, "u8")[is_known]  # else of an earlier segment
            annotations["end_ns"][at[is_known]] = np.array(ends, "i8")[is_known]
        annotations["end_ns"][annotations["end_ns"] == 0] = last_end_ns
        places = self._annotation_texts.places(annotations["name_id"])
        if (places < 0).any():
            raise ValueError("the name of an annotation is missing")
        for column in filter(text_column, set(annotations) - {"name_id"}):  # their numbers begin at 1
            numbers = annotations[column].astype("i8")
            texts = self._annotation_texts.places(numbers - 1)
            if ((numbers != 0) & (texts < 0)).any():
                raise ValueError(f"a text of annotations.{column} is missing")
            annotations[column] = np.where(numbers == 0, 0, texts + len(strings)).astype("u4")
        annotations["name_id"] = (places + len(strings)).astype("u4")
        strings += self._annotation_texts.texts


class _Extent(_Journal):
    """The times of rows, which are not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.first_ns = self.last_ns = 0
        self.tables: set[str] = set()

    def _addition(
        self, table: str, key: tuple[Any, ...], count: int, read: Callable[[np.dtype[Any]], Any]
    ) -> Callable[[], object]:
        names = self._layouts[table].names or ()
        if self._is_retold or "start_ns" not in names or table not in (*_TIMED_TABLES, "annotations"):
            return lambda: None
        rows = read(self._layouts[table])
        begins, ends = rows["start_ns"], rows["end_ns" if "end_ns" in names else "start_ns"]
        begins = begins[begins > 0]
        first_ns, last_ns = int(begins.min(initial=_MOST_NS)), int(ends.max(initial=0))

        def note() -> None:
            self.tables.add(table)
            self.first_ns = min(self.first_ns or _MOST_NS, first_ns) % _MOST_NS
            self.last_ns = max(self.last_ns, last_ns)

        return note


class _Reader:
    """Reads the items of one block in order."""

    def __init__(self, data: Buffer, at: int, end: int) -> None:
        self._data, self._at, self._end = data, at, end

    def take(self, kind: struct.Struct) -> tuple[Any, ...]:
        return kind.unpack(self._bytes(kind.size))

    def text(self) -> str:
        # Kernel names are arbitrary bytes of the program.
        return self._bytes(self.take(_U32)[0]).decode("utf-8", "backslashreplace")

    def rows(self, layout: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        return np.frombuffer(self._data, layout, count, self._pass(count * layout.itemsize))

    def packed_rows(self, layout: np.dtype[Any], count: int) -> Columns:
        return unpack_rows(self._data, self._at, self._end, layout, count)

    def _bytes(self, count: int) -> bytes:
        begin = self._pass(count)
        return self._data[begin : self._at]

    def _pass(self, count: int) -> int:
        """Skip ``count`` bytes; return their position."""
        begin, self._at = self._at, self._at + count
        if self._at > self._end:
            raise ValueError(f"the block ends before the bytes at {begin}")
        return begin
