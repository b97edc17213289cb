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
    labels = _labels(recording.environment.get("device_labels"))
    if not labels:
        return {}
    return _named(labels, _places(getattr(recording, name).columns for name in ACTIVITY_TABLES))


def named_places(
    stated: Any, tables: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """The arguments of `device_labels` from its result: ordinal -> name, and ids of context and stream -> name.

    Args:
        stated: the result, as a mapping or as JSON.
        tables: the columns of tables of activities.
    """
    labels = _labels(stated)
    places = _places(table for name in ACTIVITY_TABLES if (table := tables.get(name))) if labels else set()
    devices = {device: labels[f"/gpu:{device}"] for device, _, _ in places if f"/gpu:{device}" in labels}
    return devices, {(context, stream): name for (_, context, stream), name in _named(labels, places).items()}


def _labels(stated: Any) -> dict[str, str]:
    """The names by device in StepStats; empty where there are none."""
    if isinstance(stated, str):  # from a Chrome trace
        try:
            stated = json.loads(stated)
        except (ValueError, RecursionError):
            return {}
    labels = stated if isinstance(stated, dict) else {}
    return {key: name for key, name in labels.items() if isinstance(name, str)}


def _named(labels: Mapping[str, str], places: set[tuple[int, int, int]]) -> dict[tuple[int, int, int], str]:
    """Device, context and stream -> name, of these places."""
    return {
        (device, context, stream): labels[key]
        for (device, stream, context), key in stream_devices(places)
        if key in labels
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
