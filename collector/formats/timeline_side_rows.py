"""Columns of further rows of a drawn trace: waits, overheads, JIT, memory, NVTX, graphs; not streams and threads."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.formats.chrome_events import LARGEST_ID, per_place, text
from collector.recording.capture import NO_OBJECT
from collector.recording.cupti_enums import GRAPH_DEGREES, LAUNCH_TYPES, NVTX_RANGE_KINDS
from collector.recording.kind_names import kind_number
from collector.recording.schema import SCHEMA
from collector.stepstats.activity_arguments import UNNAMED
from collector.stepstats.labels import HOST_DEVICE
from collector.stepstats.shown_tables import SIDE_TABLES, TABLE_ARGUMENTS
from collector.timeline.op_arguments import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.formats.capture_builder import CaptureBuilder, Column
    from collector.formats.chrome_events import ChromeEvents, Numbers
    from collector.stepstats.shown_tables import TableArgument

_GRAPHS = re.compile(r"/gpu:(\d{1,9})/graphs")
_HEXADECIMAL = re.compile(r"0x([0-9a-f]{1,15})")
_COUNT = (1 << 53) - 1
_TABLES = {f"{HOST_DEVICE}/{side.device}": table for table, side in SIDE_TABLES.items()}
_OBJECTS = ("process", "thread", "device", "context", "stream")
"""The arguments of an overhead, by ``CUpti_ActivityObjectKind`` - 1: a stream has a context and a device as well."""
_TEXTS = {"domain_name_id": "domain", "category_name_id": "category", "payload_text_id": "payload"}
"""Columns of texts about an NVTX range -> arguments of its slice."""


def side_table(device: str) -> str:
    """The table whose rows a device shows; empty for every other device."""
    return "graph_launches" if _GRAPHS.fullmatch(device) else _TABLES.get(device, "")


class SideRows:
    """The rows of these tables, from the arguments of their slices."""

    def __init__(self, found: ChromeEvents) -> None:
        self._found = found

    def columns(self, table: str, rows: Numbers, built: CaptureBuilder) -> dict[str, Column]:
        """The columns of a table besides times and correlation ids."""
        columns: dict[str, Column] = {}
        side = SIDE_TABLES.get(table)
        if side is not None and side.texts:
            columns[side.name] = self._named(side.name, _numbers_of(side.texts), rows)
        elif side is not None:
            columns[side.name] = self.name_ids(rows, built)
        for argument in TABLE_ARGUMENTS.get(table, ()):
            columns[argument.column] = self._argument(table, argument, rows, built)
        return {**columns, **(_COLUMNS[table](self, rows, built) if table in _COLUMNS else {})}

    def _argument(self, table: str, argument: TableArgument, rows: Numbers, built: CaptureBuilder) -> Numbers:
        if argument.form == "Text":
            return self.texts(argument.key, rows, built)
        if argument.form == "Kind":
            return self.numbers(argument.key, _numbers_of(argument.texts), rows)
        if argument.form == "Hexadecimal":
            return self._addresses(argument.key, rows)
        is_wide = SCHEMA[table][argument.column].endswith("8")
        return self._stated(argument.key, rows, largest=_COUNT if is_wide else LARGEST_ID)

    def name_ids(self, rows: Numbers, built: CaptureBuilder) -> Numbers:
        """The numbers of the names of slices, each of which is the name of its row."""
        names, index = self._found.names(rows)
        return built.name_ids([*names, ""])[np.where(self._found.has(UNNAMED, rows), len(names), index)]

    def degrees(self, rows: Numbers) -> Numbers:
        """``graph_degree`` of slices."""
        return self.numbers("graph_degree", dict(zip(GRAPH_DEGREES, range(len(GRAPH_DEGREES)), strict=True)), rows)

    def launch_types(self, rows: Numbers) -> Numbers:
        """``launch_type`` of slices."""
        return self.numbers("launch_type", dict(zip(LAUNCH_TYPES, range(len(LAUNCH_TYPES)), strict=True)), rows)

    def numbers(self, argument: str, number_of: Mapping[str, int], rows: Numbers) -> Numbers:
        """The numbers of kinds that an argument names; 0 for other texts."""
        values, places = self._found.values(argument, rows)
        return per_place(values, lambda value: kind_number(number_of, text(value)) or 0, 0)[places]

    def _named(self, column: str, number_of: Mapping[str, int], rows: Numbers) -> Numbers:
        """A kind that is the name of its slice; where it has no name, the argument of its column has the number."""
        names, index = self._found.names(rows)
        named = per_place(names, lambda name: number_of.get(name, 0), 0)[index]
        stated = self._found.integers(column, rows)
        return np.where(stated < 0, named, stated)

    def _stated(self, argument: str, rows: Numbers, missing: int = 0, largest: int = LARGEST_ID) -> Numbers:
        values = self._found.integers(argument, rows, largest)
        return np.where(values < 0, missing, values)

    def texts(self, argument: str, rows: Numbers, built: CaptureBuilder) -> Numbers:
        """The number of the text that an argument has; that of the empty text for slices without it."""
        values, places = self._found.values(argument, rows)
        return built.name_ids([*(text(value) for value in values), ""])[places]

    def of_range(self, rows: Numbers, built: CaptureBuilder) -> dict[str, Column]:
        """The columns of an NVTX range besides its name."""
        colors, places = self._found.values("color", rows)
        return {
            "color": per_place(colors, _address, 0)[places],
            **{column: self.texts(argument, rows, built) for column, argument in _TEXTS.items()},
        }

    def of_op(self, rows: Numbers, has_details: Any, built: CaptureBuilder) -> dict[str, Column]:
        """The columns of an op that PyTorch's autograd states.

        ``has_details`` is true for rows whose shapes are in the details already.
        """
        numbers = self._found.integers("seq", rows, _COUNT)
        shapes = np.where(has_details, built.name_ids([""])[0], self.texts(SHAPES, rows, built))
        return {"op_sequence": np.maximum(numbers + 1, 0), "shapes_text_id": shapes}

    def _waits(self, rows: Numbers, _: CaptureBuilder) -> dict[str, Column]:
        return {
            "event_id": self._stated("event", rows, NO_OBJECT),
            "event_sync_id": self._stated("event_sync", rows, largest=_COUNT),
            "stream_id": self._stated("stream", rows, NO_OBJECT),
            "context_id": self._stated("context", rows),
            "return_value": self._stated("return_value", rows),
        }

    def _overheads(self, rows: Numbers, _: CaptureBuilder) -> dict[str, Column]:
        objects = np.zeros(len(rows), np.int64)
        for number, argument in enumerate(_OBJECTS, start=1):
            objects[self._found.has(argument, rows)] = number
        return {
            "object_kind": objects,
            **{f"{argument}_id": partial(self._stated, argument, rows) for argument in _OBJECTS},
        }

    def _addresses(self, argument: str, rows: Numbers) -> Numbers:
        addresses, places = self._found.values(argument, rows)
        return per_place(addresses, _address, 0)[places]

    def _nvtx_ranges(self, rows: Numbers, built: CaptureBuilder) -> dict[str, Column]:
        kinds = {name: number for number, name in enumerate(NVTX_RANGE_KINDS)}
        threads = self._stated("thread", rows)
        return {
            "range_kind": self.numbers("kind", kinds, rows),
            "thread_id": threads,
            "end_thread_id": np.where(self._found.has("end_thread", rows), self._stated("end_thread", rows), threads),
            **self.of_range(rows, built),
        }


_COLUMNS: Mapping[str, Callable[[SideRows, Numbers, CaptureBuilder], dict[str, Column]]] = {
    "synchronizations": SideRows._waits,
    "overheads": SideRows._overheads,
    "nvtx_ranges": SideRows._nvtx_ranges,
}
"""Table -> further columns, which its description does not state.

Functions, and not methods of one object: a cycle would keep all events until the garbage collector runs.
"""

ARGUMENTS = frozenset({
    *(argument.key for arguments in TABLE_ARGUMENTS.values() for argument in arguments),
    *(side.name for side in SIDE_TABLES.values() if side.texts),
    *_OBJECTS, *_TEXTS.values(), "waited_for", "event", "event_sync", "return_value", "color", "kind", "end_thread",
})  # fmt: skip
"""The arguments of slices of these tables: all become columns, or follow from columns."""


def graph_device(device: str) -> int:
    """The GPU of a device that shows launches of graphs."""
    found = _GRAPHS.fullmatch(device)
    return int(found[1]) if found else 0


def _address(value: object) -> int:
    found = _HEXADECIMAL.fullmatch(value) if isinstance(value, str) else None
    return int(found[1], 16) if found else 0


def _numbers_of(texts: Mapping[int, str]) -> dict[str, int]:
    return {text: number for number, text in texts.items()}
