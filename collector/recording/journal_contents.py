"""The contents of a journal: its rows, texts, names and counts, collected from its frames."""

from __future__ import annotations

import contextlib
import functools
import struct
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.capture import Part
from collector.recording.capture_window import DECODED
from collector.recording.journal_frames import (
    DAMAGE,
    HEAD_BYTES,
    MAGIC,
    BlockReader,
    FrameFlags,
    RowsKey,
    blocks_of_frame,
    end_of_frame,
    flags_of_frame,
)
from collector.recording.ledger import BROKE_OFF
from collector.recording.numbered_texts import NumberedTexts
from collector.recording.schema import ACTIVITY_TABLES
from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    import numpy.typing as npt

    from collector.recording.journal_frames import Buffer

KEPT_BEFORE_WINDOW = ("annotations", "contexts", "streams", "devices", "graph_changes")
"""Tables whose rows from before a window count in it: annotations may still be open in it, and objects still exist."""
BUFFERS_HELD = "segment.buffers_held"
"""The number of a closed segment that counts the buffers whose rows are in the next ones although they are older."""
WRITTEN_NS = "journal.written_ns"
"""The number with the time of CUPTI's clock at which rows were written; earlier versions do not state it."""
WINDOW_MARGIN_NS = 2_000_000_000
"""Rows this close to a window are read as well, to find the calls of its kernels and the kernels of its calls."""

_LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<q")
_CALLBACK = struct.Struct("<II")  # domain, number
_END = struct.Struct("<Qq")  # number of an annotation, time
_ID = np.dtype("<u8")
_COLUMN = struct.Struct("<III")  # offset, bytes, whether signed
_MOST_LAYOUT_BYTES = 1 << 16
"""No table has as many columns: layouts are kept for the next segment."""

WindowNs = tuple[int | None, int | None]
"""A part of a recording, from its start on, in ns; either end may be open."""


class BlockRows(NamedTuple):
    """The rows of one block."""

    key: RowsKey
    num_rows: int
    columns: Mapping[str, npt.NDArray[Any]] | npt.NDArray[Any]
    """The columns by name."""


