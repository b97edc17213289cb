"""Messages of failing tests: exceeded limits, a table of the activities, and their origins. Pure functions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from collector.recording.api_functions import ApiRole
from collector.recording.cupti_enums import ALLOCATION
from collector.recording.kind_names import copy_kind_name
from collector.testing.plugin.figures import calls_of, device_memory_rows
from collector.testing.plugin.limits import show
from collector.text.terminal import printable
from collector.text.text_tables import text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collector.recording.recording import Recording
    from collector.recording.table import Table
    from collector.testing.plugin.limits import Excess
    from collector.testing.plugin.lines import Lines

_MOST_ROWS = 15
_MOST_NAMES = 5
_SYNC_TYPES = ("unknown wait", "event wait", "stream wait for event", "stream wait", "device wait")


@dataclass(frozen=True)
class Deed:
    """One operation on or for the GPU."""

    what: str
    """A kernel's name, ``memcpy HtoD``, ``memset``, ``stream wait``, ``cudaMalloc``."""
    duration_ns: int
    num_bytes: int
    annotation: str
    line: str
    """``tests/test_step.py:31``, or ``""`` if unknown."""


def excess_message(where: str, excesses: Sequence[Excess], recordings: Sequence[Recording], lines: Lines | None) -> str:
    """Return the message of a test that exceeded its limits.

    Args:
        where: the part of the test: ``the call of test_step``.
        excesses: the limits that were exceeded; at least one.
        recordings: the recordings of that part.
        lines: the lines of Python code that ran, if they were recorded.
    """
    deeds = [deed for recording in recordings for deed in deeds_of(recording, lines)]
    rows = [
        (
            each.limit.name,
            each.limit.shown(each.measured),
            each.limit.shown(each.limit.maximum),
            each.limit.shown(each.over),
        )
        for each in excesses
    ]
    parts = [f"GPU limits exceeded in {where}", columns(("limit", "measured", "at most", "too much"), rows)]
    if deeds:
        parts += ["What ran:", what_ran(deeds), "Where it came from:", where_from(deeds)]
        parts += why_lines_are_missing([deed.line for deed in deeds], recordings, lines)
    return "\n\n".join(parts)


def deeds_of(recording: Recording, lines: Lines | None = None) -> Iterator[Deed]:
    """Everything in ``recording`` that can be limited, in any order."""
    kernels, copies, memsets, waits = (
        getattr(recording, name) for name in ("kernels", "memcpys", "memsets", "synchronizations")
    )
    copy_names = [f"memcpy {copy_kind_name(kind)}" for kind in copies.copy_kind.tolist()]
    wait_names = [_SYNC_TYPES[min(kind, 4)] for kind in waits.sync_type.tolist()]
    yield from _deeds(recording, kernels, kernels.names(), lines)
    yield from _deeds(recording, copies, copy_names, lines)
    yield from _deeds(recording, memsets, ["memset"] * len(memsets), lines)
    yield from _deeds(recording, waits, wait_names, lines)
    yield from _allocations(recording, lines)


@dataclass(frozen=True)
class Origin:
    """Origin of an activity or a call; ``""`` for unknown parts."""

    call: str
    """The API call that launched it: ``cudaMalloc``."""
    annotation: str
    line: str


def origins_of(recording: Recording, table: Table, lines: Lines | None) -> Iterator[Origin]:
    """The origin of each row of ``table``."""
    if lines is not None and not lines.knows(recording.clock):
        lines = None
    calls = recording.api_calls
    names = calls.names()
    starts, threads, clock = calls.start_ns, calls.thread_id, recording.clock
    rows = recording.launch_rows(table.correlation_id).tolist()
    for row, annotation in zip(rows, recording.annotations_of(table), strict=True):
        found = lines.at(int(threads[row]), int(starts[row]), clock) if lines is not None and row >= 0 else None
        call = names[row].split("_", 1)[0] if row >= 0 else ""
        yield Origin(call, annotation, "" if found is None else f"{found[0]}:{found[1]}")


def why_lines_are_missing(shown: Iterable[str], recordings: Iterable[Recording], lines: Lines | None) -> list[str]:
    """A sentence with reason and remedy for each cause of empty lines in ``shown``, which came from ``recordings``."""
    if lines is None or all(shown):
        return []
    reasons = dict.fromkeys(lines.why_unknown(recording.clock) for recording in recordings)
    return [f"Lines that are not known: {reason}" for reason in reasons]


