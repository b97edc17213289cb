"""The lanes of the timeline, one for each stream and thread: their busy shares over time, and their slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.analysis.activities import Activities, whole_graph_rows
from collector.analysis.stream_numbers import Stream, StreamNumbers
from collector.analysis.whole_graphs import graph_labels
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import OVERHEAD_KINDS
from collector.recording.distinct import distinct_codes, distinct_values, grouped_rows
from collector.recording.intervals import Union
from collector.recording.kernel_names import short_name
from collector.recording.kind_names import copy_kind_name
from collector.recording.nesting import NestedRanges
from collector.recording.schema import ACTIVITY_TABLES
from collector.recording.stream_devices import stated_by_number, stream_devices
from collector.recording.stream_names import stream_names
from collector.text.natural_order import natural_order
from collector.web.byte_planes import byte_planes, least_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from collector.recording.recording import Recording
    from collector.recording.table import Table

    Numbers = npt.NDArray[np.int64]
    Places = npt.NDArray[np.uint32]

BINS = 2048
"""The number of parts of the step; for each part a lane has the share of time in which anything ran."""
FULL = 255
"""The value of a bin that was busy all the time."""
MOST_LANES = 96
"""The maximum number of lanes; those with the fewest slices are left out, and `Lanes.left_out` counts them."""
_NAME_BYTES = 3
_RANGE = ("thread_id", "start_ns", "end_ns")


class Lane(NamedTuple):
    """One line of the drawing."""

    kind: str
    """``device``: all work of a device; ``stream``, ``calls``, ``annotations`` and ``tracer``: slices of their own."""
    name: str
    starts: Numbers
    ends: Numbers
    names: Places
    """The index of each slice's name in `Lanes.names`; empty for a device."""
    device_id: int = -1
    """The device of a lane of a device or a stream."""
    context_id: int = -1
    """The context of a stream's lane."""
    stream_id: int = -1
    """The stream of a stream's lane."""
    stream_name: str = ""
    """The name that the program gave the stream."""


