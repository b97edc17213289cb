"""Devices, streams and CUDA events in a timeline: labels of processes and tracks, and metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.recording.stream_names import DEVICE_LABELS
from collector.text.quantities import size_text
from collector.timeline.op_arguments import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.protos.run_metadata_pb2 import Provenance
    from collector.stepstats.object_tables import ObjectRow
    from collector.timeline.op_arguments import OpDetails

EventRecord = tuple[int, int, int, int, int]
"""Correlation id of the call that recorded a CUDA event, and the event's id, ``event_sync_id``, context and stream."""

SampledCounter = tuple[str, str, str, list[int], list[int]]
"""Device without prefix (``/gpu:0``), figure, unit, wall times in ns and the values from these times on."""

_COLLECTIVE_ARGUMENTS = {
    "collective": "name",
    "group": "group_name",
    "group_size": "group_size",
    "seq": "sequence",
    "elements": "num_in_elements",
    "out_elements": "num_out_elements",
    "dtype": "type_name",
}
"""Argument of a slice -> column of ``collectives``."""
_DEFAULT_STREAM = 3
"""``CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL``."""


@dataclass(frozen=True)
class ObjectLabels:
    """The objects of a step in the form for a drawing."""

    labels: dict[str, str] = field(default_factory=dict)
    """Device without prefix -> label: that of ``/gpu:0`` is shown at the process, that of ``/gpu:0/stream:9`` at the
    track."""
    event_records: list[EventRecord] = field(default_factory=list)
    """Calls that recorded a CUDA event."""
    collectives: OpDetails = NOTHING
    """The arguments of collectives, by the starts and correlation ids of their kernels."""
    counters: list[SampledCounter] = field(default_factory=list)
    """Figures that were sampled."""
    tables: dict[str, list[ObjectRow]] = field(default_factory=dict)
    """For the file's metadata: all objects with all their columns."""


def object_labels(tables: Mapping[str, list[ObjectRow]], provenance: Provenance | None) -> ObjectLabels:
    """Labels from the recorded objects of a step; without a table of devices, from the devices' known names."""
    labels = {f"/gpu:{device}": name for device, name in _device_names(provenance).items()}
    labels |= {f"/gpu:{row['device_id']}": _device_label(row) for row in tables.get("devices", [])}
    device_of = {row["context_id"]: row["device_id"] for row in tables.get("contexts", [])}
    streams = tables.get("streams", [])
    lowest_context: dict[tuple[int, int], int] = {}
    for row in streams:
        key = device_of.get(row["context_id"], 0), row["stream_id"]
        lowest_context[key] = min(lowest_context.get(key, row["context_id"]), row["context_id"])
    for row in streams:
        label = stream_label(row)
        if label:
            device = device_of.get(row["context_id"], 0)
            is_lowest = lowest_context[device, row["stream_id"]] == row["context_id"]
            name = str(row["stream_id"]) if is_lowest else f"{row['stream_id']}.{row['context_id']}"
            labels[f"/gpu:{device}/stream:{name}"] = label
    for device, name in device_labels(provenance).items():
        labels[device] = ", ".join(filter(None, (name, labels.get(device, ""))))
    return ObjectLabels(
        labels,
        event_records(tables),
        _collectives(tables.get("collectives", ())),
        _counters(tables.get("counter_samples", ())),
        dict(tables),
    )


def event_records(tables: Mapping[str, Sequence[ObjectRow]]) -> list[EventRecord]:
    """The calls that recorded a CUDA event."""
    return [
        (row["correlation_id"], row["event_id"], row["event_sync_id"], row["context_id"], row["stream_id"])
        for row in tables.get("cuda_events", ())
    ]


def _counters(rows: Sequence[ObjectRow]) -> list[SampledCounter]:
    found: dict[tuple[int, str, str], SampledCounter] = {}
    for row in sorted(rows, key=lambda row: int(row["start_ns"])):
        key = row["device_id"], row["name"], row["unit_name"]
        counter = found.setdefault(key, (f"/gpu:{key[0]}", key[1], key[2], [], []))
        counter[3].append(row["start_ns"])
        counter[4].append(row["sample"])
    return [found[key] for key in sorted(found)]


def _collectives(rows: Sequence[ObjectRow]) -> OpDetails:
    ordered = sorted(rows, key=lambda row: int(row["start_ns"]))
    places: dict[tuple[tuple[str, str], ...], int] = {}
    for row in ordered:
        places.setdefault(_arguments_of_collective(row), len(places))
    return (
        [row["start_ns"] for row in ordered],
        [0] * len(ordered),
        [row["correlation_id"] for row in ordered],
        [places[_arguments_of_collective(row)] for row in ordered],
        [list(arguments) for arguments in places],
    )


def _arguments_of_collective(row: ObjectRow) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(row[column])) for key, column in _COLLECTIVE_ARGUMENTS.items() if row[column])


def device_labels(provenance: Provenance | None) -> dict[str, str]:
    """The names that the program gave to GPUs and streams, by the device in StepStats."""
    return _texts_of(provenance, DEVICE_LABELS)


def _device_names(provenance: Provenance | None) -> dict[str, str]:
    return _texts_of(provenance, "devices")


def _texts_of(provenance: Provenance | None, key: str) -> dict[str, str]:
    if provenance is None or key not in provenance.environment:
        return {}
    try:
        names: Any = json.loads(provenance.environment[key])
    except (ValueError, RecursionError):
        return {}
    return {key: name for key, name in names.items() if isinstance(name, str)} if isinstance(names, dict) else {}


def _device_label(row: ObjectRow) -> str:
    parts = [
        row["name"],
        f"{row['num_multiprocessors']} SMs",
        f"compute capability {row['compute_major']}.{row['compute_minor']}",
        f"{size_text(row['memory_bytes'])} at {size_text(1000 * row['memory_kilobytes_per_s'])}/s",
    ]
    return ", ".join(part for part in parts if part)


def context_label(row: ObjectRow) -> str:
    """The distinguishing properties of a context: ``default stream 7, green context of context 1, 16 SMs``."""
    parts = [f"default stream {row['null_stream_id']}"]
    if row["is_green_context"]:
        parts.append(f"green context of context {row['parent_context_id']}")
    if row["num_multiprocessors"]:
        parts.append(f"{row['num_multiprocessors']} SMs")
    return ", ".join(parts)


def stream_label(row: ObjectRow) -> str:
    """The distinguishing properties of a stream: ``default``, ``priority -1``; empty: none."""
    parts = ["default"] if row["stream_flag"] == _DEFAULT_STREAM else []
    if row["priority"]:
        parts.append(f"priority {row['priority']}")
    return ", ".join(parts)
