"""The ranges of a program to which its recording was restricted (``collector run --capture-range``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.recording.capture import Part
from collector.recording.capture_window import FOREVER_NS, Span, keep_spans
from collector.recording.schema import LAUNCHED_TABLES
from collector.recording.shed_kinds import SHED, calls_end_ns, in_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.recording.capture import Capture
    from collector.recording.journal_contents import JournalContents
    from collector.recording.journal_frames import Columns


def capture_ranges(journal: JournalContents) -> list[Span] | None:
    """The ranges of the program that were recorded, as far as the journal has them; None: all was recorded."""
    if "capture_ranges_recorded" not in journal.numbers:
        return None
    prefix, begin = "range.", ".begin_ns"
    numbers = [name[len(prefix) : -len(begin)] for name in journal.numbers if name.endswith(begin)]
    bounds = sorted(
        Span(journal.numbers[f"{prefix}{n}{begin}"], journal.numbers.get(f"{prefix}{n}.end_ns", FOREVER_NS))
        for n in numbers
        if f"{prefix}{n}{begin}" in journal.numbers
    )
    first_ns = journal.numbers["clock.cupti_start_ns"]
    if journal.first_part is not None and journal.first_part.begin_ns is not None:
        first_ns = journal.first_part.begin_ns
    found: list[Span] = []
    for span in bounds:
        begin_ns = max(span.begin_ns, first_ns, found[-1].end_ns + 1 if found else first_ns)
        if begin_ns <= span.end_ns <= FOREVER_NS:
            found.append(Span(begin_ns, span.end_ns))
    return found


def keep_ranges(capture: Capture, spans: Sequence[Span]) -> None:
    """Restrict a capture to these ranges; it then lasts from the begin of the first to the end of the last one."""
    counts = capture["counters"]
    keep_spans(capture, spans, has_other_calls=calls_end_ns(counts, 0) is not None)
    if not spans:
        return
    clock = capture["clock"]
    last_ns = spans[-1].end_ns
    if last_ns != FOREVER_NS:
        tables: dict[str, Columns] = capture["tables"]
        for columns in calls_and_work(tables):  # work may run on after the range, but not after the whole
            ends = columns["end_ns"]
            last_ns = max(last_ns, int(ends[ends <= clock["cupti_stop_ns"]].max(initial=0)))
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


def calls_and_work(tables: Mapping[str, Columns]) -> list[Columns]:
    """The tables of API calls and of the work that they launched."""
    return [columns for table, columns in tables.items() if table in ("api_calls", *LAUNCHED_TABLES)]
