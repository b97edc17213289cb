"""Recording -> StepStats: what each device did, as TensorFlow's tools read it.

| device | nodes | node_name | timeline_label |
| --- | --- | --- | --- |
| ``/cpu:0`` | annotations | ``layer1/conv`` | ``layer1/conv = Conv2D(layer1/input)``, without more said ``= conv()`` |
| ``/cpu:0`` | API calls | ``cudaLaunchKernel`` | ``cudaLaunchKernel = cudaLaunchKernel()`` |
| ``/gpu:D/stream:all`` | all activities of device D, each once | as below | as below |
| ``/gpu:D/stream:S`` | kernels | ``op:add<float>`` | ``void add<float>(...) regs:64 shm:0 grid:8,1,1 block:256,1,1`` |
| ``/gpu:D/stream:S`` | copies | ``op:MEMCPYHtoD`` | ``MEMCPYHtoD 4096 bytes (Pageable to Device)`` |
| ``/gpu:D/stream:S`` | memsets | ``op:MEMSET`` | ``MEMSET 4096 bytes (Device)`` |
| ``/gpu:D/memcpy`` | copies and memsets of device D | as above | as above |

``op`` is the annotation path a launch was made under. Without one it is the second part again: ``sgemm:sgemm``. Readers
split node names at ``:``, so ``:`` in an annotation becomes ``.``. ``shm`` is static and dynamic shared memory together
in bytes. A copy or memset of unknown size has no ``4096 bytes``. The label of a copy between devices ends with
`` gpu:0 to gpu:1``. Where two contexts of a device use one stream number, ``stream:S`` is that of the context with the
lowest number, ``stream:S.C`` that of any other context C. API names lose their version: ``cudaMemcpy_v3020`` is
``cudaMemcpy``.

``all_start_micros`` is wall time; start and relative end are truncated to µs and no activity is shorter than 1 µs, as
TensorFlow does it; ``*_nanos`` are exact. ``scheduled_*`` and ``thread_id`` of a device's activity are those of the
call that launched it, if that was seen. A call that allocates or frees device memory has it in ``memory``, allocator
``gpu:D``, where memory operations were recorded. An annotation that others name as their input has an ``output`` of
which nothing is known, so that readers draw arrows from it. Devices are in the order of the table, by number; nodes by
start, end, and the recording's own order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import (
    AllocatorMemoryUsed,
    DeviceStepStats,
    LossTimes,
    NodeOutput,
    Provenance,
    RunMetadata,
    StepStats,
    TensorDescription,
)
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import COPY_KINDS, DEVICE_MEMORY, MEMORY_KINDS, RELEASE
from collector.recording.kernel_names import demangle, short_name
from collector.recording.loss_times import times_of_losses
from collector.stepstats.annotation_labels import Described, label_of
from collector.stepstats.node_columns import MessageColumn, TextColumn, encode_nodes, field_head, text_column
from collector.version import version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from collector.recording.recording import Recording
    from collector.recording.table import Table


def run_metadata(recording: Recording, device_prefix: str = "") -> RunMetadata:
    """Return ``recording`` as RunMetadata: its StepStats and where it came from.

    Args:
        recording: what to convert; rows that it sets apart are counted in the provenance only.
        device_prefix: put before every device name, such as ``/job:worker/replica:0/task:3``.
    """
    metadata = RunMetadata(provenance=provenance(recording))
    _fill(metadata.step_stats, recording, device_prefix)
    return metadata


def step_stats(recording: Recording, device_prefix: str = "") -> StepStats:
    """Return ``recording`` as StepStats alone; see `run_metadata`."""
    steps = StepStats()
    _fill(steps, recording, device_prefix)
    return steps


def serialized(recording: Recording, device_prefix: str = "") -> bytes:
    """Return the bytes of `run_metadata`, as ``SerializeToString(deterministic=True)`` gives them.

    No message is made on the way: for a large step that takes several times as long, and memory.
    """
    pieces = [piece for device in _devices(recording) for piece in _wire(device, device_prefix)]
    head = field_head(RunMetadata.STEP_STATS_FIELD_NUMBER, sum(map(len, pieces))) if pieces else b""
    return b"".join(
        [head, *pieces, RunMetadata(provenance=provenance(recording)).SerializeToString(deterministic=True)]
    )


def _fill(steps: StepStats, recording: Recording, device_prefix: str) -> None:
    for device in _devices(recording):
        steps.MergeFromString(b"".join(_wire(device, device_prefix)))


def _devices(recording: Recording) -> Iterator[_Device]:
    yield from _host(recording)
    yield from _gpus(recording)


def _wire(device: _Device, prefix: str) -> list[bytes]:
    """The device as an element of ``StepStats.dev_stats``, in pieces."""
    name = DeviceStepStats(device=prefix + device.name).SerializeToString()
    threads = DeviceStepStats(thread_names=device.thread_names).SerializeToString(deterministic=True)
    pieces = [name, device.nodes, threads]
    return [field_head(StepStats.DEV_STATS_FIELD_NUMBER, sum(map(len, pieces))), *pieces]


@dataclass(frozen=True)
class _Device:
    name: str
    nodes: bytes
    """As `collector.stepstats.node_columns.encode_nodes` makes them."""
    thread_names: dict[int, str] = field(default_factory=dict)


def _host(recording: Recording) -> Iterator[_Device]:
    annotations, calls = recording.annotations, recording.api_calls
    if not len(annotations) and not len(calls):
        return
    strings = recording.strings
    paths = text_column(lambda name_id: strings[name_id], annotations.name_id)
    described = Described(recording)
    path_labels = text_column(described.label, annotations.name_id, annotations.details_id)
    functions = text_column(lambda name_id: plain_api_name(strings[name_id]), calls.name_id)
    starts = np.concatenate([annotations.start_ns, calls.start_ns])
    ends = np.concatenate([annotations.end_ns, calls.end_ns])
    threads = np.concatenate([annotations.thread_id, calls.thread_id])
    memory = _memory(recording, len(annotations))
    nodes = encode_nodes(
        {
            **({"memory": memory} if memory is not None else {}),
            **_outputs(described, annotations, len(calls)),
            "node_name": TextColumn.concatenated([paths, functions]),
            "timeline_label": TextColumn.concatenated([path_labels, functions.mapped(label_of)]),
            "thread_id": threads,
            "correlation_id": np.concatenate([np.zeros(len(annotations), np.uint32), calls.correlation_id]),
            **_times(starts, ends, recording.clock.offset_ns),
        },
        np.lexsort((-ends, starts)),  # what encloses comes before what it encloses
    )
    known = {int(thread): str(name) for thread, name in recording.environment.get("thread_names", {}).items()}
    used = np.unique(threads).tolist()
    yield _Device("/cpu:0", nodes, {thread: known.get(thread, f"thread {thread}") for thread in used})


def _outputs(described: Described, annotations: Table, others: int) -> dict[str, MessageColumn]:
    """An output for each annotation that another one consumes: readers draw arrows from what has one."""
    if not described.consumed:
        return {}
    is_consumed = np.isin(annotations.name_id, list(described.consumed)).astype(np.int64)
    return {"output": MessageColumn([b"", _AN_OUTPUT], np.concatenate([is_consumed, np.zeros(others, np.int64)]))}


_AN_OUTPUT = NodeOutput(tensor_description=TensorDescription()).SerializeToString()
"""Of nothing that is known."""


def _memory(recording: Recording, skipped: int) -> MessageColumn | None:
    """For each API call, after ``skipped`` other nodes, the device memory that it took or gave back."""
    operations = recording.memory_operations
    operations = operations[np.isin(operations.memory_kind, DEVICE_MEMORY)]
    if not len(operations):
        return None
    messages: dict[int, AllocatorMemoryUsed] = {}
    sizes: dict[int, int] = {}  # of a release CUPTI may tell the address only
    micros = ((operations.start_ns + recording.clock.offset_ns) // 1000).tolist()
    for row, time, one in zip(
        recording.launch_rows(operations.correlation_id).tolist(), micros, operations, strict=True
    ):
        is_release = one.operation == RELEASE
        num_bytes = one.num_bytes or sizes.get(one.address, 0)
        sizes[one.address] = num_bytes
        if row < 0 or num_bytes == 0:
            continue
        used = messages.setdefault(row, AllocatorMemoryUsed(allocator_name=f"gpu:{one.device_id}"))
        used.allocation_records.add(alloc_micros=time, alloc_bytes=-num_bytes if is_release else num_bytes)
        if not is_release:
            used.total_bytes += num_bytes
            used.peak_bytes += num_bytes
            used.live_bytes += num_bytes
    index = np.zeros(skipped + len(recording.api_calls), np.int64)
    index[[skipped + row for row in messages]] = np.arange(1, len(messages) + 1)
    return MessageColumn([b"", *(used.SerializeToString(deterministic=True) for used in messages.values())], index)


@dataclass(frozen=True)
class _Activities:
    """Kernels, copies and memsets of all devices in one order: device, start, end, the recording's own."""

    device_id: npt.NDArray[Any]
    context_id: npt.NDArray[Any]
    stream_id: npt.NDArray[Any]
    is_copy: npt.NDArray[np.bool_]
    fields: Mapping[str, TextColumn | npt.NDArray[Any]]


