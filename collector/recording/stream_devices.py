"""The devices of streams in StepStats, and the contexts that decide about their names.

Several contexts of a GPU may use the same stream number. The stream of the lowest context is ``/gpu:0/stream:7``, and
that of another context ``/gpu:0/stream:7.2``. A part of a recording that lacks the lowest context states it in its
environment (`FIRST_CONTEXTS`), so that its streams have the names that they have in the whole.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    FirstContexts = Mapping[tuple[int, int], int]

_Value = TypeVar("_Value", str, int)

FIRST_CONTEXTS = "first_contexts"
"""The key of the environment: ``/gpu:0/stream:7`` -> the lowest context with work there, which the part lacks."""
_COLUMNS = ("device_id", "stream_id", "context_id")
_NUMBER = re.compile(r"[0-9]{1,18}")
_STREAM_DEVICE = re.compile(r"/gpu:([0-9]{1,10})/stream:([0-9]{1,10})")


def stream_devices(
    places: Iterable[tuple[int, int, int]], first: FirstContexts
) -> Iterator[tuple[tuple[int, int, int], str]]:
    """The places in order with their device in StepStats, which names the context unless that is the lowest one.

    Args:
        places: device, stream and context.
        first: device and stream -> lowest context, if that context may be missing among the places.
    """
    lowest = dict(first)
    for device, stream, context in sorted(places):
        is_lowest = lowest.setdefault((device, stream), context) == context
        yield (device, stream, context), f"{_stream_device(device, stream)}{'' if is_lowest else f'.{context}'}"


def stream_places(tables: Mapping[str, Mapping[str, Any]]) -> set[tuple[int, int, int]]:
    """Device, stream and context of the activities in tables."""
    places: set[tuple[int, int, int]] = set()
    for table in ACTIVITY_TABLES:
        if not (given := tables.get(table)):
            continue
        columns = [given[name] for name in _COLUMNS]
        is_first = np.ones(len(columns[0]), bool)  # rows of one stream stand together
        is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        places.update(zip(*(column[is_first].tolist() for column in columns), strict=True))
    return places


def first_contexts(
    places: Iterable[tuple[int, int, int]], stated: FirstContexts | None = None
) -> dict[tuple[int, int], int]:
    """Device and stream -> lowest context, of the streams that several contexts use and those that are stated.

    Args:
        places: device, stream and context.
        stated: the lowest contexts of a whole, of which the places are a part.
    """
    shared, lowest = set(stated or ()), dict(stated or {})
    for device, stream, context in places:
        other = lowest.setdefault((device, stream), context)
        if other != context:
            shared.add((device, stream))
            lowest[device, stream] = min(other, context)
    return {key: lowest[key] for key in sorted(shared)}


def stated_first_contexts(environment: Mapping[str, Any]) -> dict[tuple[int, int], int]:
    """The lowest contexts that the environment of a part states."""
    stated = stated_mapping(environment.get(FIRST_CONTEXTS), int)
    matches = ((_STREAM_DEVICE.fullmatch(key), context) for key, context in stated.items())
    places = [(int(match[1]), int(match[2]), context) for match, context in matches if match]
    return {(place[0], place[1]): place[2] for place in places if all(0 <= number < 1 << 32 for number in place)}


def with_first_contexts(
    environment: Mapping[str, Any], first: FirstContexts, tables: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """An environment that states the lowest contexts.

    Args:
        environment: the environment, whose own statement is replaced.
        first: device and stream -> lowest context.
        tables: the columns of tables of activities. Contexts that have work there are left out, and so are contexts
            whose stream has no work there; None: all are stated.
    """
    if tables is not None and first:
        lowest: dict[tuple[int, int], int] = {}
        for device, stream, context in stream_places(tables):
            lowest[device, stream] = min(context, lowest.get((device, stream), context))
        first = {key: context for key, context in first.items() if context < lowest.get(key, 0)}
    others = {key: value for key, value in environment.items() if key != FIRST_CONTEXTS}
    stated = {_stream_device(*key): first[key] for key in sorted(first)}
    return {**others, FIRST_CONTEXTS: stated} if stated else others


def _stream_device(device: int, stream: int) -> str:
    return f"/gpu:{device}/stream:{stream}"


def stated_by_number(stated: Any) -> dict[int, str]:
    """The names of numbered objects that the environment states; files that hold JSON have text for the numbers."""
    texts = {str(number): text for number, text in stated.items()} if isinstance(stated, dict) else stated
    return {int(number): text for number, text in stated_mapping(texts, str).items() if _NUMBER.fullmatch(number)}


def stated_mapping(stated: Any, of: type[_Value]) -> dict[str, _Value]:
    """A mapping that the environment states, or its JSON, as Chrome traces have it; empty where there is none."""
    if isinstance(stated, str):
        try:
            stated = json.loads(stated)
        except (ValueError, RecursionError):
            return {}
    given = stated if isinstance(stated, dict) else {}
    return {key: value for key, value in given.items() if isinstance(value, of) and not isinstance(value, bool)}
