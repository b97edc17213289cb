"""Steps as XSpace (``.xplane.pb``), the format of XProf and TensorBoard's profiler.

Each GPU is a plane with one line for each stream and for each row beside the streams; kernels carry their launch shape
as XProf's stat ``kernel_details`` and the op they were launched for as ``tf_op``. The host is a plane with one line for
each thread, and one line with the time of each step. GPU work in a step names the step as its cause; from this XProf
derives the steps of each GPU and its table of step times. The tools require a file in a folder of its own:
``LOGDIR/plugins/profile/RUN/HOST.xplane.pb``.

Events wait in a temporary file until all steps are there, so that memory is bounded by the largest step. The extension
writes them: this module describes each kind of event once.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, cast

from collector.formats import profile_stats
from collector.formats.stated_origin import recorder_in, stated_origin
from collector.formats.xplane import Plane, stats_fields
from collector.protos import Activity, NodeExecStats, Provenance
from collector.protos.xplane_pb2 import XLine, XPlane, XSpace, XStat
from collector.recording.kind_names import copy_kind_name, memory_kind_name
from collector.recording.ledger import Ledger
from collector.recording.stream_names import stated_places
from collector.runtime.extension import convert_extension
from collector.stepstats.activity_arguments import UNNAMED, arguments_of
from collector.stepstats.device_prefixes import common_prefix, split_prefix, task_numbers
from collector.stepstats.environment_texts import environment_of
from collector.stepstats.labels import recorded_op
from collector.stepstats.message_size import check_message_size
from collector.stepstats.object_tables import object_rows_of, strings_of
from collector.stepstats.stated_window import KEY as WINDOW_KEY
from collector.stepstats.stated_window import window_of, window_texts
from collector.stepstats.wire import provenance_of
from collector.text.wording import counted
from collector.timeline.drawing import op_details_of
from collector.timeline.object_labels import context_label, event_records, stream_label
from collector.timeline.op_arguments import NOTHING, OpDetails

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType

    from collector._convert import StepEvents
    from collector.stepstats.object_tables import ObjectRow

_GPU_DEVICE = re.compile(r"(?P<prefix>.*?)/(?:device:)?gpu:(?P<ordinal>[0-9]{1,9})(?:/(?P<row>.+))?", re.IGNORECASE)
_DETAIL = re.compile(r" ([a-z_]+):([\w,.]+)(?=$| )")
_COPY = re.compile(r"MEMCPY(kind \d+|\w+|<unknown>)|Memcpy(\w+)")
_NUM_BYTES = re.compile(r"\b(?:bytes|size):(\d+)\b|\b(\d+) bytes\b")

_ALL_STREAMS = "stream:all"
_OTHER_VENDORS = ("AMD", "Intel")
"""The first letters of the names of other vendors' GPUs. A name of Nvidia's need not state the vendor."""
_COPIES = "memcpy"
_SIDE_ROWS = ("annotations", "graphs")
"""Rows of a GPU beside its streams: ranges of other programs' traces, and launches of graphs."""
_TASK = re.compile(r"/job:([^/]+)/replica:\d+/task:(\d+)/")
_STEPS_DEVICE = re.compile(r"Steps/(?:((?:run \S+ )?rank \d+)|steps)|(?:(rank \d+) )?Steps")
"""The device of a merged trace that shows the time of steps, with their rank if there are several. Older traces have
the second form."""
_STEP_NAME = re.compile(r"step (\d{1,18})")
_STEP_CONTEXT = 1
"""Kind of the numbers by which GPU work names its step."""

_DEVICE_STATS = {
    "clock_rate": "core_clock_khz",
    "core_count": "num_multiprocessors",
    "memory_size": "memory_bytes",
    "compute_cap_major": "compute_major",
    "compute_cap_minor": "compute_minor",
}
"""Stat of a GPU's plane, from which XProf computes the peak rates of the GPU, and the column of ``devices``."""
_KILOBYTE = 1000

_SIDE_DEVICE = re.compile(r"/cpu:\d+/(\w+)$", re.IGNORECASE)
"""Devices of the host without annotations and calls: waits, overheads, memory operations, NVTX ranges."""

_FLOW_IN, _FLOW_OUT = 1, 2
"""Directions of XProf's ``XFlow``, which are its two lowest bits."""


