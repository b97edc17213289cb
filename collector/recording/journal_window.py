"""The part of an open session between two instants, read from the journal that the session writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.errors import InvalidFileError
from collector.recording.capture import Part
from collector.recording.distinct import are_among
from collector.recording.journal_capture import JournalCapture, selected_rows
from collector.recording.journal_contents import BUFFERS_HELD, JournalContents
from collector.recording.journal_frames import DAMAGE
from collector.recording.journal_ranges import calls_and_work
from collector.recording.schema import LAUNCHED_TABLES
from collector.recording.shed_kinds import BUDGET, HIGHEST, LAST, SHED, in_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from collector.recording.capture import Capture, Instant
    from collector.recording.journal_frames import Buffer, Columns


def journal_window(
    files: Iterable[Buffer],
    first_byte: int,
    start: Instant,
    stop: Instant,
    own_calls: tuple[int, int],
    buffers_held: int,
    latest_ns: int,
) -> Capture:
    """Read the part of an open session between two instants from the files of its journal.

    Annotations that were open at the start begin there, and those that are open at the end end there. Work belongs to
    the part if it was launched in it; see `Launches`.

    Args:
        files: the journal, or its segments from the one on that was written at the start; they have all rows up to the
            end.
        first_byte: the size of the first file at the start of the window: rows from there on may belong to the window,
            earlier rows do not.
        start: the first instant.
        stop: the last one.
        own_calls: a thread and a time: the calls of this thread from this time on are the collector's own.
        buffers_held: the number of buffers with rows of the window that the files do not have yet.
        latest_ns: a time of CUPTI's clock at which all rows had been written; rows that end later are damaged.

    Raises:
        collector.InvalidFileError: the journal is damaged.
    """
    journal = JournalContents()
    before = dict[str, int]()
    try:
        for number, data in enumerate(files):
            journal.take_file(data, first_byte if number == 0 else 0)
            before = dict(journal.numbers_before) if number == 0 else before
        return _window(journal, before, start, stop, own_calls, buffers_held, latest_ns)
    except DAMAGE as error:
        raise InvalidFileError(f"the journal of this process is damaged ({error})") from error


def _window(
    journal: JournalContents,
    before: Mapping[str, int],
    start: Instant,
    stop: Instant,
    own_calls: tuple[int, int],
    buffers_held: int,
    latest_ns: int,
) -> Capture:
    """See `journal_window`; ``before`` are the counts at the start."""
    session_start_ns = journal.numbers["clock.cupti_start_ns"]
    _let_session_be_window(journal, start, stop, own_calls, buffers_held)
    journal.open_ranges = {
        number: row for number, row in journal.open_ranges.items() if row["start_ns"] >= start.cupti_ns
    }
    made = JournalCapture(journal)
    capture = made.capture(bytes_cut=0)
    launches = launches_between(
        capture["tables"]["api_calls"],
        journal.calls_before,
        start.cupti_ns,
        stop.cupti_ns,
        has_own_calls=made.has_own_calls,
    )
    _keep_rows(capture, launches, start.cupti_ns, stop.cupti_ns, latest_ns)
    capture["part"] = Part(start.cupti_ns, 1, is_continued=buffers_held > 0)
    capture["counters"] = _counters_of_window(
        capture["counters"], before, start.cupti_ns - session_start_ns, stop.cupti_ns - start.cupti_ns
    )
    return capture


def _let_session_be_window(
    journal: JournalContents, start: Instant, stop: Instant, own_calls: tuple[int, int], buffers_held: int
) -> None:
    """Replace the begin, end and counts of the session in the journal by those of the window."""
    journal.numbers |= {"own_calls.thread_id": own_calls[0], "own_calls.from_ns": own_calls[1], "journal.ended": 1}
    journal.numbers |= {"clock.cupti_start_ns": start.cupti_ns, "clock.wall_start_ns": start.wall_ns}
    journal.numbers |= {"clock.cupti_stop_ns": stop.cupti_ns, "clock.wall_stop_ns": stop.wall_ns}
    journal.numbers["clock.uncertainty_ns"] = max(start.uncertainty_ns, stop.uncertainty_ns)
    journal.numbers[BUFFERS_HELD] = buffers_held
    journal.numbers.pop("segment.closed", None)
    journal.first_part = None  # the window is later
    journal.rows_before.clear()
    journal.decoded_before.clear()


def _keep_rows(capture: Capture, launches: Launches, start_ns: int, stop_ns: int, latest_ns: int) -> None:
    """Keep the rows of the window, which lasts until its calls and the work that was launched in it have ended."""
    tables: dict[str, Columns] = capture["tables"]
    last_ns = stop_ns
    for table, columns in tables.items():
        if "start_ns" in columns:
            is_inside = (columns["start_ns"] >= start_ns) & (columns["start_ns"] <= stop_ns)
            if table == "annotations":  # those that are open at the start, too
                is_inside |= (columns["start_ns"] < start_ns) & (columns["end_ns"] > start_ns)
            if table in LAUNCHED_TABLES:
                is_inside = launches.among(columns["correlation_id"], is_inside)
            tables[table] = selected_rows(columns, is_inside)
    for columns in calls_and_work(tables):  # of threads for which nothing waited
        ends = columns["end_ns"]
        last_ns = max(last_ns, int(ends[ends <= latest_ns].max(initial=stop_ns)))
    capture["clock"]["cupti_stop_ns"] += last_ns - stop_ns
    capture["clock"]["wall_stop_ns"] += last_ns - stop_ns
    spans = tables["annotations"]
    spans["start_ns"] = np.maximum(spans["start_ns"], start_ns)
    spans["end_ns"] = np.minimum(spans["end_ns"], stop_ns)
    if (ranges := tables.get("nvtx_ranges")) is not None:
        is_open = ranges["end_ns"] > stop_ns
        ranges["end_ns"] = np.where(is_open, stop_ns, ranges["end_ns"])
        ranges["end_thread_id"] = np.where(is_open, 0, ranges["end_thread_id"])
    if (events := tables.get("cuda_events")) is not None:  # they have no times
        ids = events["correlation_id"]
        tables["cuda_events"] = selected_rows(events, launches.among(ids, np.ones(len(ids), bool)))
    if (links := tables.get("external_correlations")) is not None:
        calls = tables["api_calls"]["correlation_id"]
        tables["external_correlations"] = selected_rows(links, np.isin(links["correlation_id"], calls))


def _counters_of_window(
    counters: Mapping[str, int], before: Mapping[str, int], begin_ns: int, duration_ns: int
) -> dict[str, int]:
    """The counters of a window.

    Args:
        counters: the counters of the session at the end of the window.
        before: the counters at the begin of the window.
        begin_ns: the begin of the window, since the start of the session.
        duration_ns: the length of the window.
    """
    counted = {
        name: count - before.get(name, 0)
        for name, count in counters.items()
        if name not in SHED and not name.startswith("capture_ranges_")
    }
    settings = {name: counters[name] for name in (BUDGET, HIGHEST, LAST) if name in counters}
    return counted | settings | in_part(counters, begin_ns, duration_ns)


def _follows(later: Any, earlier: int) -> Any:
    """Whether a correlation id, or each of an array, is that of the same or a later call; ids wrap around at 2**32."""
    return (later - earlier) % (1 << 32) < 1 << 31


class Launches(NamedTuple):
    """The launches of a part of a session. The correlation ids of calls are in the order of the calls."""

    inside: npt.NDArray[np.uint32]
    """Correlation ids of the part's calls."""
    outside: npt.NDArray[np.uint32]
    """Correlation ids of other calls, as far as they are known."""
    first: int | None
    """Earlier calls have lower ids; None: nothing is known about earlier calls."""
    is_empty: bool
    """Whether it is known that the part has no launches."""

    def among(self, ids: npt.NDArray[np.uint32], starts_inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether work was launched in the part; if its call is not known, its own start decides."""
        known = are_among(ids, self.inside)
        if self.is_empty:
            return known
        possible = starts_inside & ~are_among(ids, self.outside)
        if self.first is not None:
            possible &= _follows(ids.astype("i8"), self.first) | (ids == 0)
        return known | possible


def launches_between(
    calls: Columns, read_earlier: Callable[[], Any] | None, start_ns: int, stop_ns: int, *, has_own_calls: bool
) -> Launches:
    """The launches between two times, of which other calls may be unknown.

    Args:
        calls: the known ones, without those of the collector itself.
        read_earlier: reads the last calls before these; None: there are none.
        start_ns: the first time.
        stop_ns: the last one.
        has_own_calls: whether calls of the driver by the collector itself were recorded.
    """
    ids, starts = calls["correlation_id"], calls["start_ns"]
    is_before = starts < start_ns
    is_inside = ~is_before & (starts <= stop_ns)
    bounds = []
    if is_before.any():
        bounds.append(int(ids[is_before][starts[is_before].argmax()]) + 1)
    if read_earlier is not None:
        earlier = read_earlier()
        earlier = earlier if isinstance(earlier, Mapping) else {name: earlier[name] for name in earlier.dtype.names}
        at = np.where(earlier["start_ns"] < start_ns, earlier["start_ns"], 0).argmax()
        bounds.append(int(earlier["correlation_id"][at]) + 1)
    inside = ids[is_inside]
    if len(inside) and (has_own_calls or not bounds):
        bounds.append(int(inside[starts[is_inside].argmin()]))
    first = next((each for each in bounds if all(_follows(each, other) for other in bounds)), None)
    return Launches(inside, ids[~is_inside], first, is_empty=not len(inside) and has_own_calls)
