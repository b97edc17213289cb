"""The loaded libcupti, compared with the decoder's table of layouts."""

import ctypes
from pathlib import Path

import pytest

import collector
from collector.sources.native import NativeSource

KINDS = {
    "memcpy": 1, "memset": 2, "driver_api": 4, "runtime_api": 5, "kernel": 10, "overhead": 17, "memcpy_peer": 22,
    "synchronization": 38, "external_correlation": 39, "memory_operation": 49, "jit": 52,
}  # fmt: skip


@pytest.fixture(scope="module")
def native(gpu_here):
    from collector import _native

    return _native


@pytest.fixture(scope="module")
def found(cuda, native):
    found = NativeSource().probe()  # with the search of sessions, which looks into NVIDIA's wheels, too
    assert found["available"], f"{found['cause']}. {found['remedy']}"
    return found


def test_the_strides_learnt_from_the_library_are_those_of_our_table(found, native):
    assert found["strides"] == native.decode_buffer(b"", found["cuda_version"])["strides"]


def test_the_library_itself_says_the_strides_we_step_by(found, real_gpu):
    library = ctypes.CDLL(found["cupti_path"])
    if not hasattr(library, "cuptiActivityGetStructSize"):
        pytest.skip(f"CUDA {found['cuda_version']} has no cuptiActivityGetStructSize (13.2 and later do)")
    for record, kind in KINDS.items():
        size = ctypes.c_size_t(0)
        assert library.cuptiActivityGetStructSize(kind, 0, ctypes.byref(size)) == 0, record
        assert size.value == found["strides"][record], record


def test_one_copy_of_libcupti_is_mapped(found, real_gpu):
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcupti.so" in line}
    assert paths == {str(Path(found["cupti_path"]).resolve())}


def test_the_library_names_every_launch_call(cuda, found):
    with collector.trace(strict=True) as step:
        cuda.launch_empty(3, cuda.stream())
    calls = step.recording.api_calls
    launches = calls[step.recording.launch_rows(step.kernels.correlation_id)]
    assert set(launches.recorded_names()) == {"cuLaunchKernel"}
    assert all(calls.recorded_names())