class JournalContents:
    """The contents of a journal that is one file, or of its segments in order."""

    def __init__(self, window_ns: WindowNs = (None, None)) -> None:
        """Begin without contents. Rows far from ``window_ns`` will not be kept."""
        self.window_ns = window_ns
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.numbers_before: dict[str, int] = {}
        """The numbers before the first kept byte of the last file."""
        self.layouts: dict[str, np.dtype[Any]] = {}
        self.callback_names: dict[tuple[int, int], str] = {}
        self.strings = NumberedTexts()
        self.strings.add(0, "")
        self._first_string = 0
        """The number of the first string that a segment repeats."""
        self.rows: dict[str, list[BlockRows]] = defaultdict(list)
        self.annotation_texts = NumberedTexts()
        self.annotation_ends: list[tuple[int, int]] = []
        self.open_ranges: dict[int, npt.NDArray[Any]] = {}
        """The rows of `nvtx_ranges` of those that have not ended, without their ends, by id."""
        self.details: list[Any] = []
        self._kept_rows: Container[str] | None = None
        self._is_repeated = False
        self._num_rows = Counter[str]()
        """The number of rows read, by table, without repeated rows."""
        self.first_part: Part | None = None
        """The begin of the first segment, if it is a later one of its session."""
        self.rows_before = Counter[str]()
        """Rows of segments before the first."""
        self.rows_removed: int | None = None
        """Rows of segments that are not there any more; None: all segments before the first are not there."""
        self.decoded_before = Counter[str]()
        """The cost of decoding these rows, by the names of `DECODED`."""
        self.num_files = 0
        """The number of files whose beginning could be read."""
        self._last_segment = 0
        self.has_gap = False
        self.missing = Counter[str]()
        """Rows of segments that are missing or damaged."""
        self.calls_before: Callable[[], Any] | None = None
        """A function that reads the last block of calls that are not kept; None: there is none."""
        self.places = set[tuple[int, int, int]]()
        """Device, stream and context of all activities, also of those that are not kept."""

    def take_file(self, data: Buffer, first_byte: int = 0) -> int:
        """Add all complete frames of one file; return the number of bytes behind them.

        From frames before ``first_byte`` only the tables of `KEPT_BEFORE_WINDOW` are added.

        Raises:
            ValueError: not even the first frame is complete, or it is of another session.
        """
        at = self._take_head(data)
        with contextlib.suppress(*DAMAGE):
            while at < len(data):
                if at < first_byte:
                    at = self.take_frame(data, at, kept_rows=KEPT_BEFORE_WINDOW)
                    self.numbers_before = dict(self.numbers)
                else:
                    at = self.take_frame(data, at)
        return len(data) - at

    def _take_head(self, data: Buffer) -> int:
        """Add the first frame of a file; skip the second if it repeats rows of the previous file."""
        session = self.numbers.get("clock.cupti_start_ns"), self.texts.get("process.id")
        counters, self.numbers = self.numbers, {}
        try:
            at = self.take_frame(data, HEAD_BYTES)
        finally:
            numbers, self.numbers = self.numbers, counters
        number = numbers.get("segment.number", 0)
        if self.num_files and (numbers.get("clock.cupti_start_ns"), self.texts.get("process.id")) != session:
            raise ValueError("it is of another session")
        before = rows_before_segment(numbers)
        if not self.num_files:
            self.rows_before = before
            self.decoded_before = Counter({name: numbers.get(name, 0) for name in DECODED})
            if number > 1:
                begin_ns = numbers.get("segment.begin_ns", numbers["clock.cupti_start_ns"])
                # Since version 3 a segment repeats the annotations that its rows need, as far as they fit into it.
                first_annotation = 1 if data[len(MAGIC)] >= 3 else before["annotations"] + 1
                self.first_part = Part(begin_ns, first_annotation, False, has_calls_before=before["api_calls"] > 0)
        follows = self.num_files > 0 and number == self._last_segment + 1 and bool(counters.get("segment.closed"))
        if self.num_files and not follows:
            self.has_gap = True
            self.open_ranges.clear()  # they may have ended meanwhile; this file states those that have not
        self.missing = before - self.rows_before - self._num_rows
        self.num_files += 1
        self._last_segment = number
        self._first_string = numbers.get("segment.first_string", 0)
        for name in ("segment.closed", BUFFERS_HELD, "journal.ended", "clock.cupti_stop_ns", "clock.wall_stop_ns"):
            counters.pop(name, None)
        self.numbers |= numbers
        if flags_of_frame(data, HEAD_BYTES) & FrameFlags.BROKE_OFF:
            self.numbers[BROKE_OFF] = 1
        if follows and flags_of_frame(data, at) & FrameFlags.REPEATED:
            # Before version 4 the numbers of strings continue from the previous segment.
            return self._take_strings(data, at) if data[len(MAGIC)] >= 4 else end_of_frame(data, at)
        return at

    def _take_strings(self, data: Buffer, at: int) -> int:
        """Add only the strings of the frame at byte ``at``, which repeats them; return the start of the next frame."""
        self.strings.count_from(self._first_string)
        for kind, reader, count in blocks_of_frame(data, at):
            if kind == "strings":
                self._read_strings(reader, count)()
        return end_of_frame(data, at)

    def take_frame(self, data: Buffer, at: int, kept_rows: Container[str] | None = None) -> int:
        """Add the frame at byte ``at``; return the start of the next. A damaged frame raises and adds nothing.

        ``kept_rows``: the tables whose rows are added; None: all.
        """
        self._kept_rows = kept_rows
        self._is_repeated = bool(flags_of_frame(data, at) & FrameFlags.REPEATED)
        additions: list[Callable[[], object]] = [self._forget_texts] if self._is_repeated else []
        for kind, reader, count in blocks_of_frame(data, at):
            additions.append(getattr(self, f"_read_{kind}")(reader, count))
        for add in additions:
            add()
        return end_of_frame(data, at)

    def _forget_texts(self) -> None:
        """Forget the details, which are all repeated. Texts are kept, because they are repeated with their numbers."""
        self.details = []
        self.strings.count_from(self._first_string)
        self.annotation_texts.count_from(0)

    def _read_texts(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = {reader.text(): reader.text() for _ in range(count)}
        return lambda: self.texts.update(found)

    def _read_numbers(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = {reader.text(): int(reader.take(_NUMBER)[0]) for _ in range(count)}
        return lambda: self.numbers.update(found)

    def _read_layout(self, reader: BlockReader, count: int) -> Callable[[], object]:
        block = reader.rest()
        if len(block) > _MOST_LAYOUT_BYTES:
            raise ValueError(f"the layout of a table has {len(block)} bytes")
        table, layout = _layout(block, count)
        return lambda: self.layouts.update({table: layout})

    def _read_callback_names(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = {reader.take(_CALLBACK): reader.text() for _ in range(count)}
        return lambda: self.callback_names.update(found)

    def _read_strings(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = [reader.text() for _ in range(count)]
        return lambda: self.strings.append(found)

    def _read_annotation_paths(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = [reader.text() for _ in range(count)]
        return lambda: self.annotation_texts.append(found)

    def _read_numbered_paths(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = [(int(reader.take(_LENGTH)[0]), reader.text()) for _ in range(count)]

        def add() -> None:
            for number, text in found:
                self.annotation_texts.add(number, text)

        return add

    def _read_annotation_ends(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = [reader.take(_END) for _ in range(count)]
        return lambda: self.annotation_ends.extend(found)

    def _read_opened_ranges(self, reader: BlockReader, count: int) -> Callable[[], object]:
        ids = reader.rows(_ID, count).tolist()
        rows = reader.rows(self.layouts["nvtx_ranges"], count)
        if self._kept_rows is not None:
            return lambda: None
        return lambda: self.open_ranges.update(zip(ids, rows, strict=True))

    def _read_ended_ranges(self, reader: BlockReader, count: int) -> Callable[[], object]:
        ended = reader.rows(_ID, count).tolist()

        def remove() -> None:
            for each in ended:
                self.open_ranges.pop(each, None)  # a part of a journal may lack its begin

        return remove

    def _read_details(self, reader: BlockReader, count: int) -> Callable[[], object]:
        found = [json_64_bit(reader.text()) for _ in range(count)]
        return lambda: self.details.extend(found)

    def _read_rows(self, reader: BlockReader, count: int) -> Callable[[], object]:
        table, key = reader.text(), reader.key()
        return self._addition(table, key, count, lambda layout: reader.rows(layout, count))

    def _read_packed_rows(self, reader: BlockReader, count: int) -> Callable[[], object]:
        table, key = reader.text(), reader.key()
        return self._addition(table, key, count, lambda layout: reader.packed_rows(layout, count))

    def _addition(
        self, table: str, key: RowsKey, count: int, read: Callable[[np.dtype[Any]], Any]
    ) -> Callable[[], object]:
        is_repeated = self._is_repeated

        def note() -> None:
            self._num_rows[table] += 0 if is_repeated else count
            if table in ACTIVITY_TABLES:
                self.places.add((key.device, key.stream, key.context))

        if self._kept_rows is not None and table not in self._kept_rows:
            if table == "api_calls":
                layout = self.layouts[table]
                self.calls_before = lambda: read(layout)
            return note
        rows = BlockRows(key, count, read(self.layouts[table]))
        if self._is_far_from_window(table, rows):
            return note

        def add() -> None:
            note()
            self.rows[table].append(rows)

        return add

    def window_bounds(self) -> WindowNs:
        """The window in CUPTI's ns."""
        start_ns = self.numbers["clock.cupti_start_ns"]
        first, last = (None if side is None else start_ns + side for side in self.window_ns)
        return first, last

    def _is_far_from_window(self, table: str, rows: BlockRows) -> bool:
        """Whether no row of a block is needed for the window."""
        names = self.layouts[table].names or ()
        if self.window_ns == (None, None) or "start_ns" not in names:
            return False
        first, last = self.window_bounds()
        begins, ends = rows.columns["start_ns"], rows.columns["end_ns" if "end_ns" in names else "start_ns"]
        if last is not None and bool((begins > last + WINDOW_MARGIN_NS).all()):
            return True
        if first is None or table in KEPT_BEFORE_WINDOW:
            return False
        return bool((np.maximum(begins, ends) < first - WINDOW_MARGIN_NS).all())


def rows_before_segment(numbers: Mapping[str, int]) -> Counter[str]:
    """The number of rows that each table has in earlier segments, as the first frame of a segment states it."""
    prefix = "segment.rows_before."
    return Counter({name.removeprefix(prefix): n for name, n in numbers.items() if name.startswith(prefix)})


@functools.lru_cache(maxsize=256)
def _layout(block: bytes, num_columns: int) -> tuple[str, np.dtype[Any]]:
    """The name of a table, and the types and places of its columns. Cached: each segment repeats all layouts."""
    reader = BlockReader(block, 0, len(block))
    table, num_bytes = reader.text(), reader.take(_LENGTH)[0]
    names, formats, offsets = [], [], []
    for _ in range(num_columns):
        names.append(reader.text())
        offset, width, signed = reader.take(_COLUMN)
        formats.append(f"<{'i' if signed else 'u'}{width}")
        offsets.append(offset)
    return table, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": num_bytes})
