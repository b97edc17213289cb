"""NVIDIA's Python records as the columns every source fills.

cupti-python hands each buffer over as a list of record objects that may point into the buffer, so their fields are
copied out before the callback returns. That is all that happens there: one C-level ``attrgetter`` call per record.
Columns, names and numpy come after the session, in `Rows.columns`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    Column = npt.NDArray[Any]

# CUPTI's activity kinds, by the numbers that its C interface fixes.
MEMCPY, MEMSET, DRIVER, RUNTIME, CONCURRENT_KERNEL = 1, 2, 4, 5, 10
OVERHEAD, MEMCPY2, SYNCHRONIZATION, EXTERNAL_CORRELATION, MEMORY2 = 17, 22, 38, 39, 49

KINDS_OF_OPTION = {
    "kernels": (CONCURRENT_KERNEL,),
    "memcpys": (MEMCPY, MEMCPY2),  # copies between devices need their own kind and the plain one (pytorch#188211)
    "memsets": (MEMSET,),
    "runtime_api": (RUNTIME,),
    "driver_api": (DRIVER,),
    "external_correlations": (EXTERNAL_CORRELATION,),
    "synchronizations": (SYNCHRONIZATION,),
    "overheads": (OVERHEAD,),
    "memory_operations": (MEMORY2,),
}
"""`collector.options.KINDS` and ``KINDS_ON_REQUEST`` -> the activity kinds to enable."""

_PLACE = {name: name for name in ("device_id", "context_id", "stream_id", "correlation_id")}
_TIMES = {"start_ns": "start", "end_ns": "end"}
_GRAPH = {"graph_id": "graph_id", "graph_node_id": "graph_node_id"}
_COPY = {
    **_TIMES,
    **_PLACE,
    **_GRAPH,
    "num_bytes": "bytes",
    "copy_kind": "copy_kind",
    "src_kind": "src_kind",
    "dst_kind": "dst_kind",
    "is_async": "flags_",
}
_ENDS = {name: name for name in ("src_device_id", "src_context_id", "dst_device_id", "dst_context_id")}
_API = {
    **_TIMES,
    "callback_id": "cbid",
    "process_id": "process_id",
    "thread_id": "thread_id",
    "correlation_id": "correlation_id",
    "return_value": "return_value",
}

FIELDS: dict[int, dict[str, str]] = {
    CONCURRENT_KERNEL: {
        **_TIMES,
        **_PLACE,
        **_GRAPH,
        "name_id": "name",
        **{f"{what}_{axis}": f"{what}_{axis}" for what in ("grid", "block", "cluster") for axis in "xyz"},
        "registers_per_thread": "registers_per_thread",
        "static_shared_bytes": "static_shared_memory",
        "dynamic_shared_bytes": "dynamic_shared_memory",
        "local_bytes_per_thread": "local_memory_per_thread",
        "launch_type": "launch_type",
    },
    MEMCPY: _COPY,
    MEMCPY2: {**_COPY, **_ENDS},
    MEMSET: {
        **_TIMES,
        **_PLACE,
        **_GRAPH,
        "num_bytes": "bytes",
        "value": "value",
        "memory_kind": "memory_kind",
        "is_async": "flags_",
    },
    DRIVER: _API,
    RUNTIME: _API,
    EXTERNAL_CORRELATION: {name: name for name in ("correlation_id", "external_id", "external_kind")},
    SYNCHRONIZATION: {
        **_TIMES,
        "sync_type": "type",
        "context_id": "context_id",
        "stream_id": "stream_id",
        "correlation_id": "correlation_id",
        "event_id": "cuda_event_id",
        "return_value": "return_value",
    },
    OVERHEAD: {
        **_TIMES,
        "overhead_kind": "overhead_kind",
        "object_kind": "object_kind",
        "process_id": "object_id.pt.process_id",
        "thread_id": "object_id.pt.thread_id",
        "device_id": "object_id.dcs.device_id",
        "context_id": "object_id.dcs.context_id",
        "stream_id": "object_id.dcs.stream_id",
        "correlation_id": "correlation_id",
    },
    # Without the name, which only variables have: NVIDIA's class follows its pointer whatever the memory is.
    MEMORY2: {
        **_PLACE,
        "start_ns": "timestamp",
        "operation": "memory_operation_type",
        "memory_kind": "memory_kind",
        "address": "address",
        "num_bytes": "bytes",
        "is_async": "is_async",
        "pool_type": "memory_pool_config.memory_pool_type",
        "pool_address": "memory_pool_config.address",
        "pool_bytes": "memory_pool_config.pool.size_",
        "pool_used_bytes": "memory_pool_config.utilized_size",
    },
}
"""Activity kind -> our column -> the record's attribute that fills it."""

