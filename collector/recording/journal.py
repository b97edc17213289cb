"""Journals: the records of an open session in a file, in case the program ends before the session does.

``trace(journal=...)`` lets the native source write a journal while the step is open, and the programs of
``collector run`` write one each; ``native/capture/journal.h`` describes the format. A journal consists of frames, each
of which adds rows, names and counts. The last frame of a session that ended says so. If there is none, records that
CUPTI had not delivered when the program ended are missing, and the ledger reports this; the last frame may then be
truncated.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import InvalidFileError
from collector.recording.graph_attribution import attribute_graphs
from collector.recording.recording import Recording
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.recording.text_columns import text_column

if TYPE_CHECKING:
    import mmap
    from pathlib import Path
    from typing import TypeAlias

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Buffer: TypeAlias = bytes | mmap.mmap

MAGIC = b"GPUJRNL"
"""The first bytes of a journal; one byte with the version follows."""
VERSION = 1

_FRAME = struct.Struct("<IIQ")  # a mark, 0, bytes
_FRAME_MARK = 0x4D415246
_BLOCK = struct.Struct("<IIQ")  # kind, count, bytes
_BLOCK_KINDS = (
    "texts", "numbers", "layout", "callback_names", "strings", "rows", "annotation_paths", "annotation_ends", "details",
)  # fmt: skip
"""The names of the block kinds in the order of their numbers, which start at 1."""
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_KEY = struct.Struct("<III")  # device, context, stream
_END = struct.Struct("<Qq")
_COLUMN = struct.Struct("<III")  # offset, bytes, whether signed
_KEY_COLUMNS = ("device_id", "context_id", "stream_id")
_KEPT_BEFORE_WINDOW = ("annotations", "contexts", "streams", "devices", "graph_changes")
"""Tables of which rows from before a window count in it: annotations are numbered by their rows, and objects stay."""
_DAMAGE = (struct.error, ValueError, LookupError, TypeError, OverflowError, RecursionError)


def load_journal(name: Path, data: bytes) -> Recording:
    """Read the complete part of the journal ``data``, which begins with `MAGIC`; ``name`` is used in errors.

    Raises:
        collector.InvalidFileError: another version, or not even a complete beginning.
    """
    head = len(MAGIC) + 1
    if not 1 <= int.from_bytes(data[len(MAGIC) : head], "big") <= VERSION:
        raise InvalidFileError(
            f"{name}: a journal of version {data[len(MAGIC)] if len(data) >= head else '?'}, "
            f"this program reads version {VERSION}",
            "Read it with the version of cupti-collector that wrote it",
        )
    journal = _Journal(data)
    at = head
    try:
        at = journal.take_frame(at)
    except _DAMAGE as error:
        raise InvalidFileError(f"{name}: a journal without even a whole beginning ({error})") from error
    with contextlib.suppress(*_DAMAGE):
        while at < len(data):
            at = journal.take_frame(at)
    try:
        capture = journal.capture(bytes_cut=len(data) - at)
        attribute_graphs(capture)
        return Recording.from_capture(capture)
    except _DAMAGE as error:
        raise InvalidFileError(f"{name}: a damaged journal ({' '.join(str(error).split())})") from error


class JournalMark(NamedTuple):
    """One instant of an open session, on CUPTI's clock and on the wall clock."""

    cupti_ns: int
    wall_ns: int
    uncertainty_ns: int


def journal_window(
    data: Buffer, first_byte: int, start: JournalMark, stop: JournalMark, own_calls: tuple[int, int]
) -> Capture:
    """The part of an open session between two instants, of its journal ``data``.

    Annotations that were open at the start begin there, those that are open at the end end there.

    Args:
        data: the journal, which has all rows up to the end.
        first_byte: its size at the start: rows from there on may be of the window, the others are not.
        start: the first instant.
        stop: the last one.
        own_calls: the thread whose calls from a time on are the collector's own, and that time.

    Raises:
        collector.InvalidFileError: the journal is damaged.
    """
    journal = _Journal(data)
    at, before = len(MAGIC) + 1, dict[str, int]()
    with contextlib.suppress(*_DAMAGE):  # the end of the file, or a frame that is being written
        while at < len(data):
            is_before = at < first_byte
            at = journal.take_frame(at, kept_rows=_KEPT_BEFORE_WINDOW if is_before else None)
            before = dict(journal.numbers) if is_before else before
    try:
        return journal.window(before, start, stop, own_calls)
    except _DAMAGE as error:
        raise InvalidFileError(f"the journal of this process is damaged ({error})") from error


class JournalProcess(NamedTuple):
    """What a journal states about its process. Those of `trace` state nothing."""

    process_id: int | None
    variables: Mapping[str, str]
    """Variables of its environment."""


def process_of(data: bytes) -> JournalProcess:
    """What the first frame of the journal ``data`` states about its process."""
    journal = _Journal(data)
    with contextlib.suppress(*_DAMAGE):
        journal.take_frame(len(MAGIC) + 1)
    process_id = journal.texts.get("process.id", "")
    stated = (name.partition(".") for name in journal.texts)
    variables = {name: journal.texts[f"{room}.{name}"] for room, _, name in stated if room == "variable"}
    return JournalProcess(int(process_id) if process_id.isdecimal() else None, variables)