@dataclass(frozen=True)
class Lanes:
    """All lanes of a step."""

    lanes: tuple[Lane, ...]
    names: tuple[str, ...]
    kernel_names: int
    """Number of the names that are those of kernels; they come first."""
    start_ns: int
    end_ns: int
    left_out: int
    """Number of lanes that are left out."""

    @cached_property
    def first_ns(self) -> int:
        """The begin of the step, or of the first slice where that began before."""
        return min([self.start_ns, *(int(lane.starts.min()) for lane in self.lanes if len(lane.starts))])

    @cached_property
    def time_bytes(self) -> int:
        """Bytes of each time in `slices`."""
        last = max([self.end_ns, *(int(lane.ends.max()) for lane in self.lanes if len(lane.ends))])
        return least_width(last - self.first_ns)

    @property
    def num_slices(self) -> int:
        """Slices of all lanes."""
        return sum(len(lane.names) for lane in self.lanes)

    def bins(self) -> bytes:
        """`BINS` bytes for each lane: the busy share of each part of the step, 0 to `FULL`; above 0 if anything ran."""
        part, rest = divmod(self.end_ns - self.start_ns, BINS)
        numbers = np.arange(BINS + 1, dtype=np.int64)
        edges = self.start_ns + numbers * part + numbers * rest // BINS
        lengths = np.maximum(np.diff(edges), 1)
        out = np.zeros((len(self.lanes), BINS), np.uint8)
        for row, lane in enumerate(self.lanes):
            covered = Union.of(lane.starts, lane.ends).covered(edges[:-1], edges[1:])
            out[row] = np.minimum(-(-covered * FULL // lengths), FULL)
        return out.tobytes()

    def slices(self, most: int | None = None) -> bytes:
        """Slices for the page, lane after lane and by their starts: lane, time since the one before it, length, name.

        One byte plane after the other, the lowest first: all lanes in two planes, times since the start of the slice
        before it on the lane (of the first: since `first_ns`) and lengths in `time_bytes` each, names in three.

        Args:
            most: the maximum number of slices; the longest are taken. None: all.
        """
        lane, starts, ends, names = self._slices
        if most is not None and most < len(lane):
            kept = _longest(ends - starts, most)
            lane, starts, ends, names = lane[kept], starts[kept], ends[kept], names[kept]
        before = np.concatenate([[self.first_ns], starts[:-1]])[: len(starts)]
        before[np.concatenate([[True], lane[1:] != lane[:-1]])[: len(lane)]] = self.first_ns
        planes = (
            (lane, 2),
            (starts - before, self.time_bytes),
            (ends - starts, self.time_bytes),
            (names, _NAME_BYTES),
        )
        return b"".join(byte_planes(values, width) for values, width in planes)

    @cached_property
    def _slices(self) -> tuple[npt.NDArray[np.uint16], Numbers, Numbers, Places]:
        """Lane, start, end and name of each slice, lane after lane and by their starts."""
        columns: list[tuple[npt.NDArray[Any], ...]] = []
        for place, lane in enumerate(self.lanes):
            count = len(lane.names)
            own: tuple[npt.NDArray[Any], ...] = (
                np.full(count, place, np.uint16),
                lane.starts[:count],
                lane.ends[:count],
                lane.names,
            )
            if (own[1][1:] < own[1][:-1]).any():
                order = np.argsort(own[1], kind="stable")
                own = (own[0], *(column[order] for column in own[1:]))
            columns.append(own)
        lanes, starts, ends, names = (
            np.concatenate([np.zeros(0, dtype), *(own[place] for own in columns)])
            for place, dtype in enumerate((np.uint16, np.int64, np.int64, np.uint32))
        )
        return lanes, starts, ends, names


def _longest(lengths: Numbers, most: int) -> npt.NDArray[np.bool_]:
    """A mask of the ``most`` longest ones; of equal ones the first."""
    if most == 0:
        return np.zeros(len(lengths), bool)
    least = np.partition(lengths, len(lengths) - most)[len(lengths) - most]
    kept: npt.NDArray[np.bool_] = lengths > least
    kept[np.flatnonzero(lengths == least)[: most - int(kept.sum())]] = True
    return kept


class _Names:
    def __init__(self) -> None:
        self.places: dict[tuple[str, str], int] = {}
        """Kind and name -> its place."""

    def of(self, kind: str, ids: npt.NDArray[Any], form: Callable[[int], str]) -> Places:
        """The place of the name of each id."""
        known, codes = distinct_codes(ids)
        named = [(kind, form(each)) for each in known.tolist()]
        places = np.array([self.places.setdefault(each, len(self.places)) for each in named], np.uint32)
        return places[codes]


def lanes_of(recording: Recording) -> Lanes:
    """The lanes of a recording: devices, their streams, CUPTI's overheads, and of threads annotations and calls.

    Slices that overlap on a stream are drawn over each other; annotations have one lane for each depth.
    """
    names = _Names()
    start, end = recording.clock.cupti_start_ns, recording.clock.cupti_stop_ns
    work = Activities.with_graphs(recording)
    found = list(_devices(recording, work, names))
    threads = [*_annotations(recording, names), *_calls(recording, names)]
    found += sorted(threads, key=lambda lane: natural_order(lane.name))
    found += _overheads(recording, names)
    by_size = sorted(range(len(found)), key=lambda place: (found[place].kind != "device", -len(found[place].starts)))
    kept = sorted(by_size[:MOST_LANES])
    return Lanes(
        tuple(found[place] for place in kept),
        tuple(name for _, name in names.places),
        sum(kind == "kernels" for kind, _ in names.places),
        start,
        max(end, start),
        len(found) - len(kept),
    )


def _overheads(recording: Recording, names: _Names) -> Iterator[Lane]:
    table = recording.overheads
    if len(table):
        places = names.of("overheads", table.overhead_kind, lambda kind: OVERHEAD_KINDS.get(kind, OVERHEAD_KINDS[0]))
        yield Lane("tracer", "the tracer itself", table.start_ns, table.end_ns, places)


def _devices(recording: Recording, work: Activities, names: _Names) -> Iterator[Lane]:
    tables: dict[str, Callable[[Table], Places]] = {
        "kernels": lambda table: names.of("kernels", table.name_id, lambda index: short_name(recording.strings[index])),
        "memcpys": lambda table: names.of("memcpys", table.copy_kind, lambda kind: f"memcpy {copy_kind_name(kind)}"),
        "memsets": lambda table: names.of("memsets", np.zeros(len(table), np.int64), lambda _: "memset"),
    }
    named = [tables[name](getattr(recording, name)) for name in ACTIVITY_TABLES]
    graphs, labels = whole_graph_rows(recording), graph_labels(recording)
    names_of_graphs = np.zeros(len(recording.graph_launches), np.uint32)
    names_of_graphs[graphs] = names.of("graphs", recording.graph_launches.graph_id[graphs], labels.__getitem__)
    places = work.of_rows([*named, names_of_graphs])
    streams, stream_of = StreamNumbers.of(recording, work)
    numbers = {stream: number for number, stream in enumerate(streams)}
    in_order = list(
        stream_devices(((each.device, each.stream, each.context) for each in streams), recording.first_contexts)
    )
    given = stream_names(recording)
    order, bounds = grouped_rows(stream_of, len(streams))
    for device, own in work.by_device():
        nothing = np.zeros(0, np.uint32)
        yield Lane("device", f"GPU {device}", own.start_ns, own.end_ns, nothing, device)
        for (of_device, stream, context), key in in_order:
            number = numbers[Stream(of_device, context, stream)]
            rows = order[bounds[number] : bounds[number + 1]]
            if of_device != device or not len(rows):
                continue
            label = given.get((device, context, stream), "")
            yield Lane(
                "stream",
                f"GPU {device} stream {key.rpartition(':')[2]}" + (f" ({label})" if label else ""),
                work.start_ns[rows],
                work.end_ns[rows],
                places[rows],
                device,
                context,
                stream,
                label,
            )


def _thread_labels(recording: Recording) -> Callable[[int], str]:
    """The label of a thread: its number, and its name where that is recorded."""
    named = stated_by_number(recording.environment.get("thread_names"))

    def label(thread: int) -> str:
        number, name = f"thread {thread}", named.get(thread, "")
        if name.startswith(number):  # a name of PyTorch's, which has the number already
            return name
        return f"{number} ({name})" if name else number

    return label


def _annotations(recording: Recording, names: _Names) -> Iterator[Lane]:
    table = recording.annotations
    places = names.of("annotations", table.name_id, lambda index: recording.strings[index].rpartition("/")[2])
    depth_of = table.depth.astype(np.int64)
    if not depth_of.any():  # a reader that knows times alone
        depth_of = NestedRanges(*(getattr(table, name).astype(np.int64) for name in _RANGE)).depths
    threads = _thread_labels(recording)
    for thread in distinct_values(table.thread_id).tolist():
        own = np.flatnonzero(table.thread_id == thread)
        depths = depth_of[own]
        for depth in distinct_values(depths).tolist():
            rows = own[depths == depth]
            name = f"{threads(thread)} annotations" + (f" {depth + 1}" if depth else "")
            yield Lane("annotations", name, table.start_ns[rows], table.end_ns[rows], places[rows])


def _calls(recording: Recording, names: _Names) -> Iterator[Lane]:
    table = recording.api_calls
    places = names.of("calls", table.name_id, lambda index: plain_api_name(recording.strings[index]))
    threads = _thread_labels(recording)
    for thread in distinct_values(table.thread_id).tolist():
        rows = np.flatnonzero(table.thread_id == thread)
        yield Lane("calls", f"{threads(thread)} CUDA calls", table.start_ns[rows], table.end_ns[rows], places[rows])
