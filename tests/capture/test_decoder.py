"""The decoder on buffers filled by hand, laid out as each CUDA version lays them out."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

from collector import _native
from collector.recording.recording import SCHEMA

CUDA_VERSIONS = [12000, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 13040, 13050]
GARBAGE = 0xA5
"""What fills every byte that no field of the version under test covers."""

NAME = ctypes.create_string_buffer(b"_Z5sgemmPfi")


def strides(cuda: int) -> dict[str, int]:
    return _native.decode_buffer(b"", cuda)["strides"]


def record(length: int, *fields: tuple[int, str, Any]) -> bytes:
    data = bytearray([GARBAGE]) * length
    for offset, code, value in fields:
        struct.pack_into("<" + code, data, offset, value)
    return bytes(data)


def kernel(cuda: int, *, start: int = 100, end: int = 250, stream: int = 7, correlation: int = 9) -> bytes:
    return record(
        strides(cuda)["kernel"],
        (0, "I", 10),
        (6, "H", 32),
        (16, "Q", start),
        (24, "Q", end),
        (40, "I", 1),
        (44, "I", 2),
        (48, "I", stream),
        (52, "i", 4),
        (56, "i", 5),
        (60, "i", 6),
        (64, "i", 128),
        (68, "i", 2),
        (72, "i", 1),
        (76, "i", 1024),
        (80, "i", 2048),
        (84, "I", 16),
        (92, "I", correlation),
        (104, "Q", ctypes.addressof(NAME)),
        (136, "B", 1),
        (144, "Q", 77),
        (156, "I", 3),
        (176, "I", 2),
        (180, "I", 1),
        (184, "I", 1),
        *([(216, "i", -3)] if cuda >= 13010 else []),
    )


def memcpy(cuda: int) -> bytes:
    return record(
        strides(cuda)["memcpy"],
        (0, "I", 1),
        (4, "B", 1),
        (5, "B", 2),
        (6, "B", 3),
        (7, "B", 1),
        (8, "Q", 4096),
        (16, "Q", 300),
        (24, "Q", 400),
        (32, "I", 1),
        (36, "I", 2),
        (40, "I", 8),
        (44, "I", 10),
        (64, "Q", 0),
        (72, "I", 0),
    )


def memcpy_peer(cuda: int) -> bytes:
    return record(
        strides(cuda)["memcpy_peer"],
        (0, "I", 22),
        (4, "B", 10),
        (5, "B", 3),
        (6, "B", 3),
        (7, "B", 0),
        (8, "Q", 512),
        (16, "Q", 500),
        (24, "Q", 600),
        (32, "I", 0),
        (36, "I", 1),
        (40, "I", 9),
        (44, "I", 0),
        (48, "I", 1),
        (52, "I", 1),
        (56, "I", 2),
        (60, "I", 11),
        (72, "Q", 0),
        (80, "I", 0),
    )


def memset(cuda: int) -> bytes:
    return record(
        strides(cuda)["memset"],
        (0, "I", 2),
        (4, "I", 255),
        (8, "Q", 64),
        (16, "Q", 700),
        (24, "Q", 710),
        (32, "I", 1),
        (36, "I", 2),
        (40, "I", 7),
        (44, "I", 12),
        (48, "H", 1),
        (50, "H", 3),
        (64, "Q", 0),
        (72, "I", 0),
    )


def api(kind: int, *, correlation: int = 9) -> bytes:
    return record(
        40,
        (0, "I", kind),
        (4, "I", 211),
        (8, "Q", 10),
        (16, "Q", 20),
        (24, "I", 1000),
        (28, "I", 1001),
        (32, "I", correlation),
        (36, "I", 0),
    )


def external_correlation() -> bytes:
    return record(24, (0, "I", 39), (4, "I", 5), (8, "Q", 1 << 40), (16, "I", 9))


def synchronization(cuda: int) -> bytes:
    length = strides(cuda)["synchronization"]
    fields = [
        (0, "I", 38),
        (4, "I", 3),
        (8, "Q", 30),
        (16, "Q", 40),
        (24, "I", 13),
        (28, "I", 2),
        (32, "I", 7),
        (36, "I", 5),
    ]
    if cuda >= 12080:
        fields += [(40, "Q", 6), (48, "I", 600)]
    return record(length, *fields)


INSTRUMENTATION, BUFFER_FLUSH, BUFFER_REQUEST = 131072, 65536, 458752
"""Kinds of overheads."""


def overhead(cuda: int, *, kind: int = INSTRUMENTATION, object_kind: int = 2) -> bytes:
    length = strides(cuda)["overhead"]
    fields = [(0, "I", 17), (4, "I", kind), (8, "I", object_kind), (12, "I", 21), (16, "I", 22), (20, "I", 23)]
    fields += [(24, "Q", 50), (32, "Q", 60)]
    if cuda >= 12030:
        fields += [(40, "I", 14)]
    if cuda >= 12040:
        fields += [(48, "Q", 0)]
    return record(length, *fields)


def memory_operation(cuda: int, *, memory_kind: int = 3, pool_type: int = 0) -> bytes:
    return record(
        strides(cuda)["memory_operation"],
        (0, "I", 49),
        (4, "I", 1),
        (8, "I", memory_kind),
        (12, "I", 15),
        (16, "Q", 0x7F00_0000_0200),
        (24, "Q", 1 << 33),
        (32, "Q", 800),
        (52, "I", 1),
        (56, "I", 2),
        (60, "I", 0xFFFFFFFF),
        (64, "Q", ctypes.addressof(NAME) if memory_kind in (6, 7) else 0xDEAD0000),
        (72, "I", 0),
        (80, "I", pool_type),
        (88, "Q", 0x7E00_0000_0000),
        (104, "Q", 1 << 25),
        (112, "Q", 4096),
    )


def jit(cuda: int) -> bytes:
    fields = [(0, "I", 52), (4, "I", 1), (8, "I", 3), (12, "I", 1), (16, "Q", 700), (24, "Q", 790), (32, "I", 16)]
    fields += [(40, "Q", 1 << 40), (48, "Q", 1 << 33), (56, "Q", 0xDEAD0000)]  # the path is never followed
    if cuda >= 12040:
        fields += [(64, "I", 4321), (68, "I", 1001)]
    return record(strides(cuda)["jit"], *fields)


def row(decoded: dict[str, Any], table: str, index: int = 0) -> dict[str, int]:
    return {column: int(values[index]) for column, values in decoded["tables"][table].items()}


@pytest.mark.parametrize("cuda", [CUDA_VERSIONS[0], CUDA_VERSIONS[-1]])
def test_any_record_may_be_the_last_one_of_a_buffer(cuda: int) -> None:
    versioned = (kernel, memcpy, memcpy_peer, memset, synchronization, overhead, memory_operation, jit)
    for last in [*(make(cuda) for make in versioned), api(5), external_correlation()]:
        counters = _native.decode_buffer(kernel(cuda) + last, cuda)["counters"]
        assert counters == {"records_decoded": 2, "records_unknown_kind": 0, "bytes_unparsed": 0}
        counters = _native.decode_buffer(kernel(cuda) + last[:-8], cuda)["counters"]
        assert counters == {"records_decoded": 1, "records_unknown_kind": 0, "bytes_unparsed": len(last) - 8}


@pytest.mark.parametrize("cuda", CUDA_VERSIONS)
def test_every_kind_is_read_in_every_layout(cuda: int) -> None:
    buffer = b"".join(
        [
            kernel(cuda),
            memcpy(cuda),
            api(5),
            memcpy_peer(cuda),
            memset(cuda),
            external_correlation(),
            api(4),
            synchronization(cuda),
            overhead(cuda),
            memory_operation(cuda),
            jit(cuda),
            kernel(cuda, start=900, end=950),
        ]
    )
    decoded = _native.decode_buffer(buffer, cuda)
    assert decoded["counters"] == {"records_decoded": 12, "records_unknown_kind": 0, "bytes_unparsed": 0}
    assert row(decoded, "kernels") == {
        "start_ns": 100,
        "end_ns": 250,
        "device_id": 1,
        "context_id": 2,
        "stream_id": 7,
        "correlation_id": 9,
        "name_id": 1,  # 0 is the empty text
        "grid_x": 4,
        "grid_y": 5,
        "grid_z": 6,
        "block_x": 128,
        "block_y": 2,
        "block_z": 1,
        "cluster_x": 2,
        "cluster_y": 1,
        "cluster_z": 1,
        "registers_per_thread": 32,
        "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 2048,
        "local_bytes_per_thread": 16,
        "launch_type": 1,
        "graph_id": 3,
        "graph_node_id": 77,
        "priority": -3 if cuda >= 13010 else 0,
        "source_graph_node_id": int.from_bytes([GARBAGE] * 8, "little") if cuda >= 13040 else 0,
    }
    assert decoded["strings"][1] == "_Z5sgemmPfi"
    assert row(decoded, "kernels", 1)["start_ns"] == 900
    peer, copy = row(decoded, "memcpys", 0), row(decoded, "memcpys", 1)  # device 0 comes before device 1
    assert (copy["num_bytes"], copy["copy_kind"], copy["src_kind"], copy["dst_kind"]) == (4096, 1, 2, 3)
    assert (copy["is_async"], copy["src_device_id"], copy["dst_device_id"]) == (1, 1, 1)
    assert (peer["num_bytes"], peer["copy_kind"], peer["is_async"]) == (512, 10, 0)
    assert (peer["src_device_id"], peer["src_context_id"], peer["dst_device_id"], peer["dst_context_id"]) == (
        0,
        1,
        1,
        2,
    )
    assert row(decoded, "memsets")["num_bytes"] == 64
    assert row(decoded, "memsets")["value"] == 255
    assert row(decoded, "memsets")["memory_kind"] == 3
    assert decoded["tables"]["api_calls"]["domain"].tolist() == [2, 1]
    assert row(decoded, "api_calls")["thread_id"] == 1001
    assert row(decoded, "external_correlations") == {
        "correlation_id": 9,
        "external_id": 1 << 40,
        "external_kind": 5,
    }
    assert row(decoded, "memory_operations") == {
        "start_ns": 800,
        "operation": 1,
        "memory_kind": 3,
        "address": 0x7F00_0000_0200,
        "num_bytes": 1 << 33,
        "device_id": 1,
        "context_id": 2,
        "stream_id": 0xFFFFFFFF,
        "correlation_id": 15,
        "name_id": decoded["strings"].index(""),
        "is_async": 0,
        "pool_type": 0,
        "pool_address": 0,
        "pool_bytes": 0,
        "pool_used_bytes": 0,
    }
    assert row(decoded, "jit_operations") == {
        "start_ns": 700,
        "end_ns": 790,
        "jit_operation_type": 3,
        "jit_entry_type": 1,
        "device_id": 1,
        "process_id": 4321 if cuda >= 12040 else 0,
        "thread_id": 1001 if cuda >= 12040 else 0,
        "correlation_id": 16,
        "jit_id": 1 << 40,
        "cache_bytes": 1 << 33,
    }
    assert row(decoded, "synchronizations")["sync_type"] == 3
    # Fields that the version does not have yet are 0, whatever bytes stand there.
    assert row(decoded, "synchronizations")["return_value"] == (600 if cuda >= 12080 else 0)
    assert row(decoded, "overheads")["correlation_id"] == (14 if cuda >= 12030 else 0)


@pytest.mark.parametrize("cuda", [12050, 12060])
@pytest.mark.parametrize(
    ("pool_type", "sizes"), [(0, (0, 0, 0)), (1, (0x7E00_0000_0000, 1 << 25, 4096)), (2, (0x7E00_0000_0000, 0, 0))]
)
def test_only_a_pool_of_this_process_states_its_sizes(cuda: int, pool_type: int, sizes: tuple[int, int, int]) -> None:
    found = row(_native.decode_buffer(memory_operation(cuda, pool_type=pool_type), cuda), "memory_operations")
    assert (found["pool_address"], found["pool_bytes"], found["pool_used_bytes"]) == sizes


@pytest.mark.parametrize(("memory_kind", "name"), [(6, "_Z5sgemmPfi"), (7, "_Z5sgemmPfi"), (3, ""), (0, "")])
def test_only_a_variable_s_name_is_followed(memory_kind: int, name: str) -> None:
    """Other memory's pointer is none of ours, here one that cannot be read."""
    decoded = _native.decode_buffer(memory_operation(13000, memory_kind=memory_kind), 13000)
    assert decoded["strings"] == list(dict.fromkeys(["", name]))