_TABLES = {
    "kernels": (CONCURRENT_KERNEL,),
    "memcpys": (MEMCPY, MEMCPY2),
    "memsets": (MEMSET,),
    "api_calls": (DRIVER, RUNTIME),
    "external_correlations": (EXTERNAL_CORRELATION,),
    "synchronizations": (SYNCHRONIZATION,),
    "overheads": (OVERHEAD,),
    "memory_operations": (MEMORY2,),
}
_DOMAIN_OF_KIND = {DRIVER: 1, RUNTIME: 2}  # CUPTI's callback domains
_ASYNC_FLAG = 1  # of copies and of sets
_PROCESS_OR_THREAD = (1, 2)  # object kinds whose union holds (process, thread), not (device, context, stream)
_DEVICE_CONTEXT_STREAM = (3, 4, 5)
_LOCAL_POOL, _IMPORTED_POOL = 1, 2
_STREAM_TABLES = ("kernels", "memcpys", "memsets")


class Rows:
    """Field tuples of the records seen so far, by activity kind."""

    def __init__(self) -> None:
        self._of_kind: dict[int, list[tuple[Any, ...]]] = {kind: [] for kind in FIELDS}
        self._readers: dict[type, attrgetter[Any]] = {}
        self._unknown: list[int] = []

    def add(self, records: Iterable[Any]) -> None:
        """Copy the fields out of ``records``; called inside CUPTI's completion callback, so it does nothing else.

        Several threads may be in here at once: every change is one append, which the GIL makes whole.
        """
        for record in records:
            kind = record.kind
            rows = self._of_kind.get(kind)
            if rows is None:
                self._unknown.append(kind)
                continue
            # One class serves one kind, but for API calls, whose two kinds have the same fields.
            reader = self._readers.get(type(record))
            if reader is None:
                reader = self._readers[type(record)] = attrgetter(*FIELDS[kind].values())
            rows.append(reader(record))

    def counts(self) -> dict[str, int]:
        """Return how many records were seen, and how many of them of a kind that was not asked for."""
        known = sum(map(len, self._of_kind.values()))
        return {"records_decoded": known + len(self._unknown), "records_unknown_kind": len(self._unknown)}

    def columns(self, strings: Strings, api_name: Callable[[int, int], str]) -> dict[str, dict[str, Column]]:
        """Return every table but ``annotations``; names go into ``strings``.

        Args:
            strings: What ``name_id`` columns will index.
            api_name: (callback domain, callback id) -> name of an API function.
        """
        tables = {}
        for table, kinds in _TABLES.items():
            parts = [self._columns_of(kind, table, strings, api_name) for kind in kinds]
            tables[table] = {
                column: np.concatenate([part[column] for part in parts]).astype(dtype, copy=False)
                for column, dtype in SCHEMA[table].items()
            }
            if table in _STREAM_TABLES:
                tables[table] = _in_stream_and_time_order(tables[table])
        return tables

    def _columns_of(
        self, kind: int, table: str, strings: Strings, api_name: Callable[[int, int], str]
    ) -> dict[str, Column]:
        rows = self._of_kind[kind]
        values: dict[str, Any] = dict.fromkeys(FIELDS[kind], ())
        if rows:
            values.update(zip(FIELDS[kind], zip(*rows, strict=True), strict=True))
        if kind == CONCURRENT_KERNEL:
            values["name_id"] = [strings.id_of(name) for name in values["name_id"]]
        elif kind in _DOMAIN_OF_KIND:
            domain = _DOMAIN_OF_KIND[kind]
            values["name_id"] = [strings.id_of(api_name(domain, cbid)) for cbid in values["callback_id"]]
            values["domain"] = [domain] * len(rows)
        elif kind == MEMCPY:
            for end in ("src", "dst"):
                values[f"{end}_device_id"] = values["device_id"]
                values[f"{end}_context_id"] = values["context_id"]
        elif kind == MEMORY2:
            values["name_id"] = [strings.id_of("") for _ in rows]
            values["is_async"] = [int(flag != 0) for flag in values["is_async"]]
        if "is_async" in values:
            values["is_async"] = [flags & _ASYNC_FLAG for flags in values["is_async"]]
        columns = {name: _column(values[name], dtype) for name, dtype in SCHEMA[table].items()}
        if kind == OVERHEAD:
            _keep_one_side_of_the_union(columns)
        if kind == MEMORY2:
            _keep_what_pools_tell(columns)
        return columns