@dataclass(frozen=True)
class _Part:
    """The properties of a step that its events need."""

    events: StepEvents
    shift_ns: int
    causes: Mapping[str, Sequence[tuple[int, int]]]
    """Rank, where there are several -> start of each step on its own clock, in order, and its number as a cause."""
    first_correlations: Sequence[int]
    """For each device: added to correlation ids, which each process counts from 1."""
    event_stats: Mapping[int, bytes]
    """Correlation id of a call that recorded a CUDA event -> stats of its event."""
    texts: Sequence[str]
    """The strings of the step's recording."""
    flows: Mapping[int, Mapping[int, int]]
    """Device -> node at an end of an arrow -> the value of XProf's stat ``flow``; both as indices."""
    detail_stats: Sequence[bytes]
    """Further stats of annotations, in the order in which the details of the step number them."""

    def causes_of(self, rank: str) -> Sequence[tuple[int, int]]:
        """The steps that work of a rank may be of."""
        return self.causes.get(rank) or next(iter(self.causes.values()))


@dataclass
class _Device:
    """A device of a step."""

    place: int
    """Its index in the message."""
    name: str
    thread_names: Mapping[int, str]
    gpu: tuple[str, str] | None = field(init=False)
    """The prefix and the number of the GPU; None: it is a host's, or that of the host's time for work on a GPU."""
    row: str = field(init=False)
    """``stream:7``; empty for a host's."""

    def __post_init__(self) -> None:
        found = _GPU_DEVICE.fullmatch(self.name)
        self.row = (found["row"] or "") if found else ""
        self.gpu = (found["prefix"], found["ordinal"]) if found and self.row else None

    @property
    def is_stream(self) -> bool:
        """Whether it has the work of one stream."""
        return self.row.startswith("stream:") and self.row != _ALL_STREAMS


