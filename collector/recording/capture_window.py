"""Parts of a capture, for sessions that recorded more than the requested part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.recording.capture import Instant, Part
from collector.recording.cupti_enums import CUPTI_OVERHEADS
from collector.recording.distinct import are_among
from collector.recording.row_index import numbers_in
from collector.recording.schema import ACTIVITY_TABLES, LAUNCHED_TABLES
from collector.recording.shed_kinds import in_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]

_OBJECT_TABLES = ("contexts", "streams", "devices", "graph_changes")
"""Tables of objects, which exist until they are destroyed: a part also needs the rows from before it."""


class Span(NamedTuple):
    """A part of a session, on CUPTI's clock."""

    begin_ns: int
    end_ns: int


FOREVER_NS = 1 << 62
"""The end of a part that ends with the session."""


DECODED = ("decode_cpu_ns", "records_decoded")
"""Counters of the cost of decoding. Their values for a whole session say nothing about a part of it."""


def forget_decoding(capture: Capture) -> None:
    """Remove the figures of `DECODED` from a capture that has become a part of a session: they are not known for it."""
    capture["counters"] = {name: count for name, count in capture["counters"].items() if name not in DECODED}


def begin_at(capture: Capture, begin: Instant) -> None:
    """Let a capture begin at a later instant: rows that start before, or whose call did, are removed.

    For annotations and work without a call see `keep_spans`.
    """
    forget_decoding(capture)
    keep_spans(capture, [Span(begin.cupti_ns, FOREVER_NS)])
    clock = capture["clock"]
    capture["counters"] |= in_part(capture["counters"], begin.cupti_ns - clock["cupti_start_ns"])
    clock["cupti_start_ns"], clock["wall_start_ns"] = begin.cupti_ns, begin.wall_ns
    clock["uncertainty_ns"] = max(clock["uncertainty_ns"], begin.uncertainty_ns)
    capture["part"] = Part(begin.cupti_ns, 1, is_continued=False)


def begin_when_enabled(capture: Capture, enabled_ns: int) -> None:
    """Let a capture begin when its source had enabled all kinds, or with what another thread did before.

    In the first session of a process CUPTI takes tens of ms for that, in which the program waits. No row is removed.
    """
    clock, begin_ns = capture["clock"], enabled_ns
    tables: dict[str, Columns] = capture["tables"]
    for table, columns in tables.items():
        if table in _OBJECT_TABLES or "start_ns" not in columns:
            continue
        starts = columns["start_ns"]
        if starts.min(initial=begin_ns) == begin_ns:  # always, unless another thread was busy or a time is damaged
            continue
        is_before = (clock["cupti_start_ns"] <= starts) & (starts < begin_ns)
        if table == "overheads":
            is_before &= ~np.isin(columns["overhead_kind"], CUPTI_OVERHEADS)
        begin_ns = int(starts.min(initial=begin_ns, where=is_before))
    shift_ns = begin_ns - clock["cupti_start_ns"]
    capture["counters"] |= in_part(capture["counters"], shift_ns)
    clock["cupti_start_ns"] += shift_ns
    clock["wall_start_ns"] += shift_ns


