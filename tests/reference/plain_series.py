"""Counters over time: the twin of native/draw/series.h and memory_changes.cpp.

A series is (time in ns, value from then on), in the order of time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from collector.stepstats.labels import parse_op_label
from reference.plain_activities import INT64_MAX, span_ns


def _set_value(points: list[tuple[int, int]], time: int, value: int) -> None:
    """Sets the value from a time on, if it differs from the value before."""
    if points and points[-1][0] == time:
        points.pop()
    if value != (points[-1][1] if points else 0):
        points.append((time, value))


def count_busy(streams: list[list[list[int]]]) -> list[tuple[int, int]]:
    """The number of busy streams; each stream's intervals are sorted and disjoint."""
    changes = heapq.merge(
        *(
            [(time, number, change) for interval in stream for time, change in zip(interval, (1, -1), strict=True)]
            for number, stream in enumerate(streams)
        ),
        key=lambda change: change[:2],
    )
    points: list[tuple[int, int]] = []
    busy = 0
    for time, _, change in changes:
        busy += change
        _set_value(points, time, busy)
    return points


def running_total(changes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The running total of the changes, starting at 0."""
    points: list[tuple[int, int]] = []
    total = 0
    for time, amount in sorted(changes):
        total += amount
        if not -INT64_MAX - 1 <= total <= INT64_MAX:
            break  # no machine has this much memory, so the remaining changes are unreliable
        _set_value(points, time, total)
    return points


def recorded_memory(nodes: Iterable[Any], is_plausible: Callable[[int], bool]) -> dict[str, list[tuple[int, int]]]:
    """Changes by allocator, from the nodes' allocation records."""
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for node in nodes:
        for memory in node.memory:
            for record in memory.allocation_records:
                if is_plausible(record.alloc_micros * 1000):
                    changes[memory.allocator_name].append((record.alloc_micros * 1000, record.alloc_bytes))
    return changes


def estimated_memory(nodes: Sequence[Any], is_plausible: Callable[[int], bool]) -> dict[str, list[tuple[int, int]]]:
    """Each output counts from its op's start to the end of the last op that names it as an input."""
    tensors: list[list[Any]] = []
    last_of: dict[str, list[Any]] = {}
    timed = []
    for node in nodes:
        span = span_ns(node)
        if span and is_plausible(span[0]) and is_plausible(sum(span)):
            timed.append((node, span[0], sum(span)))
    for node, start, end in timed:
        for index, output in enumerate(node.output):
            allocation = output.tensor_description.allocation_description
            if allocation.requested_bytes > 0:
                tensor = [start, end, allocation.requested_bytes, allocation.allocator_name]
                last_of[f"{node.node_name}:{index}" if index else node.node_name] = tensor
                tensors.append(tensor)
    for node, _, end in timed:
        for name in parse_op_label(node.timeline_label)[1]:
            cut = name.rfind("/_")
            found = last_of.get(name) or (last_of.get(name[:cut]) if cut > 0 else None)
            if found:
                found[1] = max(found[1], end)
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end, num_bytes, allocator in tensors:
        changes[allocator] += [(start, num_bytes), (end, -num_bytes)]
    return changes