@pytest.mark.parametrize(
    ("object_kind", "expected"),
    [
        (1, {"process_id": 21, "thread_id": 22, "device_id": 0, "context_id": 0, "stream_id": 0}),
        (2, {"process_id": 21, "thread_id": 22, "device_id": 0, "context_id": 0, "stream_id": 0}),
        (5, {"process_id": 0, "thread_id": 0, "device_id": 21, "context_id": 22, "stream_id": 23}),
        (0, {"process_id": 0, "thread_id": 0, "device_id": 0, "context_id": 0, "stream_id": 0}),
    ],
)
def test_overhead_objects_are_distinguished(object_kind: int, expected: dict[str, int]) -> None:
    found = row(_native.decode_buffer(overhead(13050, object_kind=object_kind), 13050), "overheads")
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("cuda", [12000, 12030, 13050])
@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        ((BUFFER_FLUSH, BUFFER_REQUEST), 0),
        ((BUFFER_FLUSH, BUFFER_REQUEST) * 3, 0),
        ((BUFFER_REQUEST,), 1),
        ((BUFFER_FLUSH, INSTRUMENTATION), 2),
    ],
)
def test_a_buffer_of_overheads_of_flushes_has_no_rows(cuda: int, kinds: tuple[int, ...], kept: int) -> None:
    """On an H100 each flush fills one; a request delays the program's thread, and other overheads do."""
    decoded = _native.decode_buffer(b"".join(overhead(cuda, kind=kind) for kind in kinds), cuda)
    assert len(decoded["tables"]["overheads"]["start_ns"]) == kept
    assert decoded["counters"]["records_decoded"] == len(kinds)
    assert decoded["counters"]["bytes_unparsed"] == 0


