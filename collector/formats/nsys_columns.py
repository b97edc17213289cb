"""Recordings from exports of Nsight Systems, whose tables are CUPTI's records under other names.

Ids of contexts, launches, graphs, events and threads are unique within one process only. Ids that an earlier process
also uses get new numbers, so that one recording holds all processes. An activity's op is the innermost NVTX range that
was open when its launch was called. Of an export's facts about the machine and its user, only devices and thread names
are read.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collector.formats.capture_builder import CaptureBuilder
from collector.formats.kept_texts import KeptTexts
from collector.recording.api_functions import plain_api_name
from collector.recording.capture import NO_OBJECT
from collector.recording.capture_tables import rows_in_parts
from collector.recording.cupti_enums import COPY_KINDS, DEGREE_WHOLE_GRAPH, MEMORY_KINDS, OVERHEAD_KINDS, SYNC_TYPES
from collector.recording.distinct import distinct_values
from collector.recording.first_rows import first_rows, look_up
from collector.recording.nesting import NestedRanges
from collector.recording.process_numbers import ProcessNumbers
from collector.recording.recording import Recording
from collector.recording.row_arguments import RowArguments
from collector.recording.schema import LAUNCHED_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.formats.nsys_database import NsysDatabase, NsysTable
    from collector.recording.row_arguments import ArgumentColumn

    Numbers = npt.NDArray[np.int64]

_TIMES = ("start", "end")
_PLACE = {"deviceId": "device_id", "streamId": "stream_id"}
_GRAPH = {"graphId": "graph_id", "graphNodeId": "graph_node_id"}
_EVENT = {"eventId": "event_id", "eventSyncId": "event_sync_id"}
_CONTEXTS = {"contextId": "context_id", "srcContextId": "src_context_id", "dstContextId": "dst_context_id"}
"""Columns with the id of a context; all but the first one are those of copies between GPUs."""


_GRAPH_IDS = ("graphExecId", "graphId")
"""Columns with the id of a launched graph, the executable one first."""


class _Kind(NamedTuple):
    """The mapping of a table of the export to a table of the recording."""

    source: str
    columns: Mapping[str, str]
    """Column of the export -> the corresponding column of the recording."""


_WORK = {
    "kernels": _Kind(
        "KERNEL",
        {
            **_PLACE,
            **{f"grid{axis}": f"grid_{axis.lower()}" for axis in "XYZ"},
            **{f"block{axis}": f"block_{axis.lower()}" for axis in "XYZ"},
            **{f"cluster{axis}": f"cluster_{axis.lower()}" for axis in "XYZ"},
            "registersPerThread": "registers_per_thread",
            "staticSharedMemory": "static_shared_bytes",
            "dynamicSharedMemory": "dynamic_shared_bytes",
            "localMemoryPerThread": "local_bytes_per_thread",
            **_GRAPH,
        },
    ),
    "memcpys": _Kind(
        "MEMCPY",
        {**_PLACE, "bytes": "num_bytes", "srcDeviceId": "src_device_id", "dstDeviceId": "dst_device_id", **_GRAPH},
    ),
    "memsets": _Kind("MEMSET", {**_PLACE, "bytes": "num_bytes", "value": "value", **_GRAPH}),
    "synchronizations": _Kind(
        "SYNCHRONIZATION",
        {
            "streamId": "stream_id",
            **_EVENT,
        },
    ),
    "graph_launches": _Kind("GRAPH_TRACE", _PLACE),
}
_EVENTS = _Kind("CUDA_EVENT", {**_PLACE, **_EVENT})
"""Records of CUDA events, which have no start and no end."""
_KERNEL_NAMES = ("demangledName", "shortName", "mangledName")
"""Columns with the id of a kernel's name, in order of preference."""
_DEVICE = {
    "totalMemory": "memory_bytes",
    "constantMemory": "constant_bytes",
    "l2CacheSize": "l2_bytes",
    "threadsPerWarp": "threads_per_warp",
    "asyncEngines": "num_copy_engines",
    "smCount": "num_multiprocessors",
    "maxIPC": "max_ipc",
    "maxWarpsPerSm": "max_warps_per_multiprocessor",
    "maxBlocksPerSm": "max_blocks_per_multiprocessor",
    "maxShmemPerSm": "max_shared_bytes_per_multiprocessor",
    "maxRegistersPerSm": "max_registers_per_multiprocessor",
    "maxRegistersPerBlock": "max_registers_per_block",
    "maxShmemPerBlock": "max_shared_bytes_per_block",
    "maxThreadsPerBlock": "max_threads_per_block",
    **{f"maxBlockDim{axis}": f"max_block_{axis.lower()}" for axis in "XYZ"},
    **{f"maxGridDim{axis}": f"max_grid_{axis.lower()}" for axis in "XYZ"},
    "computeMajor": "compute_major",
    "computeMinor": "compute_minor",
}
_DEVICE_TABLE = "TARGET_INFO_GPU"
_EARLY_DEVICE_TABLE = "TARGET_INFO_CUDA_GPU"
_EARLY_DEVICE = {
    "memoryBandwidth": "globalMemoryBandwidth",
    "totalMemory": "globalMemorySize",
    "constantMemory": "constantMemorySize",
    "threadsPerWarp": "numThreadsPerWarp",
    "clockRate": "coreClockRate",
    "asyncEngines": "numMemcpyEngines",
    "smCount": "numMultiprocessors",
    "maxWarpsPerSm": "maxWarpsPerMultiprocessor",
    "maxBlocksPerSm": "maxBlocksPerMultiprocessor",
    "maxShmemPerSm": "maxSharedMemoryPerMultiprocessor",
    "maxRegistersPerSm": "maxRegistersPerMultiprocessor",
    "maxShmemPerBlock": "maxSharedMemoryPerBlock",
    "computeMajor": "computeCapabilityMajor",
    "computeMinor": "computeCapabilityMinor",
}
"""Column of a device -> its name in the table that Nsight Systems wrote up to 2021, where that is another one."""
_LEAST_MEMORY_BYTES = 1 << 24
"""A smaller number in an early export counts MiB."""
_OVERHEAD_KINDS = (0, 0, *(number for number in OVERHEAD_KINDS if number))
"""CUPTI's overhead kind for each number of Nsight Systems, from 0: undefined, unknown, then CUPTI's kinds in order."""
_COPY_KINDS = (*range(len(COPY_KINDS)), 1, 2, 8)
"""CUPTI's copy kinds in the same way: its own, then migrations of managed memory, which get that of their direction."""
_MEMORY_KINDS = (*range(1, len(MEMORY_KINDS)), 0)
"""CUPTI's kinds of memory in the same way: in the export the last number is unknown."""
_WAITS = {
    **dict.fromkeys(("EventSynchronize", "EventQuery"), SYNC_TYPES.index("Event Synchronize")),
    "StreamWaitEvent": SYNC_TYPES.index("Stream Wait Event"),
    **dict.fromkeys(("StreamSynchronize", "StreamQuery"), SYNC_TYPES.index("Stream Synchronize")),
    **dict.fromkeys(
        ("DeviceSynchronize", "ThreadSynchronize", "CtxSynchronize"), SYNC_TYPES.index("Context Synchronize")
    ),
}
"""Function, without ``cuda`` or ``cu`` -> CUPTI's type of the wait that it causes."""
_API_PREFIX = re.compile(r"cuda|cu")
_THREAD_OBJECT = 2
"""``CUpti_ActivityObjectKind`` of a thread."""
_PUSH_POP_RANGE = 59
"""``eventType`` of push/pop ranges of NVTX."""
_EMIT_NVTX = re.compile(r", (?:seq|op_id|sizes|input_op_ids) = ")
"""The suffix, unique for each call, that ``torch.autograd.profiler.emit_nvtx`` adds to the name of an op."""
_THREAD_MASK = (1 << 24) - 1
_EPOCH_LIMIT_NS = 1 << 62
_PRODUCT_VERSION = re.compile(r"[0-9.]{1,40}")


