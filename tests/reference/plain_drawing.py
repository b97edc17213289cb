"""The timeline of a step drawn in plain Python: the readable twin of step_drawing.cpp and chrome_writer.cpp.

It gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from collector.errors import InvalidFileError
from collector.protos import Activity as RecordedActivity
from collector.recording.possible_times import FAR_NS, LARGEST_TIME_NS
from collector.recording.schema import ACTIVITY_KINDS
from collector.stepstats.salvage import MENDED_TEXTS, UNKNOWN_BYTES, salvage
from collector.stepstats.shown_tables import SIDE_TABLES
from collector.stepstats.wire import parse_step
from collector.timeline.drawing import DrawingOptions
from collector.timeline.lanes import Lanes
from reference.plain_activities import (
    INT64_MAX,
    Activity,
    DeviceName,
    Kind,
    gpu_activity,
    host_activity,
    int64,
    parse_device_name,
    scheduled_ns,
    span_ns,
)
from reference.plain_launches import Launches
from reference.plain_series import count_busy, estimated_memory, recorded_memory, running_total
from reference.plain_track_order import MEMORY, TrackOrder, shown_key
from reference.plain_waits import EventRecord, Timed, recording_calls, sources_of
from reference.shared_activities import activities_of_parts

_SAMPLES = 1001
_COLOURS = {
    "memcpy": "rail_response",
    "memset": "olive",
    "api": "grey",
    "sync": "thread_state_uninterruptible",
    "overhead": "terrible",
}
_READABLE_KEYS = {
    "regs": "registers",
    "shm": "shared_bytes",
    "static_shared": "static_shared_bytes",
    "dynamic_shared": "dynamic_shared_bytes",
    "occ_pct": "occupancy_percent",
}
_NUMBERS = re.compile(r"(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*")


@dataclass(frozen=True, slots=True)
class Drawable:
    """A node and its time in wall ns."""

    node: Any
    start: int
    duration: int
    ordinal: int

    @property
    def end(self) -> int:
        """The end in wall ns."""
        return self.start + self.duration


@dataclass
class Group:
    """The devices with one name. Well-formed messages have one device per name."""

    device: str
    name: DeviceName
    parts: list[Any] = field(default_factory=list)
    nodes: list[Drawable] = field(default_factory=list)
    rank: int = 0
    takes_arrows: bool = False
    counts_copies: bool = False
    has_threads: bool = False


@dataclass
class Rows:
    """Rows shared by activities that do not overlap."""

    name: str
    os_thread: bool = False
    open: list[int] = field(default_factory=list)
    """For a thread: ends of the open slices in its first row, in which slices nest."""
    lanes: Lanes = field(default_factory=Lanes)
    tids: dict[int, int] = field(default_factory=dict)


def draw(
    data: bytes | bytearray | memoryview,
    write: Callable[[bytes], object],
    options: DrawingOptions,
    describe: Callable[[dict[str, int]], str],
    *,
    is_run_metadata: bool,
    writer: str = "chrome",
    base_ns: int | None = None,
) -> dict[str, int]:
    """See `collector.timeline.drawing.draw`; it only writes Chrome traces, from the first start on."""
    assert writer == "chrome"
    assert base_ns is None
    message = _readable(data, is_run_metadata)
    kernel_names = message.capture.strings if is_run_metadata else ()
    drawing = _Drawing(message.step_stats if is_run_metadata else message, kernel_names, options)
    first = True
    for event in drawing.events():
        head = '{"displayTimeUnit":"ns","traceEvents":[\n' if first else ",\n"
        first = False
        write(f"{head}{event}".encode())
    head = '{"displayTimeUnit":"ns","traceEvents":[' if first else ""
    write(f'{head}\n],"otherData":{describe(drawing.figures)}}}\n'.encode())
    return drawing.figures


def _readable(data: bytes | bytearray | memoryview, whole: bool) -> Any:
    """The message; texts that are not UTF-8 have the form that viewers show, as in the extension."""
    try:
        return parse_step(data, whole=whole)
    except InvalidFileError:
        saved = salvage(bytes(data), whole)
        if saved.error is not None or set(saved.skipped) - {UNKNOWN_BYTES} != {MENDED_TEXTS}:
            raise
        return saved.run_metadata if whole else saved.run_metadata.step_stats


class _Drawing:
    def __init__(self, step_stats: Any, kernel_names: Sequence[str], options: DrawingOptions) -> None:
        self.options = options
        self.kernel_names = kernel_names
        self.step_stats = step_stats
        self.groups = self._grouped()
        self.middle = self._middle()
        self._survey()
        self._select()
        self.order = TrackOrder([MEMORY, *(group.device for group in self.groups)])
        self.begun_pids: set[int] = set()
        self.next_flow = 1
        self.place = (0, 0)
        self.launches = Launches()
        self.wait_arrows: dict[int, int] = {}
        """Ordinal of a wait -> id of the arrow that ends at it."""
        self.arrows_of_source: dict[int, list[int]] = {}
        """Ordinal of an activity -> ids of the arrows to the waits that it held up."""
        self.event_arrows: dict[int, int] = {}
        """The same for the waits of streams for events, whose arrows begin at calls."""
        self.event_arrows_of_source: dict[int, list[int]] = {}
        self.call_ops = {
            correlation_id: options.call_ops[4][place][0][1]
            for correlation_id, place in zip(options.call_ops[0], options.call_ops[3], strict=True)
        }
        self.event_records = [EventRecord(*record) for record in options.event_records]
        self.busy: list[list[list[int]]] = []
        self.copies: list[tuple[str, int, int, int]] = []
        self.names_with_colons: dict[str, str] = {}
        for group, node in self._nodes():
            if not group.name.on_gpu and ":" in node.node_name:
                self.names_with_colons.setdefault(_without_colons(node.node_name), node.node_name)

    # --- selection ---

    def _grouped(self) -> list[Group]:
        by_name: dict[str, Group] = {}
        _share_activities(self.step_stats)
        for device in self.step_stats.dev_stats:
            group = by_name.setdefault(device.device, Group(device.device, parse_device_name(device.device)))
            group.parts.append(device)
        used = [group for group in by_name.values() if any(part.node_stats for part in group.parts)]
        with_streams = {group.name.unit for group in used if group.name.kind == Kind.STREAM}
        with_copies = {group.name.unit for group in used if group.name.kind == Kind.COPIES}
        ranks: dict[str, int] = {}
        for group in by_name.values():
            group.rank = ranks.setdefault(group.name.prefix, len(ranks))
            is_copies = group.name.kind == Kind.COPIES
            group.takes_arrows = group.name.on_gpu and not (is_copies and group.name.unit in with_streams)
            group.counts_copies = group.name.on_gpu and (is_copies or group.name.unit not in with_copies)
            threads = any(len(part.thread_names) for part in group.parts)
            group.has_threads = threads and not group.name.on_gpu
        keep = self.options.keep_device
        groups = [
            group
            for group in by_name.values()
            if not (group.name.kind == Kind.ALL_STREAMS and group.name.unit in with_streams)
            and (keep is None or keep(group.device))
        ]

        # Calls come before the work that they launched; within a process, the order is that of its rows.
        return sorted(groups, key=lambda group: (group.name.on_gpu, shown_key(group.name, group.device)))

    def _nodes(self) -> Iterator[tuple[Group, Any]]:
        return ((group, node) for group in self.groups for part in group.parts for node in part.node_stats)

    def _middle(self) -> int:
        """The median of a sample of all starts, which tolerates nodes without a time and times that wrapped around."""
        total = sum(len(part.node_stats) for group in self.groups for part in group.parts)
        stride = -(-total // _SAMPLES)
        spans = (span_ns(node) for number, (_, node) in enumerate(self._nodes()) if number % stride == 0)
        starts = sorted(span[0] for span in spans if span)
        middle = starts[len(starts) // 2] if starts else 0
        return min(max(middle, -INT64_MAX - 1 + 4 * FAR_NS), INT64_MAX - 4 * FAR_NS)

    def _is_plausible(self, time: int) -> bool:
        return abs(time - self.middle) <= FAR_NS

    def _survey(self) -> None:
        total = 0
        for ordinal, (group, node) in enumerate(self._nodes()):
            total += 1
            span = span_ns(node)
            if span and span[1] <= FAR_NS and self._is_plausible(span[0]):
                group.nodes.append(Drawable(node, *span, ordinal))
                group.has_threads |= node.thread_id != 0 and not group.name.on_gpu
        drawable = [item for group in self.groups for item in group.nodes]
        self.base = min((item.start for item in drawable), default=0)
        self.figures = {
            "slices": len(drawable),
            "arrows": 0,
            "counter_values": 0,
            "left_out": 0,
            "left_out_ns": 0,
            "longest_left_out_ns": 0,
            "filtered": 0,
            "untimed": total - len(drawable),
            "base_ns": self.base,
            "end_ns": max((item.end for item in drawable), default=self.base) - self.base,
        }
        self.has_memory = any(item.node.output or item.node.memory for item in drawable)
        self.has_allocator_memory = any(item.node.memory for item in drawable)

    def _select(self) -> None:
        kept: list[Drawable] = []
        for group in self.groups:
            group.nodes = [item for item in group.nodes if self._passes(group, item)]
            kept += group.nodes
        self.figures["filtered"] = self.figures["slices"] - len(kept)
        most = self.options.max_slices
        if most is not None and len(kept) > most:
            kept.sort(key=lambda item: (-item.duration, item.ordinal))
            out = kept[most:]
            self.figures["left_out"] = len(out)
            self.figures["left_out_ns"] = min(sum(item.duration for item in out), INT64_MAX)
            self.figures["longest_left_out_ns"] = out[0].duration
            ordinals = {item.ordinal for item in kept[:most]}
            for group in self.groups:
                group.nodes = [item for item in group.nodes if item.ordinal in ordinals]
        for group in self.groups:
            # On a thread, an enclosing slice comes before the slices inside it; otherwise the sort keeps the message's
            # order.
            if group.name.on_gpu:
                group.nodes.sort(key=lambda item: item.start)
            else:
                group.nodes.sort(key=lambda item: (item.start, -item.duration))

    def _passes(self, group: Group, item: Drawable) -> bool:
        options = self.options
        start = item.start - self.base
        if item.duration < options.min_duration_ns:
            return False
        if options.window_end_ns is not None and start > options.window_end_ns:
            return False
        if options.window_start_ns is not None and start + item.duration < options.window_start_ns:
            return False
        if options.keep_name is None:
            return True
        activity = self._activity(group, item.node)
        return options.keep_name(activity.name) or bool(activity.full_name and options.keep_name(activity.full_name))

    def _link(self) -> None:
        callers = [(group, item) for group in self.groups if not group.name.on_gpu for item in group.nodes]
        callers.sort(key=lambda caller: caller[1].ordinal)  # the first in the message is the outer call
        caused = [(group, item) for group in self.groups if group.takes_arrows for item in group.nodes]
        for group, item in caused:
            self.launches.add_activity(item.node, gpu_activity(item.node, self.kernel_names), group.rank)
        no_calls = {ACTIVITY_KINDS[table] for table in SIDE_TABLES}
        callers = [(group, item) for group, item in callers if item.node.activity.kind not in no_calls]
        for group, item in callers:
            self.launches.add_call(item.node, item.start, item.ordinal, group.rank)
        self.launches.join()
        for group, item in caused:
            self.launches.count_activity(item.node, gpu_activity(item.node, self.kernel_names), item.start, group.rank)

    def _activity(self, group: Group, node: Any) -> Activity:
        return gpu_activity(node, self.kernel_names) if group.name.on_gpu else host_activity(node)

    def _link_waits(self) -> None:
        waits, activities, calls = [], [], []
        for group in self.groups:
            columns = min(group.nodes, key=lambda item: item.ordinal).node.activity if group.nodes else None
            for item in group.nodes:
                place = item.node.correlation_id, group.rank, item.ordinal, item.start, item.end
                if not group.name.on_gpu and group.name.kind == Kind.OTHER and group.name.track == "waits":
                    waits.append(Timed(item.node.activity, *place))
                elif group.name.kind == Kind.STREAM:
                    activities.append(Timed(columns, *place))
                elif not group.name.on_gpu:
                    calls.append(Timed(item.node.activity, *place))
        events = recording_calls(waits, calls, self.event_records)
        waits = [wait for wait in waits if wait.start < wait.end]
        sources = sources_of(waits, activities, self.event_records)
        for pairs, arrows, arrows_of_source in (
            (sources, self.wait_arrows, self.arrows_of_source),
            (events, self.event_arrows, self.event_arrows_of_source),
        ):
            for wait, source in sorted(pairs.items(), key=lambda pair: (pair[1], pair[0])):
                arrows[wait] = self.next_flow
                arrows_of_source.setdefault(source, []).append(self.next_flow)
                self.next_flow += 1
            self.figures["arrows"] += len(pairs)

    # --- events ---

    def events(self) -> Iterator[str]:
        """The events, one JSON object each; the figures are complete after the last."""
        if self.options.arrows:
            self._link()
            self._link_waits()
        self.num_planned, self.figures["slices"] = self.figures["slices"], 0
        counts = self.options.counters and not self.figures["left_out"]
        memory_drawn = not (counts and self.has_memory)
        for index, group in enumerate(self.groups):
            if not memory_drawn and group.name.on_gpu:
                memory_drawn = True
                yield from self._memory()
            yield from self._group(group)
            last = index + 1 == len(self.groups) or self.groups[index + 1].name.process != group.name.process
            if counts and group.name.on_gpu and last:
                yield from self._counters(group)
        if not memory_drawn:
            yield from self._memory()
        for name, details, wall in self.options.remarks:
            time = self.figures["end_ns"] if wall is None else max(wall - self.base, 0)
            args = f',"args":{{"details":{_json(details)}}}' if details else ""
            pid, tid = self.place
            time = min(time, LARGEST_TIME_NS)
            yield (
                f'{{"ph":"i","s":"g","name":{_json(name)},"cat":"collector","pid":{pid},"tid":{tid},'
                f'"ts":{_micros(time)}{args}}}'
            )

    def _label(self, group: Group, device: str) -> str:
        """The label of a device or, for a device with all streams of a GPU, of its process."""
        return self.options.labels.get(device.removeprefix(group.name.prefix), "") if group.name.on_gpu else ""

    def _process(self, name: str, label: str = "") -> Iterator[str]:
        pid = self.order.pid(name)
        if pid in self.begun_pids:
            return
        self.begun_pids.add(pid)
        yield _metadata("process_name", pid, None, name=name)
        labels = ", ".join(each for each in (self.options.label, label) if each)
        if labels:
            yield _metadata("process_labels", pid, None, labels=labels)
        yield _metadata("process_sort_index", pid, None, sort_index=pid)

    def _group(self, group: Group) -> Iterator[str]:
        if group.name.kind == Kind.STREAM:
            self.busy.append([])
        if not group.nodes:
            return
        pid = self.order.pid(group.name.process)
        yield from self._process(group.name.process, self._label(group, group.name.unit))
        label = self._label(group, group.device)
        rows = Rows(f"{group.name.track} ({label})" if label else group.name.track)
        threads: dict[int, Rows] = {}
        if group.name.on_gpu and group.name.kind == Kind.OTHER and group.name.track == "graphs":
            yield from self._graphs(group, rows, pid)
            return
        for item in group.nodes:
            start, end = item.start - self.base, item.end - self.base
            if group.has_threads:
                thread = item.node.thread_id
                rows = threads.setdefault(thread, Rows(_thread_name(group, thread), os_thread=True))
            row = _row(rows, start, end)
            if row not in rows.tids:
                tid = rows.tids[row] = self.order.take_tid(group.device)
                name = f"{rows.name} lane {row + 1}" if row else rows.name
                yield _metadata("thread_name", pid, tid, name=name, device=group.device)
                yield _metadata("thread_sort_index", pid, tid, sort_index=tid)
            self.place = pid, rows.tids[row]
            yield from self._slice(group, item, start, end)

    def _graphs(self, group: Group, rows: Rows, pid: int) -> Iterator[str]:
        """Launches of graphs, each with its nodes inside; what overlaps has rows of its own."""
        launches = sorted(group.nodes, key=lambda item: (item.start, -item.duration, item.ordinal))
        nodes = self._graph_nodes(group, launches)
        tids: dict[tuple[int, int], int] = {}
        for launch, own in zip(launches, nodes, strict=True):
            row, inner = rows.lanes.place(launch.start + 1, launch.end), Lanes()
            places = [(row, 0), *((row, inner.place(node.start + 1, node.end)) for _, node in own)]
            for number, (place, (stream, item)) in enumerate(zip(places, [(group, launch), *own], strict=True)):
                if place not in tids:
                    tid = tids[place] = self.order.take_tid(group.device)
                    name = f"{rows.name} lane {len(tids)}" if len(tids) > 1 else rows.name
                    yield _metadata("thread_name", pid, tid, name=name, device=group.device)
                    yield _metadata("thread_sort_index", pid, tid, sort_index=tid)
                self.place = pid, tids[place]
                if number == 0:
                    yield from self._slice(group, item, item.start - self.base, item.end - self.base)
                else:
                    yield self._graph_node(stream, item)

    def _graph_nodes(self, group: Group, launches: list[Drawable]) -> list[list[tuple[Group, Drawable]]]:
        """For each launch its nodes with their streams, unless there would be too many slices."""
        nodes: list[list[tuple[Group, Drawable]]] = [[] for _ in launches]
        if self.figures["left_out"]:
            return nodes
        launch_of: dict[int, int] = {}
        for number, launch in enumerate(launches):
            launch_of.setdefault(launch.node.correlation_id, number)
        for stream in self.groups:
            if stream.name.kind != Kind.STREAM or stream.name.unit != group.name.unit:
                continue
            for item in stream.nodes:
                place = launch_of.get(item.node.correlation_id) if item.node.correlation_id else None
                if place is not None and launches[place].start <= item.start and item.end <= launches[place].end:
                    nodes[place].append((stream, item))
        count = sum(map(len, nodes))
        most = self.options.max_slices
        if most is not None and self.num_planned + count > most:
            return [[] for _ in launches]
        self.num_planned += count
        for own in nodes:
            own.sort(key=lambda node: (node[1].start, -node[1].duration, node[1].ordinal))
        return nodes

    def _graph_node(self, stream: Group, item: Drawable) -> str:
        activity = self._activity(stream, item.node)
        self.figures["slices"] += 1
        colour = _COLOURS.get(activity.category)
        look = f'"cat":"{activity.category}"' + (f',"cname":"{colour}"' if colour else "")
        number = re.search(r"/stream[:#](.+)", stream.device, re.DOTALL)
        args = f',"args":{{"stream":{_json(number[1])}}}' if number else ""
        return (
            f'{{"ph":"X","name":{_json(activity.name or "(no name)")},{look},'
            f'"pid":{self.place[0]},"tid":{self.place[1]},'
            f'"ts":{_micros(item.start - self.base)},"dur":{_micros(item.duration)}{args}}}'
        )

    def _slice(self, group: Group, item: Drawable, start: int, end: int) -> Iterator[str]:
        activity = self._activity(group, item.node)
        if group.name.kind == Kind.STREAM:
            busy = self.busy[-1]
            if not busy or busy[-1][1] < start:
                busy.append([start, end])
            busy[-1][1] = max(busy[-1][1], end)
        if group.counts_copies and activity.category == "memcpy" and activity.num_bytes > 0:
            self.copies.append((activity.copy_kind, start, end, activity.num_bytes))
        self.figures["slices"] += 1
        place = '"pid":{},"tid":{}'.format(*self.place)
        colour = _COLOURS.get(activity.category)
        look = f'"cat":"{activity.category}"' + (f',"cname":"{colour}"' if colour else "")
        # The name of the host's slice, e.g. `aten::copy_`, for the op `aten.copy_` of an activity.
        op = self.names_with_colons.get(activity.op, activity.op) if group.name.on_gpu else activity.op
        call_op = self.call_ops.pop(item.node.correlation_id, "")
        args = _arguments(replace(activity, op=op), item, self.event_records, call_op)
        yield (
            f'{{"ph":"X","name":{_json(activity.name or "(no name)")},{look},{place},'
            f'"ts":{_micros(start)},"dur":{_micros(item.duration)}{args}}}'
        )
        # Inside the slice by a tenth of a ns: see chrome_writer.cpp.
        inside = has_inside = "1" if item.duration > 0 else ""
        flow = f'"name":"launch","cat":"launch",{place},"ts":{_micros(start)}'
        if group.takes_arrows:
            arrow = self.launches.flow_to(item.node, activity, item.start, group.rank)
            if arrow:
                yield f'{{"ph":"f","bp":"e","id":{arrow},{flow}{inside}}}'
        elif not group.name.on_gpu:
            number = self.launches.flows_from(item.node, item.start, item.ordinal, group.rank, self.next_flow)
            inside = "" if activity.category == "sync" else inside
            for arrow in range(self.next_flow, self.next_flow + number):
                yield f'{{"ph":"s","id":{arrow},{flow}{inside}}}'
            self.next_flow += number
            self.figures["arrows"] += number
        flow = f'"name":"event","cat":"event",{place},"ts":{_micros(start)}'
        for arrow in self.event_arrows_of_source.get(item.ordinal, []):
            yield f'{{"ph":"s","id":{arrow},{flow}{"" if activity.category == "sync" else inside}}}'
        if item.ordinal in self.event_arrows:
            yield f'{{"ph":"f","bp":"e","id":{self.event_arrows[item.ordinal]},{flow}{has_inside}}}'
        flow = f'"name":"wait","cat":"wait",{place},"ts":'
        for arrow in self.arrows_of_source.get(item.ordinal, []):
            yield f'{{"ph":"s","id":{arrow},{flow}{_micros(end - 2)}1}}'
        if item.ordinal in self.wait_arrows:
            yield f'{{"ph":"f","bp":"e","id":{self.wait_arrows[item.ordinal]},{flow}{_micros(end - 1)}1}}'

    # --- counters ---

    def _series(self, pid: int, name: str, unit: str, points: Iterable[tuple[int, int]]) -> Iterator[str]:
        first, last = self.options.window_start_ns, self.options.window_end_ns
        before: int | None = None  # the last value before the window, which is the window's first value
        for time, value in points:
            if last is not None and time > last:
                break
            if first is not None and time < first:
                before = value
                continue
            shown = [(time, value)]
            if before is not None and first is not None and time > first:
                shown.insert(0, (first, before))
            before = None
            for at, held in shown:
                self.figures["counter_values"] += 1
                yield f'{{"ph":"C","name":{_json(name)},"pid":{pid},"ts":{_micros(at)},"args":{{"{unit}":{held}}}}}'

    def _counters(self, group: Group) -> Iterator[str]:
        busy = count_busy(self.busy) if sum(map(bool, self.busy)) > 1 else []
        kinds: dict[str, list[tuple[int, int]]] = {}
        for kind, start, end, num_bytes in self.copies:
            kinds.setdefault(kind, []).extend([(start, num_bytes), (end, -num_bytes)])
        self.busy, self.copies = [], []
        if not busy and not kinds:
            return
        pid = self.order.pid(group.name.process)
        yield from self._process(group.name.process)
        yield from self._series(pid, "busy streams", "streams", busy)
        for kind, changes in kinds.items():
            yield from self._series(pid, f"{kind} in flight", "bytes", running_total(changes))

    def _memory(self) -> Iterator[str]:
        hosts = [part for group in self.groups if not group.name.on_gpu for part in group.parts]
        nodes = [node for part in hosts for node in part.node_stats]
        recorded = recorded_memory(nodes, self._is_plausible) if self.has_allocator_memory else {}
        pid = self.order.pid(MEMORY)
        for allocator, changes in (recorded or estimated_memory(nodes, self._is_plausible)).items():
            points = running_total([(max(time - self.base, 0), num_bytes) for time, num_bytes in changes])
            if not points:
                continue
            yield from self._process(MEMORY)
            name = f"memory {allocator or '(no name)'}" + ("" if recorded else " (estimated)")
            yield from self._series(pid, name, "bytes", points)


def _share_activities(step_stats: Any) -> None:
    """Give the nodes of streams and copies the activities that those of ``stream:all`` have."""
    for all_streams in step_stats.dev_stats:
        name = parse_device_name(all_streams.device)
        if name.kind != Kind.ALL_STREAMS:
            continue
        parts = activities_of_parts(all_streams)
        for device in step_stats.dev_stats:
            activities = parts.get(device.device.removeprefix(f"{name.unit}/"), [])
            if len(activities) == len(device.node_stats):
                for node, activity in zip(device.node_stats, activities, strict=True):
                    node.activity.CopyFrom(activity)


def _without_colons(name: str) -> str:
    """An annotation in the form that it has as the ``op`` of ``op:kernel``: readers split node names at colons."""
    return re.sub(r":+", ".", name)


def _row(rows: Rows, start: int, end: int) -> int:
    """The row for a slice: a thread's own if it nests there, else the first free lane."""
    if rows.os_thread:
        while rows.open and rows.open[-1] <= start:
            rows.open.pop()
        if not rows.open or end <= rows.open[-1]:
            rows.open.append(end)
            return 0
    return rows.lanes.place(start + 1, end) + rows.os_thread