def test_a_flush_beside_work_is_kept() -> None:
    buffer = kernel(13000, start=100, end=200) + overhead(13000, kind=BUFFER_FLUSH)
    assert len(_native.decode_buffer(buffer, 13000)["tables"]["overheads"]["start_ns"]) == 1


ADDED_BY_ATTRIBUTION = {
    *((table, name) for table in SCHEMA for name in ("captured_external_id", "graph_degree", "num_nodes")),
    ("graph_launches", "name_id"),
}
"""Columns that `collector.recording.graph_attribution` fills when the step has ended."""

OF_OTHER_TOOLS = ("collectives", "other_ranges", "counter_samples")
"""Tables that only files of other tools fill."""


def test_tables_match_the_schema() -> None:
    tables = _native.decode_buffer(b"", 13050)["tables"]
    recorded = {table: columns for table, columns in SCHEMA.items() if table not in OF_OTHER_TOOLS}
    assert list(tables) == list(recorded)
    for table, columns in recorded.items():
        decoded = {name: dtype for name, dtype in columns.items() if (table, name) not in ADDED_BY_ATTRIBUTION}
        assert {name: array.dtype.str.lstrip("<|") for name, array in tables[table].items()} == decoded, table


def test_rows_of_one_stream_come_out_in_time_order() -> None:
    buffer = b"".join(kernel(13000, start=start, end=start + 5) for start in (300, 100, 200))
    assert _native.decode_buffer(buffer, 13000)["tables"]["kernels"]["start_ns"].tolist() == [100, 200, 300]


