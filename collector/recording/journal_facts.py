"""The process, the times and the streams of a journal or of one of its segments, read without keeping rows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.recording.journal_capture import MOST_NS, TIMED_TABLES
from collector.recording.journal_contents import WRITTEN_NS, JournalContents, rows_before_segment
from collector.recording.journal_frames import DAMAGE, HEAD_BYTES, blocks_of_frame, end_of_frame, last_frame
from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    import numpy as np

    from collector.recording.journal_frames import Buffer, RowsKey


class JournalProcess(NamedTuple):
    """The process that wrote a journal. Journals of `trace` state only the device prefix."""

    process_id: int | None
    variables: Mapping[str, str]
    """Variables of its environment."""
    is_python: bool = False
    """Whether it is a Python program."""
    device_prefix: str = ""
    """The prefix that the program gave device names, such as ``/job:worker/replica:0/task:3``, or empty."""
    pid_namespace: str = ""
    """The namespace in which it has this number, as ``/proc`` names it; empty: it is not known."""


DEVICE_PREFIX = "process.device_prefix"
"""The text of a journal that states `JournalProcess.device_prefix`."""


def process_of(data: Buffer) -> JournalProcess:
    """The facts about the process in the first frame of the journal ``data``."""
    journal = JournalContents()
    with contextlib.suppress(*DAMAGE):
        journal.take_frame(data, HEAD_BYTES)
    process_id = journal.texts.get("process.id", "")
    stated = (name.partition(".") for name in journal.texts)
    variables = {name: journal.texts[f"{room}.{name}"] for room, _, name in stated if room == "variable"}
    is_python = journal.texts.get("process.interpreter") == "python"
    prefix = journal.texts.get(DEVICE_PREFIX, "")
    number = int(process_id) if process_id.isdecimal() else None
    return JournalProcess(number, variables, is_python, prefix, journal.texts.get("process.pid_namespace", ""))


class SegmentSpan(NamedTuple):
    """The times of a segment's rows, CUPTI's ns."""

    session_start_ns: int
    first_ns: int
    last_ns: int
    is_closed: bool
    """Whether the segment states the times of its rows; a segment that was not closed does not."""
    rows_before: Counter[str]
    """The number of rows that each table has in earlier segments."""

    @property
    def tables_before(self) -> frozenset[str]:
        """The tables that have rows in earlier segments."""
        return frozenset(table for table, count in self.rows_before.items() if count)


def span_of(data: Buffer) -> SegmentSpan:
    """The times of a segment, without reading its rows. Raises one of `DAMAGE` for a damaged one."""
    journal = JournalContents()
    journal.take_frame(data, HEAD_BYTES)
    session_start_ns = journal.numbers["clock.cupti_start_ns"]
    before = rows_before_segment(journal.numbers)
    last = last_frame(data)
    if last is None:
        return SegmentSpan(session_start_ns, 0, 0, is_closed=False, rows_before=before)
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
            for kind, reader, _ in blocks_of_frame(data, at):
                if kind in ("rows", "packed_rows") and reader.text() in ACTIVITY_TABLES:
                    key = reader.key()
                    places.add((key.device, key.stream, key.context))
            at = end_of_frame(data, at)
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


class _Extent(JournalContents):
    """The times of rows, which are not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.first_ns = self.last_ns = 0
        self.tables: set[str] = set()

    def _addition(
        self, table: str, key: RowsKey, count: int, read: Callable[[np.dtype[Any]], Any]
    ) -> Callable[[], object]:
        names = self.layouts[table].names or ()
        if self._is_repeated or "start_ns" not in names or table not in (*TIMED_TABLES, "annotations"):
            return lambda: None
        rows = read(self.layouts[table])
        begins, ends = rows["start_ns"], rows["end_ns" if "end_ns" in names else "start_ns"]

        def note() -> None:
            self.tables.add(table)
            # Times before the session, and after the frame was written, are those of damaged records.
            earliest_ns, latest_ns = self.numbers["clock.cupti_start_ns"], self.numbers.get(WRITTEN_NS, MOST_NS)
            first_ns = int(begins[begins >= earliest_ns].min(initial=MOST_NS))
            last_ns = int(ends[ends <= latest_ns].max(initial=0))
            self.first_ns = min(self.first_ns or MOST_NS, first_ns) % MOST_NS
            self.last_ns = max(self.last_ns, last_ns)

        return note