class XSpaceWriter:
    """An XSpace of steps that are added one after the other.

    Args:
        origin_ns: wall time of the profile's begin; no event of any step may be before.
    """

    def __init__(self, origin_ns: int) -> None:
        self.origin_ns = origin_ns
        self.end_ns = origin_ns
        self._spool = cast("BinaryIO", tempfile.TemporaryFile(buffering=1 << 20))  # noqa: SIM115 - see __exit__
        self._gpus: dict[tuple[str, int], Plane] = {}
        self._host = self._plane("/host:CPU")
        self._steps: dict[tuple[str, int, int], list[int]] = {}
        """Run or owner, number and place among its like of a step -> number as cause, first start, last end."""
        self._like: Counter[tuple[str, int]] = Counter()
        self._tasks = 0
        self._flows = 0
        self._left_out = 0
        self._warnings: list[str] = []

    def __enter__(self) -> XSpaceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # there is no room for its last bytes, which nobody needs any more
            self._spool.close()

    def add(
        self,
        message: bytes,
        *,
        is_run_metadata: bool,
        number: int = 0,
        shift_ns: int = 0,
        owner: str = "",
        run: str = "",
        together: bool = True,
        objects: Mapping[str, Sequence[ObjectRow]] | None = None,
        texts: Sequence[str] = (),
        details: OpDetails = NOTHING,
    ) -> tuple[int, int]:
        """Add a step, or what one rank did in a step: how many nodes are drawn, and how many have no possible time.

        Args:
            message: the StepStats of the recorded step, or its RunMetadata if ``is_run_metadata``.
            is_run_metadata: the type of the message.
            number: the number of the step. A merged trace that was read back states the numbers of its steps itself.
            shift_ns: added to its times.
            owner: put after the names of its GPUs and before those of its threads; each has planes of its own.
            run: the run of the step, if there are several.
            together: the step of this number is one for all owners of the run.
            objects: the rows of `collector.stepstats.object_tables`, where they were recorded.
            texts: the strings of the step's recording, if it has one.
            details: the metadata of annotations; see `collector.timeline.op_arguments.op_details`.
        """
        events = _events_of(message, objects or {}, details, is_run_metadata=is_run_metadata)
        return self.add_events(
            events,
            number=number,
            shift_ns=shift_ns,
            owner=owner,
            group=run if together else None,
            objects=objects or {},
            texts=texts,
            details=details,
        )

    def add_events(
        self,
        events: StepEvents,
        *,
        objects: Mapping[str, Sequence[ObjectRow]],
        texts: Sequence[str],
        details: OpDetails,
        number: int = 0,
        shift_ns: int = 0,
        owner: str = "",
        group: str | None = "",
    ) -> tuple[int, int]:
        """Like `add`, but the message was read; ``group`` is the run whose owners have a step together, or None."""
        devices = [_Device(place, name, threads) for place, (name, threads) in enumerate(events.devices())]
        copies_alone = _copies_alone(events, devices)
        marked_steps = _marked_steps(events, devices)
        first_ns, last_ns = events.bounds() or (self.origin_ns, self.origin_ns)
        marks = marked_steps or {"": [(first_ns, last_ns, number)]}
        causes = {
            rank: [
                (start_ns, self._step(owner or rank, group, marked, start_ns + shift_ns, end_ns + shift_ns))
                for start_ns, end_ns, marked in own
            ]
            for rank, own in marks.items()
        }
        tasks = task_numbers(device.name for device in devices)
        part = _Part(
            events,
            shift_ns,
            causes,
            [self._tasks + task << 32 for task in tasks],
            {
                row["correlation_id"]: stats_fields(
                    [self._host.number("event", row["event_id"]), self._host.number("stream", row["stream_id"])]
                )
                for row in objects.get("cuda_events", ())
            },
            texts,
            self._flows_of(events),
            [stats_fields(self._host.text(key, value) for key, value in own) for own in details[4]],
        )
        with_streams = {device.gpu for device in devices if device.is_stream}
        several = any(tasks) or len({device.gpu[0] for device in devices if device.gpu}) > 1
        slices = left_out = 0
        for device in devices:
            if marked_steps and _STEPS_DEVICE.fullmatch(device.name):
                continue
            if device.gpu is None:  # the host, or TensorFlow's ops placed on a GPU: the time the host took
                whose = owner or (split_prefix(device.name)[0].strip("/") if any(tasks) else "")
                drawn, without = _add_threads(self._host, whose, device, part)
            elif (
                device.row in _SIDE_ROWS
                or device.is_stream
                or device.gpu not in with_streams
                or copies_alone.get(device.place)
            ):
                prefix, ordinal = device.gpu
                plane = self._gpu(int(ordinal), owner or (prefix.strip("/") if several else ""))
                if device.row in _SIDE_ROWS:
                    drawn, without = _add_side_row(plane, device, part)
                else:
                    drawn, without = _add_stream(plane, device, part, copies_alone.get(device.place))
            else:
                continue
            slices += drawn
            left_out += without
        self._describe(objects, owner, {device.row for device in devices if device.row})
        self._tasks += max(tasks, default=0) + 1
        self._left_out += left_out
        return slices, left_out

    def _flows_of(self, events: StepEvents) -> dict[int, dict[int, int]]:
        """The arrows of waits and backward passes, in the encoding of XProf's stat; from one node they are one flow."""
        flows: dict[int, dict[int, int]] = {}
        for device, node, target_device, target in events.links():
            own = flows.setdefault(device, {})
            if node not in own:
                self._flows += 1
                own[node] = self._flows << 2 | _FLOW_OUT
            flows.setdefault(target_device, {})[target] = own[node] - _FLOW_OUT + _FLOW_IN
        return flows

    def _describe(self, objects: Mapping[str, Sequence[ObjectRow]], owner: str, shown: Collection[str]) -> None:
        """Add the properties of GPUs, contexts and streams to the planes of their GPUs.

        Each context has streams of the driver's own, which are idle for the most part: of streams, only those `shown`.
        """
        for row in objects.get("devices", ()):
            if (owner, row["device_id"]) in self._gpus:
                _describe_device(self._gpus[owner, row["device_id"]], row)
        device_of = {row["context_id"]: row["device_id"] for row in objects.get("contexts", ())}
        described = [(row, f"context {row['context_id']}", context_label(row)) for row in objects.get("contexts", ())]
        described += [
            (row, f"stream {row['stream_id']} of context {row['context_id']}", stream_label(row) or "without priority")
            for row in objects.get("streams", ())
            if {f"stream:{row['stream_id']}", f"stream:{row['stream_id']}.{row['context_id']}"} & set(shown)
        ]
        for row, name, label in described:
            built = self._gpus.get((owner, device_of.get(row["context_id"], 0)))
            if built is not None and name not in built.stats:
                built.plane.stats.append(built.text(name, label))

    def warn(self, warning: str) -> None:
        """Add a warning that viewers show when the file is opened."""
        self._warnings.append(warning)

    def write(self, file: BinaryIO, about: str = "") -> None:
        """Write all of it; `about` is the file's metadata, as text.

        Raises:
            collector.OutputError: it is larger than a protobuf message can be.
        """
        self._mark_steps()
        environment = self._plane("Task Environment")
        for name, value in (("profile_start_time", self.origin_ns), ("profile_stop_time", self.end_ns)):
            # Times of some files count from a moment after the first start.
            figure = {"uint64_value": value} if value >= 0 else {"int64_value": value}
            environment.plane.stats.add(metadata_id=environment.stat(name), **figure)
        if about:
            environment.plane.stats.add(metadata_id=environment.stat(profile_stats.PROVENANCE), str_value=about)
        owners = list(dict.fromkeys(owner for owner, _ in self._gpus))  # in the order in which they were added
        gpus = [self._gpus[key] for key in sorted(self._gpus, key=lambda key: (owners.index(key[0]), key[1]))]
        for number, built in enumerate([*gpus, self._host, environment], start=1):
            built.plane.id = number
            built.write(file)
        rest = XSpace(hostnames=["localhost"], warnings=self._warnings)
        if self._left_out:
            rest.warnings.append(counted("{} node[|s] without a possible time [was|were] left out", self._left_out))
        file.write(rest.SerializeToString())
        check_message_size(file.tell(), "the XSpace profile")

    def _plane(self, name: str) -> Plane:
        return Plane(XPlane(name=name), self.origin_ns, self._spool)

    def _gpu(self, ordinal: int, owner: str) -> Plane:
        if (owner, ordinal) not in self._gpus:
            self._gpus[owner, ordinal] = self._plane(f"/device:GPU:{ordinal} {owner}".rstrip())
        return self._gpus[owner, ordinal]

    def _step(self, owner: str, run: str | None, number: int, first_ns: int, last_ns: int) -> int:
        """The number by which a step is named as a cause: one of all owners in a run; of each owner if that is None."""
        self._like[owner, number] += 1
        key = (owner if run is None else run, number, self._like[owner, number])
        self.end_ns = max(self.end_ns, last_ns)
        step = self._steps.setdefault(key, [len(self._steps) + 1, first_ns, last_ns])
        step[1:] = min(step[1], first_ns), max(step[2], last_ns)
        return step[0]

    def _mark_steps(self) -> None:
        """A line of the host with the time of each step, in the form in which XProf recognises steps."""
        host, events = self._host, XLine()
        for (_, number, _), (cause, start_ns, end_ns) in sorted(self._steps.items(), key=lambda step: step[1][1:]):
            if end_ns > start_ns:
                stats = [
                    host.number("step_num", number),
                    host.number("_r", 1),  # the root of all that it caused
                    host.number("_pt", _STEP_CONTEXT),
                    host.number("_p", cause),
                ]
                host.put(events, "train", (start_ns, end_ns - start_ns), stats)
        if events.events:
            host.keep(host.line("", "steps", "Steps", len(host.lines) + 1), events.SerializeToString())