def keep_spans(capture: Capture, spans: Sequence[Span], *, has_other_calls: bool = True) -> None:
    """Remove the rows outside of some parts of a capture: rows that start there, or whose call starts there.

    Work whose call is in a part is kept, even if it ends after the part. Annotations that are open where a part begins
    are kept, and so are annotations in which a graph was captured, because their names are needed; they begin with the
    first part. For work whose call is not recorded its own start decides; the ledger counts it under ``launches_cut``.
    `collector.recording.graph_attribution` must run first.

    Args:
        capture: is changed.
        spans: in the order of time, without overlap. Without any, no row of work is kept.
        has_other_calls: whether calls outside of the parts were recorded. If not, work without a call was launched
            there, unless its correlation id is between those of the calls of a part: they are in the order of calls.
    """
    tables: dict[str, Columns] = capture["tables"]
    calls = tables["api_calls"]
    is_inside = _inside(calls["start_ns"], spans)
    outer, inner = calls["correlation_id"][~is_inside], calls["correlation_id"][is_inside]
    outer = outer[~are_among(outer, inner)]
    launches = [] if has_other_calls else _correlation_ids(calls, spans)
    for table, columns in tables.items():
        if "start_ns" in columns and table not in (*_OBJECT_TABLES, "annotations"):
            if has_other_calls or not len(inner) or table not in LAUNCHED_TABLES:
                kept = _inside(columns["start_ns"], spans)
            else:
                kept = _inside(columns["correlation_id"].astype("i8"), launches)
            if "correlation_id" in columns:  # damaged times must stay in the ledger
                kept |= ((columns["start_ns"] <= 0) | (table in LAUNCHED_TABLES)) & are_among(
                    columns["correlation_id"], inner
                )
                kept &= ~are_among(columns["correlation_id"], outer)
            _select(columns, kept)
    if (links := tables.get("external_correlations")) is not None:
        _select(links, are_among(links["correlation_id"], tables["api_calls"]["correlation_id"]))
    if (annotations := tables.get("annotations")) is not None:
        is_open = _overlap(annotations, spans)
        _select(annotations, is_open | are_among(annotations["external_id"], _needed_names(tables)))
    first_ns = spans[0].begin_ns if spans else 0
    for table in ("annotations", "graph_changes"):
        columns = tables.get(table) or {}
        if columns:
            columns["start_ns"] = np.maximum(columns["start_ns"], first_ns)
            if "end_ns" in columns:
                columns["end_ns"] = np.where(
                    columns["end_ns"] == 0, 0, np.maximum(columns["end_ns"], columns["start_ns"])
                )


def candidates(capture: Capture, spans: Sequence[Span]) -> Iterator[Capture]:
    """For each part a capture of its own, with all rows that `keep_spans` keeps for this part alone, and few others.

    All parts together take about as long as one pass over the whole capture, whatever their number. The rows of
    ``capture`` are not changed.
    """
    tables: dict[str, Columns] = capture["tables"]
    calls, links = tables["api_calls"], tables.get("external_correlations")
    timed = [
        table
        for table, columns in tables.items()
        if "start_ns" in columns and table not in (*_OBJECT_TABLES, "annotations")
    ]
    by_time = {table: _Sorted(tables[table]["start_ns"]) for table in timed}
    by_call = {table: _Sorted(columns["correlation_id"]) for table, columns in tables.items() if _has_calls(columns)}
    annotations = tables.get("annotations")
    by_id = None if annotations is None else _Sorted(annotations["external_id"])
    open_in = [] if annotations is None else _rows_of_parts(annotations, spans)
    for number, span in enumerate(spans):
        rows = {table: [by_time[table].between(*span)] for table in timed}
        own = calls["correlation_id"][rows["api_calls"][0]]
        launched = []
        for table in timed:
            if table in by_call and len(own):
                rows[table].append(by_call[table].between(own.min(), own.max()))
            if table in by_call:
                launched += [tables[table]["correlation_id"][found] for found in rows[table]]
        rows["api_calls"].append(by_call["api_calls"].equal_to(np.concatenate(launched)))
        part = copied(capture)
        for table, found in rows.items():
            _select(part["tables"][table], np.unique(np.concatenate(found)))
        if links is not None:
            kept = by_call["external_correlations"].equal_to(part["tables"]["api_calls"]["correlation_id"])
            _select(part["tables"]["external_correlations"], np.unique(kept))
        if by_id is not None:
            named = by_id.equal_to(_needed_names(part["tables"]))
            _select(part["tables"]["annotations"], np.unique(np.concatenate([open_in[number], named])))
        yield part


def copied(capture: Capture) -> Capture:
    """A capture with the same rows, for functions that change it; the columns are shared."""
    copy = capture.copy()
    copy["clock"], copy["counters"] = capture["clock"].copy(), dict(capture["counters"])
    copy["tables"] = {table: dict(columns) for table, columns in capture["tables"].items()}
    return copy


def _has_calls(columns: Columns) -> bool:
    return "correlation_id" in columns


