"""Joins captures into one, in which launches of different captures have different ids.

The reader of a file of several processes makes a capture of each, as of a file of its own, and joins them here.
Whatever then matches rows by their ids, such as launches and their work, stays within a process. The captures of
several sessions of one process are joined here, too: they share devices and threads, but no launches.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.annotation_details import Details
from collector.recording.capture import NO_OBJECT
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.distinct import distinct_values
from collector.recording.launch_figures import PEER_COPIES
from collector.recording.process_numbers import ProcessNumbers
from collector.recording.schema import LAUNCHED_TABLES, SCHEMA
from collector.recording.shed_kinds import of_several
from collector.recording.stream_devices import stated_by_number, stated_first_contexts, with_first_contexts
from collector.recording.stream_names import DEVICE_LABELS, device_labels, named_places
from collector.recording.text_columns import text_column
from collector.recording.working_devices import WORKING_DEVICES, stated_working_devices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from collector.recording.capture import Capture

    Columns = dict[str, npt.NDArray[Any]]
    Numbers = npt.NDArray[np.uint64]

_KINDS = {
    "device": ("device_id", "src_device_id", "dst_device_id", "end_device_id"),
    "context": ("context_id", "src_context_id", "dst_context_id", "parent_context_id"),
    "process": ("process_id",),
    "thread": ("thread_id", "end_thread_id"),
    "correlation": ("correlation_id", "update_correlation_id"),
    "annotation": ("external_id", "captured_external_id"),
    "graph": ("graph_id", "original_graph_id"),
    "event": ("event_id",),
    "event record": ("event_sync_id",),
    "op": ("op_sequence",),
}
"""Kind of ids -> the columns that hold them. A stream's id is unique within its context, a node's within its graph."""
_OF_A_PROCESS = ("device", "context", "process", "thread", "graph", "event", "event record")
"""Kinds whose ids mean the same in all captures of one process."""
_FROM_ZERO = ("device_id", "context_id", "process_id", "thread_id")
"""Columns in which 0 is an id; in all others it means none."""
_BY_NUMBER = {"devices": "device", "thread_names": "thread", "thread_devices": "thread"}
"""Key of the environment whose value is a mapping of ids -> their kind."""


def joined_captures(captures: Sequence[Capture], *, one_process: bool = False) -> Capture:
    """The rows of all captures as one capture; ids that an earlier one also uses get new numbers.

    Args:
        captures: at least one.
        one_process: whether they are of one process, one after the other; otherwise each is of another process.
    """
    if len(captures) == 1:
        return captures[0]
    clocks = [capture["clock"] for capture in captures if _has_times(capture)] or [captures[0]["clock"]]
    offset_ns = min(map(_offset_ns, clocks))  # the least one, so that no time becomes negative
    parts = [_Part(place, capture, offset_ns) for place, capture in enumerate(captures)]
    shared = _OF_A_PROCESS if one_process else ()
    numbers = {kind: _unique(kind, parts, is_shared=kind in shared) for kind in _KINDS}
    strings: dict[str, int] = {"": 0}
    details: list[Details] = []
    tables: dict[str, list[Columns]] = {name: [] for name in SCHEMA}
    for part in parts:
        texts = np.array([strings.setdefault(text, len(strings)) for text in part.strings], np.uint32)
        for name in SCHEMA:
            tables[name].append(part.renumbered(name, numbers, texts, len(details)))
        details += part.details
    start_ns, stop_ns = min(each["wall_start_ns"] for each in clocks), max(each["wall_stop_ns"] for each in clocks)
    joined = {
        name: {column: np.concatenate([own[column] for own in tables[name]]) for column in SCHEMA[name]}
        for name in SCHEMA
    }
    counters: Counter[str] = Counter()
    for capture in captures:
        counters.update(capture["counters"])
    left_out = of_several((each["counters"], each["clock"]["wall_start_ns"] - start_ns) for each in captures)
    return {
        "tables": joined,
        "strings": list(strings),
        "counters": dict(counters) | left_out,
        "clock": {
            "cupti_start_ns": start_ns - offset_ns,
            "cupti_stop_ns": stop_ns - offset_ns,
            "wall_start_ns": start_ns,
            "wall_stop_ns": stop_ns,
            "uncertainty_ns": max(each["uncertainty_ns"] for each in clocks),
        },
        "environment": _environment(parts, numbers, joined),
        "details": details,
    }


def _has_times(capture: Capture) -> bool:
    return any(len(columns.get("start_ns", ())) for columns in capture["tables"].values())


def _offset_ns(clock: Mapping[str, int]) -> int:
    """The difference between wall time and the times of a capture."""
    return clock["wall_start_ns"] - clock["cupti_start_ns"]


class _Part:
    """The capture of one process, on the clock of the joined one."""

    def __init__(self, place: int, capture: Capture, offset_ns: int) -> None:
        """Take the capture, its place among all, and the offset of the joined clock from wall time."""
        self.place = place
        self.strings = capture["strings"] or [""]
        self.details = [
            each if isinstance(each, Details) else Details.from_fields(each) for each in capture.get("details", ())
        ]
        self.tables: dict[str, Columns] = {}
        moved_ns = _offset_ns(capture["clock"]) - offset_ns
        for name, schema in SCHEMA.items():
            given: Mapping[str, npt.NDArray[Any]] = capture["tables"].get(name) or {}
            rows = len(next(iter(given.values()), ()))
            columns = {column: given.get(column, np.zeros(rows, dtype)) for column, dtype in schema.items()}
            for column in ("start_ns", "end_ns"):
                if moved_ns and column in columns:  # 0 means that a time is not known, and none is below it
                    times_ns = columns[column]
                    columns[column] = np.where(times_ns <= 0, times_ns, times_ns + moved_ns)
            self.tables[name] = columns
        self.environment = with_first_contexts(
            capture["environment"], stated_first_contexts(capture["environment"]), self.tables
        )

    def ids(self, kind: str) -> Iterator[Numbers]:
        """The ids of a kind, in parts."""
        for name, columns in self.tables.items():
            for column in columns:
                if _kind_of(name, column) == kind:
                    yield columns[column][self._with_id(name, column)].astype(np.uint64)
        for key, of_key in _BY_NUMBER.items():
            if of_key == kind:
                yield np.array(list(self.by_number(key)), np.uint64)
        if kind == "device":
            yield np.array(stated_working_devices(self.environment), np.uint64)
        if kind == "context":
            yield np.array(list(stated_first_contexts(self.environment).values()), np.uint64)

    def working_devices(self) -> Iterator[Numbers]:
        """The devices with work of this process, in parts."""
        for name in LAUNCHED_TABLES:
            yield distinct_values(self.tables[name]["device_id"]).astype(np.uint64)
        yield np.array(stated_working_devices(self.environment), np.uint64)

    def by_number(self, key: str) -> dict[int, str]:
        """A value of the environment that is a mapping of ids."""
        return stated_by_number(self.environment.get(key))

    def first_contexts(self, numbers: Mapping[str, ProcessNumbers]) -> Iterator[tuple[tuple[int, int], int]]:
        """The lowest contexts that the environment states, by device and stream, with the new ids."""
        for (device, stream), context in stated_first_contexts(self.environment).items():
            (new_device,) = self.of(numbers["device"], np.array([device], np.uint64)).tolist()
            (new_context,) = self.of(numbers["context"], np.array([context], np.uint64)).tolist()
            yield (new_device, stream), new_context

    def renumbered(
        self, name: str, numbers: Mapping[str, ProcessNumbers], texts: npt.NDArray[np.uint32], num_details: int
    ) -> Columns:
        """The columns of a table of the joined capture.

        Args:
            name: the name of the table.
            numbers: kind -> new ids.
            texts: the new index of each string.
            num_details: the number of details of earlier captures.
        """
        columns = dict(self.tables[name])
        for column, values in columns.items():
            if text_column(column):
                columns[column] = texts[values]
            elif column == "details_id":
                columns[column] = np.where(values == 0, 0, values + np.uint32(num_details)).astype(values.dtype)
            elif (kind := _kind_of(name, column)) and len(values):
                own = self._with_id(name, column)
                columns[column] = values.copy()
                columns[column][own] = self.of(numbers[kind], values[own])
        return columns

    def of(self, numbers: ProcessNumbers, ids: npt.NDArray[Any]) -> Numbers:
        """The new numbers of ids of this process."""
        return numbers.of(np.full(len(ids), self.place, np.int64), ids.astype(np.uint64))

    def _with_id(self, name: str, column: str) -> npt.NDArray[np.bool_]:
        """The rows whose value is an id of the column's kind."""
        columns = self.tables[name]
        if name == "external_correlations" and column == "external_id":
            return np.asarray(columns["external_kind"] == ANNOTATION_EXTERNAL_KIND)
        return np.ones(len(columns[column]), bool) if column in _FROM_ZERO else columns[column] != 0