def _deeds(recording: Recording, table: Table, names: list[str], lines: Lines | None) -> Iterator[Deed]:
    sizes = table.num_bytes.tolist() if "num_bytes" in table.columns else [0] * len(table)
    origins = origins_of(recording, table, lines)
    for name, duration, size, origin in zip(names, table.duration_ns.tolist(), sizes, origins, strict=True):
        yield Deed(name, duration, size, origin.annotation, origin.line)


def _allocations(recording: Recording, lines: Lines | None) -> Iterator[Deed]:
    """Allocating calls with their recorded bytes, and recorded allocations of other calls."""
    operations = recording.memory_operations[device_memory_rows(recording, ALLOCATION)]
    sizes = Counter[int]()
    for correlation, num_bytes in zip(operations.correlation_id.tolist(), operations.num_bytes.tolist(), strict=True):
        sizes[correlation] += num_bytes
    calls = recording.api_calls[calls_of(recording, ApiRole.ALLOCATION)]
    names = [name.split("_", 1)[0] for name in calls.names()]
    for deed, correlation in zip(_deeds(recording, calls, names, lines), calls.correlation_id, strict=True):
        yield replace(deed, num_bytes=sizes.pop(int(correlation), 0))
    others = operations[np.isin(operations.correlation_id, list(sizes))]
    for origin, num_bytes in zip(origins_of(recording, others, lines), others.num_bytes.tolist(), strict=True):
        yield Deed(origin.call or "allocation", 0, num_bytes, origin.annotation, origin.line)


def what_ran(deeds: Iterable[Deed]) -> str:
    """Deeds by name with their number, duration and bytes; the longest first."""
    grouped: dict[str, list[Deed]] = {}
    for deed in deeds:
        grouped.setdefault(deed.what, []).append(deed)
    totals = [
        (name, len(same), sum(deed.duration_ns for deed in same), sum(deed.num_bytes for deed in same))
        for name, same in grouped.items()
    ]
    totals.sort(key=lambda total: (-total[2], total[0]))
    rows = [
        (name, f"{count:,}", show(spent, "time"), show(round(spent / count), "time"), f"{moved:,}" if moved else "")
        for name, count, spent, moved in totals
    ]
    return columns(("", "count", "total", "mean", "bytes"), rows)


def where_from(deeds: Iterable[Deed]) -> str:
    """Deeds by the annotation and Python line of their launch; the most frequent first."""
    grouped: dict[tuple[str, str], Counter[str]] = {}
    for deed in deeds:
        grouped.setdefault((deed.annotation, deed.line), Counter())[deed.what] += 1
    ordered = sorted(grouped.items(), key=lambda origin: (-origin[1].total(), origin[0]))
    rows = [(annotation or "-", line or "not known", _most(names)) for (annotation, line), names in ordered]
    return columns(("annotation", "line", "what"), rows, right=())


def _most(names: Counter[str]) -> str:
    shown = [f"{count} x {what}" for what, count in names.most_common(_MOST_NAMES)]
    return ", ".join([*shown, "..."] if len(names) > _MOST_NAMES else shown)


def columns(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] | None = None) -> str:
    """Return rows as aligned text for a terminal, indented by two; rows beyond a readable number are only counted.

    Args:
        headers: one text for each column.
        rows: one text for each column.
        right: the columns that are aligned right; None: all but the first.
    """
    shown = [tuple(headers), *(tuple(map(printable, row)) for row in rows[:_MOST_ROWS])]
    flush = range(1, len(headers)) if right is None else right
    widths = [max(map(text_width, column)) for column in zip(*shown, strict=True)]

    def aligned(column: int, text: str) -> str:
        spaces = " " * (widths[column] - text_width(text))
        return spaces + text if column in flush else text + spaces

    text = ["  " + "  ".join(aligned(column, cell) for column, cell in enumerate(row)) for row in shown]
    if len(rows) > _MOST_ROWS:
        text.append(f"  ... and {len(rows) - _MOST_ROWS:,} more")
    return "\n".join(line.rstrip() for line in text)
