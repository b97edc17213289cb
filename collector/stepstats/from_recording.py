"""Recording -> StepStats: the work of each device in the form that TensorFlow's tools read.

| device | nodes | node_name | timeline_label |
| --- | --- | --- | --- |
| ``/cpu:0`` | annotations | ``layer1/conv`` | ``layer1/conv = Conv2D(layer1/input)``, without metadata ``= conv()`` |
| ``/cpu:0`` | API calls | ``cudaLaunchKernel`` | ``cudaLaunchKernel = cudaLaunchKernel()`` |
| ``/cpu:0/jit`` | compilations by the driver | ``JIT Compilation`` | ``JIT Compilation = JIT Compilation()`` |
| ``/cpu:0/memory`` | allocations and releases | ``Allocation`` | ``Allocation = Allocation()`` |
| ``/cpu:0/nvtx`` | NVTX marks, and ranges that are started and ended | ``epoch`` | ``epoch = epoch()`` |
| ``/cpu:0/overheads`` | CUPTI's own work | ``Buffer Flush`` | ``Buffer Flush = Buffer Flush()`` |
| ``/cpu:0``, or as the file names it | ranges that files of other programs have besides | the range's name | |
| ``/cpu:0/waits`` | waits | ``Stream Synchronize`` | ``Stream Synchronize = Stream Synchronize()`` |
| ``/gpu:D/stream:all`` | all activities of device D, each once | as below | as below |
| ``/gpu:D/stream:S`` | kernels | ``op:add<float>`` | ``void add<float>(...) regs:64 shm:0 grid:8,1,1 block:256,1,1`` |
| ``/gpu:D/stream:S`` | copies | ``op:MEMCPYHtoD`` | ``MEMCPYHtoD 4096 bytes (Pageable to Device)`` |
| ``/gpu:D/stream:S`` | memsets | ``op:MEMSET`` | ``MEMSET 4096 bytes (Device)`` |
| ``/gpu:D/memcpy`` | copies and memsets of device D | as above | as above |
| ``/gpu:D/graphs`` | launches of CUDA graphs | ``graph 5`` | ``graph 5 = graph 5()`` |

``op`` is the path of the annotation around the launch. Without an annotation it repeats the second part:
``sgemm:sgemm``. The label of a kernel of which neither registers nor launch shape are known is its name. Of an activity
in a CUDA graph ``op`` is the path at the launch, ``<captured_at>``, and the path at the capture of its node, as far as
they are known: ``step/<captured_at>/layer1/conv``. Readers split node names at ``:``, so ``:`` in an annotation becomes
``.``. ``shm`` is the sum of static and dynamic shared memory in bytes. A copy or memset of unknown size has no ``4096
bytes``. The label of a copy between devices ends with `` gpu:0 to gpu:1``. If two contexts of a device use one stream
number, ``stream:S`` belongs to the context with the lowest number, and ``stream:S.C`` to every other context C, also in
a part of a recording that has no work of the lowest context. API names lose their version: ``cudaMemcpy_v3020`` is
``cudaMemcpy``.

``all_start_micros`` is wall time; start and relative end are truncated to µs and no activity is shorter than 1 µs, as
in TensorFlow; ``*_nanos`` are exact. ``scheduled_*`` and ``thread_id`` of a device's activity are those of the
launching call, if that was recorded. A call that allocates or frees device memory has it in ``memory``, allocator
``gpu:D``, if memory operations were recorded. An annotation that others name as their input has an empty ``output``, so
that readers draw arrows from it. ``activity`` contains every column, once per activity: for GPU work under
``stream:all``. ``op_end`` is the number of bytes before the end of ``op`` in ``node_name`` and, for annotations, in the
label. Devices are in the order of the table, by number; nodes are sorted by start, end, and the recording's own order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.protos import (
    AllocatorMemoryUsed,
    Capture,
    LossTimes,
    NodeOutput,
    Provenance,
    RunMetadata,
    StepStats,
    TensorDescription,
)
from collector.recording.api_functions import plain_api_name
from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND, DEVICE_MEMORY, RELEASE
from collector.recording.kernel_names import demangle, short_name
from collector.recording.loss_times import times_of_losses
from collector.recording.schema import ACTIVITY_KINDS, SCHEMA
from collector.recording.step_origin import NO_ORIGIN, StepOrigin
from collector.runtime.extension import convert_extension
from collector.stepstats.annotation_labels import AnnotationLabels
from collector.stepstats.environment_texts import environment_texts, json_keys
from collector.stepstats.host_devices import HostDevices
from collector.stepstats.labels import name_in_label, op_of
from collector.stepstats.message_size import check_message_size
from collector.stepstats.object_tables import NUM_KEPT, ROWS_APART
from collector.stepstats.shown_tables import SIDE_TABLES
from collector.stepstats.typed_columns import NODE_COLUMNS, native_table
from collector.version import version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from collector.recording.recording import Recording


def run_metadata(recording: Recording, device_prefix: str = "", origin: StepOrigin = NO_ORIGIN) -> RunMetadata:
    """Return ``recording`` as RunMetadata: its StepStats, its provenance, and its other tables.

    Args:
        recording: the recording to convert; rows that it sets apart are not nodes of the step.
        device_prefix: put before every device name, such as ``/job:worker/replica:0/task:3``.
        origin: the rank of the step and the missing parts of its file.

    Raises:
        collector.OutputError: it would be larger than a protobuf message can be.
    """
    data = serialized(recording, device_prefix, origin)
    check_message_size(len(data), "the RunMetadata of the step")
    return RunMetadata.FromString(data)


def step_stats(recording: Recording, device_prefix: str = "") -> StepStats:
    """Return only the StepStats of ``recording``; see `run_metadata`, also for its error."""
    data = serialized_step_stats(recording, device_prefix)
    check_message_size(len(data), "the StepStats of the step")
    return StepStats.FromString(data)


def serialized_step_stats(recording: Recording, device_prefix: str = "") -> bytes:
    """Return the bytes of `step_stats`: one field for each device, so that those of several recordings follow."""
    return _encoded(recording, device_prefix, None)


def serialized(recording: Recording, device_prefix: str = "", origin: StepOrigin = NO_ORIGIN) -> bytes:
    """Return the bytes of `run_metadata` in the form of ``SerializeToString(deterministic=True)``.

    One native pass over the columns writes them, without building a message.
    """
    around = (provenance(recording, origin), _capture(recording))
    whence, rest = (message.SerializeToString(deterministic=True) for message in around)
    return _encoded(recording, device_prefix, (whence, rest))


def _encoded(recording: Recording, device_prefix: str, around: tuple[bytes, bytes] | None) -> bytes:
    labels = AnnotationLabels(recording)
    label_texts, op_ends, label_index = labels.column()
    hosts = HostDevices(recording)
    known = [part.annotations for part in recording.parts]
    encoded: bytes = convert_extension.encode_step(
        tables={name: native_table(getattr(recording, name), NODE_COLUMNS.get(name, ())) for name in ACTIVITY_KINDS},
        without_node=_without_node(recording) if around else [],
        texts={**_names(recording), "annotation_labels": label_texts},
        annotation_op_ends=op_ends,
        annotation_label=label_index,
        outputs=_outputs(labels, recording),
        memory=_memory(recording),
        host_devices=hosts.named(),
        host_device_of=hosts.places(),
        known_external_id=np.concatenate([table.external_id for table in known]),
        known_name_id=np.concatenate([table.name_id for table in known]),
        annotation_external_kind=ANNOTATION_EXTERNAL_KIND,
        first_contexts=[(*key, context) for key, context in recording.first_contexts.items()],
        device_prefix=device_prefix,
        offset_ns=recording.clock.offset_ns,
        around=around,
    )
    return encoded


def _without_node(recording: Recording) -> list[Any]:
    """The rows that are not nodes of the step: links between activities and annotations, and rows outside the step."""
    _, *apart = recording.parts
    tables = [getattr(recording, name) for name in ACTIVITY_KINDS if name not in NODE_COLUMNS]
    tables += [getattr(part, name) for part in apart for name in ACTIVITY_KINDS]
    return [native_table(table, ()) for table in tables if len(table)]


def _names(recording: Recording) -> dict[str, list[str]]:
    """Texts by ``name_id``; empty for ids that no row has."""
    strings = recording.strings
    annotations = [part.annotations.name_id for part in recording.parts]
    named = [getattr(recording, table).columns[side.name] for table, side in SIDE_TABLES.items() if not side.texts]

    def texts(form: Callable[[str], str], *ids: npt.NDArray[Any]) -> list[str]:
        is_used = np.zeros(len(strings), bool)
        for each in ids:
            is_used[each] = True
        return [form(text) if used else "" for text, used in zip(strings, is_used.tolist(), strict=True)]

    return {
        "short_names": texts(short_name, recording.kernels.name_id),
        "whole_names": texts(lambda name: name_in_label(demangle(name)), recording.kernels.name_id),
        "side_names": texts(str, *named),
        "graph_names": texts(str, recording.graph_launches.name_id),
        "other_range_names": texts(str, recording.other_ranges.name_id),
        "api_names": texts(plain_api_name, recording.api_calls.name_id),
        "paths": texts(str, *annotations),
        "ops": texts(op_of, *annotations),
    }


def _outputs(labels: AnnotationLabels, recording: Recording) -> tuple[list[bytes], npt.NDArray[Any]] | None:
    """An output for each annotation that another one consumes, because readers draw arrows from nodes with outputs."""
    if not labels.consumed:
        return None
    return [b"", _AN_OUTPUT], np.isin(recording.annotations.name_id, list(labels.consumed)).astype(np.uint32)


_AN_OUTPUT = NodeOutput(tensor_description=TensorDescription()).SerializeToString()
"""An output without any properties."""


def _memory(recording: Recording) -> tuple[list[bytes], npt.NDArray[Any]] | None:
    """The device memory that each API call allocated or freed."""
    operations = recording.memory_operations
    operations = operations[np.isin(operations.memory_kind, DEVICE_MEMORY)]
    if not len(operations):
        return None
    messages: dict[int, AllocatorMemoryUsed] = {}
    sizes: dict[int, int] = {}  # the record of a release may contain only the address
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
    index = np.zeros(len(recording.api_calls), np.uint32)
    index[list(messages)] = np.arange(1, len(messages) + 1)
    return [b"", *(used.SerializeToString(deterministic=True) for used in messages.values())], index


def _capture(recording: Recording) -> Capture:
    """The parts of a recording that `collector.stepstats.to_recording` needs in addition to the activities."""
    details: Sequence[Any] = recording.details
    capture = recording.to_capture()
    tables = capture["tables"]
    others: dict[str, dict[str, Any]] = {
        name: {column: values.tolist() for column, values in tables[name].items()}
        for name in SCHEMA
        if name not in ACTIVITY_KINDS and any(len(getattr(part, name)) for part in recording.parts)
    }
    # Rows that are set apart come last; readers of objects alone leave them out.
    kept = {name: len(getattr(recording, name)) for name in others}
    if kept := {name: count for name, count in kept.items() if count < len(next(iter(others[name].values())))}:
        others[NUM_KEPT] = kept
    if "rows_apart" in capture:
        others[ROWS_APART] = dict(capture["rows_apart"])
    counters = dict(recording.counters)
    figures = sorted(recording.ledger.as_dict().items())
    same = [place for place, (name, value) in enumerate(figures) if counters.get(name) == value]
    for place in same:
        del counters[figures[place][0]]
    return Capture(
        clock=Capture.Clock(**vars(recording.clock)),
        counters=counters,
        ledger_counters=same,
        strings=recording.strings,
        details=json.dumps(details) if details else "",
        other_tables=json.dumps(others) if others else "",
    )


def provenance(recording: Recording, origin: StepOrigin = NO_ORIGIN) -> Provenance:
    """The provenance of a recording: its source, its environment and its losses, and the origin of its step."""
    clock, environment = recording.clock, recording.environment
    return Provenance(
        collector_version=version(),
        source=str(environment.get("source", "")),
        simulated=bool(environment.get("simulated", False)),
        environment=environment_texts(environment),
        json_environment=json_keys(environment),
        ledger=recording.ledger.as_dict(),
        clock_offset_nanos=clock.offset_ns,
        window_start_nanos=clock.cupti_start_ns + clock.offset_ns,
        window_end_nanos=clock.cupti_stop_ns + clock.offset_ns,
        losses=[
            LossTimes(figure=figure, at_nanos=[time + clock.offset_ns for time in times])
            for figure, times in _loss_times(recording).items()
        ],
        unread=origin.unread,
        rank=origin.rank,
        world_size=origin.world_size,
        **AnnotationLabels(recording).fields(),
    )


def _loss_times(recording: Recording) -> dict[str, list[int]]:
    return {} if recording.ledger.complete else times_of_losses(recording)