class Strings:
    """Texts in the order of their first use, each once."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def id_of(self, text: str) -> int:
        """Return what a ``name_id`` column says for ``text``."""
        return self._ids.setdefault(text, len(self._ids))

    def texts(self) -> list[str]:
        """Return what the ids index."""
        return list(self._ids)


def leave_out_calls_of(thread_id: int, since_ns: int, tables: dict[str, dict[str, Column]]) -> None:
    """Take out the API calls that thread made from then on, and their waits: they are the collector's own."""
    calls, waits = tables["api_calls"], tables["synchronizations"]
    own = (calls["thread_id"] == thread_id) & (calls["start_ns"] >= since_ns)
    own_waits = np.isin(waits["correlation_id"], calls["correlation_id"][own])
    tables["api_calls"] = {name: column[~own] for name, column in calls.items()}
    tables["synchronizations"] = {name: column[~own_waits] for name, column in waits.items()}


def _column(values: Iterable[int], dtype: str) -> Column:
    # Through unsigned 64 bits, because a damaged record's time may not fit the signed column it belongs to.
    wide = np.array(values, dtype="i8" if dtype == "i4" else "u8")
    return np.minimum(wide, 255).astype(dtype) if dtype == "u1" else wide.astype(dtype)


def _in_stream_and_time_order(columns: dict[str, Column]) -> dict[str, Column]:
    # Buffers, and threads' buffers among them, come in any order; the native source hands over this one.
    keys = [columns[name] for name in ("start_ns", "stream_id", "context_id", "device_id")]
    order = np.lexsort(keys)
    return {name: column[order] for name, column in columns.items()}


def _keep_one_side_of_the_union(columns: dict[str, Column]) -> None:
    kind = columns["object_kind"]
    for names, kinds in (
        (("process_id", "thread_id"), _PROCESS_OR_THREAD),
        (("device_id", "context_id", "stream_id"), _DEVICE_CONTEXT_STREAM),
    ):
        for name in names:
            columns[name] = np.where(np.isin(kind, kinds), columns[name], 0).astype(columns[name].dtype)


def _keep_what_pools_tell(columns: dict[str, Column]) -> None:
    # Only a pool of this process has sizes; what is not from a pool has no pool's address.
    is_local = columns["pool_type"] == _LOCAL_POOL
    is_pooled = is_local | (columns["pool_type"] == _IMPORTED_POOL)
    for name, known in (("pool_address", is_pooled), ("pool_bytes", is_local), ("pool_used_bytes", is_local)):
        columns[name] = np.where(known, columns[name], 0).astype(columns[name].dtype)
