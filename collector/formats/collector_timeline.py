"""Converts a Chrome trace that this project drew back to the recording or the StepStats it was made from.

Everything that slices state is restored. Content that the timeline leaves out is missing: tensors, and nodes that a
filter removed. In StepStats ``stream:all`` is restored from the single streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.formats.capture_builder import not_stated, with_stated_ledger
from collector.formats.chrome_dialects import is_cut_timeline, stated_base
from collector.formats.chrome_events import NO_BASE, ChromeEvents, has_time, possible_base, text
from collector.formats.drawn_metadata import StatedProcess, column_number, inputs_of, provenance
from collector.formats.profiler_dialect import SOURCE
from collector.formats.step_sources import ColumnsSource, RecordingSource, StepSource
from collector.formats.stepstats_columns import labelled_capture, with_untimed
from collector.formats.timeline_columns import STREAM, Place, TimelineColumns
from collector.formats.timeline_side_rows import graph_device, side_table
from collector.protos import Activity
from collector.protos.run_metadata_pb2 import Provenance, RunMetadata
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.recording.distinct import grouped_rows
from collector.recording.launch_figures import LAUNCH_FIGURES
from collector.recording.schema import SCHEMA
from collector.recording.stream_devices import stated_by_number
from collector.recording.text_columns import text_column
from collector.stepstats.activity_arguments import UNNAMED
from collector.stepstats.device_prefixes import device_in_process, split_prefix, task_numbers
from collector.stepstats.shown_tables import TABLE_ARGUMENTS
from collector.stepstats.stated_window import in_window, window_of
from collector.stepstats.wire import as_run_metadata, run_metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.formats.capture_builder import CaptureBuilder
    from collector.formats.chrome_events import Numbers
    from collector.recording.capture import Capture
    from collector.recording.recording import Recording
    from collector.recording.step_origin import StepOrigin

_DEVICE_IN_PROCESS = re.compile(r"(?:rank \d{1,7} )?(?:.*\()?(?P<device>/.*?)\)?", re.DOTALL)
"""The parts of a process's name in traces whose rows do not state their devices."""
_LANE = re.compile(r" lane [0-9]{1,9}$")
"""The end of the names of further rows of a thread or stream, for slices that overlap."""
_STEPS = re.compile(r"Steps\b")
"""The device of a merged trace that shows the begin and end of steps."""
_GPU_WORK = ("kernel", "memcpy", "memset")
_KINDS = {"other": Activity.OTHER_RANGE, "overhead": Activity.OVERHEAD}
"""Category of a slice, where name and label do not state the kind -> the kind of activity."""
_DETAIL_WORDS = {
    "registers": "regs",
    "shared_bytes": "shm",
    "static_shared_bytes": "static_shared",
    "dynamic_shared_bytes": "dynamic_shared",
    "occupancy_percent": "occ_pct",
}
"""An argument's name -> its word in a label; others are the same in both."""
_NO_NAME = "(no name)"
"""The name of a slice whose node has none."""
_NO_DETAILS = ("kernel", "op", "inputs", "bytes", "from", "to", "correlation", "waited_ns", UNNAMED)


def base_time_ns(found: ChromeEvents) -> int:
    """Wall time of the trace's time 0, which the end of the file states.

    A trace without its end counts from 0, which is noted in ``found.skipped``.
    """
    if is_cut_timeline(found):
        found.skipped[NO_BASE] += 1
        return 0
    return possible_base(stated_base(found) or 0, found.skipped)


class _Slice(NamedTuple):
    name: str
    category: str
    arguments: dict[str, Any]
    start_ns: int
    """Wall time."""
    duration_ns: int


