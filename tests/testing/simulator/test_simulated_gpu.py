"""SimulatedGpu for its users: misuse, environment, one instance at a time."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import collector
from collector.errors import CollectorError
from collector.testing import SimulatedGpu
from collector.testing.simulator import simulated_gpu
from collector.testing.simulator.simulator_library import library_path

pytestmark = pytest.mark.simulator


def test_one_simulator_at_a_time() -> None:
    with SimulatedGpu(), pytest.raises(CollectorError, match="open already"), SimulatedGpu():
        pass


@pytest.mark.parametrize("before", [None, "/somewhere/else.so"])
def test_environment_is_restored(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("COLLECTOR_LIBCUPTI", "COLLECTOR_LIBCUDA"):
        if before is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, before)
    with SimulatedGpu():
        assert os.environ["COLLECTOR_LIBCUPTI"].endswith("libcollector_simulator.so")
        assert os.environ["COLLECTOR_LIBCUDA"] == os.environ["COLLECTOR_LIBCUPTI"]
    assert os.environ.get("COLLECTOR_LIBCUPTI") == before
    assert os.environ.get("COLLECTOR_LIBCUDA") == before


def test_closed_simulator_says_so() -> None:
    gpu = SimulatedGpu()
    with pytest.raises(CollectorError, match="not open"):
        gpu.launch("k")
    with gpu:
        pass
    with pytest.raises(CollectorError, match="not open"):
        gpu.synchronize()


@pytest.mark.parametrize("cuda", ["11.8", "12.7", "14.0"])
def test_unknown_version_is_refused(cuda: str) -> None:
    with pytest.raises(CollectorError, match="knows no CUDA"), SimulatedGpu(cuda=cuda):
        pass
    with SimulatedGpu():
        pass


@pytest.mark.parametrize("cuda", ["twelve", "12", "12.x"])
def test_malformed_version_is_refused(cuda: str) -> None:
    with pytest.raises(CollectorError, match="not a CUDA version"):
        SimulatedGpu(cuda=cuda)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda gpu: gpu.launch("k", device=1), "no device 1"),
        (lambda gpu: gpu.launch("k", count=0), "count is 0"),
        (lambda gpu: gpu.replay(kernels=[{"start_ns": 1, "end_ns": 2, "device": "0"}]), "device '0' .* whole number"),
        (lambda gpu: gpu.replay(kernels=[{"start_ns": 1, "end_ns": 2, "grid": (1, 2)}]), "three numbers"),
        (lambda gpu: gpu.launch("k", grid=64), "grid is 64. Give three numbers"),
        (lambda gpu: gpu.launch("k", block=(64,)), r"block is \(64,\). Give three numbers"),
        (lambda gpu: gpu.launch("k", cluster=(1, 1.5, 1)), r"cluster is \(1, 1.5, 1\). Give three numbers"),
        (lambda gpu: gpu.launch("k", grid=(2**40, 1, 1)), "Give numbers below"),
        (lambda gpu: gpu.launch("k", duration_ns=-5), "duration_ns is -5"),
        (lambda gpu: gpu.launch("k", duration_ns=2**70), "duration_ns is 1180591620717411303424"),
        (lambda gpu: gpu.memcpy("HtoD", -5), "num_bytes is -5"),
        (lambda gpu: gpu.memset(-5), "num_bytes is -5"),
        (lambda gpu: gpu.malloc(-5), "num_bytes is -5"),
        (lambda gpu: gpu.advance(-5), "ns is -5"),
        (lambda gpu: gpu.launch("k", context=9), "context 9 is not one of device 0"),
        (lambda gpu: gpu.launch("k", launch="magic"), "not a way to launch"),
        (lambda gpu: gpu.memcpy("HtoX", 1), "HtoX"),
        (lambda gpu: gpu.memcpy("HtoD", 1, src="moon"), "memory kind"),
        (lambda gpu: gpu.wait_event(1), "no event 1"),
        (lambda gpu: gpu.synchronize_event(1), "no event 1"),
        (lambda gpu: gpu.api_call("cudaMakeCoffee"), "knows no API call"),
        (lambda gpu: gpu.api_call(), "knows no API call"),
        (lambda gpu: gpu.inject("gremlin"), "knows no fault"),
        (lambda gpu: gpu.inject("error", target="cuptiDance"), "exports no function"),
        (lambda gpu: gpu.reload_module("a", "b"), "cannot be replaced"),
        (lambda gpu: gpu.replay(kernels=[{"start_ns": 1}]), "lacks start_ns or end_ns"),
        (lambda gpu: gpu.replay(memsets=[{"start_ns": 1, "end_ns": 2, "name": "k"}]), "unknown keys: name"),
    ],
)
def test_mistakes_are_named(operation: Callable[[SimulatedGpu], object], message: str) -> None:
    with SimulatedGpu() as gpu, pytest.raises(CollectorError, match=message):
        operation(gpu)


@pytest.mark.parametrize("devices", [-1, 65])
def test_numbers_of_devices_are_checked(devices: int) -> None:
    with pytest.raises(CollectorError, match=f"devices is {devices}"):
        SimulatedGpu(devices=devices)


def test_a_launch_shape_may_be_a_list() -> None:
    with SimulatedGpu() as gpu, collector.trace() as step:
        gpu.launch("k", grid=[3, 4, 5])
    kernel = step.kernels[0]
    assert (kernel.grid_x, kernel.grid_y, kernel.grid_z) == (3, 4, 5)


def test_library_can_be_opened_without_python() -> None:
    """As a program's environment may name it: it opens itself, by variables of its own."""
    program = (
        "import ctypes, os\n"
        "library = ctypes.CDLL(os.environ['LIBRARY'])\n"
        "count = ctypes.c_int()\n"
        "assert library.cuDeviceGetCount(ctypes.byref(count)) == 0\n"
        "print(count.value, library.collector_simulator_version())\n"
    )
    variables = {
        "LIBRARY": str(library_path()),
        "COLLECTOR_SIMULATED_CUDA": "12040",
        "COLLECTOR_SIMULATED_DEVICES": "3",
    }
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "22"]


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(simulated_gpu) == (0, 4)


@pytest.mark.medium
def test_a_forked_child_can_leave_the_block_and_open_its_own() -> None:
    program = (
        "import os, sys\n"
        "from collector.testing import SimulatedGpu\n"
        "with SimulatedGpu() as gpu:\n"
        "    gpu.launch('k')\n"
        "    child = os.fork()\n"
        "if child == 0:\n"
        "    with SimulatedGpu() as gpu:\n"
        "        gpu.launch('k')\n"
        "        gpu.synchronize()\n"
        "        os._exit(gpu.statistics().launches)\n"
        "_, status = os.waitpid(child, 0)\n"
        "sys.exit(0 if os.waitstatus_to_exitcode(status) == 1 else 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == 0
