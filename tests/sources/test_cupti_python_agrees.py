"""NVIDIA's own reader of activity records, where it is installed, and ours give equal fields for the same bytes.

The records are random but for what must be sound (kind, name). What a real GPU makes of them is for tests/gpu.
"""

import ctypes

import numpy as np
import pytest

from collector.recording.schema import RECORDS
from collector.sources.cupti_python_records import Rows, Strings

pytest.importorskip("cupti.cupti", reason="cupti-python is not installed")
_native = pytest.importorskip("collector._native", reason="the native extension is not built")

from cupti_python_reader import assert_read_alike, record_at, record_classes  # noqa: E402

COMPARED = {
    "kernel": (10, "Kernel", "kernels"),
    "memcpy": (1, "Memcpy", "memcpys"),
    "memcpy_peer": (22, "MemcpyPtoP", "memcpys"),
    "memset": (2, "Memset", "memsets"),
    "driver_api": (4, "API", "api_calls"),
    "runtime_api": (5, "API", "api_calls"),
    "external_correlation": (39, "ExternalCorrelation", "external_correlations"),
    "synchronization": (38, "Synchronization", "synchronizations"),
    "overhead": (17, "Overhead", "overheads"),
    "jit": (52, "Jit", "jit_operations"),
    "memory_operation": (49, "Memory", "memory_operations"),
}
"""Record -> its activity kind, NVIDIA's name for it, our table."""

NAME = ctypes.create_string_buffer(b"_Z4gemmPf")
COUNT = 200
ENUMS = {"external_kind", "overhead_kind", "object_kind", "type", "jit_entry_type", "jit_operation_type"}
VERSIONS = (12000, 12030, 12040, 12080, 13000, 13010, 13030, 13040, 13050)


def classes(kind, stem):
    """Every class the installed package has for a record, with its layout; not those older than CUDA 13 needs."""
    (record,) = (each for each in RECORDS if each.kind == kind)
    paths = (path for column, path in record.attributes.items() if column not in record.later)
    attributes = {path.partition(".")[0] for path in paths}
    return [found for found in record_classes(stem) if attributes <= set(dir(found[0]))]


@pytest.mark.parametrize("record", COMPARED)
def test_every_field_is_read_alike(record):
    kind, stem, table = COMPARED[record]
    compared = 0
    for record_class, dtype in classes(kind, stem):
        versions = [v for v in VERSIONS if _native.decode_buffer(b"", v)["strides"][record] == dtype.itemsize]
        if not versions:
            continue
        random = np.random.default_rng(kind)
        memory = random.integers(0, 256, COUNT * dtype.itemsize, dtype=np.uint8).view(dtype)
        memory["kind"] = kind
        for enum in ENUMS & set(dtype.names):
            memory[enum] &= 0x7FFFFFFF  # NVIDIA's enums are signed, and none is negative
        if record == "kernel":
            memory["name"] = ctypes.addressof(NAME)
        if record == "overhead":
            memory["overhead_data"] = 0  # whoever reads it frees it
            memory["object_kind"] = np.arange(COUNT) % 7
        if record == "memory_operation":  # variables' names are read by ours alone
            memory["memory_kind"] = np.arange(COUNT) % 6
            memory["memory_operation_type"] = 1 + np.arange(COUNT) % 2
            memory["memory_pool_config"]["memory_pool_type"] = np.arange(COUNT) % 3
        rows, strings = Rows(), Strings()
        rows.add(record_at(record_class, memory.ctypes.data + index * dtype.itemsize) for index in range(COUNT))
        theirs = rows.columns(strings, lambda domain, callback_id: "")[table]
        # Where newer versions gave meaning to bytes, an older one's reader must not look at them: newest only.
        decoded = _native.decode_buffer(memory.tobytes(), versions[-1])
        assert decoded["counters"]["records_decoded"] == COUNT
        ours = [(decoded["tables"][table], decoded["strings"])]
        assert assert_read_alike(table, ours, (theirs, strings.texts())) == COUNT
        compared += 1
    assert compared, f"the installed cupti-python has no class for {stem} of any layout known here"