def _gpus(recording: Recording) -> Iterator[_Device]:
    activities = _activities(recording)
    for device_id in np.unique(activities.device_id).tolist():
        rows = np.arange(*np.searchsorted(activities.device_id, [device_id, device_id + 1]))
        contexts, streams = activities.context_id[rows], activities.stream_id[rows]
        yield _Device(f"/gpu:{device_id}/stream:all", encode_nodes(activities.fields, rows))
        seen: set[int] = set()
        keys = streams.astype(np.uint64) << np.uint64(32) | contexts
        for key in np.unique(keys).tolist():
            stream, context = divmod(key, 1 << 32)
            suffix = f"{stream}.{context}" if stream in seen else f"{stream}"
            seen.add(stream)
            yield _Device(f"/gpu:{device_id}/stream:{suffix}", encode_nodes(activities.fields, rows[keys == key]))
        is_copy = activities.is_copy[rows]
        if is_copy.any():
            yield _Device(f"/gpu:{device_id}/memcpy", encode_nodes(activities.fields, rows[is_copy]))


def _activities(recording: Recording) -> _Activities:
    tables = (recording.kernels, recording.memcpys, recording.memsets)
    column = {
        name: np.concatenate([getattr(table, name) for table in tables])
        for name in ("device_id", "context_id", "stream_id", "start_ns", "end_ns", "correlation_id")
    }
    order = np.lexsort((column["end_ns"], column["start_ns"], column["device_id"]))
    column = {name: values[order] for name, values in column.items()}
    scheduled_ns, thread_id = _launches(recording, recording.launch_rows(column["correlation_id"]))
    return _Activities(
        column["device_id"],
        column["context_id"],
        column["stream_id"],
        order >= len(recording.kernels),
        {
            "node_name": _names(recording, tables).take(order),
            "timeline_label": _labels(recording).take(order),
            **_times(column["start_ns"], column["end_ns"], recording.clock.offset_ns),
            "scheduled_micros": scheduled_ns // 1000,
            "scheduled_nanos": scheduled_ns,
            "thread_id": thread_id,
            "correlation_id": column["correlation_id"],
        },
    )