class NsysColumns:
    """The conversion of one export to a recording."""

    def __init__(self, database: NsysDatabase) -> None:
        """Read all tables for which recordings have columns."""
        self._database = database
        self._strings = database.texts("StringIds", "id", "value")
        self._built = CaptureBuilder()
        self._work = {table: self._activities(kind) for table, kind in _WORK.items()}
        self._events = self._activities(_EVENTS, times=())
        self._calls = database.table(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            *_TIMES,
            *("globalTid", "correlationId", "nameId", "returnValue"),
            timed=_TIMES,
            times=_TIMES,
            understood=("eventClass",),
        )
        self._overheads = database.table(
            "CUPTI_ACTIVITY_KIND_OVERHEAD",
            *_TIMES,
            *("globalTid", "correlationId", "overheadType"),
            timed=_TIMES,
            times=_TIMES,
            understood=("eventClass", "nameId"),
        )
        self._ranges = database.table(
            "NVTX_EVENTS",
            *_TIMES,
            *("globalTid", "textId"),
            timed=_TIMES[:1],
            times=_TIMES,
            text="text",
            where=f"eventType = {_PUSH_POP_RANGE}" if database.has("NVTX_EVENTS", "eventType") else "1",
            understood=("eventType",),
        )
        self._contexts = database.table(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            *("hwId", "vmId", "processId", "contextId", "deviceId", "nullStreamId", "parentContextId"),
            *("isGreenContext", "numMultiprocessors"),
        )
        if not len(self._contexts):  # up to 2023.3
            self._contexts = database.table(
                "TARGET_INFO_CUDA_NULL_STREAM", "hwId", "vmId", "processId", "contextId", "deviceId", "streamId"
            )
        self._streams = database.table(
            "TARGET_INFO_CUDA_STREAM", "hwId", "vmId", "processId", "contextId", "streamId", "priority", "flag"
        )
        self._names = database.table("ThreadNames", "globalTid", "nameId", "priority")
        activities = (*self._work.values(), self._events)
        self._has_processes = any("globalPid" in rows for rows in activities)
        self._correlation_ids = ProcessNumbers(
            (self._process(rows), rows["correlationId"]) for rows in (*activities, self._calls, self._overheads)
        )
        self._context_ids = ProcessNumbers(
            (self._process(rows), rows[column])
            for rows in (*activities, self._contexts, self._streams)
            for column in _CONTEXTS
        )
        self._thread_ids = ProcessNumbers(
            (self._process(rows), rows["globalTid"] & _THREAD_MASK)
            for rows in (self._calls, self._overheads, self._ranges, self._names)
        )
        self._graph_ids = ProcessNumbers((self._process(rows), _graphs(rows)) for rows in self._work.values())
        of_events = (self._events, self._work["synchronizations"])
        self._event_ids = {
            own: ProcessNumbers(((self._process(rows), rows[theirs]) for rows in of_events), shared=(0, NO_OBJECT))
            for theirs, own in _EVENT.items()
        }
        epochs = database.table("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")["utcEpochNs"].tolist()
        self._epoch_ns = next((epoch for epoch in epochs if 0 <= epoch < _EPOCH_LIMIT_NS), 0)

    def _activities(self, kind: _Kind, times: tuple[str, ...] = _TIMES) -> NsysTable:
        return self._database.table(
            f"CUPTI_ACTIVITY_KIND_{kind.source}",
            *times,
            *kind.columns,
            *("correlationId", "globalPid", *_CONTEXTS),
            *(_GRAPH_IDS if kind.source == "GRAPH_TRACE" else ()),
            *(_KERNEL_NAMES if kind.source == "KERNEL" else ()),
            *("launchType", "copyKind", "srcKind", "dstKind", "memKind", "syncType"),
            timed=times,
            times=times,
            understood=(),
        )

    def _process(self, rows: NsysTable) -> Numbers:
        """The process of each row (hardware, virtual machine and process id); 0 if the export names no processes."""
        if not self._has_processes:
            return np.zeros(len(rows), np.int64)
        if "processId" in rows:
            return (rows["hwId"] << 32) | (rows["vmId"] << 24) | rows["processId"]
        return (rows["globalPid"] if "globalPid" in rows else rows["globalTid"]) >> 24

    def recording(self) -> Recording:
        """The recording of the whole export."""
        self._add_work()
        self._add_events()
        self._add_calls()
        self._add_overheads()
        self._add_ranges()
        self._add_objects()
        unread = self._database.unread()
        self._built.without_columns = sum(unread.values())
        environment: dict[str, Any] = {"source": "Nsight Systems", "thread_names": self._thread_names()}
        version = self._database.value_of("EXPORT_PRODUCT_VERSION")
        if _PRODUCT_VERSION.fullmatch(version):
            environment["source"] += f" {version}"
        if unread:
            environment["rows_without_columns"] = unread
        read = {**self._tables(), "cuda_events": self._events}
        others = {table: rows.others for table, rows in read.items() if rows.others}
        for key, figure in (("arguments_without_columns", "num_values"), ("arguments_not_kept", "left_out")):
            counts: Counter[str] = Counter()
            for columns in others.values():
                counts.update({name: getattr(values, figure) for name, values in columns.items()})
            if +counts:
                environment[key] = dict(sorted((+counts).items()))
        capture = self._built.capture({}, environment)
        orders = {table: rows_in_parts(capture, table) for table in others}
        capture["arguments"] = RowArguments(lambda: _row_arguments(others, orders))
        return Recording.from_capture(capture)

    def _tables(self) -> dict[str, NsysTable]:
        """The rows of each table of the recording whose rows have times."""
        host = {"api_calls": self._calls, "overheads": self._overheads, "annotations": self._ranges}
        return {**self._work, **host}

    def _times(self, rows: NsysTable) -> dict[str, Numbers]:
        return {"start_ns": rows["start"] + self._epoch_ns, "end_ns": rows["end"] + self._epoch_ns}

    def _threads(self, rows: NsysTable) -> dict[str, Numbers]:
        return {
            "process_id": (rows["globalTid"] >> 24) & _THREAD_MASK,
            "thread_id": self._thread_ids.of(self._process(rows), rows["globalTid"] & _THREAD_MASK),
        }

    def _correlation(self, rows: NsysTable) -> Numbers:
        return self._correlation_ids.of(self._process(rows), rows["correlationId"])

    def _context(self, rows: NsysTable, column: str = "contextId") -> Numbers:
        return self._context_ids.of(self._process(rows), rows[column])

    def _named(self, ids: Numbers) -> tuple[list[str], Numbers]:
        """The distinct texts of these ids, and the index of each id's text."""
        distinct, index = np.unique(ids, return_inverse=True)
        return [self._strings.get(number, "") for number in distinct.tolist()], index

    def _add_work(self) -> None:
        for table, rows in self._work.items():
            columns = {own: rows[theirs] for theirs, own in _WORK[table].columns.items() if theirs not in _EVENT}
            columns |= {"context_id": self._context(rows), "correlation_id": self._correlation(rows)}
            if table == "synchronizations":
                columns |= {**self._events_of(rows), "sync_type": self._sync_types(rows)}
            else:
                columns["graph_id"] = self._graph_ids.of(self._process(rows), _graphs(rows))
            if table == "kernels":
                names, index = self._named(rows[next((name for name in _KERNEL_NAMES if name in rows), "")])
                columns["name_id"] = self._built.name_ids(names)[index]
                columns["launch_type"] = np.maximum(rows["launchType"] - 1, 0)
            elif table == "memcpys":
                columns["copy_kind"] = self._kinds(rows, "copyKind", _COPY_KINDS)
                columns["src_kind"] = self._kinds(rows, "srcKind", _MEMORY_KINDS)
                columns["dst_kind"] = self._kinds(rows, "dstKind", _MEMORY_KINDS)
                columns |= {own: self._context(rows, theirs) for theirs, own in _CONTEXTS.items()}
            elif table == "memsets":
                columns["memory_kind"] = self._kinds(rows, "memKind", _MEMORY_KINDS)
            elif table == "graph_launches":
                columns["end_device_id"] = columns["device_id"]
                columns["graph_degree"] = np.full(len(rows), DEGREE_WHOLE_GRAPH, np.int64)
                captured = np.where(rows["graphExecId"] == 0, 0, rows["graphId"]).tolist()
                rows.others["graphId"] = KeptTexts(self._database.room)
                rows.others["graphId"].add([graph or None for graph in captured])
            self._built.add(table, **self._times(rows), **columns)

    def _kinds(self, rows: NsysTable, column: str, known: Sequence[int]) -> Numbers:
        """CUPTI's numbers of kinds, by those of the export; a number that has none there is kept as text."""
        if column not in rows:
            return np.zeros(len(rows), np.int64)
        theirs = rows[column]
        is_known = (theirs >= 0) & (theirs < len(known))
        if not is_known.all():
            rows.others[column] = KeptTexts(self._database.room)
            numbers = zip(theirs.tolist(), is_known.tolist(), strict=True)
            rows.others[column].add([None if has_number else number for number, has_number in numbers])
        return np.array(known, np.int64)[np.where(is_known, theirs, 0)] * is_known

    def _sync_types(self, waits: NsysTable) -> Numbers:
        """CUPTI's type of each wait.

        The numbers of the export are CUPTI's from Nsight Systems 2025.3 on. Up to 2024.1 they are 1 for a context, 2
        for an event and 3 for a stream or for a stream that waits for an event; in 2024.5 and 2024.6, and in later
        exports from WSL, 0, 1 and 2. The export's table of these numbers states CUPTI's in all versions, so the call
        decides. A wait whose call does not tell has the type of most waits with its number.
        """
        numbers, calls = waits["syncType"], self._calls
        names, index = self._named(calls["nameId"])
        of_name = [_WAITS.get(_API_PREFIX.sub("", plain_api_name(name), count=1), 0) for name in names]
        called, first = first_rows(self._correlation(calls), calls["start"])
        callers = look_up(self._correlation(waits), called, first)
        types = np.append(np.array([*of_name, 0], np.int64)[index], 0)[callers]
        distinct, places = np.unique(numbers, return_inverse=True)
        votes = np.zeros((len(distinct), len(SYNC_TYPES)), np.int64)
        np.add.at(votes, (places, types), 1)
        votes[:, 0] = 0
        meanings = np.where(votes.any(axis=1), votes.argmax(axis=1), distinct)
        return np.where(types == 0, meanings[places], types)

    def _events_of(self, rows: NsysTable) -> dict[str, Numbers]:
        """The event of each row, and the recording of it, where the export has these columns."""
        return {
            own: self._event_ids[own].of(self._process(rows), rows[theirs])
            for theirs, own in _EVENT.items()
            if theirs in rows
        }

    def _add_events(self) -> None:
        rows = self._events
        self._built.add(
            "cuda_events",
            **{own: rows[theirs] for theirs, own in _PLACE.items()},
            **self._events_of(rows),
            context_id=self._context(rows),
            correlation_id=self._correlation(rows),
        )

    def _add_calls(self) -> None:
        rows = self._calls
        names, index = self._named(rows["nameId"])
        self._built.add_api_calls(
            [plain_api_name(name) for name in names],
            index,
            **self._times(rows),
            **self._threads(rows),
            correlation_id=self._correlation(rows),
            return_value=rows["returnValue"],
        )

    def _add_overheads(self) -> None:
        rows = self._overheads
        self._built.add(
            "overheads",
            **self._times(rows),
            **self._threads(rows),
            overhead_kind=self._kinds(rows, "overheadType", _OVERHEAD_KINDS),
            object_kind=np.full(len(rows), _THREAD_OBJECT, np.int64),
            correlation_id=self._correlation(rows),
        )

    def _add_ranges(self) -> None:
        """Add NVTX ranges as annotations, and link each activity to the range of its launch."""
        rows = self._ranges
        texts = rows.texts or [""] * len(rows)
        interned = rows["textId"].tolist()
        names = [
            _EMIT_NVTX.split(text or self._strings.get(number, ""), maxsplit=1)[0]
            for text, number in zip(texts, interned, strict=True)
        ]
        if "jsonTextId" in rows.others:
            rows.others["jsonTextId"].look_up(self._strings)
        # What was cut from a text are numbers and shapes of the op.
        rows.others["text"] = KeptTexts(self._database.room)
        rows.others["text"].add(
            [text if text and text != name else None for text, name in zip(texts, names, strict=True)]
        )
        times = self._times(rows)
        # A range that was open at the end of the recording has no end time.
        last_ns = max((int(self._times(each)["end_ns"].max()) for each in self._all_timed() if len(each)), default=0)
        times["end_ns"] = np.where(rows["end"] == 0, np.maximum(last_ns, times["start_ns"]), times["end_ns"])
        nested = NestedRanges(rows["globalTid"], times["start_ns"], times["end_ns"])
        self._built.add(
            "annotations",
            **times,
            name_id=self._built.name_ids(names),
            thread_id=self._threads(rows)["thread_id"],
            depth=nested.depths,
        )
        calls = self._calls
        innermost = nested.innermost_open(calls["globalTid"], self._times(calls)["start_ns"])
        launched, first = first_rows(self._correlation(calls), calls["start"])
        for table in LAUNCHED_TABLES:
            ids = distinct_values(self._correlation(self._work[table]))
            callers = look_up(ids, launched, first)
            ranges = innermost[callers[callers >= 0]]
            self._built.launched_in(ids[callers >= 0][ranges >= 0], ranges[ranges >= 0])

    def _all_timed(self) -> tuple[NsysTable, ...]:
        return tuple(self._tables().values())

    def _add_objects(self) -> None:
        """Add devices, contexts and streams."""
        self._add_devices()
        contexts = self._contexts
        self._built.add(
            "contexts",
            device_id=contexts["deviceId"],
            context_id=self._context(contexts),
            null_stream_id=contexts["nullStreamId" if "nullStreamId" in contexts else "streamId"],
            parent_context_id=contexts["parentContextId"],
            is_green_context=contexts["isGreenContext"],
            num_multiprocessors=contexts["numMultiprocessors"],
            process_id=contexts["processId"],
        )
        streams = self._streams
        self._built.add(
            "streams",
            context_id=self._context(streams),
            stream_id=streams["streamId"],
            # The export writes it as an unsigned 32-bit integer.
            priority=np.where(streams["priority"] >= 1 << 31, streams["priority"] - (1 << 32), streams["priority"]),
            stream_flag=streams["flag"],
        )

    def _add_devices(self) -> None:
        """Add the GPUs by the numbers that CUDA gives them, which the activities have.

        The export numbers GPUs by itself. A process may see a part of them, and in another order
        (``CUDA_VISIBLE_DEVICES``). Of several GPUs with one number the first that a process saw is added.
        """
        is_early = self._database.has(_EARLY_DEVICE_TABLE, "deviceId")
        names = {column: _EARLY_DEVICE.get(column, column) if is_early else column for column in _DEVICE}
        rates = {column: _EARLY_DEVICE[column] if is_early else column for column in ("memoryBandwidth", "clockRate")}
        table = _EARLY_DEVICE_TABLE if is_early else _DEVICE_TABLE
        gpus = self._database.table(
            table, *names.values(), *rates.values(), *("id", "cuDevice", "deviceId"), text="name"
        )
        number = next((column for column in ("deviceId", "cuDevice") if column in gpus), "id")
        rows = dict(zip(gpus["id"].tolist(), range(len(gpus)), strict=True))
        numbered = self._database.has("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId")
        seen = self._database.table(
            "TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", where="gpuId IS NOT NULL" if numbered else "0"
        )
        chosen: dict[int, int] = {}
        for gpu, device in zip(seen["gpuId"].tolist(), seen["cudaId"].tolist(), strict=True):
            if gpu in rows:
                chosen.setdefault(device, rows[gpu])
        for row in sorted(set(range(len(gpus))).difference(chosen.values())):
            chosen.setdefault(int(gpus[number][row]), row)
        order = np.array(list(chosen.values()), np.int64)
        columns = {own: gpus[names[theirs]][order] for theirs, own in _DEVICE.items()}
        units = 1 if is_early else 1000
        if is_early:
            memory = columns["memory_bytes"]
            columns["memory_bytes"] = np.where(memory < _LEAST_MEMORY_BYTES, memory << 20, memory)
        self._built.add(
            "devices",
            **columns,
            device_id=np.array(list(chosen), np.int64),
            memory_kilobytes_per_s=gpus[rates["memoryBandwidth"]][order] // units,
            core_clock_khz=gpus[rates["clockRate"]][order] // units,
            name_id=self._built.name_ids([(gpus.texts or [""] * len(gpus))[row] for row in order.tolist()]),
        )

    def _thread_names(self) -> dict[int, str]:
        """Thread id -> the name with the highest priority, for threads with calls or ranges."""
        seen = set((self._threads(self._calls)["thread_id"]).tolist()) | set(
            self._threads(self._ranges)["thread_id"].tolist()
        )
        rows = self._names
        order = np.argsort(rows["priority"], kind="stable")
        threads = self._threads(rows)["thread_id"][order].tolist()
        names = [self._strings.get(number, "") for number in rows["nameId"][order].tolist()]
        return {thread: name for thread, name in zip(threads, names, strict=True) if name and thread in seen}


def _row_arguments(
    others: Mapping[str, Mapping[str, KeptTexts]], orders: Mapping[str, Numbers]
) -> dict[str, dict[str, ArgumentColumn]]:
    """The columns of the export that recordings lack, by table and name."""
    tables = {
        table: {name: column for name, values in columns.items() if (column := values.column(orders[table]))}
        for table, columns in others.items()
    }
    return {table: columns for table, columns in tables.items() if columns}


def _graphs(rows: NsysTable) -> Numbers:
    """The executable graph of each row; the launched one where only that is stated."""
    executable, launched = (rows[column] for column in _GRAPH_IDS)
    return np.where(executable == 0, launched, executable)
