"""The timed events of a Chrome trace: complete ones, and pairs of a begin and an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.formats.chrome_events import has_time

if TYPE_CHECKING:
    from collector.formats.chrome_events import ChromeEvents, Numbers

_READ_PHASES = "XBEMstf"
_PHASES = {
    **dict.fromkeys("bneSTFp", "asynchronous events"),
    "C": "counters",
    **dict.fromkeys("iIR", "instants"),
    **dict.fromkeys("NOD", "objects"),
    "P": "samples",
}
"""Phase -> the events that have it, of those that no table of a recording takes."""
_PROFILERS_MARKS = ("Iteration Start: ", "Record Window End", "[memory]")
"""Prefixes of the names of instants of PyTorch's profiler that are not activities: the times at which it ran, and, with
``profile_memory``, each allocation of its allocator, of which a trace has tens of thousands."""


@dataclass(frozen=True)
class TimedSpans:
    """Spans in file order of their ends. Their times are looked up in the events on request."""

    found: ChromeEvents
    base_ns: int
    rows: Numbers
    """The events that describe the spans."""
    ends: Numbers | None
    """The events that end pairs, -1 for complete events; None where all are complete."""

    def __len__(self) -> int:
        return len(self.rows)

    def starts_ns(self, places: Numbers | slice = slice(None)) -> Numbers:
        """The starts of some of the spans, ns."""
        return self.found.starts_ns(self.rows[places]) + self.base_ns

    def durations_ns(self, places: Numbers | slice = slice(None)) -> Numbers:
        """Durations of some of the spans; 0 where a duration is missing or impossible."""
        rows = self.rows[places]
        durations = self.found.durations_ns(rows)  # what is not a time is negative
        if self.ends is not None:
            ends = self.ends[places]
            lasted = self.found.starts_ns(np.where(ends >= 0, ends, rows)) - self.found.starts_ns(rows)
            durations = np.where(ends >= 0, lasted, durations)
        return np.maximum(durations, 0, out=durations)


def timed_spans(found: ChromeEvents, base_ns: int) -> TimedSpans:
    """The spans of a trace, moved by `base_ns`; what has no time is counted in ``found.skipped``."""
    rows = found.rows("XBE")
    is_timed = has_time(found.starts_ns(rows))
    _count(found, "events without a possible time", int((~is_timed).sum()))
    is_whole = found.have_phase("X", rows)
    whole, halves = rows[is_timed & is_whole], rows[is_timed & ~is_whole]
    durations = found.durations_ns(whole)
    is_known = has_time(durations)
    _count(found, "durations missing or impossible (taken as 0)", int((~is_known).sum()))
    _count(found, "negative durations (taken as 0)", int((is_known & (durations < 0)).sum()))
    if not len(halves):
        return TimedSpans(found, base_ns, whole, None)
    begun, ended = _pairs(found, halves)
    order = np.argsort(np.concatenate([whole, ended]), kind="stable")
    ends = np.concatenate([np.full(len(whole), -1, np.int64), ended])
    return TimedSpans(found, base_ns, np.concatenate([whole, begun])[order], ends[order])


def count_other_phases(found: ChromeEvents, read: Numbers) -> None:
    """Count the events that are not spans in ``found.skipped``, by their phase.

    Events of metadata and arrows are not counted: the former are read, and the latter follow from correlation ids.

    Args:
        found: the events of a trace.
        read: the events that are read in another way.
    """
    others = np.setdiff1d(found.rows_without(_READ_PHASES), read, assume_unique=True)
    names, index = found.names(others)
    is_mark = np.array([name.startswith(_PROFILERS_MARKS) for name in names] + [False], bool)[index]
    phases, counts = np.unique(found.phases(others[~is_mark]), return_counts=True)
    for phase, count in zip(phases.tolist(), counts.tolist(), strict=True):
        letter = chr(phase) if chr(phase).isprintable() else "?"
        _count(found, f"{_PHASES.get(letter, 'other events')} (phase {letter})", count)


def _pairs(found: ChromeEvents, halves: Numbers) -> tuple[Numbers, Numbers]:
    """The begins that have an end, and these ends: on each process and thread the last begin is ended first."""
    names = [(str(process), str(thread)) for process, thread in found.tracks]
    open_rows: dict[tuple[str, str], list[int]] = {}
    pairs: list[tuple[int, int]] = []
    without_begin = 0
    is_begin = found.have_phase("B", halves)
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