def _thread_name(group: Group, thread: int) -> str:
    names = [part.thread_names[thread] for part in group.parts if thread in part.thread_names]
    named = [name for name in names if name]
    if not named:
        return f"thread {thread}"
    return named[-1] if str(thread) in named[-1] else f"{named[-1]} (thread {thread})"


def _arguments(activity: Activity, item: Drawable, event_records: Iterable[EventRecord], call_op: str) -> str:
    values: dict[str, str] = {}
    for key, text in (("kernel", activity.full_name), ("op", activity.op), ("inputs", activity.inputs)):
        if text:
            values[key] = _json(text)
    if activity.num_bytes >= 0:
        values["bytes"] = str(activity.num_bytes)
    for key, text in (("from", activity.source), ("to", activity.target)):
        if text:
            values[key] = _json(text)
    for key, text in activity.details:
        number = int64(text)
        value = f"[{text}]" if _NUMBERS.fullmatch(text) else _json(text)
        value = value if number is None else str(number)
        values.setdefault(_READABLE_KEYS.get(key, key), value)
    if activity.is_unnamed or (item.node.activity.kind and not activity.name):
        values.setdefault("unnamed", "1")
    if item.node.correlation_id:
        values.setdefault("correlation", str(item.node.correlation_id))
    if call_op:
        values.setdefault("op", _json(call_op))
    if item.node.activity.kind == RecordedActivity.API_CALL:
        records = [record for record in event_records if record.correlation_id == item.node.correlation_id]
        if records:
            values |= {"event": str(records[0].event_id), "stream": str(records[0].stream_id)}
    scheduled = scheduled_ns(item.node)
    if scheduled > 0 and 0 <= item.start - scheduled <= FAR_NS:
        values.setdefault("waited_ns", str(item.start - scheduled))
    return ',"args":{' + ",".join(f'"{key}":{value}' for key, value in values.items()) + "}" if values else ""


def _metadata(event: str, pid: int, tid: int | None, **arguments: str | int) -> str:
    thread = "" if tid is None else f',"tid":{tid}'
    shown = (f'"{key}":{_json(value) if isinstance(value, str) else value}' for key, value in arguments.items())
    return f'{{"ph":"M","name":"{event}","pid":{pid}{thread},"args":{{{",".join(shown)}}}}}'


def _json(text: str) -> str:
    # Perfetto (v52) shows \u00fc in a name letter by letter, so characters beyond ASCII are written unchanged.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _micros(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"
