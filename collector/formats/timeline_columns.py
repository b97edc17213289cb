"""The columns of a recording from the slices of a Chrome trace that this project drew."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.formats.capture_builder import CaptureBuilder, device_ids
from collector.formats.chrome_events import per_place, text
from collector.formats.kind_numbers import copy_kind_number, memory_kind_number
from collector.formats.profiler_dialect import launch_shapes
from collector.formats.timeline_side_rows import SideRows, graph_device, side_table
from collector.recording.capture import ASYNC_NOT_KNOWN, NO_OBJECT
from collector.recording.collective_rows import matching_rows
from collector.recording.distinct import distinct_codes
from collector.recording.schema import SCHEMA
from collector.runtime.extension import convert_extension
from collector.stepstats.labels import implied_op
from collector.timeline.op_arguments import ARGUMENTS as DETAIL_ARGUMENTS
from collector.timeline.op_arguments import SHAPES, TYPES, VALUES, details_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.formats.capture_builder import Column
    from collector.formats.chrome_events import ChromeEvents, Numbers
    from collector.recording.annotation_details import Details

STREAM = re.compile(r"(?P<gpu>.*)/stream:(?P<stream>.+)")
_COPIES = re.compile(r"(?P<gpu>.*)/(?P<stream>memcpy)")
_NUMBERED_STREAM = re.compile(r"(?P<stream>\d{1,9})(?:\.(?P<context>\d{1,9}))?")
_THREAD = re.compile(r".*\bthread (\d{1,10})\b", re.DOTALL)
"""The name of a host's row. Its number comes last: threads may be called ``thread 0 (python)``."""
_THREAD_SUFFIX = re.compile(r" \(thread \d{1,10}\)$|^thread \d{1,10}$")
"""The part of a row's name that is no part of its thread's name."""
_LAST_NUMBER = re.compile(r".*(?<!\d)(\d{1,9})(?!\d)", re.DOTALL)
"""The number of a GPU's row whose name has it already: ``annotations of stream 7``."""
_GPU_TABLES = {"kernel": "kernels", "memcpy": "memcpys", "memset": "memsets", "sync": "synchronizations"}
_HOST_TABLES = {"op": "annotations", "api": "api_calls", "sync": "api_calls"}
"""Category of a slice -> the table that holds it."""
_CALLS = ("api", "sync", "other")
"""Categories of the slices of calls, and of what calls cause besides GPU work."""
_PLACED = ("start_ns", "end_ns", "name_id", "device_id", "stream_id", "context_id", "correlation_id")
"""Columns that no argument of the same name fills."""
_OF_COLLECTIVES = ("device_id", "stream_id", "start_ns", "correlation_id")
"""Columns that match a collective of a drawn trace with its kernel."""
_OF_ANNOTATIONS = ("op", "inputs", *DETAIL_ARGUMENTS)
_LARGEST_ARGUMENT = (1 << 32) - 1
_LARGEST = (1 << 63) - 1
_LARGEST_COUNT = (1 << 53) - 1


class Place(NamedTuple):
    """The device and row of a slice."""

    device: str
    row: str
    """The name of the row."""
    context_id: int | None = None
    """The context of a stream; None: the row does not state it."""
    process_id: int = 0
    """The process of a thread's calls; 0: not known."""

    @property
    def thread_id(self) -> int | None:
        """The thread of a host's row; None for any other row."""
        number = _THREAD.match(self.row)
        return int(number[1]) if number is not None and int(number[1]) < 1 << 32 else None


