"""Checks of trace files: valid JSON, the number of kernels, and slices that a viewer would not show.

Chrome's trace format nests the slices of one row (a thread of a process). If two slices partly overlap, viewers drop or
truncate one, so that recorded kernels vanish. Rows need not be in order, but a reader that streams a file must then
buffer late events.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

KERNEL_CATEGORIES = ("kernel", "")
"""Categories of events that are kernels: ours and PyTorch's (older ones with a capital), or none."""


def documents(text: str) -> tuple[list[Any], str]:
    """Return the JSON documents of a file, and the error in it as one document; empty: none.

    Proton of Triton 3.6 writes one document for each stream, on a line of its own.

    Raises:
        ValueError: neither the file nor its lines are JSON.
    """
    try:
        return [strict(text)], ""
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        try:
            return [strict(line) for line in lines], f"no: {len(lines)} documents, one in each line"
        except ValueError:
            raise error from None


def strict(text: str) -> Any:
    """The JSON document ``text``; raises ValueError for anything else, including NaN and Infinity.

    Fractions are kept as written: a double of microseconds since the epoch is only precise to 250 ns.
    """
    return json.loads(text, parse_constant=_no_number, parse_float=Decimal)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def events(found: Iterable[Any]) -> list[dict[str, Any]]:
    """The events of Chrome traces, each an object that contains them or a plain list; in the order of the file."""
    lists = [one.get("traceEvents", []) if isinstance(one, dict) else one for one in found]
    return [event for one in lists for event in one if isinstance(event, dict)]


def kernels(found: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The slices of kernels whose name begins with ``name``."""
    return [
        event
        for event in found
        if event.get("ph", "X") == "X"
        and str(event.get("name", "")).startswith(name)
        and str(event.get("cat", "")).lower() in KERNEL_CATEGORIES
    ]


def rows(found: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, Any], list[tuple[int, int]]]:
    """Start and end of the slices of each row, in ns and in the order of the file."""
    slices: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    for event in found:
        if event.get("ph", "X") == "X" and "ts" in event:
            start, duration = (round(Decimal(event.get(key, 0)) * 1000) for key in ("ts", "dur"))
            slices[event.get("pid"), event.get("tid")].append((start, start + duration))
    return slices


def overlapping(slices: Iterable[tuple[int, int]]) -> int:
    """The number of slices of a row that begin within another slice and end after it."""
    count = 0
    open_ends: list[int] = []
    for start, end in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            count += 1
        else:
            open_ends.append(end)
    return count


def late(slices: Iterable[tuple[int, int]]) -> int:
    """The number of slices of a row that come after a slice which begins later."""
    count, latest = 0, -(1 << 63)
    for start, _ in slices:
        count += start < latest
        latest = max(latest, start)
    return count


def facts(
    path: Path, kernel: str, is_repeated: Callable[[Mapping[str, Any]], bool] = lambda _: False
) -> tuple[int, dict[str, Any]]:
    """Return the number of kernels of that name in a Chrome trace, and facts about the file.

    Args:
        path: the file.
        kernel: what the names begin with.
        is_repeated: whether a slice shows a kernel that another slice shows as well.
    """
    try:
        found, trouble = documents(path.read_text(encoding="utf-8"))
    except ValueError as error:  # also for bytes that are not UTF-8
        return 0, {"JSON": f"no: {error}"}
    all_events = events(found)
    all_rows, of_kernel = rows(all_events), kernels(all_events, kernel)
    with_it = rows(of_kernel)
    total = sum(map(len, all_rows.values()))
    message: dict[str, Any] = {"JSON": trouble or "yes"}
    for what, count in (("overlap without nesting", overlapping), ("out of order", late)):
        counts = {row: count(slices) for row, slices in all_rows.items()}
        in_its = sum(counts[row] for row in with_it)
        some = f"{sum(counts.values())} of {total} slices, {in_its} where the kernel is"
        message[what] = some if any(counts.values()) else "none"
    return sum(not is_repeated(event) for event in of_kernel), message
