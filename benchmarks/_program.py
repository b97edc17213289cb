"""The program that benchmarks trace, and how they start it: every collector in a process of its own, round by round."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "gpu"))  # cuda_program, simulated_cuda

import simulated_cuda  # noqa: E402
from _collectors import COLLECTORS, Collector, why_missing  # noqa: E402

_LIBRARY = "COLLECTOR_BENCHMARK_LAUNCHER"


class Target(ctypes.Structure):
    """`Target` of native/launcher.cpp."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("launch", "set_context", "synchronize", "context", "function")),
        ("simulated", ctypes.c_int32),
    )


class Program:
    """A program that launches empty kernels, at full speed from C++, on a context that is warm."""

    def __init__(self) -> None:
        self.launcher = ctypes.CDLL(os.environ[_LIBRARY])
        self.launcher.launcher_threads.restype = ctypes.c_uint64
        self.launcher.floor_stop.restype = ctypes.c_uint64
        if simulated_cuda.asked_for():
            simulated_cuda.install()
        from cuda_program import CudaProgram

        self.cuda = CudaProgram()
        self.stream = self.cuda.stream()
        self.target = self._simulated_target() if simulated_cuda.asked_for() else self._target()
        self.launch(2_000)

    def _target(self) -> Target:
        cuda = ctypes.CDLL("libcuda.so.1")

        def address(name: str) -> int | None:
            return ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value

        function = int(self.cuda.kernels["empty_kernel"])
        return Target(
            address("cuLaunchKernel"), address("cuCtxSetCurrent"), address("cuCtxSynchronize"), int(self.cuda.context),
            function, 0,
        )  # fmt: skip

    def _simulated_target(self) -> Target:
        from collector.testing.operations import KERNEL, LAUNCHES, number_of
        from collector.testing.simulator_library import Activity, library_path, load

        execute = load(str(library_path())).sim_execute
        self.activity = Activity(
            name=b"empty_kernel", type=KERNEL, launch=number_of(LAUNCHES, "driver", "way to launch"),
            stream=int(self.stream), grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1),
        )  # fmt: skip
        return Target(ctypes.cast(execute, ctypes.c_void_p).value, None, None, None, ctypes.addressof(self.activity), 1)

    def launch(self, count: int, batch: int = 1000) -> np.ndarray[Any, Any]:
        """Launch ``count`` empty kernels; returns the nanoseconds that each call took, the waits between left out."""
        took = np.zeros(count, np.uint64)
        result = self.launcher.launcher_time(
            ctypes.byref(self.target), ctypes.c_void_p(int(self.stream)), ctypes.c_uint64(count),
            ctypes.c_uint64(batch), took.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip
        if result != 0:
            raise RuntimeError(f"a launch failed with {result}")
        self.cuda.synchronize()
        return took

    def launch_from_threads(self, threads: int, count: int) -> float:
        """Launch from several threads, each on its own stream; returns nanoseconds per launch of all of them."""
        streams = (ctypes.c_void_p * threads)(*(int(self.cuda.stream()) for _ in range(threads)))
        took = self.launcher.launcher_threads(ctypes.byref(self.target), streams, threads, ctypes.c_uint64(count))
        if took == 0:
            raise RuntimeError("a launch failed in one of the threads")
        self.cuda.synchronize()
        return float(took) / (threads * count)

    def replay_graph(self, nodes: int, count: int) -> float:
        """Capture ``nodes`` empty kernels and replay them ``count`` times; returns nanoseconds per replay."""
        with self.cuda.captured(self.stream) as graphs:
            self.cuda.launch_empty(nodes, self.stream)
        self.cuda.launch_graph(graphs[0], self.stream)
        self.cuda.synchronize()
        before = time.perf_counter_ns()
        for index in range(count):
            self.cuda.launch_graph(graphs[0], self.stream)
            if index % 50 == 49:
                self.cuda.synchronize()
        self.cuda.synchronize()
        return (time.perf_counter_ns() - before) / count

    def keep_busy(self, kernel_ns: int, count: int) -> float:
        """Run ``count`` kernels of ``kernel_ns`` one after another; returns nanoseconds per kernel."""
        self.cuda.synchronize()
        before = time.perf_counter_ns()
        for _ in range(count):
            self.cuda.launch("spin", ctypes.c_longlong(kernel_ns), stream=self.stream)
        self.cuda.synchronize()
        return (time.perf_counter_ns() - before) / count


def build_launcher(folder: Path) -> Path:
    """Compile native/launcher.cpp into ``folder``."""
    library = folder / "liblauncher.so"
    source = HERE / "native" / "launcher.cpp"
    command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-fPIC", "-shared", str(source), "-o", str(library)]
    subprocess.run([*command, "-pthread", "-ldl"], check=True)
    return library


def main(
    script: str,
    description: str | None,
    figures: Mapping[str, str],
    measure: Callable[[Collector, Program, int], dict[str, Any]],
    collectors: Mapping[str, Callable[[], Collector]] = COLLECTORS,
    *,
    launches: int,
    after: Callable[[Any], str] | None = None,
) -> None:
    """Compare collectors by what ``measure`` finds of each in a process of its own; print, and save where asked."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=launches)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=240, help="begin no round that would end later than this")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the collectors")
    parser.add_argument("--json", type=Path, help="also write the report here, with every sample")
    parser.add_argument("--simulated", action="store_true", help="on the simulator although there is a GPU")
    parser.add_argument("--collector", choices=collectors, help="run one, in this process, and print its figures")
    options = parser.parse_args()
    if options.collector:
        collector = collectors[options.collector]()
        if "torch" in collector.needs:
            import torch

            torch.cuda.init()
        print(json.dumps(measure(collector, Program(), options.launches)))
        return
    from cuda_program import why_no_gpu

    from collector import bench

    reason = "asked for" if options.simulated else why_no_gpu()
    if reason:
        print(
            f"On the simulator: {reason}. It stands for CUPTI and the driver, what these cost is not in the figures.\n"
        )
    arms: dict[str, Any] = {}
    for name, make in collectors.items():
        missing = why_missing(make(), simulated=bool(reason))
        command = [sys.executable, script, "--collector", name, "--launches", str(options.launches)]
        arms[name] = bench.Missing(missing) if missing else bench.Process(command)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_LIBRARY] = str(build_launcher(Path(folder)))
        if reason:
            os.environ.setdefault(simulated_cuda.VARIABLE, "1")

        def progress(rounds: int, report: Any) -> None:
            print(f"round {rounds} of {options.rounds}", file=sys.stderr, flush=True)
            if options.json:
                report.save(options.json)

        report = bench.compare_processes(
            arms, figures, name=Path(script).stem, rounds=options.rounds, max_seconds=options.seconds,
            timeout=max(20.0, options.seconds / 3), seed=options.seed, surroundings=surroundings(bool(reason)),
            progress=progress,
        )  # fmt: skip
    print(report)
    if after:
        print(after(report))
    print("\nEach records: " + "; ".join(f"{name} - {make().records}" for name, make in collectors.items()) + ".")
    if options.json:
        report.save(options.json)


def surroundings(simulated: bool) -> dict[str, Any]:
    """What the report says of the card."""
    if simulated:
        return {"simulated": True}
    from collector import _native

    found = _native.probe()
    devices = found.get("devices") or [{"name": "GPU"}]
    told = ("driver_version", "cuda_version", "cupti_path", "cupti_api_version")
    return {"gpu": devices[0]["name"], "gpu_uuid": str(devices[0].get("uuid", ""))} | {key: found[key] for key in told}


def timed_ns(call: Callable[[], Any]) -> float:
    """Nanoseconds of one call."""
    before = time.perf_counter_ns()
    call()
    return float(time.perf_counter_ns() - before)
