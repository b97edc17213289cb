"""The work of a device with all that advice about the device's time needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from collector.profiler.device_columns import DeviceColumns
from collector.profiler.gpu_work import ActivityColumns
from collector.profiler.launching_hosts import LaunchingHost, launching_hosts
from collector.profiler.node_fields import Ints
from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.stepstats.labels import unit_of
from collector.text.natural_order import natural_order

_GRAPHS = "/graphs"


class WholeGraphs(NamedTuple):
    """Launches of CUDA graphs that were recorded as a whole; times in nanoseconds since the epoch.

    They are not activities of a device in StepStats, so that profiles do not count them.
    """

    start_ns: Ints
    end_ns: Ints
    names: list[str]
    """Distinct names."""
    name_ids: Ints
    """The place among them of each launch's name."""


class AdvisedDevice(NamedTuple):
    """The work of a device."""

    activities: ActivityColumns
    graphs: WholeGraphs
    host: LaunchingHost
    """The host that launched the activities, and the graphs behind them."""


def devices_of_step_stats(
    activities: list[DeviceColumns], graphs: list[DeviceColumns], hosts: list[DeviceColumns]
) -> list[AdvisedDevice]:
    """The devices that did anything in a step.

    Args:
        activities: the activities of each device.
        graphs: the launches of CUDA graphs on each device.
        hosts: the calls of the host.
    """
    whole: dict[str, tuple[DeviceColumns, Ints]] = {}
    for launches in graphs:
        degrees = launches.activity_columns(("graph_degree",), np.arange(len(launches)))["graph_degree"]
        if len(rows := np.flatnonzero(degrees == DEGREE_WHOLE_GRAPH)):
            whole[launches.device.removesuffix(_GRAPHS)] = launches, rows
    used = [device for device in activities if len(device)]
    if idle_units := whole.keys() - {unit_of(device.device) for device in used}:
        used += [DeviceColumns(f"{unit}/stream:all", memoryview(b"")) for unit in idle_units]
        used.sort(key=lambda device: natural_order(device.device))
    none = np.zeros(0, np.int64)
    nothing = DeviceColumns("", memoryview(b"")), none
    beside = [whole.get(unit_of(device.device), nothing) for device in used]
    launched = launching_hosts(used, [launches.correlation_id[rows] for launches, rows in beside], hosts)
    return [
        AdvisedDevice(
            device,
            WholeGraphs(launches.start_ns[rows], launches.end_ns[rows], launches.names[0], launches.names[1][rows]),
            host,
        )
        for device, (launches, rows), host in zip(used, beside, launched, strict=True)
    ]
