"""The timed events of a Chrome trace: complete ones, and pairs of a begin and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.formats.chrome_events import has_time

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents, Numbers


class TimedSpans(NamedTuple):
    """Columns, in file order of the spans' ends."""

    rows: Numbers
    """The events that say what each span is."""
    starts_ns: Numbers
    durations_ns: Numbers


def timed_spans(found: ChromeEvents, base_ns: int) -> TimedSpans:
    """The spans of a trace, moved by `base_ns`; what has no time is counted in ``found.skipped``."""
    rows = found.rows("XBE")
    is_timed = has_time(found.starts_ns(rows))
    _count(found, "events without a possible time", int((~is_timed).sum()))
    is_whole = np.isin(rows, found.rows("X"), assume_unique=True)
    whole, halves = rows[is_timed & is_whole], rows[is_timed & ~is_whole]
    durations = found.durations_ns(whole)
    is_known = has_time(durations)
    _count(found, "durations missing or impossible (taken as 0)", int((~is_known).sum()))
    _count(found, "negative durations (taken as 0)", int((is_known & (durations < 0)).sum()))
    spans = TimedSpans(whole, found.starts_ns(whole) + base_ns, np.where(is_known, np.maximum(durations, 0), 0))
    if not len(halves):
        return spans
    begun, ended = _pairs(found, halves)
    starts = found.starts_ns(begun)
    pairs = TimedSpans(begun, starts + base_ns, np.maximum(found.starts_ns(ended) - starts, 0))
    order = np.argsort(np.concatenate([whole, ended]), kind="stable")
    return TimedSpans(*(np.concatenate(each)[order] for each in zip(spans, pairs, strict=True)))


def _pairs(found: ChromeEvents, halves: Numbers) -> tuple[Numbers, Numbers]:
    """The begins that have an end, and these ends: on each process and thread the last begin is ended first."""
    names = [(str(process), str(thread)) for process, thread in found.tracks]
    open_rows: dict[tuple[str, str], list[int]] = {}
    pairs: list[tuple[int, int]] = []
    without_begin = 0
    is_begin = np.isin(halves, found.rows("B"), assume_unique=True)
    for row, track, begins in zip(
        halves.tolist(), found.track_numbers(halves).tolist(), is_begin.tolist(), strict=True
    ):
        rows = open_rows.setdefault(names[track], [])
        if begins:
            rows.append(row)
        elif rows:
            pairs.append((rows.pop(), row))
        else:
            without_begin += 1
    _count(found, "ends without a beginning", without_begin)
    _count(found, "beginnings without an end", sum(map(len, open_rows.values())))
    joined = np.array(pairs, np.int64).reshape(-1, 2)
    return joined[:, 0], joined[:, 1]


def _count(found: ChromeEvents, reason: str, count: int) -> None:
    if count:
        found.skipped[reason] += count