class CollectorTrace(StepSource):
    """The step in a trace of this project; what cannot be read is counted in ``found.skipped``.

    A trace that was drawn from a recording, as the ledger in the trace shows, becomes that recording again. Other
    traces were drawn from StepStats, such as TensorFlow's, and become StepStats again.
    """

    def __init__(self, found: ChromeEvents) -> None:
        """Read places and times of all slices; columns and messages are made from them on request."""
        self._found = found
        self._provenance = provenance(found)
        self._base_ns = base_time_ns(found)
        self._places = _places(found)
        self._rows = _slice_rows(found, self._places)
        if self.is_recording:
            self.device_prefix = self._prefixes()[0]

    @property
    def is_empty(self) -> bool:
        """Whether the trace has no slice that can be read."""
        return not len(self._rows)

    @cached_property
    def is_recording(self) -> bool:  # type: ignore[override]  # a constant of other sources
        """See `StepSource`. A recording is that of one process and has no devices of steps."""
        is_of_steps = any(_STEPS.match(place.device) for place in self._used_places())
        return bool(self._provenance.ledger) and len(self._prefixes()) == 1 and not is_of_steps

    def _prefixes(self) -> list[str]:
        """The different prefixes of devices; an empty one of devices that have none."""
        return list(dict.fromkeys(split_prefix(place.device)[0] for place in self._used_places())) or [""]

    @cached_property
    def has_more_columns(self) -> bool:  # type: ignore[override]  # a constant of other sources
        """See `StepSource`."""
        return any(stated.is_recorded for *_, stated in self._processes())

    def unread(self) -> Mapping[str, int]:
        """See `StepSource`."""
        return dict(self._provenance.unread) if self.is_recording else {}

    def wire(self, origin: StepOrigin) -> tuple[bytes, bool] | None:
        """See `StepSource`."""
        if self.is_recording:
            return self._columns.wire(origin)
        if not self.has_more_columns:
            return None
        steps, without_columns = self._serialized_steps()
        stated = RunMetadata(provenance=self.provenance(origin))
        _state_without_columns(stated, without_columns)
        return as_run_metadata(steps) + stated.SerializeToString(deterministic=True), True

    def run_metadata(self, origin: StepOrigin) -> RunMetadata:
        """See `StepSource`."""
        if self.is_recording:
            return self._columns.run_metadata(origin)
        return super().run_metadata(origin)

    def provenance(self, origin: StepOrigin) -> Provenance:
        """See `StepSource`."""
        if self.is_recording:
            return self._columns.provenance(origin)
        return super().provenance(origin)

    def own_provenance(self) -> Provenance:
        """See `StepSource`."""
        return self._provenance

    def device_names(self) -> list[str]:
        """See `StepSource`."""
        return [] if self.is_recording else list(dict.fromkeys(place.device for place in self._used_places()))

    @property
    def is_one_process(self) -> bool:  # type: ignore[override]  # a constant of other sources
        """See `StepSource`."""
        return not any(task_numbers(place.device for place in self._used_places()))

    def _used_places(self) -> list[Place]:
        """The places of tracks with slices."""
        used = np.unique(self._found.track_numbers(self._rows)).tolist()
        return [place for track in used if (place := self._places[track]) is not None]

    def message(self) -> RunMetadata:
        """See `StepSource`."""
        steps, without_columns = self._serialized_steps()
        metadata = run_metadata_of(steps, is_run_metadata=False)
        if self._provenance.ByteSize():
            metadata.provenance.CopyFrom(self._provenance)
        _state_without_columns(metadata, without_columns)
        return metadata

    def _serialized_steps(self) -> tuple[bytes, int]:
        """The bytes of the StepStats, and the number of slices of recordings that are not rows of them."""
        from collector.recording.recording import Recording
        from collector.stepstats.from_recording import serialized_step_stats

        steps, others, without_columns = [], [self._rows[:0]], 0
        for rows, places, stated in self._processes():
            for prefix, own in self._by_prefix(rows):
                if prefix is None or not stated.is_recorded:
                    others.append(own)
                    continue
                capture, _ = self._capture(own, places, stated)
                without_columns += capture["counters"].get("nodes_without_columns", 0)
                steps.append(serialized_step_stats(Recording.from_capture(capture), prefix))
        steps.append(self._step_stats(np.sort(np.concatenate(others))).SerializeToString(deterministic=True))
        return b"".join(steps), without_columns

    def _by_prefix(self, rows: Numbers) -> Iterator[tuple[str | None, Numbers]]:
        """The slices of devices with the same prefix; it is None for the devices that show the time of steps."""
        if not len(rows):  # there may be no track either
            return
        prefixes, number_of_track = self._prefixes_of_tracks
        order, bounds = grouped_rows(number_of_track[self._found.track_numbers(rows)], len(prefixes))
        for prefix, own in zip(prefixes, np.split(rows[order], bounds[1:-1]), strict=True):
            if len(own):
                yield prefix, own

    @cached_property
    def _prefixes_of_tracks(self) -> tuple[list[str | None], Numbers]:
        """The different prefixes, and the place of each track's among them."""
        numbers: dict[str | None, int] = {}
        of_tracks = [
            None if place is None or _STEPS.match(place.device) else split_prefix(place.device)[0]
            for place in self._places
        ]
        places = [numbers.setdefault(prefix, len(numbers)) for prefix in of_tracks]
        return list(numbers), np.array(places, np.int64)

    def _step_stats(self, rows: Numbers) -> StepStats:
        """The StepStats of some of the slices."""
        step = StepStats()
        devices: dict[str, DeviceStepStats] = {}
        for place, each in self._slices(rows):
            if place.device not in devices:
                devices[place.device] = step.dev_stats.add(device=place.device)
            node = _node(each)
            own_name = split_prefix(place.device)[1] if each.category == "other" else ""
            if side_table(own_name) == "graph_launches":  # slices of other categories are nodes of graphs
                node.activity.kind = Activity.GRAPH_LAUNCH
                node.activity.device_id = graph_device(own_name)
                for argument in TABLE_ARGUMENTS["graph_launches"]:
                    if argument.form == "Number":
                        setattr(node.activity, argument.column, _id(each.arguments.get(argument.key)) or 0)
            if place.thread_id is not None:
                node.thread_id = place.thread_id
                devices[place.device].thread_names[node.thread_id] = text(place.row)
            devices[place.device].node_stats.append(node)
        _join_streams(step)
        return step

    def _slices(self, rows: Numbers) -> Iterator[tuple[Place, _Slice]]:
        found = self._found
        names, name_index = found.names(rows)
        categories, category_index = found.categories(rows)
        for name, category, track, start_ns, duration_ns, arguments in zip(
            name_index.tolist(),
            category_index.tolist(),
            found.track_numbers(rows).tolist(),
            found.starts_ns(rows).tolist(),
            found.durations_ns(rows).tolist(),
            found.arguments_of(rows),
            strict=True,
        ):
            place = self._places[track]
            assert place is not None
            yield place, _Slice(names[name], categories[category], arguments, self._base_ns + start_ns, duration_ns)

    def recording(self) -> Recording:
        """See `StepSource`."""
        return self._recording

    @property
    def _columns(self) -> ColumnsSource:
        """The source of the recording, if the step is one."""
        return RecordingSource(self._recording, self.device_prefix)

    @cached_property
    def _recording(self) -> Recording:
        from collector.recording.joined_captures import joined_captures
        from collector.recording.recording import Recording

        about = self._provenance
        captures, untimed = zip(*(self._capture(*process) for process in self._processes()), strict=True)
        capture = joined_captures(captures)
        capture["counters"] = {**capture["counters"], **about.ledger}
        # The trace may show a part of the recording, and does not show the rows that it set apart.
        found = with_untimed(in_window(Recording.from_capture(capture), window_of(about)), sum(untimed))
        return with_stated_ledger(found, about.ledger, is_whole=about.ledger.keys() >= set(LAUNCH_FIGURES))

    def _processes(self) -> Iterator[tuple[Numbers, list[Place | None], StatedProcess]]:
        """The slices of each rank, process or step, the places without the prefixes of devices, and what is stated."""
        places, inputs = self._places, inputs_of(self._found)
        prefixes = [split_prefix("" if place is None else place.device)[0] for place in places]
        tasks = np.array(task_numbers("" if place is None else place.device for place in places), np.int64)
        if any(prefixes):
            places = [place and place._replace(device=split_prefix(place.device)[1]) for place in places]
        order, bounds = grouped_rows(tasks[self._found.track_numbers(self._rows)], int(tasks.max(initial=0)) + 1)
        stated = StatedProcess.of_trace(self._found)
        for task, rows in enumerate(np.split(self._rows[order], bounds[1:-1])):
            if not len(rows) and len(self._rows):
                continue
            if inputs:
                own = {prefix for prefix, number in zip(prefixes, tasks.tolist(), strict=True) if number == task}
                stated = StatedProcess.of_inputs(inputs, own)
            yield rows, places, stated
            stated = stated.without_objects()  # a trace that is not merged states those of its first process

    def _capture(self, rows: Numbers, places: list[Place | None], stated: StatedProcess) -> tuple[Capture, int]:
        """The capture of one process, and the number of its slices without a possible time.

        Slices that were drawn from StepStats of other programs have what their names and labels say.
        """
        if not stated.is_recorded:
            capture, num_untimed = labelled_capture(self._step_stats(rows).SerializeToString(), is_run_metadata=False)
            capture["environment"] = {**stated.environment, **capture["environment"]}
            return capture, num_untimed
        environment, objects = dict(stated.environment), stated.objects
        names, devices = (_by_thread(environment.pop(f"thread_{what}", "")) for what in ("names", "devices"))
        contexts = {
            column_number(row.get("context_id")): column_number(row.get("device_id"))
            for row in objects.get("contexts", ())
        }
        is_profile = environment.get("source") == SOURCE
        columns = TimelineColumns(self._found, self._base_ns, rows, places, names, contexts, is_profile=is_profile)
        built = columns.built()
        _add_objects(built, columns, objects)
        by_thread = {"thread_names": names or columns.thread_names, "thread_devices": devices}
        environment |= {what: texts for what, texts in by_thread.items() if texts}
        return built.capture({}, environment), 0


