"""StepStats as XSpace (``.xplane.pb``): what XProf and TensorBoard's profiler open.

Each GPU is a plane with one line for each stream; kernels carry their launch shape as XProf's stat ``kernel_details``
and the op they were launched for as ``tf_op``. The host is a plane with one line for each thread. The tools want a file
in a folder of their own: ``LOGDIR/plugins/profile/RUN/HOST.xplane.pb``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.formats.node_times import is_near, node_times, step_bounds
from collector.protos.xplane_pb2 import XLine, XPlane, XSpace, XStat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.protos.run_metadata_pb2 import RunMetadata
    from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats

_PICOSECONDS = 1000
_NO_STREAM = 1_000_000_000
"""Lines that cannot have their stream's number are numbered from here on, where no stream is."""
_GPU_DEVICE = re.compile(r"(?P<prefix>.*?)/(?:device:)?gpu:(?P<ordinal>\d+)(?:/(?P<row>.+))?", re.IGNORECASE)
_DETAIL = re.compile(r" ([a-z_]+):([\w,.]+)(?=$| )")
_COPY = re.compile(r"MEMCPY(\w+)|Memcpy(\w+)")
_NUM_BYTES = re.compile(r"\b(?:bytes:|size:)?(\d+)(?: bytes)?\b")

_TimedNode = tuple["NodeExecStats", tuple[int, int]]
"""A node, its start and its duration in ns."""


@dataclass
class _Plane:
    """A plane under construction: names and stats by number."""

    plane: XPlane
    origin_ns: int
    events: dict[tuple[str, str], int] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)
    line_numbers: set[int] = field(default_factory=set)

    def line(self, row: str) -> XLine:
        """A line for a row of a device; with the stream's own number where no other line has it."""
        found = re.fullmatch(r"stream:(\d{1,9})", row)
        number = int(found[1]) if found else -1
        if number < 0 or number in self.line_numbers:
            number = _NO_STREAM + len(self.line_numbers)
        self.line_numbers.add(number)
        return self.plane.lines.add(id=number)

    def event(self, name: str, display_name: str = "") -> int:
        """The number of an event's name."""
        number = self.events.get((name, display_name))
        if number is None:
            number = self.events[name, display_name] = len(self.events) + 1
            entry = self.plane.event_metadata[number]
            entry.id, entry.name, entry.display_name = number, name, display_name
        return number

    def stat(self, name: str) -> int:
        """The number of a stat's name, or of a text that events refer to."""
        number = self.stats.get(name)
        if number is None:
            number = self.stats[name] = len(self.stats) + 1
            entry = self.plane.stat_metadata[number]
            entry.id, entry.name = number, name
        return number

    def text(self, name: str, value: str) -> XStat:
        return XStat(metadata_id=self.stat(name), ref_value=self.stat(value))

    def add(self, line: XLine, name: str, times: tuple[int, int], stats: Iterable[XStat]) -> None:
        start_ns, duration_ns = times
        line.events.add(
            metadata_id=self.event(name),
            offset_ps=(start_ns - self.origin_ns) * _PICOSECONDS,
            duration_ps=max(duration_ns * _PICOSECONDS, 1),  # xprof leaves out what has no length
            stats=stats,
        )


def xspace(run_metadata: RunMetadata) -> XSpace:
    """The step as an XSpace. Nodes without a possible time are left out; ``warnings`` counts them."""
    space = XSpace()
    step = run_metadata.step_stats
    bounds = step_bounds(step)
    origin_ns, end_ns = bounds or (0, 0)
    gpus: dict[str, _Plane] = {}
    host = _Plane(XPlane(name="/host:CPU"), origin_ns)
    left_out = 0
    with_streams = {
        (found["prefix"], found["ordinal"])
        for device in step.dev_stats
        if (found := _GPU_DEVICE.fullmatch(device.device)) and _is_stream(found["row"] or "")
    }
    for device in step.dev_stats:
        found = _GPU_DEVICE.fullmatch(device.device)
        row = found["row"] if found else None
        if found is None or row is None:  # the host, or TensorFlow's ops placed on a GPU: the time that the host took
            left_out += _add_host_lines(host, device, origin_ns, end_ns)
        elif (found["prefix"], found["ordinal"]) not in with_streams or (
            row.startswith("stream:") and row[7:] != "all"
        ):
            name = f"/device:GPU:{found['ordinal']}"
            if name not in gpus:
                gpus[name] = _Plane(XPlane(name=name), origin_ns)
            left_out += _add_stream(gpus[name], row, device, origin_ns, end_ns)
    for number, built in enumerate([*(gpus[name] for name in sorted(gpus)), host], start=1):
        built.plane.id = number
        space.planes.append(built.plane)
    environment = _Plane(XPlane(id=len(space.planes) + 1, name="Task Environment"), origin_ns)
    for name, value in (("profile_start_time", origin_ns), ("profile_stop_time", end_ns)):
        environment.plane.stats.add(metadata_id=environment.stat(name), uint64_value=value)
    space.planes.append(environment.plane)
    space.hostnames.append("localhost")
    if left_out:
        space.warnings.append(f"{left_out} nodes without a possible time were left out")
    return space


