"""The names that a program gave to its GPUs, contexts and streams, for example by NVTX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.recording.schema import ACTIVITY_TABLES
from collector.recording.stream_devices import (
    FIRST_CONTEXTS,
    stated_first_contexts,
    stated_mapping,
    stream_devices,
    stream_places,
)
from collector.recording.working_devices import WORKING_DEVICES, stated_working_devices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.recording.recording import Recording
    from collector.recording.stream_devices import FirstContexts


DEVICE_LABELS = "device_labels"
"""The key of the environment: device in StepStats -> name that the program gave to the GPU or stream."""


def stated_places(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What an environment states of devices and streams: the devices of the whole, first contexts and names."""
    found = {
        WORKING_DEVICES: list(stated_working_devices(environment)),
        FIRST_CONTEXTS: stated_mapping(environment.get(FIRST_CONTEXTS), int),
        DEVICE_LABELS: stated_mapping(environment.get(DEVICE_LABELS), str),
    }
    return {key: value for key, value in found.items() if value}


def device_labels(
    tables: Mapping[str, Mapping[str, Any]],
    devices: Mapping[int, str],
    contexts: Mapping[int, str],
    streams: Mapping[tuple[int, int], str],
    first: FirstContexts | None = None,
) -> dict[str, str]:
    """The names of GPUs and streams that did work, by the device in StepStats.

    Args:
        tables: the columns of tables of activities.
        devices: ordinal -> name; an empty one, as of contexts and streams, is none.
        contexts: CUPTI's id of the context -> name, which is shown beside the names of the context's streams.
        streams: CUPTI's ids of context and stream -> name.
        first: device and stream -> lowest context, where the tables may lack its work.
    """
    if not (devices or contexts or streams):
        return {}
    places = stream_places(tables)
    used = {device for device, _, _ in places}
    labels = {f"/gpu:{device}": name for device, name in devices.items() if name and device in used}
    for (_, stream, context), key in stream_devices(places, first or {}):
        named = [streams.get((context, stream), ""), f"context {contexts[context]}" if contexts.get(context) else ""]
        if label := ", ".join(filter(None, named)):
            labels[key] = label
    return labels


def stream_names(recording: Recording) -> dict[tuple[int, int, int], str]:
    """Device, context and stream -> name, of the streams that did work and have one."""
    labels = stated_mapping(recording.environment.get(DEVICE_LABELS), str)
    if not labels:
        return {}
    tables = {name: getattr(recording, name).columns for name in ACTIVITY_TABLES}
    return _named(labels, stream_places(tables), stated_first_contexts(recording.environment))


def named_places(
    environment: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """The arguments of `device_labels` from its result: ordinal -> name, and ids of context and stream -> name.

    Args:
        environment: has the result as `DEVICE_LABELS`.
        tables: the columns of tables of activities.
    """
    labels = stated_mapping(environment.get(DEVICE_LABELS), str)
    places = stream_places(tables) if labels else set()
    devices = {device: labels[f"/gpu:{device}"] for device, _, _ in places if f"/gpu:{device}" in labels}
    named = _named(labels, places, stated_first_contexts(environment))
    return devices, {(context, stream): name for (_, context, stream), name in named.items()}


def _named(
    labels: Mapping[str, str], places: set[tuple[int, int, int]], first: FirstContexts
) -> dict[tuple[int, int, int], str]:
    """Device, context and stream -> name, of these places."""
    return {
        (device, context, stream): labels[key]
        for (device, stream, context), key in stream_devices(places, first)
        if key in labels
    }