def _state_without_columns(message: RunMetadata, count: int) -> None:
    if count:
        message.provenance.ledger["nodes_without_columns"] += count


def _add_objects(built: CaptureBuilder, drawn: TimelineColumns, objects: Mapping[str, list[dict[str, Any]]]) -> None:
    """Add the tables that the metadata holds row by row, without values of unexpected types."""
    for table, rows in objects.items():
        columns = {
            column: built.name_ids([text(row.get(text_column(column), "")) for row in rows])
            if text_column(column)
            else np.array([column_number(row.get(column, not_stated(table, column))) for row in rows], np.int64)
            for column in SCHEMA[table]
        }
        if table == "collectives":
            columns["context_id"] = drawn.contexts_of_kernels(columns)
        built.add(table, **columns)


def _by_thread(given: Any) -> dict[int, str]:
    """Texts by the numbers of threads, which older traces have as JSON; empty where the text is not JSON."""
    return {thread: text(name) for thread, name in stated_by_number(given).items() if thread < 1 << 32}


def _places(found: ChromeEvents) -> list[Place | None]:
    """The device and row of each track; None for a process that is not a number."""
    is_merged = found.is_cut or bool(inputs_of(found))
    processes, threads = found.process_names, found.described_threads
    places: list[Place | None] = []
    for pid, tid in found.tracks:
        if not isinstance(pid, int):
            places.append(None)
            continue
        row = threads.get((pid, tid), {}) if isinstance(tid, int) else {}
        places.append(
            Place(
                _device(processes.get(pid, f"process {pid}"), row.get("device"), is_merged=is_merged),
                _LANE.sub("", str(row.get("name"))),
                _id(row.get("context")),
                _id(row.get("process")) or 0,
            )
        )
    return places