def _kind_of(table: str, column: str) -> str:
    """The kind of the ids in a column; empty: it holds none. ``other_ranges.thread_id`` is any row of a device."""
    if (table, column) == ("other_ranges", "thread_id"):
        return ""
    return next((kind for kind, columns in _KINDS.items() if column in columns), "")


def _unique(kind: str, parts: Sequence[_Part], *, is_shared: bool) -> ProcessNumbers:
    """The new ids of a kind; those of a shared kind stay."""
    ids = [(np.full(len(own), part.place, np.int64), own) for part in parts for own in part.ids(kind)]
    if is_shared:
        return ProcessNumbers(ids, shared=distinct_values(np.concatenate([own for _, own in ids])).tolist())
    is_from_zero = any(column in _FROM_ZERO for column in _KINDS[kind])
    first: list[tuple[Numbers, Numbers]] = []
    if kind == "device":  # each process may name all GPUs of a machine, and work on one
        first = [(np.full(len(own), part.place, np.int64), own) for part in parts for own in part.working_devices()]
    return ProcessNumbers(ids, shared=(NO_OBJECT,) if is_from_zero else (0, NO_OBJECT), first=first)


def _environment(
    parts: Sequence[_Part], numbers: Mapping[str, ProcessNumbers], tables: Mapping[str, Columns]
) -> dict[str, Any]:
    """The joined environment: the first of different values, and all names of devices, streams and threads."""
    joined: dict[str, Any] = {}
    for part in parts:
        joined = {**part.environment, **joined}
    if any(part.environment.get(PEER_COPIES) is False for part in parts):
        joined[PEER_COPIES] = False
    for key, kind in _BY_NUMBER.items():
        stated: dict[int, str] = {}
        for part in parts:
            own = part.by_number(key)
            new = part.of(numbers[kind], np.array(list(own), np.uint64)).tolist()
            stated |= dict(zip(new, own.values(), strict=True))
        if stated:
            joined[key] = stated
    devices: dict[int, str] = {}
    streams: dict[tuple[int, int], str] = {}
    for part in parts:
        of_devices, of_streams = named_places(part.environment, part.tables)
        new = part.of(numbers["device"], np.array(list(of_devices), np.uint64)).tolist()
        devices |= dict(zip(new, of_devices.values(), strict=True))
        contexts = part.of(numbers["context"], np.array([context for context, _ in of_streams], np.uint64)).tolist()
        streams |= {
            (context, stream): label for context, ((_, stream), label) in zip(contexts, of_streams.items(), strict=True)
        }
    working = [
        device
        for part in parts
        for device in part.of(numbers["device"], np.array(stated_working_devices(part.environment), np.uint64)).tolist()
    ]
    joined.pop(WORKING_DEVICES, None)
    if working:
        joined[WORKING_DEVICES] = sorted(set(working))
    first: dict[tuple[int, int], int] = {}
    for part in parts:
        for place, context in part.first_contexts(numbers):
            first[place] = min(context, first.get(place, context))
    if labels := device_labels(tables, devices, {}, streams, first):
        joined[DEVICE_LABELS] = labels
    return with_first_contexts(joined, first)
