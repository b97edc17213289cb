"""The capture of a session, made of the contents of its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.annotation_numbers import ANNOTATION_BITS
from collector.recording.capture import Part
from collector.recording.counter_rows import add_counters
from collector.recording.counter_texts import series_in
from collector.recording.journal_contents import BUFFERS_HELD, KEPT_BEFORE_WINDOW, WRITTEN_NS
from collector.recording.launch_figures import PEER_COPIES
from collector.recording.schema import ACTIVITY_TABLES, SCHEMA
from collector.recording.shed_kinds import in_part
from collector.recording.stream_devices import first_contexts, with_first_contexts
from collector.recording.stream_names import DEVICE_LABELS, device_labels
from collector.recording.text_columns import text_column
from collector.recording.unfinished_work import NOT_AWAITED
from collector.recording.working_devices import WORKING_DEVICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from collector.recording.capture import Capture
    from collector.recording.journal_contents import JournalContents
    from collector.recording.journal_frames import Columns

TIMED_TABLES = tuple(
    table for table, columns in SCHEMA.items() if "start_ns" in columns and table not in KEPT_BEFORE_WINDOW
)
"""Tables whose rows lie in the time of their segments."""
MOST_NS = 1 << 62
"""Times that any clock can have are smaller, and so are their sums."""

_DRIVER_API = 1
"""CUPTI_CB_DOMAIN_DRIVER_API."""


def selected_rows(columns: Columns, mask: npt.NDArray[np.bool_]) -> Columns:
    """The rows of a table where ``mask`` is set."""
    return {name: column[mask] for name, column in columns.items()}


def _distinct(columns: Columns) -> Columns:
    """The rows without those that repeat an earlier one."""
    if not len(next(iter(columns.values()))):
        return columns
    _, first = np.unique(np.rec.fromarrays(list(columns.values())), return_index=True)
    first.sort()
    return {name: column[first] for name, column in columns.items()}


def _latest(annotations: Columns) -> Columns:
    """The last row of each annotation: one that was written while it was open is repeated with its end."""
    ids = annotations["external_id"]
    _, from_end = np.unique(ids[::-1], return_index=True)
    last = np.sort(len(ids) - 1 - from_end)
    return {name: column[last] for name, column in annotations.items()}


class JournalCapture:
    """Makes the capture of a session from the contents of its journal, which it consumes."""

    def __init__(self, journal: JournalContents) -> None:
        """Take the contents; `capture` makes the capture."""
        self._journal = journal
        self.has_own_calls = False
        """Whether calls of the driver by the collector itself were recorded; `capture` finds out."""

    def capture(self, bytes_cut: int) -> Capture:
        """The capture of the session, which ends with the last frame if it had not ended when the program did."""
        has_ended = bool(self._journal.numbers.get("journal.ended") or self._journal.numbers.get("segment.closed"))
        tables = {table: self._columns(table) for table in SCHEMA if table in self._journal.layouts}
        self._remove_own_calls(tables)
        strings = [*self._journal.strings.texts]
        self._name_calls(tables["api_calls"], strings)
        clock = self._clock(tables, has_ended=has_ended)
        self._end_annotations(tables["annotations"], strings, clock["cupti_stop_ns"] if has_ended else 0)
        if self._journal.open_ranges:
            self._add_open_ranges(tables["nvtx_ranges"], clock)
        capture: Capture = {
            "tables": tables,
            "strings": strings,
            "counters": {
                **{name: value for name, value in self._journal.numbers.items() if "." not in name},
                "interrupted": 0 if has_ended else 1,
                "journal_bytes_cut": bytes_cut,
            },
            "clock": clock,
            "environment": self._environment(tables),
            "details": self._journal.details,
        }
        series, unreadable = series_in(self._journal.texts)
        if series:
            add_counters(capture, series)
        if unreadable:
            capture["counters"]["counters_not_sampled"] = 1
        session_start_ns = self._journal.numbers["clock.cupti_start_ns"]
        capture["counters"] |= in_part(self._journal.numbers, clock["cupti_start_ns"] - session_start_ns)
        for name, count in self._journal.decoded_before.items():
            if count:
                capture["counters"][name] -= count
        removed = self._journal.rows_removed
        if forgotten := self._journal.rows_before.total() if removed is None else removed:
            capture["counters"]["rows_forgotten"] = forgotten
        if held := self._journal.numbers.get(BUFFERS_HELD):
            capture["counters"]["buffers_held"] = held
        if not has_ended or self._journal.numbers.get("segment.closed"):
            capture["counters"][NOT_AWAITED] = 1
        if self._journal.window_ns == (None, None) and (missing := self._journal.missing.total()):
            capture["counters"]["rows_missing"] = missing
        if (part := self._part()) is not None:
            capture["part"] = part
        return capture

    def _part(self) -> Part | None:
        """The place of the rows that were read in the session; None: all were read."""
        begin_ns, end_ns = self._journal.window_bounds()
        first_annotation, has_calls_before = 1, False
        if self._journal.first_part is not None:
            has_calls_before = self._journal.first_part.has_calls_before
            first_annotation = self._journal.first_part.first_annotation
            begin_ns = self._journal.first_part.begin_ns if begin_ns is None else begin_ns
        is_continued = end_ns is not None or bool(self._journal.numbers.get("segment.closed"))
        if begin_ns is None and not is_continued:
            return None
        return Part(begin_ns, first_annotation, is_continued, has_calls_before)

    def _clock(self, tables: dict[str, Columns], *, has_ended: bool) -> dict[str, int]:
        numbers, first_part = self._journal.numbers, self._journal.first_part
        start_ns, wall_start_ns = numbers["clock.cupti_start_ns"], numbers["clock.wall_start_ns"]
        if first_part is not None and first_part.begin_ns is not None:  # it begins with its first row
            begin_ns = first_part.begin_ns
            # Earlier times than the session's begin are damaged.
            # An NVTX range has its row in the segment in which it ended, and may have begun long before.
            sides = {name: "end_ns" if name == "nvtx_ranges" else "start_ns" for name in TIMED_TABLES}
            begins = [t[sides[name]][t[sides[name]] >= start_ns] for name, t in tables.items() if name in sides]
            begin_ns = min(begin_ns, *(int(column.min(initial=begin_ns)) for column in begins))
            start_ns, wall_start_ns = begin_ns, wall_start_ns + begin_ns - start_ns
        if has_ended:
            stop_ns, wall_stop_ns = numbers["clock.cupti_stop_ns"], numbers["clock.wall_stop_ns"]
        else:
            written_ns = numbers.get(WRITTEN_NS, MOST_NS)
            times = [columns[side] for columns in tables.values() for side in ("start_ns", "end_ns") if side in columns]
            stop_ns = max(start_ns, *(int(column[column <= written_ns].max(initial=start_ns)) for column in times))
            wall_stop_ns = wall_start_ns + stop_ns - start_ns
        uncertainty_ns = numbers["clock.uncertainty_ns"]
        if not all(0 <= time < MOST_NS for time in (start_ns, stop_ns, wall_start_ns, wall_stop_ns, uncertainty_ns)):
            raise ValueError("its clocks are impossible")
        return {
            "cupti_start_ns": start_ns,
            "cupti_stop_ns": stop_ns,
            "wall_start_ns": wall_start_ns,
            "wall_stop_ns": wall_stop_ns,
            "uncertainty_ns": uncertainty_ns,
        }

    def _remove_own_calls(self, tables: dict[str, Columns]) -> None:
        """Remove the calls of the collector itself, as ``native/capture/own_calls.h`` does in memory."""
        calls = tables["api_calls"]
        is_own = np.zeros(len(calls["thread_id"]), bool)
        if "own_calls.thread_id" in self._journal.numbers:
            is_own |= (calls["thread_id"] == self._journal.numbers["own_calls.thread_id"]) & (
                calls["start_ns"] >= self._journal.numbers["own_calls.from_ns"]
            )
        if decode_thread_id := self._journal.numbers.get("own_calls.decode_thread_id"):
            is_own |= calls["thread_id"] == decode_thread_id
        if not is_own.any():
            return
        self.has_own_calls = bool((calls["domain"][is_own] == _DRIVER_API).any())
        own = calls["correlation_id"][is_own]
        tables["api_calls"] = selected_rows(calls, ~is_own)
        for table in ("external_correlations", "synchronizations"):
            if table in tables:
                tables[table] = selected_rows(tables[table], ~np.isin(tables[table]["correlation_id"], own))

    def _environment(self, tables: Mapping[str, Columns]) -> dict[str, Any]:
        found: dict[str, Any] = {"source": "native"}
        for name, value in {**self._journal.numbers, **self._journal.texts}.items():
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
            for name, text in self._journal.texts.items()
            if name.startswith("nvtx.stream.")
            for context, _, stream in [name.removeprefix("nvtx.stream.").partition(".")]
        }
        if self._journal.window_ns != (None, None):
            found[WORKING_DEVICES] = sorted({device for device, _, _ in self._journal.places})
        first = first_contexts(self._journal.places)
        if labels := device_labels(tables, self._names("nvtx.device"), self._names("nvtx.context"), streams, first):
            found[DEVICE_LABELS] = labels
        return with_first_contexts(found, first)

    def _names(self, room: str) -> dict[int, str]:
        """The texts of numbered objects."""
        prefix, texts = f"{room}.", self._journal.texts
        return {int(name.removeprefix(prefix)): text for name, text in texts.items() if name.startswith(prefix)}

    def _columns(self, table: str) -> Columns:
        parts = self._journal.rows.pop(table, [])
        names = self._journal.layouts[table].names or ()
        columns = {}
        for column, dtype in SCHEMA[table].items():
            if column in names:
                values = [rows.columns[column] for rows in parts]
                columns[column] = (
                    np.concatenate(values).astype(dtype, casting="equiv") if values else np.zeros(0, dtype)
                )
        if table in ACTIVITY_TABLES:
            counts = [rows.num_rows for rows in parts]
            for at, column in enumerate(("device_id", "context_id", "stream_id")):  # of `RowsKey`
                columns[column] = np.repeat(np.array([rows.key[at] for rows in parts], "u4"), counts)
        if self._journal.has_gap and table in KEPT_BEFORE_WINDOW:
            columns = _latest(columns) if table == "annotations" else _distinct(columns)
        if table != "annotations":  # their names are in a list of their own
            self._place_texts(table, columns)
        return columns

    def _place_texts(self, table: str, columns: Columns) -> None:
        """Replace the numbers of texts by their indices in the list of all."""
        for column in filter(text_column, columns):
            places = self._journal.strings.places(columns[column])
            if (places < 0).any():
                raise ValueError(f"a text of {table}.{column} is missing")
            columns[column] = places.astype("u4")

    def _name_calls(self, calls: Columns, strings: list[str]) -> None:
        """Set the names of API calls from the library's table."""
        number = calls["domain"].astype("u8") << np.uint64(32) | calls["callback_id"]
        known, where = np.unique(number, return_inverse=True)
        first = len(strings)
        for each in known.tolist():
            domain, callback = each >> 32, each & 0xFFFFFFFF
            strings.append(self._journal.callback_names.get((domain, callback), f"callback {callback}"))
        calls["name_id"] = (first + where).astype("u4")

    def _add_open_ranges(self, ranges: Columns, clock: Mapping[str, int]) -> None:
        """Add the ranges that were still open: they end where the recording does, and begin no earlier than it."""
        opened = np.stack(list(self._journal.open_ranges.values()))
        added = {name: opened[name].astype(column.dtype) for name, column in ranges.items()}
        added["start_ns"] = np.maximum(added["start_ns"], clock["cupti_start_ns"])
        added["end_ns"] = np.maximum(added["start_ns"], clock["cupti_stop_ns"])
        self._place_texts("nvtx_ranges", added)
        for name, column in ranges.items():
            ranges[name] = np.concatenate([column, added[name]])

    def _end_annotations(self, annotations: Columns, strings: list[str], last_end_ns: int) -> None:
        """Set the ends and names of annotations that reached the journal while they were open.

        ``last_end_ns`` is the end of annotations that were not closed.
        """
        if self._journal.annotation_ends:
            rows, ends = zip(*self._journal.annotation_ends, strict=True)
            numbers = (annotations["external_id"] & np.uint64((1 << ANNOTATION_BITS) - 1)) - np.uint64(1)
            order = np.argsort(numbers, kind="stable")
            at = np.searchsorted(numbers, np.array(rows, "u8"), sorter=order)
            is_known = at < len(order)
            at = order[np.where(is_known, at, 0)] if len(order) else at
            is_known[is_known] = numbers[at[is_known]] == np.array(rows, "u8")[is_known]  # else of an earlier segment
            annotations["end_ns"][at[is_known]] = np.array(ends, "i8")[is_known]
        annotations["end_ns"][annotations["end_ns"] == 0] = last_end_ns
        places = self._journal.annotation_texts.places(annotations["name_id"])
        if (places < 0).any():
            raise ValueError("the name of an annotation is missing")
        for column in filter(text_column, set(annotations) - {"name_id"}):  # their numbers begin at 1
            numbers = annotations[column].astype("i8")
            texts = self._journal.annotation_texts.places(numbers - 1)
            if ((numbers != 0) & (texts < 0)).any():
                raise ValueError(f"a text of annotations.{column} is missing")
            annotations[column] = np.where(numbers == 0, 0, texts + len(strings)).astype("u4")
        annotations["name_id"] = (places + len(strings)).astype("u4")
        strings += self._journal.annotation_texts.texts