def write_xspace(message: bytes, file: BinaryIO) -> None:
    """Write the step in the bytes of a RunMetadata as an XSpace.

    Its ``warnings`` are the losses of the step, and count nodes without a possible time. Such nodes are left out. The
    stat ``collector`` of the plane "Task Environment" has the rank, the number of ranks, the prefix of device
    names, the window of the step, its ledger, the devices that worked in the whole of which it is a part, the first
    contexts of streams, the names that the program gave to GPUs and streams, and whether its GPU was simulated, as far
    as these are stated.
    """
    provenance = provenance_of(message) or Provenance()
    objects, details = object_rows_of(message), op_details_of(message, message, True)
    events = _events_of(message, objects, details, is_run_metadata=True)
    bounds = events.bounds()
    with XSpaceWriter(bounds[0] if bounds else 0) as writer:
        writer.add_events(events, objects=objects, texts=strings_of(message), details=details)
        ledger = Ledger.of(provenance)
        for loss in ledger.losses():
            writer.warn(loss)
        stated = stated_origin(provenance).as_dict()
        if prefix := common_prefix(name for name, _ in events.devices()):
            stated["device_prefix"] = prefix
        if window := window_of(provenance):
            stated[WINDOW_KEY] = window_texts(window)
        if figures := {name: count for name, count in ledger.as_dict().items() if count}:
            stated["ledger"] = figures
        environment = environment_of(provenance.environment, provenance.json_environment)
        stated |= stated_places(environment) | recorder_in(provenance)
        if provenance.simulated:
            stated["simulated"] = True
        writer.write(file, json.dumps(stated, sort_keys=True) if stated else "")


