"""The simulated CUPTI of each CUDA version: its numbers, functions, names, and record layouts."""

from __future__ import annotations

import ctypes

import pytest
from cupti_client import (
    CONCURRENT_KERNEL,
    DRIVER,
    EXTERNAL_CORRELATION,
    INVALID_KIND,
    INVALID_PARAMETER,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    OVERHEAD,
    RUNTIME,
    SUCCESS,
    SYNCHRONIZATION,
    CuptiClient,
)

from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

VERSIONS = ["12.0", "12.4", "12.8", "13.0", "13.1", "13.3", "13.5"]


API_VERSIONS = {
    "12.0": 18,
    "12.1": 18,
    "12.2": 20,
    "12.3": 21,
    "12.4": 22,
    "12.5": 23,
    "12.6": 24,
    "12.8": 26,
    "12.9": 28,
}


API_VERSIONS |= {"13.0": 130001, "13.1": 130101, "13.2": 130202, "13.3": 130301, "13.4": 130401, "13.5": 130500}


STRIDES = {
    "12.0": {CONCURRENT_KERNEL: 208, MEMCPY: 88, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 40, SYNCHRONIZATION: 40},
    "12.4": {CONCURRENT_KERNEL: 208, MEMCPY: 88, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 40},
    "12.8": {CONCURRENT_KERNEL: 208, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.0": {CONCURRENT_KERNEL: 216, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.1": {CONCURRENT_KERNEL: 224, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.3": {CONCURRENT_KERNEL: 232, MEMCPY: 96, MEMCPY2: 96, MEMSET: 88, OVERHEAD: 56, SYNCHRONIZATION: 56},
    "13.5": {CONCURRENT_KERNEL: 248, MEMCPY: 112, MEMCPY2: 96, MEMSET: 104, OVERHEAD: 56, SYNCHRONIZATION: 56},
}
"""Bytes per record, from the measured ABI; API records are 40 and external correlations 24 in every version."""


@pytest.mark.parametrize("cuda", API_VERSIONS)
def test_version_number_is_that_of_the_newest_patch(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda):
        version = ctypes.c_uint32()
        client = CuptiClient()
        client.check("cuptiGetVersion", ctypes.byref(version))
        assert version.value == API_VERSIONS[cuda]
        assert client("collector_simulator_version") == API_VERSIONS[cuda]


def test_older_patch_release_can_be_asked_for() -> None:
    with SimulatedGpu(cuda="13.0", api_version=130000):
        assert CuptiClient()("collector_simulator_version") == 130000


@pytest.mark.parametrize(
    ("symbol", "since"),
    [
        ("cuptiActivityEnable", "12.0"),
        ("cuptiGetErrorMessage", "12.2"),
        ("cuptiActivityEnableRuntimeApi", "12.5"),
        ("cuptiActivityEnableAllSyncRecords", "12.8"),
        ("cuptiSubscribe_v2", "13.0"),
        ("cuptiActivityGetStructSize", "13.2"),
        ("cuInit", "12.0"),
    ],
)
def test_functions_appear_with_their_version(symbol: str, since: str) -> None:
    order = list(API_VERSIONS)
    for cuda in order:
        with SimulatedGpu(cuda=cuda):
            present = CuptiClient()("collector_simulator_has", symbol.encode())
            assert bool(present) == (order.index(cuda) >= order.index(since)), cuda


def test_unknown_function_is_absent() -> None:
    with SimulatedGpu():
        assert CuptiClient()("collector_simulator_has", b"cuptiActivityEnable_v9") == 0


def test_absent_function_does_nothing_but_be_counted() -> None:
    with SimulatedGpu(cuda="12.0") as gpu:
        assert CuptiClient()("cuptiActivityEnableAllSyncRecords", 0) != SUCCESS
        assert gpu.misuse() == {"absent_function": 1}


@pytest.mark.parametrize("cuda", VERSIONS)
def test_record_layouts(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda, devices=2) as gpu:
        client = CuptiClient().open()
        client.check("cuptiActivityPushExternalCorrelationId", 5, ctypes.c_uint64(1))
        gpu.launch("k", launch="runtime")
        gpu.memcpy("HtoD", 64, launch="driver")
        gpu.memset(64)
        gpu.memcpy_peer(0, 1, 64)
        gpu.overhead(65536)
        gpu.synchronize()
        client.flush()
        seen = {record.kind: len(record.data) for record in client.records()}
        expected = STRIDES[cuda] | {RUNTIME: 40, DRIVER: 40, EXTERNAL_CORRELATION: 24}
        assert seen == expected
        assert not gpu.misuse()


@pytest.mark.parametrize("cuda", ["13.2", "13.4"])
def test_struct_sizes_can_be_asked_for(cuda: str) -> None:
    sizes = {"13.2": (224, 96), "13.4": (248, 112)}[cuda]
    with SimulatedGpu(cuda=cuda):
        client = CuptiClient()
        size = ctypes.c_size_t()
        for kind, expected in zip((CONCURRENT_KERNEL, MEMCPY), sizes, strict=True):
            client.check("cuptiActivityGetStructSize", kind, 0, ctypes.byref(size))
            assert size.value == expected
        assert client("cuptiActivityGetStructSize", 77, 0, ctypes.byref(size)) == INVALID_KIND


ABSENT_BYTES = [
    ("12.0", MEMCPY, 84, 1),
    ("12.8", MEMCPY, 84, 1),
    ("12.0", MEMSET, 84, 1),
    ("13.0", CONCURRENT_KERNEL, 209, 7),
    ("13.3", CONCURRENT_KERNEL, 228, 4),
]


PRESENT_BYTES = [
    ("13.0", MEMCPY, 84, 1, 0),
    ("12.8", MEMCPY, 88, 8, 1),
    ("13.0", CONCURRENT_KERNEL, 208, 1, 0),
    ("13.1", CONCURRENT_KERNEL, 216, 4, 0),
    ("13.3", CONCURRENT_KERNEL, 224, 4, 1),
    ("13.5", CONCURRENT_KERNEL, 232, 4, 0),
    ("13.5", CONCURRENT_KERNEL, 240, 8, 0),
    ("13.5", MEMSET, 88, 4, 0),
]


@pytest.mark.parametrize(("cuda", "kind", "offset", "length"), ABSENT_BYTES)
def test_bytes_without_a_field_are_noise(cuda: str, kind: int, offset: int, length: int) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient().open()
        gpu.launch("k")
        gpu.memcpy("HtoD", 64)
        gpu.memset(64)
        gpu.synchronize()
        client.flush()
        (record,) = client.records(kind)
        assert record.data[offset : offset + length] == b"\xa5" * length


@pytest.mark.parametrize(("cuda", "kind", "offset", "length", "value"), PRESENT_BYTES)
def test_newer_fields_hold_their_value(cuda: str, kind: int, offset: int, length: int, value: int) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        client = CuptiClient().open()
        gpu.launch("k")
        gpu.memcpy("HtoD", 64)
        gpu.memset(64)
        gpu.synchronize()
        client.flush()
        (record,) = client.records(kind)
        assert int.from_bytes(record.data[offset : offset + length], "little") == value


def test_result_texts_are_those_of_the_version() -> None:
    with SimulatedGpu(cuda="12.4"):
        client = CuptiClient()
        text = ctypes.c_char_p()
        client.check("cuptiGetResultString", 39, ctypes.byref(text))
        assert text.value == b"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
        assert client("cuptiGetResultString", 43, ctypes.byref(text)) == INVALID_PARAMETER
        assert client("cuptiGetLastError") == INVALID_PARAMETER
        assert client("cuptiGetLastError") == SUCCESS


@pytest.mark.parametrize(
    ("domain", "cbid", "name"),
    [(2, 211, b"cudaLaunchKernel_v7000"), (1, 307, b"cuLaunchKernel"), (2, 41, b"cudaMemcpyAsync_v3020")],
)
def test_callback_names(domain: int, cbid: int, name: bytes) -> None:
    with SimulatedGpu():
        client = CuptiClient()
        text = ctypes.c_char_p()
        client.check("cuptiGetCallbackName", domain, cbid, ctypes.byref(text))
        assert text.value == name
        assert client("cuptiGetCallbackName", domain, 1023, ctypes.byref(text)) == INVALID_PARAMETER
