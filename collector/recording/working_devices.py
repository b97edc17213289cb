"""The devices that worked in a recording, also where a part of it lacks their work: they were idle in the part.

A part states them in its environment, `WORKING_DEVICES`, if it lacks the work of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.distinct import distinct_values
from collector.recording.schema import ACTIVITY_TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

WORKING_DEVICES = "working_devices"
"""The key of the environment: the ids of the devices that worked in the whole, in order."""


def devices_with_work(tables: Tables) -> set[int]:
    """The ids of the devices with activities, or with launches of graphs that were recorded as a whole."""
    graphs = tables.graph_launches
    columns = [getattr(tables, name).device_id for name in ACTIVITY_TABLES]
    columns.append(graphs.device_id[graphs.graph_degree == DEGREE_WHOLE_GRAPH])
    return {device for column in columns for device in distinct_values(column).tolist()}


def stated_working_devices(environment: Mapping[str, Any]) -> tuple[int, ...]:
    """The devices that an environment states; none if it holds no list of ids, as in a file of another program."""
    stated = environment.get(WORKING_DEVICES)
    devices = stated if isinstance(stated, (list, tuple)) else ()
    return tuple(sorted({device for device in devices if type(device) is int and 0 <= device < 1 << 32}))


def with_working_devices(environment: Mapping[str, Any], devices: Collection[int], tables: Tables) -> dict[str, Any]:
    """An environment that states the devices, if one of them has no work in the tables."""
    rest = {key: value for key, value in environment.items() if key != WORKING_DEVICES}
    missing = set(devices) - devices_with_work(tables)
    return {**rest, WORKING_DEVICES: sorted(devices)} if missing else rest
