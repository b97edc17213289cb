"""A recording as StepStats, row by row: the readable twin of native/stepstats/recorded_step.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.protos import (
    Activity,
    AllocatorMemoryUsed,
    Capture,
    DeviceStepStats,
    NodeExecStats,
    Provenance,
    RunMetadata,
    StepStats,
)
from collector.recording.annotation_details import Details, resolve
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import (
    ANNOTATION_EXTERNAL_KIND,
    DEVICE_MEMORY,
    RELEASE,
)
from collector.recording.graph_paths import path_with_capture
from collector.recording.kernel_names import demangle, short_name
from collector.recording.kind_names import copy_kind_name, memory_kind_name
from collector.recording.schema import ACTIVITY_KINDS, ACTIVITY_TABLES
from collector.stepstats.labels import copy_label, memset_label, name_in_label, node_name, op_label, op_of
from collector.stepstats.shown_tables import SIDE_TABLES
from collector.stepstats.typed_columns import NODE_COLUMNS, field_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.recording.recording import Recording
    from collector.recording.table import Table


def encoded(recording: Recording, device_prefix: str, around: tuple[bytes, bytes] | None) -> bytes:
    """See `collector.stepstats.from_recording._encoded`."""
    steps = StepStats()
    for name, nodes, threads in [*_host(recording), *_gpus(recording), *_graphs(recording)]:
        steps.dev_stats.append(
            DeviceStepStats(
                device=device_prefix + name, node_stats=nodes, thread_names=_thread_names(recording, threads)
            )
        )
    if around is None:
        return steps.SerializeToString(deterministic=True)
    metadata = RunMetadata(provenance=Provenance.FromString(around[0]), capture=Capture.FromString(around[1]))
    if steps.dev_stats:
        metadata.step_stats.CopyFrom(steps)
    tables = [getattr(recording, name) for name in ACTIVITY_KINDS if name not in NODE_COLUMNS]
    tables += [getattr(part, name) for part in recording.parts[1:] for name in ACTIVITY_KINDS]
    for table in tables:
        if len(table):
            _add_rows(metadata.capture, table)
    return metadata.SerializeToString(deterministic=True)


def _add_rows(capture: Capture, table: Table) -> None:
    rows = capture.rows.add(kind=kind_of(table.name))
    for number, name in sorted((field_of(name), name) for name in table.columns):
        values = [value % 2**64 for value in table.columns[name].tolist()]
        if any(values) or not rows.columns:
            rows.columns.add(field=number, values=values)


def _activity(table: str, row: Any, beside: tuple[str, ...]) -> Activity:
    columns = {name: value for name, value in row._asdict().items() if name not in beside}
    return Activity(kind=kind_of(table), **columns)


def _node(recording: Recording, table: str, row: Any, name: str, label: str, **values: Any) -> NodeExecStats:
    wall = row.start_ns + recording.clock.offset_ns
    duration = getattr(row, "end_ns", row.start_ns) - row.start_ns
    micros = max(duration // 1000, 1)
    return NodeExecStats(
        node_name=name,
        timeline_label=label,
        all_start_micros=wall // 1000,
        op_end_rel_micros=micros,
        all_end_rel_micros=micros,
        all_start_nanos=wall,
        op_end_rel_nanos=duration,
        all_end_rel_nanos=duration,
        correlation_id=getattr(row, "correlation_id", 0),
        activity=_activity(table, row, NODE_COLUMNS[table]),
        **values,
    )


def _host(recording: Recording) -> list[tuple[str, list[NodeExecStats], dict[int, str]]]:
    strings = recording.strings
    known = {strings[row.name_id] for row in recording.annotations} if recording.details else set()
    consumed = {
        name
        for row in recording.annotations
        for name in resolve(strings[row.name_id], _details(recording, row).inputs, frozenset(known))
    }
    nodes = []
    for row in recording.annotations:
        path, details = strings[row.name_id], _details(recording, row)
        label = op_label(path, details.op, resolve(path, details.inputs, frozenset(known)))
        op_end = len(op_label(path, details.op).encode()) - len("()")
        node = _node(recording, "annotations", row, path, label, thread_id=row.thread_id, op_end=op_end)
        if path in consumed:
            node.output.add().tensor_description.SetInParent()
        nodes.append((row, node))
    memory = _memory(recording)
    for at, row in enumerate(recording.api_calls):
        name = plain_api_name(strings[row.name_id])
        node = _node(recording, "api_calls", row, name, op_label(name), thread_id=row.thread_id)
        if at in memory:
            node.memory.append(memory[at])
        nodes.append((row, node))
    others = {int(thread): name for thread, name in recording.environment.get("thread_devices", {}).items()}
    hosts: dict[str, list[tuple[Any, NodeExecStats]]] = {name: [] for name in ("/cpu:0", *others.values())}
    threads: dict[str, dict[int, str]] = {name: {} for name in hosts}
    for row, node in nodes:
        hosts[others.get(row.thread_id, "/cpu:0")].append((row, node))
        threads[others.get(row.thread_id, "/cpu:0")][row.thread_id] = ""
    for row in recording.other_ranges:
        device = strings[row.device_name_id]
        node = _node(recording, "other_ranges", row, strings[row.name_id], "", thread_id=row.thread_id)
        hosts.setdefault(device, []).append((row, node))
        name = strings[row.thread_name_id]
        if name or device == "/cpu:0":
            threads.setdefault(device, {}).setdefault(row.thread_id, name)
    devices = [(device, _in_order(nodes), threads.get(device, {})) for device, nodes in hosts.items()]
    for table, side in SIDE_TABLES.items():
        names = side.texts or dict(enumerate(strings))
        nodes = []
        for row in getattr(recording, table):
            name = names.get(getattr(row, side.name), names[0])
            nodes.append((row, _node(recording, table, row, name, op_label(name))))
        devices.append((f"/cpu:0/{side.device}", _in_order(nodes), {}))
    return [device for device in devices if device[1]]


def _details(recording: Recording, row: Any) -> Details:
    return recording.details[row.details_id - 1] if row.details_id else Details()


def _in_order(nodes: list[tuple[Any, NodeExecStats]]) -> list[NodeExecStats]:
    nodes = sorted(nodes, key=lambda pair: (pair[0].start_ns, -getattr(pair[0], "end_ns", pair[0].start_ns)))
    return [node for _, node in nodes]


def _memory(recording: Recording) -> dict[int, AllocatorMemoryUsed]:
    used: dict[int, AllocatorMemoryUsed] = {}
    sizes: dict[int, int] = {}
    for one in recording.memory_operations:
        if one.memory_kind not in DEVICE_MEMORY:
            continue
        calls = [at for at, row in enumerate(recording.api_calls) if row.correlation_id == one.correlation_id]
        num_bytes = one.num_bytes or sizes.get(one.address, 0)
        sizes[one.address] = num_bytes
        if not calls or not one.correlation_id or not num_bytes:
            continue
        message = used.setdefault(calls[0], AllocatorMemoryUsed(allocator_name=f"gpu:{one.device_id}"))
        is_release = one.operation == RELEASE
        message.allocation_records.add(
            alloc_micros=(one.start_ns + recording.clock.offset_ns) // 1000,
            alloc_bytes=-num_bytes if is_release else num_bytes,
        )
        if not is_release:
            message.total_bytes += num_bytes
            message.peak_bytes += num_bytes
            message.live_bytes += num_bytes
    return used


def _gpus(recording: Recording) -> list[tuple[str, list[NodeExecStats], dict[int, str]]]:
    calls: dict[int, Any] = {}
    for row in recording.api_calls:
        calls.setdefault(row.correlation_id, row)
    annotations = _annotations(recording)
    paths = _paths(recording, annotations)
    found = []
    for table in ACTIVITY_TABLES:
        for row in getattr(recording, table):
            activity, label = _named(recording, table, row)
            launch = calls.get(row.correlation_id) if row.correlation_id else None
            scheduled = launch.start_ns + recording.clock.offset_ns if launch else 0
            path = _with_capture(paths.get(row.correlation_id), annotations.get(row.captured_external_id, ""))
            node = _node(
                recording,
                table,
                row,
                node_name(activity, path),
                label,
                op_end=0 if path is None else len(op_of(path).encode()),
                scheduled_micros=scheduled // 1000,
                scheduled_nanos=scheduled,
                thread_id=launch.thread_id if launch else 0,
            )
            found.append((row, table != "kernels", node))
    found.sort(key=lambda each: (each[0].device_id, each[0].start_ns, each[0].end_ns))
    devices: list[tuple[str, list[NodeExecStats], dict[int, str]]] = []
    for device_id in sorted({row.device_id for row, _, _ in found}):
        own = [each for each in found if each[0].device_id == device_id]
        devices.append((f"/gpu:{device_id}/stream:all", [node for _, _, node in own], {}))
        seen = set()
        for stream, context in sorted({(row.stream_id, row.context_id) for row, _, _ in own}):
            name = f"/gpu:{device_id}/stream:{stream}" + (f".{context}" if stream in seen else "")
            seen.add(stream)
            nodes = [node for row, _, node in own if (row.stream_id, row.context_id) == (stream, context)]
            devices.append((name, _untyped(nodes), {}))
        copies = [node for _, is_copy, node in own if is_copy]
        if copies:
            devices.append((f"/gpu:{device_id}/memcpy", _untyped(copies), {}))
    return devices


def _graphs(recording: Recording) -> list[tuple[str, list[NodeExecStats], dict[int, str]]]:
    devices = []
    for device_id in sorted({row.device_id for row in recording.graph_launches}):
        nodes = []
        for row in recording.graph_launches:
            given = recording.strings[row.name_id]
            name = f"{given} (graph {row.graph_id})" if given else f"graph {row.graph_id}"
            if row.device_id == device_id:
                nodes.append((row, _node(recording, "graph_launches", row, name, op_label(name))))
        devices.append((f"/gpu:{device_id}/graphs", _in_order(nodes), dict[int, str]()))
    return devices


def _annotations(recording: Recording) -> dict[int, str]:
    """Id of an annotation -> its path."""
    known: dict[int, str] = {}
    for part in recording.parts:
        for row in part.annotations:
            known.setdefault(row.external_id, recording.strings[row.name_id])
    known.pop(0, None)
    return known


def _paths(recording: Recording, annotations: dict[int, str]) -> dict[int, str]:
    """Correlation id -> the annotation around its launch."""
    paths: dict[int, str] = {}
    for row in recording.external_correlations:
        if row.external_kind == ANNOTATION_EXTERNAL_KIND and row.external_id in annotations:
            paths.setdefault(row.correlation_id, annotations[row.external_id])
    paths.pop(0, None)
    return paths


def _with_capture(launched: str | None, captured: str) -> str | None:
    return path_with_capture(launched or "", captured) if captured else launched


def _kernel_label(whole_name: str, registers: int, shared_bytes: int, grid: Sequence[int], block: Sequence[int]) -> str:
    """``void add<float>(float*) regs:64 shm:0 grid:8,1,1 block:256,1,1``; the name alone if no shape is known."""
    if not (registers or any(grid) or any(block)):
        return name_in_label(whole_name)
    shape = f"grid:{','.join(map(str, grid))} block:{','.join(map(str, block))}"
    return f"{name_in_label(whole_name)} regs:{registers} shm:{shared_bytes} {shape}"


def _named(recording: Recording, table: str, row: Any) -> tuple[str, str]:
    if table == "kernels":
        name = recording.strings[row.name_id]
        shared = row.static_shared_bytes + row.dynamic_shared_bytes
        grid, block = (row.grid_x, row.grid_y, row.grid_z), (row.block_x, row.block_y, row.block_z)
        return short_name(name), _kernel_label(demangle(name), row.registers_per_thread, shared, grid, block)
    if table == "memcpys":
        kind = copy_kind_name(row.copy_kind)
        ends = memory_kind_name(row.src_kind), memory_kind_name(row.dst_kind)
        return f"MEMCPY{kind}", copy_label(kind, row.num_bytes, *ends, row.src_device_id, row.dst_device_id)
    return "MEMSET", memset_label(row.num_bytes, memory_kind_name(row.memory_kind))


def _untyped(nodes: list[NodeExecStats]) -> list[NodeExecStats]:
    """The nodes without the fields that are written once per activity."""
    copies = []
    for node in nodes:
        copies.append(NodeExecStats())
        copies[-1].CopyFrom(node)
        copies[-1].ClearField("activity")
    return copies


def _thread_names(recording: Recording, threads: dict[int, str]) -> dict[int, str]:
    known = {int(thread): str(name) for thread, name in recording.environment.get("thread_names", {}).items()}
    return {thread: name or known.get(thread, f"thread {thread}") for thread, name in threads.items()}
