"""Back from the Chrome trace that this project draws to the StepStats it was made of.

Everything about kernels, copies and ops comes back. What the timeline leaves out stays out: tensors and memory, nodes
that a filter kept away, and ``stream:all`` is put together again from the single streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from collector.formats.chrome_dialects import is_cut_timeline, stated_base
from collector.formats.chrome_events import (
    NO_BASE,
    ChromeEvents,
    described_threads,
    nanoseconds,
    possible_base,
    process_names,
    text,
)
from collector.protos.run_metadata_pb2 import Provenance
from collector.protos.step_stats_pb2 import DeviceStepStats, NodeExecStats, StepStats

_RANK = re.compile(r"rank (\d{1,7}) ")
_DEVICE_IN_PROCESS = re.compile(r"(?:rank \d{1,7} )?(?:.*\()?(?P<device>/.*?)\)?", re.DOTALL)
"""The parts of a process's name in traces whose rows do not state their devices."""
_THREAD = re.compile(r".*\bthread (\d{1,10})\b", re.DOTALL)
"""The name of a host's row. Its number comes last: threads may be called ``thread 0 (python)``."""
_STREAM = re.compile(r"(?P<gpu>.*)/stream:(?P<stream>.+)")
_GPU_WORK = ("kernel", "memcpy", "memset")
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
    """What one of our own traces says of where it comes from and of what was lost."""
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


def to_step_stats(found: ChromeEvents, base_ns: int) -> StepStats:
    """The step that one of our own traces shows; what cannot be read is counted in ``found.skipped``."""
    step = StepStats()
    names = process_names(found.events)
    threads = described_threads(found.events)
    devices: dict[str, DeviceStepStats] = {}
    for event in found.events:
        if event.get("ph") != "X":
            continue
        start_ns, duration_ns = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        pid = event.get("pid")
        if start_ns is None or duration_ns is None or not isinstance(pid, int):
            found.skipped["events without a possible time or process"] += 1
            continue
        row = threads.get((pid, event.get("tid")), {})
        name = _device(names.get(pid, f"process {pid}"), row.get("device"))
        if name not in devices:
            devices[name] = step.dev_stats.add(device=name)
        thread = str(row.get("name"))
        number = _THREAD.match(thread)
        node = _node(event, base_ns + start_ns, duration_ns)
        if number is not None and int(number[1]) < 1 << 32:
            node.thread_id = int(number[1])
            devices[name].thread_names[node.thread_id] = text(thread)
        devices[name].node_stats.append(node)
    _join_streams(step)
    return step


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


def _node(event: dict[str, Any], start_ns: int, duration_ns: int) -> NodeExecStats:
    given = event.get("args")
    arguments: dict[str, Any] = given if isinstance(given, dict) else {}
    name, op, category = text(event.get("name", "")), text(arguments.get("op", "")), event.get("cat")
    if category in _GPU_WORK:
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
    waited_ns, correlation = arguments.get("waited_ns"), arguments.get("correlation")
    if type(waited_ns) is int and 0 <= waited_ns < start_ns:
        node.scheduled_micros, node.scheduled_nanos = (start_ns - waited_ns) // 1000, start_ns - waited_ns
    if type(correlation) is int and 0 < correlation < 1 << 32:
        node.correlation_id = correlation
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