class TimelineColumns:
    """The rows of each table."""

    def __init__(
        self,
        found: ChromeEvents,
        base_ns: int,
        rows: Numbers,
        places: Sequence[Place | None],
        thread_names: Mapping[int, str],
        contexts: Mapping[int, int],
        *,
        is_profile: bool,
    ) -> None:
        """Take the slices of a trace.

        Args:
            found: the events of the trace.
            base_ns: the wall time of the trace's time 0.
            rows: the events that are slices.
            places: the places of the tracks; None for tracks without slices.
            thread_names: thread id -> name, as the trace's metadata has them.
            contexts: context -> its GPU, as the trace's metadata has them.
            is_profile: whether the trace was made of another profiler's, whose ops have shapes in their details; else
                they are texts of NVTX ranges.
        """
        self._found, self._base_ns, self._rows = found, base_ns, rows
        self._tracks = found.track_numbers(rows)
        used, first = np.unique(self._tracks, return_index=True)
        self._places = {track: place for track in used[np.argsort(first)].tolist() if (place := places[track])}
        self._streams, copies = (
            {track: named for track, place in self._places.items() if (named := kind.fullmatch(place.device))}
            for kind in (STREAM, _COPIES)
        )
        gpus = {stream["gpu"] for stream in self._streams.values()}
        # Where no stream of a GPU is drawn, its copies are drawn under ``memcpy`` alone.
        self._streams |= {track: each for track, each in copies.items() if each["gpu"] not in gpus}
        self._threads = {name: thread for thread, name in thread_names.items()}
        self.thread_names: dict[int, str] = {}
        """Thread id -> its name, of the threads with rows in tables."""
        self._side = SideRows(found)
        self._stated_contexts = contexts
        self._is_profile = is_profile
        self._kernels: dict[str, Numbers] = {}
        """The columns of kernels that match collectives, and the contexts of the kernels."""

    def built(self) -> CaptureBuilder:
        """All rows."""
        built = CaptureBuilder()
        on_stream = self._has_track(self._streams)
        categories, index = self._found.categories(self._rows)
        self._add_work(built, categories, np.where(on_stream, index, -1))
        are_calls = np.array([*(category in _CALLS for category in categories), False], bool)
        self._link_calls(built, self._rows[~on_stream & are_calls[index]])
        self._add_host(built, categories, np.where(on_stream, -1, index))
        return built

    def _has_track(self, tracks: Any) -> Any:
        """Whether each slice is on one of these tracks."""
        return np.isin(self._tracks, list(tracks))

    def _times(self, rows: Numbers) -> dict[str, Column]:
        starts_ns = self._found.starts_ns(rows) + self._base_ns
        return {"start_ns": starts_ns, "end_ns": starts_ns + self._found.durations_ns(rows)}

    def _correlations(self, rows: Numbers) -> Numbers:
        return np.maximum(self._found.integers("correlation", rows), 0)

    # --- work on streams

    def _add_work(self, built: CaptureBuilder, categories: list[str], index: Numbers) -> None:
        """Add the slices of streams; ``index`` is the place of each slice's category, -1 for all other slices."""
        tables = per_place(
            categories, lambda category: list(_GPU_TABLES).index(category) if category in _GPU_TABLES else -1
        )
        built.without_columns += int((tables[index[index >= 0]] < 0).sum())
        table_of = tables[index]
        work = np.flatnonzero(table_of >= 0)
        rows = self._rows[work]
        correlations = self._correlations(rows)
        ops, op_index = self._texts("op", rows)
        without = np.flatnonzero((op_index >= 0) & (correlations == 0))
        correlations[without] = built.unused_correlation_ids(len(without))
        has_op = op_index >= 0
        built.launched_under(correlations[has_op], ops, op_index[has_op])
        captured = np.append(built.captured_under(ops), 0)[op_index]
        units = device_ids(stream["gpu"] for stream in self._streams.values())
        for number, (category, table) in enumerate(_GPU_TABLES.items()):
            own = np.flatnonzero(table_of[work] == number)
            own_rows = rows[own]
            columns: dict[str, Column] = {
                name: partial(self._argument, name, own_rows) for name in SCHEMA[table] if name not in _PLACED
            }
            columns |= self._times(own_rows) | self._stream_columns(self._tracks[work[own]], units)
            columns |= {"correlation_id": correlations[own]} | self._columns_of(category, built, own_rows)
            if category != "sync":
                columns |= self._graph_columns(own_rows) | {"captured_external_id": captured[own]}
            built.add(table, **{name: column for name, column in columns.items() if name in SCHEMA[table]})
            if category == "kernel":
                self._kernels = {name: np.asarray(columns[name]) for name in (*_OF_COLLECTIVES, "context_id")}

    def contexts_of_kernels(self, collectives: Mapping[str, Numbers]) -> Numbers:
        """The contexts of the kernels that ran these collectives; the stated ones where there is no such kernel.

        Traces of earlier versions do not state the context of a stream whose number no other context has.
        """
        rows = matching_rows(collectives, self._kernels, _OF_COLLECTIVES)
        return np.where(rows < 0, collectives["context_id"], np.append(self._kernels["context_id"], 0)[rows])

    @cached_property
    def _contexts(self) -> dict[int, int]:
        """GPU -> its context, for traces of earlier versions, whose rows do not state the contexts of streams.

        Where the metadata does not state the contexts either, the context of the waits is that of the only GPU.
        """
        if self._stated_contexts:
            devices = Counter(self._stated_contexts.values())
            return {device: context for context, device in self._stated_contexts.items() if devices[device] == 1}
        gpus = set(device_ids(stream["gpu"] for stream in self._streams.values()).values())
        if len(gpus) != 1:
            return {}
        waits = [place for place in self._places.values() if side_table(place.device) == "synchronizations"]
        rows = self._rows[self._has_track([track for track, place in self._places.items() if place in waits])]
        contexts = np.unique(self._found.integers("context", rows))
        contexts = contexts[contexts > 0]
        return dict.fromkeys(gpus, int(contexts[0])) if len(contexts) == 1 else {}

    def _stream_columns(self, tracks: Numbers, units: dict[str, int]) -> dict[str, Column]:
        """Device, stream and context of each of these tracks."""
        known = np.zeros((3, max(self._streams, default=0) + 1), np.int64)
        for track, stream in self._streams.items():
            number = _NUMBERED_STREAM.fullmatch(stream["stream"])
            device = units[stream["gpu"]]
            context = self._places[track].context_id
            if context is None:
                context = int(number["context"] or self._contexts.get(device, 0)) if number else 0
            known[:, track] = (device, int(number["stream"]) if number else 0, context)
        return dict(zip(("device_id", "stream_id", "context_id"), known[:, tracks], strict=True))

    def _columns_of(self, category: str, built: CaptureBuilder, rows: Numbers) -> dict[str, Column]:
        """The columns that are no argument of the same name."""
        if category == "kernel":
            return self._kernel_columns(built, rows)
        if category == "sync":
            events = self._found.integers("event_id", rows)
            return {"event_id": np.where(events < 0, NO_OBJECT, events)}
        source, target = (self._memory_kinds(side, rows) for side in ("from", "to"))
        columns: dict[str, Column] = {"num_bytes": partial(self._count, "bytes", rows)}
        if category in ("memcpy", "memset"):
            is_async = self._found.integers("is_async", rows)
            columns["is_async"] = np.where(is_async < 0, ASYNC_NOT_KNOWN, is_async)
        if category == "memset":
            return columns | {"memory_kind": target}
        if category == "memcpy":
            names, index = self._found.names(rows)
            kinds = per_place(names, lambda name: copy_kind_number(name.removeprefix("MEMCPY")), 0)[index]
            ends = {
                f"{side}_{place}_id": partial(self._argument, f"{name}_{place}", rows)
                for side, name in (("src", "from"), ("dst", "to"))
                for place in ("device", "context")
            }
            return columns | {"copy_kind": kinds, "src_kind": source, "dst_kind": target, **ends}
        return {}

    def _kernel_columns(self, built: CaptureBuilder, rows: Numbers) -> dict[str, Column]:
        whole_names, whole_index = self._texts("kernel", rows)
        whole_ids = np.append(built.name_ids(whole_names), 0)[whole_index]
        static = self._argument("static_shared_bytes", rows)
        dynamic = self._found.integers("dynamic_shared_bytes", rows, _LARGEST_ARGUMENT)
        # A drawn trace omits a figure of 0, and states the sum of both.
        rest = np.maximum(self._count("shared_bytes", rows) - static, 0)
        columns: dict[str, Column] = {
            "name_id": np.where(whole_index >= 0, whole_ids, self._side.name_ids(rows, built)),
            "registers_per_thread": partial(self._count, "registers", rows),
            "dynamic_shared_bytes": np.where(dynamic >= 0, dynamic, rest),
            "launch_type": self._side.launch_types(rows),
            "priority": partial(self._found.signed_integers, "priority", rows),
        }
        for which in ("grid", "block", "cluster"):
            values, places = self._found.values(which, rows)
            shapes = launch_shapes([value if isinstance(value, list) else [] for value in values], places)
            columns |= {f"{which}_{axis}": partial(shapes.axis, place) for place, axis in enumerate("xyz")}
        return columns

    def _graph_columns(self, rows: Numbers) -> dict[str, Column]:
        return {
            "graph_id": partial(self._argument, "graph", rows),
            "graph_node_id": np.maximum(self._found.integers("graph_node", rows, _LARGEST), 0),
            "graph_degree": self._side.degrees(rows),
        }

    def _argument(self, name: str, rows: Numbers) -> Numbers:
        return np.maximum(self._found.integers(name, rows, _LARGEST_ARGUMENT), 0)

    def _count(self, name: str, rows: Numbers) -> Numbers:
        return np.maximum(self._found.integers(name, rows, _LARGEST_COUNT), 0)

    def _memory_kinds(self, side: str, rows: Numbers) -> Numbers:
        values, places = self._found.values(side, rows)
        return per_place(values, lambda value: memory_kind_number(text(value)), 0)[places]

    def _texts(self, argument: str, rows: Numbers) -> tuple[list[str], Numbers]:
        """The texts of an argument, and the place of each slice's among them; -1: it has none."""
        values, places = self._found.values(argument, rows)
        texts = [text(value) for value in values]
        is_text = np.array([*map(bool, texts), False], bool)[places]
        return texts, np.where(is_text, places, -1)

    # --- rows of the host

    def _link_calls(self, built: CaptureBuilder, rows: Numbers) -> None:
        """Link the calls that launched no work, of which one slice each states the annotation."""
        ops, op_index = self._texts("op", rows)
        correlations = self._correlations(rows)
        stated = np.flatnonzero((op_index >= 0) & (correlations > 0))
        built.launched_under(correlations[stated], ops, op_index[stated])

    def _details(self, rows: Numbers) -> tuple[list[Details], Numbers]:
        """The distinct details of ops, and the place of each op's among them.

        A slice of an annotation without an op states that of its label, which follows from its name.
        """
        distinct, places = self._found.distinct_values(_OF_ANNOTATIONS, rows)
        names, name_index = self._found.names(rows)
        implied = [implied_op(name) for name in names]
        numbers = {op: number for number, op in enumerate(dict.fromkeys(implied))}
        of_names = np.array([numbers[op] for op in implied], np.int64)
        of_details = np.array([numbers.get(text(op), -1) for op, *_ in distinct], np.int64)
        is_implied = of_names[name_index] == of_details[places]
        kinds, places = distinct_codes(2 * places + is_implied)
        details = []
        for place, without_op in (divmod(kind, 2) for kind in kinds.tolist()):
            stated = dict(zip(_OF_ANNOTATIONS, distinct[place], strict=True))
            if without_op:
                del stated["op"]
            if not self._is_profile and stated[TYPES] is None and stated[VALUES] is None:
                del stated[SHAPES]
            details.append(details_of(stated))
        return details, places

    def _add_host(self, built: CaptureBuilder, categories: list[str], index: Numbers) -> None:
        """Add the slices of all other devices; ``index`` is -1 for those of streams."""
        threads = {
            track: thread
            for track, place in self._places.items()
            if track not in self._streams and (thread := self._thread_of(place)) is not None
        }
        thread_of, process_of = np.zeros((2, max(self._places, default=0) + 1), np.int64)
        thread_of[list(threads)] = list(threads.values())
        process_of[list(threads)] = [self._places[track].process_id for track in threads]
        self._add_side_rows(built, index, categories)
        on_thread = self._has_track(threads)
        for table in dict.fromkeys(_HOST_TABLES.values()):
            of_table = np.array([_HOST_TABLES.get(category) == table for category in categories] + [False], bool)
            own = np.flatnonzero(on_thread & of_table[index])
            rows, tracks = self._rows[own], self._tracks[own]
            index[own] = -1
            self.thread_names |= {threads[track]: text(self._places[track].row) for track in np.unique(tracks).tolist()}
            names, name_index = self._found.names(rows)
            columns = {**self._times(rows), "thread_id": thread_of[tracks]}
            if table == "api_calls":
                stated = self._found.integers("process", rows, _LARGEST_ARGUMENT)
                columns |= {
                    "process_id": np.where(stated < 0, process_of[tracks], stated),
                    "correlation_id": self._correlations(rows),
                    "return_value": partial(self._argument, "return_value", rows),
                }
                built.add_api_calls(names, name_index, **columns)
            else:
                details, places = self._details(rows)
                has_shapes = [any(argument.shape for argument in each.arguments) for each in details]
                starts_ns, ends_ns = (np.asarray(columns[name]) for name in ("start_ns", "end_ns"))
                none = np.zeros(0, np.int64)
                _, depths = convert_extension.innermost_ranges(thread_of[tracks], starts_ns, ends_ns, none, none)
                built.add(
                    table,
                    **columns,
                    name_id=self._side.name_ids(rows, built),
                    depth=depths,
                    details_id=built.details_ids(details)[places] if details else places,
                    **self._side.of_range(rows, built),
                    **self._side.of_op(rows, np.array([*has_shapes, False], bool)[places], built),
                )
        others = np.flatnonzero(index == (categories.index("other") if "other" in categories else -2))
        self._add_other_ranges(built, others, thread_of)
        index[others] = -1
        shown_twice = [track for track, place in self._places.items() if _COPIES.fullmatch(place.device)]
        built.without_columns += int(((index >= 0) & ~self._has_track(shown_twice)).sum())

    def _thread_of(self, place: Place) -> int | None:
        """The thread of a row; a row has no number of its own if the thread's name has it already."""
        if place.thread_id is not None:
            return place.thread_id
        number = _LAST_NUMBER.match(place.row) if place.device.endswith("/annotations") else None
        return self._threads.get(place.row) if number is None else int(number[1])

    def _add_side_rows(self, built: CaptureBuilder, index: Numbers, categories: list[str]) -> None:
        """Add the slices of devices that show one table; they are marked with -1 in ``index``.

        Nodes of graphs, which are drawn inside their launch, are those of streams.
        """
        are_nodes = np.array([category in _GPU_TABLES for category in categories] + [False], bool)
        table_of = {track: table for track, place in self._places.items() if (table := side_table(place.device))}
        for table in dict.fromkeys(table_of.values()):
            tracks = [track for track in table_of if table_of[track] == table]
            own = np.flatnonzero(self._has_track(tracks) & (index >= 0))
            if table == "graph_launches":
                index[own[are_nodes[index[own]]]] = -1
                own = own[index[own] >= 0]
            rows = self._rows[own]
            columns = self._times(rows) | {"correlation_id": self._correlations(rows)}
            columns |= self._side.columns(table, rows, built)
            if table == "graph_launches":
                devices = {track: graph_device(place.device) for track, place in self._places.items()}
                device_ids = np.zeros(max(devices) + 1, np.int64)
                device_ids[list(devices)] = list(devices.values())
                columns["device_id"] = columns["end_device_id"] = device_ids[self._tracks[own]]
            built.add(table, **{name: column for name, column in columns.items() if name in SCHEMA[table]})
            index[own] = -1

    def _add_other_ranges(self, built: CaptureBuilder, own: Numbers, thread_of: Numbers) -> None:
        """Add ranges that are neither annotations nor calls, with the devices that their rows state."""
        rows, tracks = self._rows[own], self._tracks[own]
        used = np.unique(tracks).tolist()
        places = np.zeros(max(used, default=0) + 1, np.int64)
        places[used] = np.arange(len(used))
        none = built.name_ids([""])
        devices = built.name_ids([self._places[track].device for track in used])
        rows_named = built.name_ids([_THREAD_SUFFIX.sub("", text(self._places[track].row)) for track in used])
        built.add(
            "other_ranges",
            **self._times(rows),
            name_id=self._side.name_ids(rows, built),
            device_name_id=devices[places[tracks]],
            category_name_id=np.repeat(none, len(rows)),
            thread_id=thread_of[tracks],
            thread_name_id=rows_named[places[tracks]],
            correlation_id=self._correlations(rows),
        )
