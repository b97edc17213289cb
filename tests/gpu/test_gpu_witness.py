"""The native recording compared with NVIDIA's cupti-python, record by record."""

import ctypes
import json

import pytest

pytest.importorskip("cupti.cupti", reason="cupti-python is not installed")
_native = pytest.importorskip("collector._native", reason="the native extension is not built")

from cupti_python_reader import assert_read_alike, record_at, record_classes  # noqa: E402

from collector.sources.cupti_python_records import Rows, Strings  # noqa: E402
from collector.sources.native import NativeSource  # noqa: E402

BUFFER_BYTES = 1 << 20
MAX_LIMIT_REACHED = 12
KINDS = {
    10: ("kernel", "Kernel"),
    1: ("memcpy", "Memcpy"),
    2: ("memset", "Memset"),
    4: ("driver_api", "API"),
    49: ("memory_operation", "Memory"),
}
"""Activity kind -> its record here, and NVIDIA's name for it."""
KEPT = []
"""What libcupti may call and fill until the process ends, and the memory of records."""


def gathered_buffers(work):
    """Every buffer that libcupti fills while ``work()`` runs, as bytes. A client that knows nothing of records."""
    library = ctypes.CDLL(NativeSource().probe()["cupti_path"])
    requested_type = ctypes.CFUNCTYPE(
        None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
    )
    completed_type = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    )
    held, full = [], []

    def requested(buffer, size, max_records):
        memory = (ctypes.c_uint64 * (BUFFER_BYTES // 8))()
        held.append(memory)
        buffer[0], size[0], max_records[0] = ctypes.addressof(memory), BUFFER_BYTES, 0

    def completed(context, stream, buffer, size, valid):
        full.append(ctypes.string_at(buffer, valid))

    callbacks = requested_type(requested), completed_type(completed)
    assert library.cuptiActivityRegisterCallbacks(*callbacks) == 0
    for kind in KINDS:
        assert library.cuptiActivityEnable(kind) == 0
    work()
    for kind in KINDS:
        assert library.cuptiActivityDisable(kind) == 0
    assert library.cuptiActivityFlushAll(1) == 0
    KEPT.append((callbacks, held))
    return library, full


def nvidias_records(library, data):
    """The records of one buffer as cupti-python's objects."""
    memory = (ctypes.c_uint64 * (len(data) // 8 + 1))()
    ctypes.memmove(memory, data, len(data))
    KEPT.append(memory)
    strides = NativeSource().probe()["strides"]
    classes = {kind: class_of(stem, strides[record]) for kind, (record, stem) in KINDS.items()}
    record = ctypes.c_void_p()
    while True:
        result = library.cuptiActivityGetNextRecord(memory, ctypes.c_size_t(len(data)), ctypes.byref(record))
        if result == MAX_LIMIT_REACHED:
            return
        assert result == 0
        kind = ctypes.c_uint32.from_address(record.value).value
        yield record_at(classes[kind], record.value)


def class_of(stem, stride):
    """The record class of cupti-python whose layout is exactly this long."""
    for record_class, dtype in record_classes(stem):
        if dtype.itemsize == stride:
            return record_class
    pytest.skip(f"this cupti-python has no class for records of {stem} that are {stride} bytes long")


def mixed_work(cuda):
    stream, other, x = cuda.stream(), cuda.stream(), cuda.allocate(1 << 20)
    with cuda.pinned(1 << 20) as host:
        for index in range(500):
            cuda.launch(
                "scale", ctypes.c_void_p(x), ctypes.c_float(1), ctypes.c_int(1 << 18),
                grid=(1 + index % 7, 1, 1), block=(32 * (1 + index % 4), 1, 1), stream=(stream, other)[index % 2],
            )  # fmt: skip
            cuda.copy_to_device(x, host, 256 * (1 + index), stream)
            cuda.fill(x, index % 256, 128 * (1 + index), other)
        with cuda.captured(stream) as graphs:
            cuda.launch_empty(20, stream)
        for _ in range(10):
            cuda.launch_graph(graphs[0], stream)
        cuda.synchronize()
    cuda.free(x)


def test_every_field_of_every_record_is_read_alike(cuda):
    library, buffers = gathered_buffers(lambda: mixed_work(cuda))
    rows = Rows()
    decoded = []
    cuda_version = NativeSource().probe()["cuda_version"]
    for data in buffers:
        rows.add(nvidias_records(library, data))
        decoded.append(_native.decode_buffer(data, cuda_version))
    strings = Strings()
    theirs = rows.columns(strings, lambda domain, callback_id: "")
    for table, least in (
        ("kernels", 500 + 200),
        ("memcpys", 500),
        ("memsets", 500),
        ("api_calls", 3 * 500),
        ("memory_operations", 4),
    ):
        ours = [(part["tables"][table], part["strings"]) for part in decoded]
        assert assert_read_alike(table, ours, (theirs[table], strings.texts())) >= least


SESSION = """
import ctypes, json, sys
import collector
from cuda_program import CudaProgram
cuda = CudaProgram()
streams = [cuda.stream() for _ in range(3)]
x = cuda.allocate(1 << 20)
cuda.launch_empty(1, streams[0]); cuda.synchronize()
with collector.trace(strict=True, source=sys.argv[1]) as step:
    for index in range(300):
        with collector.annotate(f"op{index % 5}"):
            cuda.launch("axpy_pair", ctypes.c_void_p(x), ctypes.c_int(index), grid=(1 + index, 1, 1),
                        block=(64, 1, 1), shared_bytes=64, stream=streams[index % 3])
            cuda.fill(x, index % 256, 64 * (1 + index), streams[index % 3])
skip = {"start_ns", "end_ns", "correlation_id", "name_id", "context_id", "stream_id", "graph_id", "graph_node_id"}
out = {}
for table in (step.kernels, step.memsets):
    streams_seen = {key: rank for rank, key in enumerate(sorted(set(table.stream_id.tolist())))}
    columns = {name: values.tolist() for name, values in table.columns.items() if name not in skip}
    columns["stream"] = [streams_seen[key] for key in table.stream_id.tolist()]
    columns["annotation"] = step.recording.annotations_of(table)
    if table.name == "kernels":
        columns["name"] = table.recorded_names()
    out[table.name] = columns
launches = [name for name in step.recording.api_calls.recorded_names() if name.startswith("cuLaunch")]
print(json.dumps({"tables": out, "launches": len(launches), "complete": step.ledger.complete,
                  "losses": step.ledger.losses(), "source": step.recording.environment["source"]}))
"""


@pytest.mark.usefixtures("real_gpu")
def test_both_sources_record_the_same_of_the_same_program(run_program):
    native, python = (
        json.loads(run_program(f"import sys; sys.argv = ['', {source!r}]\n" + SESSION))
        for source in ("native", "cupti-python")
    )
    assert python.pop("source") == "cupti-python"
    assert native.pop("source") == "native"
    assert native == python
    assert native["launches"] == 300
    assert native["complete"], native["losses"]
