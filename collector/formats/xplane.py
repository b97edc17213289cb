"""One plane of an XSpace: its lines, names and stats, collected step by step and written at the end."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from collector.protos.xplane_pb2 import XEvent, XLine, XPlane, XSpace, XStat
from collector.stepstats.varint import field_head

if TYPE_CHECKING:
    from collections.abc import Iterable

PROCESSES = "line_processes"
"""The stat of a plane that states the process of the calls on its lines, by the lines' numbers, as JSON."""
THREADS = "line_threads"
"""The stat of a plane that states the ids of the threads that its lines show, in the same form."""
_LARGEST = (1 << 64) - 1
_PICOSECONDS = 1000
_NO_STREAM = 1_000_000_000
"""Lines that cannot have their stream's number are numbered from here on, where no stream is."""


def stats_fields(stats: Iterable[XStat]) -> bytes:
    """The stats as fields of an XEvent."""
    return XEvent(stats=stats).SerializeToString()


@dataclass
class Line:
    """A line under construction; its events wait in the spool."""

    number: int
    name: str
    contents: dict[str, None] = field(default_factory=dict)
    """The kinds of work on a stream, in order of appearance."""
    process: int = 0
    """The process of the calls on a thread; 0: not known."""
    thread: int | None = None
    """The id of the thread that the line shows, in a profile of one process."""
    pieces: list[tuple[int, int]] = field(default_factory=list)
    """Position in the spool and length in bytes."""

    @property
    def num_bytes(self) -> int:
        """Size of all its events."""
        return sum(size for _, size in self.pieces)

    def title(self) -> str:
        """The name in the form by which XProf recognises a stream."""
        return f"{self.name}({','.join(self.contents)})" if self.contents else self.name


@dataclass
class Plane:
    """A plane under construction: names and stats by number."""

    plane: XPlane
    origin_ns: int
    spool: BinaryIO
    lines: dict[tuple[str, str | int], Line] = field(default_factory=dict)
    line_numbers: set[int] = field(default_factory=set)
    events: dict[str, int] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)

    def event(self, name: str) -> int:
        """The number of an event's name."""
        number = self.events.get(name)
        if number is None:
            number = self.events[name] = len(self.events) + 1
            entry = self.plane.event_metadata[number]
            entry.id, entry.name = number, name
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
        """A stat whose value is text that others share."""
        return XStat(metadata_id=self.stat(name), ref_value=self.stat(value))

    def number(self, name: str, value: int) -> XStat:
        """A stat whose value is a number; the largest one that a message can hold for any above it."""
        if value >= 1 << 63:
            return XStat(metadata_id=self.stat(name), uint64_value=min(value, _LARGEST))
        return XStat(metadata_id=self.stat(name), int64_value=value)

    def line(self, owner: str, row: str | int, name: str, number: int) -> Line:
        """The line of a stream or thread; with this number where no other line of the plane has it."""
        line = self.lines.get((owner, row))
        if line is None:
            if number < 0 or number in self.line_numbers:
                number = _NO_STREAM + len(self.line_numbers)
            self.line_numbers.add(number)
            line = self.lines[owner, row] = Line(number, name)
        return line

    def put(self, events: XLine, name: str, times: tuple[int, int], stats: Iterable[XStat]) -> None:
        """One more event; `times` are start and duration in ns on the common axis."""
        start_ns, duration_ns = times
        events.events.add(
            metadata_id=self.event(name),
            offset_ps=(start_ns - self.origin_ns) * _PICOSECONDS,
            duration_ps=max(duration_ns * _PICOSECONDS, 1),  # xprof leaves out what has no length
            stats=stats,
        )

    def keep(self, line: Line, data: bytes) -> None:
        """Put the events in the fields of an XLine into the spool."""
        line.pieces.append((self.spool.seek(0, os.SEEK_END), len(data)))
        self.spool.write(data)

    def write(self, file: BinaryIO) -> None:
        """The plane as a field of XSpace."""
        lines = self.lines.values()
        processes = {line.number: line.process for line in lines if line.process}
        threads = {line.number: line.thread for line in lines if line.thread is not None}
        for name, stated in ((PROCESSES, processes), (THREADS, threads)):
            if stated:
                self.plane.stats.add(metadata_id=self.stat(name), str_value=json.dumps(stated))
        rest = self.plane.SerializeToString(deterministic=True)
        starts = []
        for line in lines:
            head = XLine(id=line.number, name=line.title()).SerializeToString()
            starts.append(field_head(XPlane.LINES_FIELD_NUMBER, len(head) + line.num_bytes) + head)
        num_bytes = len(rest) + sum(map(len, starts)) + sum(line.num_bytes for line in lines)
        file.write(field_head(XSpace.PLANES_FIELD_NUMBER, num_bytes) + rest)
        for line, start in zip(lines, starts, strict=True):
            file.write(start)
            for position, size in line.pieces:
                self.spool.seek(position)
                file.write(self.spool.read(size))
