"""Questions to the driver without our extension, answered by the simulated driver."""

import ctypes
import shutil
import subprocess
import sys

import pytest

from collector.sources.loaded_libraries import device_names, library_versions, synchronize_devices
from collector.testing import SimulatedGpu
from collector.testing.simulator.simulated_gpu import library_path

pytestmark = pytest.mark.simulator


def test_devices_and_driver():
    with SimulatedGpu(devices=2, cuda="12.4", name="NVIDIA Simulated") as gpu:
        ctypes.CDLL(str(library_path())).cuInit(0)
        gpu.launch("k")
        assert device_names() == {0: "NVIDIA Simulated", 1: "NVIDIA Simulated"}
        assert library_versions()["driver_version"] == 12040


def test_every_device_in_use_is_waited_for():
    with SimulatedGpu(devices=3) as gpu:
        ctypes.CDLL(str(library_path())).cuInit(0)
        for device in (0, 2):
            gpu.launch("long", device=device, duration_ns=10**9)
        before = gpu.now_ns
        synchronize_devices()
        assert gpu.now_ns - before >= 10**9
        assert not any(gpu.misuse().values())


def test_without_a_driver_no_devices_and_versions_are_known(monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so.1")
    assert device_names() == {}
    assert library_versions() == {}
    synchronize_devices()


ASK_A_MAPPED_LIBCUPTI = """
import ctypes, mmap, sys
with open(sys.argv[1] + "-caf\\udce9", "w+b") as file:  # a name that is not UTF-8
    file.truncate(mmap.PAGESIZE)
    mapped = mmap.mmap(file.fileno(), 0)
from collector.sources.loaded_libraries import library_versions
from collector.testing import SimulatedGpu
with SimulatedGpu(cuda="13.0"):
    ctypes.CDLL(sys.argv[1])
    found = library_versions()
print(found["cupti_path"], found["cupti_api_version"] >= 18)
"""


def test_a_mapped_libcupti_is_named_and_asked(tmp_path):
    path = tmp_path / "libcupti.so.13"
    shutil.copy(library_path(), path)
    done = subprocess.run(
        [sys.executable, "-c", ASK_A_MAPPED_LIBCUPTI, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [str(path), "True"], done.stderr