def _events_of(
    message: bytes, objects: Mapping[str, Sequence[ObjectRow]], details: OpDetails, *, is_run_metadata: bool
) -> StepEvents:
    """The nodes of a message, with what is stated of the step besides."""
    return convert_extension.StepEvents(
        message, is_run_metadata=is_run_metadata, event_records=event_records(objects), op_details=details
    )


def _describe_device(built: Plane, row: ObjectRow) -> None:
    """Add the GPU's properties to its plane, once."""
    if "device_vendor" in built.stats:
        return
    vendor = next((known for known in _OTHER_VENDORS if row["name"].startswith(known)), "Nvidia")
    built.plane.stats.append(built.text("device_vendor", vendor))
    built.plane.stats.append(built.text("device_name", row["name"] or "unknown"))
    built.plane.stats.append(built.number("memory_bandwidth", row["memory_kilobytes_per_s"] * _KILOBYTE))
    for stat, column in _DEVICE_STATS.items():
        built.plane.stats.append(built.number(stat, row[column]))


def _copies_alone(events: StepEvents, devices: Sequence[_Device]) -> dict[int, list[int]]:
    """Device of a row of copies -> its nodes that no stream of the GPU shows.

    TensorFlow's files may have copies in such a row alone.
    """
    alone: dict[int, list[int]] = {}
    for gpu in dict.fromkeys(device.gpu for device in devices if device.row == _COPIES):
        own = [device for device in devices if device.gpu == gpu]
        rows = [device.place for device in own if device.row == _COPIES]
        streams = [device.place for device in own if device.is_stream]
        alone |= zip(rows, events.nodes_beside(rows, streams), strict=True)
    return alone


def _marked_steps(events: StepEvents, devices: Sequence[_Device]) -> dict[str, list[tuple[int, int, int]]]:
    """Rank of a merged trace -> start, end and number of its steps, in order; empty where steps overlap."""
    marked: dict[str, list[tuple[int, int, int]]] = {}
    for device in devices:
        rank = _STEPS_DEVICE.fullmatch(device.name)
        if rank:
            for message, times in events.nodes(device.place):
                number = _STEP_NAME.fullmatch(NodeExecStats.FromString(message).node_name)
                if number is None or times is None:
                    return {}
                marked.setdefault(rank[1] or rank[2] or "", []).append((times[0], sum(times), int(number[1])))
    for steps in marked.values():
        steps.sort()
        if any(end_ns > start_ns for (_, end_ns, _), (start_ns, _, _) in pairwise(steps)):
            return {}
    return marked


def _add_stream(built: Plane, device: _Device, part: _Part, only: list[int] | None) -> tuple[int, int]:
    """Add the events of one line of a GPU; return the numbers of nodes drawn and of nodes without a possible time."""
    row = device.row
    number = re.fullmatch(r"stream:(\d{1,9})", row)
    task = _TASK.search(device.name)
    of_run = f"run {task[1]} rank {task[2]}" if task else ""
    rank = of_run if of_run in part.causes or task is None else f"rank {task[2]}"
    line = built.line("", row, f"Stream #{row.removeprefix('stream:')}", int(number[1]) if number else -1)

    def describe(message: bytes, activity: bytes, is_copy: bool) -> tuple[int, bytes]:
        node, columns = NodeExecStats.FromString(message), Activity.FromString(activity)
        name, content, stats = _work(built, node, columns, is_copy=is_copy)
        line.contents[content] = None
        return built.event(name), stats_fields([built.number("_ct", _STEP_CONTEXT), *stats])

    lines, drawn, left_out = part.events.lines(
        device.place,
        describe=describe,
        stat_number=built.stat,
        origin_ns=built.origin_ns,
        shift_ns=part.shift_ns,
        by_thread=False,
        by_process=False,
        processes={},
        first_correlation=part.first_correlations[device.place],
        correlation_stat=profile_stats.CORRELATION,
        causes=part.causes_of(rank),
        flows=part.flows.get(device.place, {}),
        detail_stats=(),
        event_stats={},
        only=only,
    )
    line.contents = line.contents or {"Compute": None}
    for *_, events in lines:
        built.keep(line, events)
    return drawn, left_out