def _id(value: Any) -> int | None:
    """A number of 32 bits; None for anything else."""
    return value if type(value) is int and 0 <= value < 1 << 32 else None


def _slice_rows(found: ChromeEvents, places: list[Place | None]) -> Numbers:
    """The events that are slices with a time and a place; others are counted in ``found.skipped``."""
    rows = found.rows("X")
    is_timed = has_time(found.starts_ns(rows)) & has_time(found.durations_ns(rows))
    is_timed &= np.array([place is not None for place in places], bool)[found.track_numbers(rows)]
    if not is_timed.all():
        found.skipped["events without a possible time or process"] += int((~is_timed).sum())
    return rows[is_timed]


def _correlation(arguments: dict[str, Any]) -> int:
    return _id(arguments.get("correlation")) or 0


def _device(process: str, stated: Any, *, is_merged: bool) -> str:
    """The device that a row or else its process's name states, with the process's rank as a prefix."""
    if isinstance(stated, str):
        device = stated
    elif found := _DEVICE_IN_PROCESS.fullmatch(process):
        device = found["device"]
    else:
        return text(process)
    return text(device_in_process(device, process, is_merged=is_merged))


def _node(each: _Slice) -> NodeExecStats:
    arguments, start_ns, duration_ns = each.arguments, each.start_ns, each.duration_ns
    name = "" if each.name == _NO_NAME else each.name
    op = text(arguments.get("op", ""))
    if each.category in _GPU_WORK:
        # A colon ends the op. What is drawn spells it as the host does, where it finds it there.
        node_name = f"{op.replace('::', '.') or name}:{name}" if op or name else ""
        label = _work_label("" if UNNAMED in arguments else name, arguments)
    else:
        node_name = name
        label = f"{name} = {op}({text(arguments.get('inputs', ''))})" if op and each.category == "op" else ""
    start_us, end_us = start_ns // 1000, (start_ns + duration_ns) // 1000
    length_us = max(end_us - start_us, 1 if start_ns else 0)  # 0 nanoseconds are those that a node does not state
    node = NodeExecStats(
        node_name=node_name,
        timeline_label=label,
        all_start_micros=start_us,
        all_start_nanos=start_ns,
        op_end_rel_micros=length_us,
        op_end_rel_nanos=duration_ns,
        all_end_rel_micros=length_us,
        all_end_rel_nanos=duration_ns,
    )
    waited_ns = arguments.get("waited_ns")
    if type(waited_ns) is int and 0 <= waited_ns < start_ns:
        node.scheduled_micros, node.scheduled_nanos = (start_ns - waited_ns) // 1000, start_ns - waited_ns
    node.correlation_id = _correlation(arguments)
    if each.category in _KINDS:
        node.activity.kind = _KINDS[each.category]
    return node


