"""Kinds of records that were left out from a time on, because recording cost more than its budget.

``native/capture/budget.h`` decides; the counters of the source state the budget and, for each kind, the time since the
start of the step, in ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.text.quantities import time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BUDGET = "budget_millionths"
"""The figure with the budget, in millionths of the time of one processor core."""
HIGHEST = "budget_highest_millionths"
"""The figure with the cost of the most expensive second, likewise."""
LAST = "budget_last_millionths"
"""The figure with the cost of the last whole second, likewise."""
DRIVER_CALLS, ALL_CALLS = "shed_driver_api_ns", "shed_api_calls_ns"
SHED = {
    DRIVER_CALLS: "driver API calls",
    "shed_nvtx_ranges_ns": "NVTX ranges",
    "shed_synchronizations_ns": "synchronizations and CUDA events",
    ALL_CALLS: "API calls and the names of launches",
    "shed_memory_operations_ns": "memory operations",
    "shed_memsets_ns": "memsets",
    "shed_memcpys_ns": "copies",
    "shed_graph_nodes_ns": "the nodes of CUDA graphs",
}
"""Figure -> the records that are missing from that time on, in the order in which kinds are left out."""


def shed_lines(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """For each figure of `SHED` that is not 0 its name and the sentence that explains it."""
    budget = f"budget {counts.get(BUDGET, 0) / 10_000:.4g}%"
    return [
        (figure, f"{_since(since_ns)}without {what} ({budget})")
        for figure, what in SHED.items()
        if (since_ns := counts.get(figure, 0))
    ]


def _since(since_ns: int) -> str:
    return f"from {time_text(since_ns)} on " if since_ns > 1 else ""


def calls_end_ns(counts: Mapping[str, int], start_ns: int) -> int | None:
    """The time from which API calls are missing, on the clock of ``start_ns``; None: they are not."""
    since = [counts[figure] for figure in (DRIVER_CALLS, ALL_CALLS) if counts.get(figure)]
    return start_ns + min(since) if since else None


def in_part(counts: Mapping[str, int], shift_ns: int, length_ns: int | None = None) -> dict[str, int]:
    """The figures of `SHED` for a part of a recording.

    Args:
        counts: the counters of the recording.
        shift_ns: the time from the start of the recording to that of the part. The figure of a kind that was left out
            before the part is 1.
        length_ns: the length of the part; kinds that were left out later do not count. None: the part has no end.
    """
    since = {figure: max(counts[figure] - shift_ns, 1) for figure in SHED if counts.get(figure)}
    return {figure: ns for figure, ns in since.items() if length_ns is None or ns <= length_ns}


def of_several(counts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    """The figures of this module for several recordings as one: the earliest time of each kind, the highest budget.

    Args:
        counts: the counters of each recording, and the time from the start of all to that of this one, in ns.
    """
    found: dict[str, int] = {}
    for own, shift_ns in counts:
        for figure in (BUDGET, HIGHEST, LAST):
            if figure in own:
                found[figure] = max(own[figure], found.get(figure, 0))
        for figure, since_ns in in_part(own, -shift_ns).items():
            found[figure] = min(since_ns, found.get(figure, since_ns))
    return found