def _launches(recording: Recording, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Wall time and thread of the calls in these rows of ``api_calls``; 0 for row -1."""
    calls = recording.api_calls
    if not len(calls):
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    scheduled = np.where(rows >= 0, calls.start_ns[rows] + recording.clock.offset_ns, 0)
    return scheduled, np.where(rows >= 0, calls.thread_id[rows], 0)


def _times(start_ns: npt.NDArray[Any], end_ns: npt.NDArray[Any], offset_ns: int) -> dict[str, npt.NDArray[Any]]:
    """The time fields of nodes that start and end at these CUPTI times."""
    wall, duration = start_ns + offset_ns, end_ns - start_ns
    micros = np.maximum(duration // 1000, 1)
    return {
        "all_start_micros": wall // 1000,
        "op_end_rel_micros": micros,
        "all_end_rel_micros": micros,
        "all_start_nanos": wall,
        "op_end_rel_nanos": duration,
        "all_end_rel_nanos": duration,
    }


def _names(recording: Recording, tables: tuple[Table, Table, Table]) -> TextColumn:
    """``op:kernel`` of every activity, tables one after another."""
    kernels, memcpys, _ = tables
    strings = recording.strings

    def name(second: str, op: int) -> str:
        return f"{_op(strings[op])}:{second}" if op >= 0 else f"{second}:{second}"

    ops = [recording.annotation_ids(table.correlation_id) for table in tables]
    return TextColumn.concatenated(
        [
            text_column(lambda name_id, op: name(short_name(strings[name_id]), op), kernels.name_id, ops[0]),
            text_column(lambda kind, op: name("MEMCPY" + _copy_kind(kind), op), memcpys.copy_kind, ops[1]),
            text_column(lambda op: name("MEMSET", op), ops[2]),
        ]
    )


def _labels(recording: Recording) -> TextColumn:
    """``timeline_label`` of every activity: kernels, copies, memsets."""
    kernels, memcpys, memsets = recording.kernels, recording.memcpys, recording.memsets

    def kernel(name_id: int, registers: int, shared: int, *shape: int) -> str:
        grid, block = ",".join(map(str, shape[:3])), ",".join(map(str, shape[3:]))
        whole = _readable(demangle(recording.strings[name_id]))
        return f"{whole} regs:{registers} shm:{shared} grid:{grid} block:{block}"

    shared = kernels.static_shared_bytes.astype(np.int64) + kernels.dynamic_shared_bytes
    shape = [getattr(kernels, f"{part}_{axis}") for part in ("grid", "block") for axis in "xyz"]
    return TextColumn.concatenated(
        [
            text_column(kernel, kernels.name_id, kernels.registers_per_thread, shared, *shape),
            text_column(
                _copy_label,
                memcpys.copy_kind,
                memcpys.num_bytes,
                memcpys.src_kind,
                memcpys.dst_kind,
                memcpys.src_device_id,
                memcpys.dst_device_id,
            ),
            text_column(_memset_label, memsets.num_bytes, memsets.memory_kind),
        ]
    )


def _copy_label(kind: int, num_bytes: int, src: int, dst: int, src_device: int, dst_device: int) -> str:
    ends = f" gpu:{src_device} to gpu:{dst_device}" if _copy_kind(kind) == "PtoP" else ""
    return f"MEMCPY{_copy_kind(kind)}{_size(num_bytes)} ({_memory_kind(src)} to {_memory_kind(dst)}){ends}"


def _memset_label(num_bytes: int, kind: int) -> str:
    return f"MEMSET{_size(num_bytes)} ({_memory_kind(kind)})"


def _size(num_bytes: int) -> str:
    """Nothing that was recorded moves no bytes: CUPTI gives 0 where it does not know."""
    return f" {num_bytes} bytes" if num_bytes else ""


def _copy_kind(kind: int) -> str:
    return COPY_KINDS[kind] if kind < len(COPY_KINDS) else "<unknown>"


def _memory_kind(kind: int) -> str:
    return MEMORY_KINDS[kind] if kind < len(MEMORY_KINDS) else "<unknown>"


def _op(path: str) -> str:
    return re.sub(r":+", ".", path)


def _readable(text: str) -> str:
    # TensorFlow's newest timeline takes what stands between @@ and # in a label for the op's name.
    return text.replace("@@", "@ @")


def provenance(recording: Recording) -> Provenance:
    """Where a recording comes from, and what was lost of it."""
    clock, environment = recording.clock, recording.environment
    return Provenance(
        collector_version=version(),
        source=str(environment.get("source", "")),
        simulated=bool(environment.get("simulated", False)),
        environment={key: _text(value) for key, value in environment.items()},
        ledger=recording.ledger.as_dict(),
        clock_offset_nanos=clock.offset_ns,
        window_start_nanos=clock.cupti_start_ns + clock.offset_ns,
        window_end_nanos=clock.cupti_stop_ns + clock.offset_ns,
        losses=[
            LossTimes(figure=figure, at_nanos=[time + clock.offset_ns for time in times])
            for figure, times in _loss_times(recording).items()
        ],
        **Described(recording).fields(),
    )


def _loss_times(recording: Recording) -> dict[str, list[int]]:
    return {} if recording.ledger.complete else times_of_losses(recording)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