def _work(built: Plane, node: NodeExecStats, columns: Activity, *, is_copy: bool) -> tuple[str, str, list[XStat]]:
    """The name of an event of a stream, the kind of work, and the stats that do not depend on times and ids.

    ``is_copy``: it is a copy, although name and label state none.
    """
    label, _, annotation = node.timeline_label.partition("@@")  # TensorFlow 2.1's tracer puts the op there
    if columns.kind:
        op, activity = recorded_op(node)
    else:
        op, _, activity = (annotation.partition("#")[0] or node.node_name).partition(":")
    stats = []
    if op and activity and (columns.kind or op != activity):
        stats.append(built.text(profile_stats.OP, op))
    if columns.kind:
        name, content = _add_columns(built, node, columns, activity, stats)
        return name, content, stats
    if is_copy:
        name = f"Memcpy{copy_kind_name(0)}"
        stats.append(built.text(profile_stats.MEMCPY_DETAILS, f"kind:{_word(copy_kind_name(0))}"))
        return name, name, stats
    copy = _COPY.match(activity or op) or _COPY.match(label)
    if activity.startswith("MEMSET") or copy:
        kind = (copy[1] or copy[2]) if copy else ""
        name = f"Memcpy{kind.replace('to', '2')}" if copy else "Memset"
        found = _NUM_BYTES.search(label)
        size = f" size:{found[1] or found[2]}" if found else ""
        word = profile_stats.MEMCPY_DETAILS if copy else profile_stats.MEMSET_DETAILS
        stats.append(built.text(word, f"kind:{_word(kind or 'device')}{size}"))
        return name, name, stats
    stats.append(built.text(profile_stats.KERNEL_DETAILS, _kernel_details(dict(_DETAIL.findall(label)))))
    return _DETAIL.sub("", label).strip() or activity or op, "Compute", stats


def _add_columns(
    built: Plane, node: NodeExecStats, columns: Activity, activity: str, stats: list[XStat]
) -> tuple[str, str]:
    """Add the columns as the stats that XProf parses; return the name of the event and the kind of work."""
    arguments = dict(arguments_of(columns))
    if columns.kind == Activity.KERNEL:
        shown: tuple[str, ...] = (
            "registers",
            "shared_bytes",
            "static_shared_bytes",
            "dynamic_shared_bytes",
            "grid",
            "block",
        )
        details = (
            f"regs:{columns.registers_per_thread} static_shared:{columns.static_shared_bytes} "
            f"dynamic_shared:{columns.dynamic_shared_bytes} grid:{arguments.get('grid', '0,0,0')} "
            f"block:{arguments.get('block', '0,0,0')} occ_pct:0"
        )
        stats.append(built.text(profile_stats.KERNEL_DETAILS, details))
        # Without a launch shape the label is the name alone.
        before, mark, whole = node.timeline_label.rpartition(" regs:")
        name = before if mark else whole
        if not name:
            name = activity
            stats.append(built.number(UNNAMED, 1))
        content = "Compute"
    else:
        shown = ("is_async",)
        is_copy = columns.kind == Activity.MEMCPY
        kind = copy_kind_name(columns.copy_kind)
        size = f" size:{columns.num_bytes}" if columns.num_bytes else ""
        word = profile_stats.MEMCPY_DETAILS if is_copy else profile_stats.MEMSET_DETAILS
        kinds = (columns.src_kind, columns.dst_kind) if is_copy else (columns.memory_kind,)
        memory = [_word(memory_kind_name(each).lower()) for each in kinds]
        stated = f"{_word(kind)} kind_src:{memory[0]} kind_dst:{memory[1]}" if is_copy else memory[0]
        is_known = "is_async" in arguments
        target = f" dest:{columns.dst_device_id}" if is_copy and (is_known or "to_device" in arguments) else ""
        waited = f" async:{columns.is_async}" if is_known else ""
        stats.append(built.text(word, f"kind:{stated}{size}{target}{waited}"))
        name = content = f"Memcpy{kind.replace('to', '2')}" if is_copy else "Memset"
    stats += _stats_of(built, {key: value for key, value in arguments.items() if key not in shown})
    if columns.context_id:
        stats.append(built.text("context_id", f"$${columns.context_id}"))  # as XLA writes it
    return name, content


def _word(kind: str) -> str:
    """A kind as a word of details, which ends at a space."""
    return kind.replace(" ", "_")


