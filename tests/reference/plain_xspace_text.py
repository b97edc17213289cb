"""The events of an XSpace as the text of a Chrome trace, one by one, as the extension's ``XSpaceText`` makes them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.protos.xplane_pb2 import XEvent, XLine, XPlane, XSpace

_LARGEST_ID = (1 << 32) - 1
_CORRELATIONS = ("correlation_id", "launch_correlation_id")
_PICOSECONDS = 1000


class PlainEvents:
    """The text of the events of one file, line by line."""

    def __init__(self) -> None:
        self.not_kept: Counter[str] = Counter()
        self._correlation_ids: dict[int, int] = {}

    def lines(self, space: XSpace) -> Iterable[str]:
        """The text of each line of each plane."""
        for process, plane in enumerate(space.planes, start=1):
            texts = {number: metadata.name for number, metadata in plane.stat_metadata.items()}
            for thread, line in enumerate(plane.lines, start=1):
                place = {"pid": process, "tid": thread}
                yield "".join(f"{json.dumps(self._event(plane, line, each, texts) | place)}," for each in line.events)

    def _event(self, plane: XPlane, line: XLine, event: XEvent, texts: Mapping[int, str]) -> dict[str, Any]:
        metadata = plane.event_metadata.get(event.metadata_id)
        stated = event.stats if metadata is None else (*metadata.stats, *event.stats)
        arguments: dict[str, Any] = {}
        for stat in stated:
            kind = stat.WhichOneof("value")
            if kind == "ref_value":
                arguments[texts.get(stat.metadata_id, "")] = texts.get(stat.ref_value, "")
            elif kind == "bytes_value":
                self.not_kept[texts.get(stat.metadata_id, "")] += 1
            elif kind is not None:
                arguments[texts.get(stat.metadata_id, "")] = getattr(stat, kind)
        for correlation in (key for key in arguments if key in _CORRELATIONS):
            number = arguments[correlation]
            if isinstance(number, int) and number > _LARGEST_ID:
                new = _LARGEST_ID - len(self._correlation_ids)
                arguments[correlation] = self._correlation_ids.setdefault(number, new)
        return {
            "ph": "X",
            "name": "" if metadata is None else metadata.display_name or metadata.name,
            "ts": _microseconds(line.timestamp_ns * _PICOSECONDS + event.offset_ps),
            "dur": _microseconds(event.duration_ps),
            "args": arguments,
        }


def _microseconds(picoseconds: int) -> str:
    """Microseconds as decimal text, rounded to the nearest nanosecond, half to even."""
    nanos, rest = divmod(picoseconds, _PICOSECONDS)
    nanos += rest > _PICOSECONDS // 2 or (rest == _PICOSECONDS // 2 and nanos % 2 == 1)
    sign = "-" if nanos < 0 else ""
    return f"{sign}{abs(nanos) // 1000}.{abs(nanos) % 1000:03}"
