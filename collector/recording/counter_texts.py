"""Counters as texts in a journal, for recordings whose rows are never in the memory of this process."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.text.json_64_bit import json_64_bit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.recording.counter_rows import SampledSeries

_PREFIX = "counters."
_LARGEST = 1 << 62
"""Times and values are smaller, so that differences of times are, too."""
_DEVICES = 1 << 32


class _Series(NamedTuple):
    """See `collector.recording.counter_rows.SampledSeries`."""

    device: int
    name: str
    unit: str
    times: list[int]
    values: list[int]


def counter_texts(series: Iterable[SampledSeries]) -> dict[str, str]:
    """A text for each series, by a unique name; a time is stated as its distance from the previous one."""
    found = {}
    for number, each in enumerate(series):
        times = list(each.times)
        distances = [after - before for before, after in zip([0, *times], times, strict=False)]
        stated = [each.device, each.name, each.unit, distances, list(each.values)]
        found[f"{_PREFIX}{number}"] = json.dumps(stated, separators=(",", ":"))
    return found


def series_in(texts: Mapping[str, str]) -> tuple[list[SampledSeries], int]:
    """The series among the texts of a journal, and the number of those that cannot be read."""
    own = [text for name, text in texts.items() if name.startswith(_PREFIX)]
    found = [series for text in own if (series := _series_of(text)) is not None]
    return [*found], len(own) - len(found)


def _series_of(text: str) -> _Series | None:
    try:
        device, name, unit, distances, values = json_64_bit(text)
    except (ValueError, TypeError, RecursionError):
        return None
    if not (isinstance(name, str) and isinstance(unit, str) and _are_numbers([device], _DEVICES) and device >= 0):
        return None
    if not (_are_numbers(distances) and _are_numbers(values) and len(distances) == len(values)):
        return None
    times = list(accumulate(distances))
    if not _are_numbers(times) or any(distance < 0 for distance in distances[1:]):
        return None
    return _Series(device, name, unit, times, values)


def _are_numbers(values: Any, largest: int = _LARGEST) -> bool:
    return isinstance(values, list) and all(type(each) is int and abs(each) < largest for each in values)