def _stats_of(built: Plane, arguments: Mapping[str, int | str]) -> list[XStat]:
    return [
        built.text(key, value) if isinstance(value, str) else built.number(key, value)
        for key, value in arguments.items()
    ]


def _kernel_details(details: dict[str, str]) -> str:
    """Launch shape in the words that XProf parses; what is not known is 0."""
    return (
        f"regs:{details.get('regs', '0')} static_shared:{details.get('static_shared') or details.get('shm', '0')} "
        f"dynamic_shared:{details.get('dynamic_shared', '0')} grid:{details.get('grid', '0,0,0')} "
        f"block:{details.get('block', '0,0,0')} occ_pct:{details.get('occ_pct', '0')}"
    )


def _add_side_row(built: Plane, device: _Device, part: _Part) -> tuple[int, int]:
    """Add a line for each thread of a row beside the streams; return what `_add_threads` returns.

    The events have no step, and their correlation id is a stat of another name than that of the GPU's work: XProf would
    add them to the times of that work.
    """
    row = device.row
    lines, drawn, left_out = _lines_of_threads(built, device, part, correlation_stat=profile_stats.LAUNCH_CORRELATION)
    for thread, *_, events in lines:
        built.keep(built.line(row, thread, device.thread_names.get(thread) or row, -1), events)
    return drawn, left_out


def _add_threads(host: Plane, owner: str, device: _Device, part: _Part) -> tuple[int, int]:
    """Add a line for each thread; return the numbers of nodes drawn and of nodes without a possible time.

    Calls of another process on a thread of the same number have a line of their own.
    """
    group = f"{owner} {device.name}"
    side = _SIDE_DEVICE.search(device.name)
    lines, drawn, left_out = _lines_of_threads(
        host,
        device,
        part,
        processes={
            row: line.process for (whose, row), line in host.lines.items() if whose == group and type(row) is int
        },
        detail_stats=part.detail_stats,
        event_stats=part.event_stats,
    )
    for thread, other_process, process, events in lines:
        name = device.thread_names.get(thread) or (side[1] if side else f"{device.name} thread {thread}")
        apart = f" of process {other_process}" if other_process else ""
        title = f"{owner} {name}{apart}".lstrip()
        line = host.line(group, f"{thread}{apart}" if apart else thread, title, len(host.lines) + 1)
        line.process = process
        line.thread = None if owner else thread  # several processes may have threads with the same id
        host.keep(line, events)
    return drawn, left_out


def _lines_of_threads(
    built: Plane,
    device: _Device,
    part: _Part,
    *,
    processes: Mapping[int, int] | None = None,
    correlation_stat: str = profile_stats.CORRELATION,
    detail_stats: Sequence[bytes] = (),
    event_stats: Mapping[int, bytes] | None = None,
) -> tuple[list[tuple[int, int, int, bytes]], int, int]:
    """The lines of a device with rows of threads; see the extension's ``StepEvents.lines``."""

    def describe(message: bytes, activity: bytes, _: bool) -> tuple[int, bytes]:
        node = NodeExecStats.FromString(message)
        return built.event(node.node_name or "unknown"), stats_fields(
            _row_stats(built, node, Activity.FromString(activity), part)
        )

    return part.events.lines(
        device.place,
        describe=describe,
        stat_number=built.stat,
        origin_ns=built.origin_ns,
        shift_ns=part.shift_ns,
        by_thread=True,
        by_process=processes is not None,
        processes=processes or {},
        first_correlation=part.first_correlations[device.place],
        correlation_stat=correlation_stat,
        causes=(),
        flows=part.flows.get(device.place, {}),
        detail_stats=detail_stats,
        event_stats=event_stats or {},
        only=None,
    )


def _row_stats(built: Plane, node: NodeExecStats, columns: Activity, part: _Part) -> list[XStat]:
    """The stats of a row that is not work on a stream, without those that depend on times and ids."""
    stats = [built.text(profile_stats.LABEL, node.timeline_label)] if node.timeline_label else []
    if columns.kind in profile_stats.KINDS:
        stats.append(built.text(profile_stats.ACTIVITY, profile_stats.KINDS[columns.kind]))
        if not node.node_name:  # by which a reader knows the event's name from one that the program gave
            stats.append(built.number(UNNAMED, 1))
    return stats + _stats_of(built, dict(arguments_of(columns, part.texts)))
