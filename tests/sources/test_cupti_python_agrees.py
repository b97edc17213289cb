"""NVIDIA's own reader of activity records, where it is installed, and ours give equal fields for the same bytes.

The records are random but for what must be sound (kind, name). What a real GPU makes of them is for tests/gpu.
"""

import ctypes
import re

import numpy as np
import pytest

from collector.recording.schema import SCHEMA
from collector.sources.cupti_python_records import FIELDS, Rows, Strings

cupti = pytest.importorskip("cupti.cupti", reason="cupti-python is not installed")
_native = pytest.importorskip("collector._native", reason="the native extension is not built")

RECORDS = {
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
    for name in dir(cupti):
        if re.fullmatch(rf"Activity{stem}\d*", name):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
            dtype = getattr(cupti, f"{snake}_dtype", None)
            attributes = {path.partition(".")[0] for path in FIELDS[kind].values()}
            if dtype is not None and attributes <= set(dir(getattr(cupti, name))):
                yield getattr(cupti, name), dtype


def rows_of(columns, strings):
    values = {name: column.tolist() for name, column in columns.items()}
    if "callback_id" not in values and "name_id" in values:
        values["name_id"] = [strings[name_id] for name_id in values["name_id"]]
    else:
        values.pop("name_id", None)  # the names of API calls are not in their records
    names = sorted(values)
    return names, sorted(zip(*(values[name] for name in names), strict=True))


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_is_read_alike(record):
    kind, stem, table = RECORDS[record]
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
        rows.add(record_class.from_ptr(memory.ctypes.data + index * dtype.itemsize, True) for index in range(COUNT))
        theirs = rows_of(rows.columns(strings, lambda domain, callback_id: "")[table], strings.texts())
        # Where newer versions gave meaning to bytes, an older one's reader must not look at them: newest only.
        decoded = _native.decode_buffer(memory.tobytes(), versions[-1])
        ours = rows_of(decoded["tables"][table], decoded["strings"])
        assert decoded["counters"]["records_decoded"] == COUNT
        assert ours == theirs
        assert set(SCHEMA[table]) >= set(ours[0])
        compared += 1
    assert compared, f"the installed cupti-python has no class for {stem} of any layout known here"
