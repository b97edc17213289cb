"""The events of an XSpace (``.xplane.pb``), as XProf's viewer draws them, so that both kinds of files are read alike.

Planes are processes and lines are threads. If a file is cut off, the planes before the cut are read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from collector.formats import profile_stats
from collector.formats.chrome_events import ChromeEvents, value_of
from collector.formats.xplane import PROCESSES, THREADS, stats_fields
from collector.protos.xplane_pb2 import XPlane
from collector.recording.possible_times import is_wall_time
from collector.runtime.extension import convert_extension
from collector.stepstats.salvage import WireError, fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collector.protos.xplane_pb2 import XStat

_PLANES, _ERRORS, _WARNINGS = 1, 2, 3
"""The numbers of the fields of an XSpace."""
_LONGEST_WARNING = 300
_PROFILE_START = "profile_start_time"
"""The stat, of any plane, that states the wall time of time 0."""
_PIECE_BYTES = 1 << 20


def shown_warning(warning: str) -> str:
    """A warning of a profile as one line that is not too long."""
    return " ".join(warning.split())[:_LONGEST_WARNING]


def xspace_events(data: bytes) -> ChromeEvents:
    """All events of an XSpace; what cannot be read is counted in `ChromeEvents.skipped`.

    The metadata has its warnings and errors, and what a profile of ours states of the origin of its step.
    """
    drawn = _DrawnEvents()
    found = ChromeEvents(drawn.text(data))
    found.not_kept.update(drawn.not_kept)
    if drawn.cut_at is not None:
        found.cut_at = drawn.cut_at
        found.skipped["unreadable rest of the file"] += 1
    return found


class _DrawnEvents:
    """The events of an XSpace as the text of a Chrome trace, made line by line."""

    def __init__(self) -> None:
        self.cut_at: int | None = None
        """Byte from which on the planes could not be read, or None."""
        self._events = convert_extension.XSpaceText()
        self._warnings: list[str] = []
        self._stated = ""

    @property
    def not_kept(self) -> Mapping[str, int]:
        """Stat -> the number of events with bytes as its value, which are not text."""
        return self._events.not_kept()

    def text(self, data: bytes) -> Iterator[bytes]:
        """The text piece by piece."""
        start_ns = 0
        is_absolute = False
        yield b'{"traceEvents":['
        for process, plane in enumerate(self._planes(data), start=1):
            texts = {number: metadata.name for number, metadata in plane.stat_metadata.items()}
            about = _stated_by(plane.stats, texts)
            stated = about.get(_PROFILE_START, 0)
            start_ns = start_ns or (stated if isinstance(stated, int) else 0)
            self._stated = self._stated or str(about.get(profile_stats.PROVENANCE, ""))
            processes, threads = (_stated_of_lines(about, name) for name in (PROCESSES, THREADS))
            yield _written(_name("process_name", plane.name, pid=process))
            events = {
                number: (metadata.display_name or metadata.name, stats_fields(metadata.stats))
                for number, metadata in plane.event_metadata.items()
            }
            self._events.begin_plane(events, texts, process)
            for thread, line in enumerate(plane.lines, start=1):
                named = _name("thread_name", line.display_name or line.name, pid=process, tid=thread)
                named["args"] |= {"process": processes.get(str(line.id)), "thread": threads.get(str(line.id))}
                yield _written(named)
                is_absolute |= is_wall_time(line.timestamp_ns)
                self._events.begin_line(line.SerializeToString(), line.timestamp_ns, thread)
                while piece := self._events.next(_PIECE_BYTES):
                    yield piece
        about = {
            "baseTimeNanoseconds": 0 if is_absolute else start_ns,
            "warnings": self._warnings,
            "distributedInfo": value_of(self._stated),
        }
        yield b"]," + json.dumps(about).encode()[1:]

    def _planes(self, data: bytes) -> Iterator[XPlane]:
        """The planes that are whole."""
        position = 0
        try:
            for item in fields(memoryview(data)):
                position = item.start
                if not item.whole:  # what is left of a plane may be a message, whose names are missing
                    self.cut_at = position
                elif item.number == _PLANES:
                    yield XPlane.FromString(bytes(item.payload))
                elif item.number in (_ERRORS, _WARNINGS):
                    self._warnings.append(shown_warning(bytes(item.payload).decode(errors="replace")))
        except (WireError, DecodeError):
            self.cut_at = position


def _written(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b","


def _name(kind: str, name: str, **place: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "args": {"name": name}, **place}


def _stated_of_lines(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a profile of ours states of the lines of a plane, by their ids."""
    stated = value_of(str(about.get(name, "")))
    return stated if isinstance(stated, dict) else {}


def _stated_by(stats: Iterable[XStat], texts: Mapping[int, str]) -> dict[str, Any]:
    """Stats by name, of which the last one counts, without those that are bytes."""
    stated: dict[str, Any] = {}
    for stat in stats:
        kind = stat.WhichOneof("value")
        if kind == "ref_value":
            stated[texts.get(stat.metadata_id, "")] = texts.get(stat.ref_value, "")
        elif kind is not None and kind != "bytes_value":
            stated[texts.get(stat.metadata_id, "")] = getattr(stat, kind)
    return stated
