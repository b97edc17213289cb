"""Back from the Chrome trace that this project draws to the StepStats it was made of.

Everything about kernels, copies and ops comes back. What the timeline leaves out stays out: tensors and memory, nodes
that a filter kept away, and ``stream:all`` is put together again from the single streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.formats.chrome_dialects import is_cut_timeline, stated_base
from collector.formats.chrome_events import NO_BASE, ChromeEvents, has_time, possible_base, text
from collector.formats.step import StepSource
from collector.protos.run_metadata_pb2 import Provenance, RunMetadata
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats
from collector.recording.schema import SCHEMA

if TYPE_CHECKING:
    from collector.formats.event_columns import EventColumns
    from collector.recording.recording import Recording

_RANK = re.compile(r"rank (\d{1,7}) ")
_DEVICE_IN_PROCESS = re.compile(r"(?:rank \d{1,7} )?(?:.*\()?(?P<device>/.*?)\)?", re.DOTALL)
"""The parts of a process's name in traces whose rows do not state their devices."""
_THREAD = re.compile(r".*\bthread (\d{1,10})\b", re.DOTALL)
"""The name of a host's row. Its number comes last: threads may be called ``thread 0 (python)``."""
_STREAM = re.compile(r"(?P<gpu>.*)/stream:(?P<stream>.+)")
_NUMBERED_STREAM = re.compile(r"(?P<stream>\d{1,9})(?:\.(?P<context>\d{1,9}))?")
_GPU_WORK = ("kernel", "memcpy", "memset")
_GPU_TABLES = {category: f"{category}s" for category in _GPU_WORK} | {"sync": "synchronizations"}
_HOST_TABLES = {"op": "annotations", "api": "api_calls", "sync": "api_calls"}
"""Category of a slice -> the table that holds it."""
_DETAIL_WORDS = {
    "registers": "regs",
    "shared_bytes": "shm",
    "static_shared_bytes": "static_shared",
    "dynamic_shared_bytes": "dynamic_shared",
    "occupancy_percent": "occ_pct",
}
"""An argument's name -> its word in a label; others are the same in both."""
_NO_DETAILS = ("kernel", "op", "inputs", "bytes", "from", "to", "correlation", "waited_ns")


def base_time_ns(found: ChromeEvents) -> int:
    """Wall time of the trace's time 0. It stands at the end of the file.

    A trace without its end counts from 0, which is noted in ``found.skipped``.
    """
    if is_cut_timeline(found):
        found.skipped[NO_BASE] += 1
        return 0
    return possible_base(stated_base(found) or 0, found.skipped)


def provenance(found: ChromeEvents) -> Provenance:
    """The provenance in the metadata of one of our own traces."""
    about = found.metadata.get("otherData", {})
    return Provenance(
        collector_version=text(about.get("collector_version", "")),
        source=text(about.get("source", "")),
        simulated=about.get("simulated") is True,
        environment={text(key): text(value) for key, value in _members(about, "environment")},
        ledger=dict(_figures(about, "ledger")),
        unread=dict(_figures(about, "unread")),
    )


def _figures(about: dict[str, Any], key: str) -> Iterator[tuple[str, int]]:
    for name, count in _members(about, key):
        if type(count) is int and 0 <= count < 1 << 53:
            yield text(name), count