def test_streams_come_out_in_order() -> None:
    buffer = b"".join(kernel(13000, stream=stream) for stream in (9, 7, 9, 8))
    assert _native.decode_buffer(buffer, 13000)["tables"]["kernels"]["stream_id"].tolist() == [7, 8, 9, 9]


def test_unknown_kind_without_a_library_ends_the_buffer_and_is_counted() -> None:
    buffer = kernel(13000) + record(48, (0, "I", 12)) + kernel(13000)
    counters = _native.decode_buffer(buffer, 13000)["counters"]
    assert counters == {"records_decoded": 1, "records_unknown_kind": 0, "bytes_unparsed": 48 + len(kernel(13000))}


def test_cut_record_is_not_read() -> None:
    decoded = _native.decode_buffer(kernel(13000) + kernel(13000)[:-8], 13000)
    assert decoded["counters"]["records_decoded"] == 1
    assert decoded["counters"]["bytes_unparsed"] == len(kernel(13000)) - 8


def test_same_address_with_another_text_is_another_name() -> None:
    """A module reload may put a new name where an old one stood (seen before 13.4 U1)."""
    # The decoder works on one buffer at a time here, so the reload is played between two decodes of one store by
    # the simulator's tests; this holds the simpler half: equal texts at two addresses are one name.
    twin = ctypes.create_string_buffer(NAME.value)
    second = bytearray(kernel(13000))
    struct.pack_into("<Q", second, 104, ctypes.addressof(twin))
    decoded = _native.decode_buffer(kernel(13000) + bytes(second), 13000)
    assert decoded["tables"]["kernels"]["name_id"].tolist() == [1, 1]
    assert decoded["strings"] == ["", "_Z5sgemmPfi"]


