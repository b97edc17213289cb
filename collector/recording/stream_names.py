"""The names that a program gave to its GPUs, contexts and streams, for example by NVTX."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.schema import ACTIVITY_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collector.recording.recording import Recording

_COLUMNS = ("device_id", "stream_id", "context_id")


def device_labels(
    tables: Mapping[str, Mapping[str, Any]],
    devices: Mapping[int, str],
    contexts: Mapping[int, str],
    streams: Mapping[tuple[int, int], str],
) -> dict[str, str]:
    """The names of GPUs and streams that did work, by the device in StepStats.

    Args:
        tables: the columns of tables of activities.
        devices: ordinal -> name.
        contexts: CUPTI's id of the context -> name, which is shown beside the names of the context's streams.
        streams: CUPTI's ids of context and stream -> name.
    """
    if not (devices or contexts or streams):
        return {}
    places = _places(table for name in ACTIVITY_TABLES if (table := tables.get(name)))
    used = {device for device, _, _ in places}
    labels = {f"/gpu:{device}": name for device, name in devices.items() if device in used}
    for (_, stream, context), key in stream_devices(places):
        named = [streams.get((context, stream), ""), f"context {contexts[context]}" if contexts.get(context) else ""]
        if label := ", ".join(filter(None, named)):
            labels[key] = label
    return labels


def stream_names(recording: Recording) -> dict[tuple[int, int, int], str]:
    """Device, context and stream -> name, of the streams that did work and have one."""
    labels = recording.environment.get("device_labels")
    if isinstance(labels, str):  # from a Chrome trace
        try:
            labels = json.loads(labels)
        except (ValueError, RecursionError):
            return {}
    if not isinstance(labels, dict) or not labels:
        return {}
    places = _places(getattr(recording, name).columns for name in ACTIVITY_TABLES)
    return {
        (device, context, stream): labels[key]
        for (device, stream, context), key in stream_devices(places)
        if isinstance(labels.get(key), str)
    }


def _places(tables: Iterable[Mapping[str, Any]]) -> set[tuple[int, int, int]]:
    """Device, stream and context of the rows of tables."""
    places: set[tuple[int, int, int]] = set()
    for table in tables:
        columns = [table[name] for name in _COLUMNS]
        is_first = np.ones(len(columns[0]), bool)  # rows of one stream stand together
        is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        places.update(zip(*(column[is_first].tolist() for column in columns), strict=True))
    return places


def stream_devices(places: set[tuple[int, int, int]]) -> Iterator[tuple[tuple[int, int, int], str]]:
    """The places in order with their device in StepStats, which names the context where several use the same stream."""
    before = None
    for device, stream, context in sorted(places):
        suffix = f".{context}" if (device, stream) == before else ""
        yield (device, stream, context), f"/gpu:{device}/stream:{stream}{suffix}"
        before = device, stream