def _is_stream(row: str) -> bool:
    return row.startswith("stream:") and row != "stream:all"


def _timed(device: DeviceStepStats, origin_ns: int, end_ns: int) -> tuple[list[_TimedNode], int]:
    """The nodes that can be drawn with their times, in order of start, and how many cannot."""
    middle_ns = (origin_ns + end_ns) // 2
    timed = [(node, times) for node in device.node_stats if (times := node_times(node)) and is_near(*times, middle_ns)]
    timed.sort(key=lambda pair: (pair[1][0], -pair[1][1]))
    return timed, len(device.node_stats) - len(timed)


def _add_stream(built: _Plane, row: str, device: DeviceStepStats, origin_ns: int, end_ns: int) -> int:
    """One line of a GPU; returns how many nodes cannot be drawn."""
    line = built.line(row)
    contents: dict[str, None] = {}
    timed, left_out = _timed(device, origin_ns, end_ns)
    for node, times in timed:
        label, _, annotation = node.timeline_label.partition("@@")  # TensorFlow 2.1's tracer puts the op there
        op, _, activity = (annotation.partition("#")[0] or node.node_name).partition(":")
        details = dict(_DETAIL.findall(label))
        stats = []
        if node.correlation_id:
            stats.append(XStat(metadata_id=built.stat("correlation_id"), uint64_value=node.correlation_id))
        if activity and op != activity:
            stats.append(built.text("tf_op", op))
        copy = _COPY.search(activity) or _COPY.match(label)
        if activity.startswith("MEMSET") or copy:
            kind = (copy[1] or copy[2]) if copy else ""
            name = f"Memcpy{kind.replace('to', '2')}" if copy else "Memset"
            size = _NUM_BYTES.search(label)
            word = "memcpy_details" if copy else "memset_details"
            stats.append(built.text(word, f"kind:{kind or 'device'} size:{size[1] if size else 0} dest:0 async:1"))
            contents[name] = None
        else:
            name = _DETAIL.sub("", label).strip() or activity or op
            stats.append(built.text("kernel_details", _kernel_details(details)))
            contents["Compute"] = None
        built.add(line, name, times, stats)
    line.name = f"Stream #{row.removeprefix('stream:')}({','.join(contents) or 'Compute'})"
    return left_out


def _kernel_details(details: dict[str, str]) -> str:
    """Launch shape in the words that XProf parses; what is not known is 0 or 1."""
    return (
        f"regs:{details.get('regs', '0')} static_shared:{details.get('static_shared') or details.get('shm', '0')} "
        f"dynamic_shared:{details.get('dynamic_shared', '0')} grid:{details.get('grid', '1,1,1')} "
        f"block:{details.get('block', '1,1,1')} occ_pct:{details.get('occ_pct', '0')}"
    )


def _add_host_lines(host: _Plane, device: DeviceStepStats, origin_ns: int, end_ns: int) -> int:
    """A line for each thread; returns how many nodes cannot be drawn."""
    lines: dict[int, XLine] = {}
    timed, left_out = _timed(device, origin_ns, end_ns)
    for node, times in timed:
        thread = node.thread_id
        if thread not in lines:
            name = device.thread_names.get(thread) or f"{device.device} thread {thread}"
            lines[thread] = host.plane.lines.add(id=len(host.plane.lines) + 1, name=name)
        stats = [host.text("timeline_label", node.timeline_label)] if node.timeline_label else []
        host.add(lines[thread], node.node_name or "unknown", times, stats)
    return left_out