class _Sorted:
    """The rows of a table in the order of one of its columns."""

    def __init__(self, keys: npt.NDArray[Any]) -> None:
        self._rows = np.argsort(keys, kind="stable")
        self._keys = keys[self._rows]

    def between(self, first: int, last: int) -> npt.NDArray[np.intp]:
        """The rows with keys from ``first`` to ``last``."""
        begin, end = np.searchsorted(self._keys, first, "left"), np.searchsorted(self._keys, last, "right")
        return self._rows[begin:end]

    def equal_to(self, keys: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The rows with one of these keys."""
        wanted = np.unique(keys).astype(self._keys.dtype)
        begins, ends = np.searchsorted(self._keys, wanted, "left"), np.searchsorted(self._keys, wanted, "right")
        return self._rows[numbers_in(begins, ends)]


def _rows_of_parts(columns: Columns, spans: Sequence[Span]) -> list[npt.NDArray[np.intp]]:
    """For each part the rows that overlap it; an end of 0 is the end of the session."""
    begins, ends = _bounds(spans)
    first = np.searchsorted(ends, columns["start_ns"], side="left")
    past = np.searchsorted(begins, _ends_of(columns), side="left")
    rows = np.repeat(np.arange(len(first)), np.maximum(past - first, 0))
    parts = numbers_in(first, past)
    order = np.argsort(parts, kind="stable")
    return np.split(rows[order], np.searchsorted(parts[order], np.arange(1, len(spans))))


def _correlation_ids(calls: Columns, spans: Sequence[Span]) -> list[Span]:
    """The first and the last correlation id of the calls in each part that has any."""
    at = parts_of(calls["start_ns"], spans)
    order = np.argsort(at, kind="stable")[np.count_nonzero(at < 0) :]
    parts, ids = at[order], calls["correlation_id"][order]
    begins = np.flatnonzero(np.diff(parts, prepend=-1))
    if not len(begins):
        return []
    least, most = np.minimum.reduceat(ids, begins), np.maximum.reduceat(ids, begins)
    return sorted(Span(int(first), int(last)) for first, last in zip(least, most, strict=True))


def _bounds(spans: Sequence[Span]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.array([span.begin_ns for span in spans], "i8"), np.array([span.end_ns for span in spans], "i8")


def parts_of(times_ns: npt.NDArray[Any], spans: Sequence[Span]) -> npt.NDArray[np.intp]:
    """The number of the part that each time is in, or -1."""
    begins, ends = _bounds(spans)
    at = np.searchsorted(begins, times_ns, side="right") - 1
    if not len(spans):
        return at
    found: npt.NDArray[np.intp] = np.where((at >= 0) & (times_ns <= ends[np.maximum(at, 0)]), at, -1)
    return found


def _inside(times_ns: npt.NDArray[Any], spans: Sequence[Span]) -> npt.NDArray[np.bool_]:
    """Whether each time is in one of the parts."""
    inside: npt.NDArray[np.bool_] = parts_of(times_ns, spans) >= 0
    return inside


def _ends_of(columns: Columns) -> npt.NDArray[Any]:
    """The ends of rows, of which 0 is the end of the session."""
    return np.where(columns["end_ns"] == 0, FOREVER_NS, columns["end_ns"])


def _overlap(columns: Columns, spans: Sequence[Span]) -> npt.NDArray[np.bool_]:
    """Whether each row overlaps one of the parts."""
    begins, ends = _bounds(spans)
    at = np.searchsorted(ends, columns["start_ns"], side="left")  # the first part that ends later
    found: npt.NDArray[np.bool_] = at < len(spans)
    found[found] = _ends_of(columns)[found] > begins[at[found]]
    return found


def _select(columns: Columns, kept: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> None:
    for name, column in columns.items():
        columns[name] = column[kept]


def _needed_names(tables: dict[str, Columns]) -> npt.NDArray[Any]:
    """The external ids of the annotations that rows refer to."""
    found = [tables[name]["captured_external_id"] for name in ACTIVITY_TABLES if "captured_external_id" in tables[name]]
    if "external_correlations" in tables:
        found.append(tables["external_correlations"]["external_id"])
    return np.concatenate(found) if found else np.zeros(0, "u8")