def test_null_and_non_utf8_names_are_kept() -> None:
    odd = ctypes.create_string_buffer(b"k\xff\xfe")
    first, second = bytearray(kernel(13000)), bytearray(kernel(13000))
    struct.pack_into("<Q", first, 104, 0)
    struct.pack_into("<Q", second, 104, ctypes.addressof(odd))
    assert _native.decode_buffer(bytes(first + second), 13000)["strings"] == ["", "k\\xff\\xfe"]


@settings(max_examples=examples(200), deadline=None)
@given(data=st.binary(max_size=600), cuda=st.sampled_from(CUDA_VERSIONS))
def test_any_bytes_are_survived_and_accounted_for(data: bytes, cuda: int) -> None:
    # Records of kernels, devices, overheads and variables' memory carry pointers; all others may hold any bytes.
    usable = bytearray(data)
    for at in range(0, len(usable) - 3, 8):
        if struct.unpack_from("<I", usable, at)[0] in (3, 8, 10, 17, 49):
            usable[at] = 0
    decoded = _native.decode_buffer(bytes(usable), cuda)
    rows = sum(len(next(iter(table.values()))) for name, table in decoded["tables"].items() if name != "annotations")
    counters = decoded["counters"]
    assert rows + counters["records_unknown_kind"] == counters["records_decoded"]
    assert 0 <= counters["bytes_unparsed"] <= len(usable)


@pytest.mark.slow
def test_large_buffers_span_chunks() -> None:
    count = 10_000  # more than two chunks of rows
    decoded = _native.decode_buffer(
        b"".join(kernel(12040, start=i, end=i + 1, correlation=i) for i in range(count)), 12040
    )
    kernels = decoded["tables"]["kernels"]
    assert np.array_equal(kernels["start_ns"], np.arange(count))
    assert np.array_equal(kernels["correlation_id"], np.arange(count))