def _members(about: dict[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    found = about.get(key)
    return found.items() if isinstance(found, dict) else ()


class _Slice(NamedTuple):
    name: str
    category: str
    arguments: dict[str, Any]
    device: str
    row: str
    """The name of its row."""
    start_ns: int
    """Wall time."""
    duration_ns: int

    @property
    def thread_id(self) -> int | None:
        """The thread of a host's row; None for any other row."""
        number = _THREAD.match(self.row)
        return int(number[1]) if number is not None and int(number[1]) < 1 << 32 else None


class CollectorTrace(StepSource):
    """The step in one of our own traces; what cannot be read is counted in ``found.skipped``."""

    def __init__(self, found: ChromeEvents) -> None:
        """Read places and times of all slices; columns and messages are made of them when they are asked for."""
        self._provenance = provenance(found)
        self._slices = list(_slices(found, base_time_ns(found)))

    @property
    def is_empty(self) -> bool:
        """Whether the trace has no slice that can be read."""
        return not self._slices

    def run_metadata(self) -> RunMetadata:
        """See `StepSource`."""
        step = StepStats()
        devices: dict[str, DeviceStepStats] = {}
        for each in self._slices:
            if each.device not in devices:
                devices[each.device] = step.dev_stats.add(device=each.device)
            node = _node(each)
            if each.thread_id is not None:
                node.thread_id = each.thread_id
                devices[each.device].thread_names[node.thread_id] = text(each.row)
            devices[each.device].node_stats.append(node)
        _join_streams(step)
        metadata = RunMetadata(step_stats=step)
        if self._provenance.ByteSize():
            metadata.provenance.CopyFrom(self._provenance)
        return metadata

    def recording(self) -> Recording:
        """See `StepSource`. What stands beside the streams of a GPU, but for copies, has no columns."""
        from collector.formats.capture_builder import device_ids
        from collector.formats.event_columns import EventColumns

        columns = EventColumns()
        streams = {each.device: _STREAM.fullmatch(each.device) for each in self._slices}
        units = device_ids(found["gpu"] for found in streams.values() if found)
        for each in self._slices:
            stream = streams[each.device]
            if stream is not None:
                number = _NUMBERED_STREAM.fullmatch(stream["stream"])
                place = {
                    "device_id": units[stream["gpu"]],
                    "stream_id": int(number["stream"]) if number else 0,
                    "context_id": int(number["context"] or 0) if number else 0,
                }
                _add_work(columns, each, place)
            elif each.thread_id is not None and each.category in _HOST_TABLES:
                columns.name_thread(each.thread_id, text(each.row))
                given = {"thread_id": each.thread_id}
                table = _HOST_TABLES[each.category]
                if table == "api_calls":
                    given["correlation_id"] = _correlation(each.arguments)
                columns.add(table, each.name, each.start_ns, each.duration_ns, "", **given)
            elif not each.device.endswith("/memcpy"):
                columns.without_columns += 1
        about = self._provenance
        environment: dict[str, Any] = {**about.environment, "source": about.source, "simulated": about.simulated}
        names = _thread_names(str(environment.pop("thread_names", "")))
        return columns.recording(dict(about.ledger), {**environment, **({"thread_names": names} if names else {})})


def _thread_names(given: str) -> dict[str, str]:
    """The names of threads by their numbers, which an environment has as JSON; empty where it is none."""
    try:
        names = json.loads(given)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(names, dict):
        return {}
    return {thread: text(name) for thread, name in names.items() if re.fullmatch(r"[0-9]{1,10}", thread)}


def _slices(found: ChromeEvents, base_ns: int) -> Iterator[_Slice]:
    rows = found.rows("X")
    processes, threads = found.process_names, found.described_threads
    places: list[tuple[str, str] | None] = []
    for pid, tid in found.tracks:
        row = threads.get((pid, tid), {}) if isinstance(pid, int) and isinstance(tid, int) else {}
        device = _device(processes.get(pid, f"process {pid}"), row.get("device")) if isinstance(pid, int) else ""
        places.append((device, str(row.get("name"))) if isinstance(pid, int) else None)
    tracks = found.track_numbers(rows)
    is_timed = has_time(found.starts_ns(rows)) & has_time(found.durations_ns(rows))
    is_timed &= np.array([place is not None for place in places], bool)[tracks]
    if not is_timed.all():
        found.skipped["events without a possible time or process"] += int((~is_timed).sum())
    rows = rows[is_timed]
    names, name_index = found.names(rows)
    categories, category_index = found.categories(rows)
    for name, category, track, start_ns, duration_ns, arguments in zip(
        name_index.tolist(),
        category_index.tolist(),
        tracks[is_timed].tolist(),
        found.starts_ns(rows).tolist(),
        found.durations_ns(rows).tolist(),
        found.arguments_of(rows),
        strict=True,
    ):
        device, row_name = places[track] or ("", "")
        yield _Slice(names[name], categories[category], arguments, device, row_name, base_ns + start_ns, duration_ns)


def _add_work(columns: EventColumns, each: _Slice, place: dict[str, int]) -> None:
    """A row for what a stream did."""
    from collector.formats.event_columns import copy_kind_number, memory_kind_number, shape_columns

    kind = _GPU_TABLES.get(each.category)
    if kind is None:
        columns.without_columns += 1
        return
    arguments, name = each.arguments, each.name
    given = {
        key: value
        for key, value in arguments.items()
        if key in SCHEMA[kind] and type(value) is int and 0 <= value < 1 << 31
    }
    given |= {**place, "correlation_id": _correlation(arguments)}
    if kind == "kernels":
        given |= shape_columns(arguments.get("grid"), arguments.get("block"))
        given |= {"registers_per_thread": _count(arguments.get("registers"))}
        given.setdefault("dynamic_shared_bytes", _count(arguments.get("shared_bytes")))
        name = text(arguments.get("kernel", name))
    else:
        given["num_bytes"] = _count(arguments.get("bytes"))
        source, target = (memory_kind_number(text(arguments.get(side, ""))) for side in ("from", "to"))
        if kind == "memsets":
            given["memory_kind"] = target
        else:
            given |= {
                "copy_kind": copy_kind_number(name.removeprefix("MEMCPY")),
                "src_kind": source,
                "dst_kind": target,
            }
    columns.add(kind, name, each.start_ns, each.duration_ns, text(arguments.get("op", "")), **given)


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _correlation(arguments: dict[str, Any]) -> int:
    value = arguments.get("correlation")
    return value if type(value) is int and 0 < value < 1 << 32 else 0


def _device(process: str, stated: Any) -> str:
    """The device that a row states, or its process's name, with a rank before it where the process has one."""
    if isinstance(stated, str):
        device = stated
    elif found := _DEVICE_IN_PROCESS.fullmatch(process):
        device = found["device"]
    else:
        return text(process)
    rank = _RANK.match(process) if device.startswith("/") else None
    return text(device if rank is None else f"/job:worker/replica:0/task:{rank[1]}{device}")


def _node(each: _Slice) -> NodeExecStats:
    name, arguments, start_ns, duration_ns = each.name, each.arguments, each.start_ns, each.duration_ns
    op = text(arguments.get("op", ""))
    if each.category in _GPU_WORK:
        # A colon ends the op. What is drawn spells it as the host does, where it finds it there.
        node_name = f"{op.replace('::', '.') or name}:{name}"
        label = _work_label(name, arguments)
    else:
        node_name = name
        label = f"{name} = {op}({text(arguments.get('inputs', ''))})" if op else ""
    start_us, end_us = start_ns // 1000, (start_ns + duration_ns) // 1000
    length_us = max(end_us - start_us, 1)
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
        found = _STREAM.fullmatch(device.device)
        if found is not None:
            streams.setdefault(found["gpu"], []).append(device)
    for gpu, parts in streams.items():
        if not any(part.device.endswith("/stream:all") for part in parts):
            nodes = [node for part in parts for node in part.node_stats]
            nodes.sort(key=lambda node: (node.all_start_nanos, node.all_end_rel_nanos))
            step.dev_stats.add(device=f"{gpu}/stream:all", node_stats=nodes)
