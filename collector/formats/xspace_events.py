"""The events of an XSpace (``.xplane.pb``), as XProf's viewer draws them, so that what is read of both is one thing.

Planes are processes and lines are threads. Of a file that is cut off the planes before the cut are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from collector.formats.chrome_events import ChromeEvents
from collector.protos.xplane_pb2 import XPlane
from collector.recording.possible_times import is_wall_time
from collector.stepstats.salvage import WireError, fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.protos.xplane_pb2 import XEvent, XLine

_PLANES = 1
"""The number of the field of an XSpace that holds its planes."""
_PROFILE_START = "profile_start_time"
"""The stat, of whichever plane, that says the wall time of time 0."""
_CORRELATION = "correlation_id"
_LARGEST_U32 = (1 << 32) - 1
_PICOSECONDS = 1000


def xspace_events(data: bytes) -> ChromeEvents:
    """All events of an XSpace; what cannot be read is counted in `ChromeEvents.skipped`."""
    found = ChromeEvents()
    start_ns = 0
    is_absolute = False
    correlation_ids: dict[int, int] = {}
    for process, plane in enumerate(_planes(data, found), start=1):
        texts = {number: metadata.name for number, metadata in plane.stat_metadata.items()}
        about = _arguments(plane.stats, texts)
        stated = about.get(_PROFILE_START, 0)
        start_ns = start_ns or (stated if isinstance(stated, int) else 0)
        found.events.append(_name("process_name", plane.name, pid=process))
        for thread, line in enumerate(plane.lines, start=1):
            found.events.append(_name("thread_name", line.display_name or line.name, pid=process, tid=thread))
            is_absolute |= is_wall_time(line.timestamp_ns)
            for event in line.events:
                found.events.append(_event(plane, line, event, texts) | {"pid": process, "tid": thread})
    for made in found.events:
        number = made["args"].get(_CORRELATION, 0)
        if isinstance(number, int) and number > _LARGEST_U32:  # of traces of several ranks, each of which counts from 1
            made["args"][_CORRELATION] = correlation_ids.setdefault(number, _LARGEST_U32 - len(correlation_ids))
    if start_ns and not is_absolute:
        found.metadata["baseTimeNanoseconds"] = start_ns
    return found


def _planes(data: bytes, found: ChromeEvents) -> Iterator[XPlane]:
    """The planes that are whole."""
    position = 0
    try:
        for item in fields(memoryview(data)):
            position = item.start
            if item.number == _PLANES:
                yield XPlane.FromString(bytes(item.payload))
    except (WireError, DecodeError):
        found.cut_at = position
        found.skipped["unreadable rest of the file"] += 1


def _name(kind: str, name: str, **place: int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "args": {"name": name}, **place}


def _event(plane: XPlane, line: XLine, event: XEvent, texts: Mapping[int, str]) -> dict[str, Any]:
    metadata = plane.event_metadata.get(event.metadata_id)
    name = "" if metadata is None else metadata.display_name or metadata.name
    return {
        "ph": "X",
        "name": name,
        "ts": _microseconds(line.timestamp_ns * _PICOSECONDS + event.offset_ps),
        "dur": _microseconds(event.duration_ps),
        "args": _arguments(event.stats, texts),
    }


def _arguments(stats: Any, texts: Mapping[int, str]) -> dict[str, Any]:
    """Stats by name; of bytes nothing is known."""
    arguments: dict[str, Any] = {}
    for stat in stats:
        kind = stat.WhichOneof("value")
        if kind == "ref_value":
            arguments[texts.get(stat.metadata_id, "")] = texts.get(stat.ref_value, "")
        elif kind is not None and kind != "bytes_value":
            arguments[texts.get(stat.metadata_id, "")] = getattr(stat, kind)
    return arguments


def _microseconds(picoseconds: int) -> str:
    """As decimal text; to the nearest nanosecond, of two the even one."""
    nanos, rest = divmod(picoseconds, _PICOSECONDS)
    nanos += rest > _PICOSECONDS // 2 or (rest == _PICOSECONDS // 2 and nanos % 2 == 1)
    sign = "-" if nanos < 0 else ""
    return f"{sign}{abs(nanos) // 1000}.{abs(nanos) % 1000:03}"