def _work_label(name: str, arguments: dict[str, Any]) -> str:
    label = text(arguments.get("kernel", ""))
    places = [text(arguments[side]) for side in ("from", "to") if side in arguments]
    if "bytes" in arguments or places:
        label = f"{name} {text(arguments['bytes'])} bytes" if "bytes" in arguments else name
        if places:
            label += f" ({' to '.join(places)})"
    details = []
    for key, value in arguments.items():
        if key not in _NO_DETAILS:
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            details.append(f" {_DETAIL_WORDS.get(key, key)}:{shown}")
    return text((label or name if details else label) + "".join(details))


def _join_streams(step: StepStats) -> None:
    """Add ``stream:all`` for each GPU that has single streams only."""
    streams: dict[str, list[DeviceStepStats]] = {}
    for device in step.dev_stats:
        found = STREAM.fullmatch(device.device)
        if found is not None:
            streams.setdefault(found["gpu"], []).append(device)
    for gpu, parts in streams.items():
        if not any(part.device.endswith("/stream:all") for part in parts):
            nodes = [node for part in parts for node in part.node_stats]
            nodes.sort(key=lambda node: (node.all_start_nanos, node.all_end_rel_nanos))
            step.dev_stats.add(device=f"{gpu}/stream:all", node_stats=nodes)