def _selected(columns: dict[str, npt.NDArray[Any]], mask: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    return {name: column[mask] for name, column in columns.items()}


def holds_records(path: Path) -> bool:
    """Whether the journal at ``path``, which may be truncated, contains any records.

    It does if there is a second complete frame: the first frame only describes how to read the others.
    """
    with contextlib.suppress(OSError, struct.error), path.open("rb") as file:
        end = len(MAGIC) + 1
        for _ in range(2):
            file.seek(end)
            mark, _, num_bytes = _FRAME.unpack(file.read(_FRAME.size))
            end += _FRAME.size + num_bytes
            if mark != _FRAME_MARK or end > os.fstat(file.fileno()).st_size:
                return False
        return True
    return False


class _Journal:
    """The capture that the frames of a journal add up to."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self._layouts: dict[str, np.dtype[Any]] = {}
        self._callback_names: dict[tuple[int, int], str] = {}
        self._strings: list[str] = []
        self._rows: dict[str, list[tuple[tuple[int, int, int], npt.NDArray[Any]]]] = defaultdict(list)
        self._annotation_paths: list[str] = []
        self._annotation_ends: list[tuple[int, int]] = []
        self._details: list[Any] = []

    def take_frame(self, at: int, kept_rows: Container[str] | None = None) -> int:
        """Add the frame at byte ``at``; return the start of the next. A damaged frame raises and adds nothing.

        ``kept_rows``: the tables whose rows are added; None: all.
        """
        self._kept_rows = kept_rows
        mark, _, num_bytes = _FRAME.unpack_from(self._data, at)
        at += _FRAME.size
        end = int(at + num_bytes)
        if mark != _FRAME_MARK:
            raise ValueError(f"no frame at byte {at - _FRAME.size}")
        if end > len(self._data):
            raise ValueError("the frame is cut off")
        additions: list[Callable[[], object]] = []
        while at < end:
            kind, count, num_bytes = _BLOCK.unpack_from(self._data, at)
            at += _BLOCK.size
            if at + num_bytes > end or not 1 <= kind <= len(_BLOCK_KINDS):
                raise ValueError(f"no block at byte {at - _BLOCK.size}")
            reader = _Reader(self._data, at, at + num_bytes)
            additions.append(getattr(self, f"_read_{_BLOCK_KINDS[kind - 1]}")(reader, count))
            at += num_bytes
        for add in additions:
            add()
        return end

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
        return lambda: self._strings.extend(found)

    def _read_annotation_paths(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [reader.text() for _ in range(count)]
        return lambda: self._annotation_paths.extend(found)

    def _read_annotation_ends(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [reader.take(_END) for _ in range(count)]
        return lambda: self._annotation_ends.extend(found)

    def _read_details(self, reader: _Reader, count: int) -> Callable[[], object]:
        found = [json.loads(reader.text()) for _ in range(count)]
        return lambda: self._details.extend(found)

    def _read_rows(self, reader: _Reader, count: int) -> Callable[[], object]:
        table, key = reader.text(), reader.take(_KEY)
        if self._kept_rows is not None and table not in self._kept_rows:
            return lambda: None
        rows = reader.rows(self._layouts[table], count)
        return lambda: self._rows[table].append((key, rows))

    def capture(self, bytes_cut: int) -> Capture:
        """The capture of the session, which ends with the last frame if it had not ended when the program did."""
        has_ended = bool(self.numbers.get("journal.ended"))
        tables = {table: self._columns(table) for table in SCHEMA if table in self._layouts}
        if has_ended:
            self._remove_own_calls(tables)
        strings = [*self._strings]
        self._name_calls(tables["api_calls"], strings)
        clock = self._clock(tables, has_ended=has_ended)
        self._end_annotations(tables["annotations"], strings, clock["cupti_stop_ns"] if has_ended else 0)
        return {
            "tables": tables,
            "strings": strings,
            "counters": {
                **{name: value for name, value in self.numbers.items() if "." not in name},
                "interrupted": 0 if has_ended else 1,
                "journal_bytes_cut": bytes_cut,
            },
            "clock": clock,
            "environment": self._environment(),
            "details": self._details,
        }

    def window(
        self, before: Mapping[str, int], start: JournalMark, stop: JournalMark, own_calls: tuple[int, int]
    ) -> Capture:
        """See `journal_window`; ``before`` are the counts at the start."""
        self.numbers |= {"own_calls.thread_id": own_calls[0], "own_calls.from_ns": own_calls[1], "journal.ended": 1}
        self.numbers |= {"clock.cupti_start_ns": start.cupti_ns, "clock.wall_start_ns": start.wall_ns}
        self.numbers |= {"clock.cupti_stop_ns": stop.cupti_ns, "clock.wall_stop_ns": stop.wall_ns}
        self.numbers["clock.uncertainty_ns"] = max(start.uncertainty_ns, stop.uncertainty_ns)
        capture = self.capture(bytes_cut=0)
        tables: dict[str, dict[str, npt.NDArray[Any]]] = capture["tables"]
        for table, columns in tables.items():
            if "start_ns" in columns:
                begins = columns["start_ns"] if table != "annotations" else columns["end_ns"]
                tables[table] = _selected(columns, (begins >= start.cupti_ns) & (columns["start_ns"] <= stop.cupti_ns))
        spans = tables["annotations"]
        spans["start_ns"] = np.maximum(spans["start_ns"], start.cupti_ns)
        spans["end_ns"] = np.minimum(spans["end_ns"], stop.cupti_ns)
        links = tables.get("external_correlations")
        if links is not None:
            calls = tables["api_calls"]["correlation_id"]
            tables["external_correlations"] = _selected(links, np.isin(links["correlation_id"], calls))
        capture["counters"] = {name: count - before.get(name, 0) for name, count in capture["counters"].items()}
        return capture

    def _clock(self, tables: dict[str, dict[str, npt.NDArray[Any]]], *, has_ended: bool) -> dict[str, int]:
        start_ns, wall_start_ns = self.numbers["clock.cupti_start_ns"], self.numbers["clock.wall_start_ns"]
        if has_ended:
            stop_ns, wall_stop_ns = self.numbers["clock.cupti_stop_ns"], self.numbers["clock.wall_stop_ns"]
        else:
            times = [columns[side] for columns in tables.values() for side in ("start_ns", "end_ns") if side in columns]
            stop_ns = max(start_ns, *(int(column.max(initial=start_ns)) for column in times))
            wall_stop_ns = wall_start_ns + stop_ns - start_ns
        return {
            "cupti_start_ns": start_ns,
            "cupti_stop_ns": stop_ns,
            "wall_start_ns": wall_start_ns,
            "wall_stop_ns": wall_stop_ns,
            "uncertainty_ns": self.numbers["clock.uncertainty_ns"],
        }

    def _remove_own_calls(self, tables: dict[str, dict[str, npt.NDArray[Any]]]) -> None:
        """Remove the calls that the end of the session made, as ``native/capture/own_calls.h`` does in memory."""
        calls = tables["api_calls"]
        is_own = (calls["thread_id"] == self.numbers["own_calls.thread_id"]) & (
            calls["start_ns"] >= self.numbers["own_calls.from_ns"]
        )
        if not is_own.any():
            return
        own = calls["correlation_id"][is_own]
        tables["api_calls"] = _selected(calls, ~is_own)
        for table in ("external_correlations", "synchronizations"):
            if table in tables:
                tables[table] = _selected(tables[table], ~np.isin(tables[table]["correlation_id"], own))

    def _environment(self) -> dict[str, Any]:
        found: dict[str, Any] = {"source": "native"}
        for name, value in {**self.numbers, **self.texts}.items():
            room, _, rest = name.partition(".")
            if room == "environment":
                found[rest] = value
        for flag in ("simulated", "shared_subscription"):
            found[flag] = bool(found.get(flag))
        devices = (name.partition(".") for name in self.texts)
        found["devices"] = {int(rest): self.texts[f"device.{rest}"] for room, _, rest in devices if room == "device"}
        return found

    def _columns(self, table: str) -> dict[str, npt.NDArray[Any]]:
        parts = self._rows[table]
        layout = self._layouts[table]
        columns = {}
        for column, dtype in SCHEMA[table].items():
            if column not in (layout.names or ()):
                continue
            values = [rows[column] for _, rows in parts]
            columns[column] = np.concatenate(values).astype(dtype, casting="equiv") if values else np.zeros(0, dtype)
        if table in ACTIVITY_TABLES:
            counts = [len(rows) for _, rows in parts]
            for at, column in enumerate(_KEY_COLUMNS):
                columns[column] = np.repeat(np.array([key[at] for key, _ in parts], "u4"), counts)
        if table != "annotations":  # their names are in a list of their own
            for column, indices in columns.items():
                if text_column(column) and (indices >= len(self._strings)).any():
                    raise ValueError(f"a text of {table}.{column} is missing")
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
            annotations["end_ns"][np.array(rows, "i8")] = ends
        annotations["end_ns"][annotations["end_ns"] == 0] = last_end_ns
        if (annotations["name_id"] >= len(self._annotation_paths)).any():
            raise ValueError("the name of an annotation is missing")
        for column in filter(text_column, set(annotations) - {"name_id"}):  # their numbers begin at 1
            numbers = annotations[column]
            if (numbers > len(self._annotation_paths)).any():
                raise ValueError(f"a text of annotations.{column} is missing")
            annotations[column] = np.where(numbers == 0, 0, numbers.astype("i8") + len(strings) - 1).astype("u4")
        annotations["name_id"] = (annotations["name_id"] + len(strings)).astype("u4")
        strings += self._annotation_paths


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

    def _bytes(self, count: int) -> bytes:
        begin = self._pass(count)
        return self._data[begin : self._at]

    def _pass(self, count: int) -> int:
        """Skip ``count`` bytes; return their position."""
        begin, self._at = self._at, self._at + count
        if self._at > self._end:
            raise ValueError(f"the block ends before the bytes at {begin}")
        return begin
