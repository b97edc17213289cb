"""The traced program of the benchmarks, and its start: every collector in a separate process, round by round."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "gpu"))  # cuda_program, simulated_cuda

import _placement  # noqa: E402
import simulated_cuda  # noqa: E402
from _collectors import COLLECTORS, Collector, why_missing  # noqa: E402

if TYPE_CHECKING:
    from collector.bench import Report

_LIBRARY = "COLLECTOR_BENCHMARK_LAUNCHER"
OTHERS = ("cupti-python", "flashinfer-python")
"""Compared packages whose versions `collector.bench` does not report."""


class Target(ctypes.Structure):
    """`Target` of native/launcher.cpp."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("launch", "set_context", "synchronize", "context", "function")),
        ("simulated", ctypes.c_int32),
    )


class Program:
    """A program that launches empty kernels at full speed from C++, on a warm context."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """Part of the measurement -> how long it took in all, with its waits."""
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
        from collector.testing.simulator.operations import KERNEL, LAUNCHES, number_of
        from collector.testing.simulator.simulator_library import Activity, library_path, load

        execute = load(str(library_path())).sim_execute
        self.activity = Activity(
            name=b"empty_kernel", type=KERNEL, launch=number_of(LAUNCHES, "driver", "way to launch"),
            stream=int(self.stream), grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1),
        )  # fmt: skip
        return Target(ctypes.cast(execute, ctypes.c_void_p).value, None, None, None, ctypes.addressof(self.activity), 1)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to those of this part."""
        before = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - before

    def launch(self, count: int, batch: int = 1000) -> np.ndarray[Any, Any]:
        """Launch ``count`` empty kernels; returns the nanoseconds of each call, without the waits between."""
        with self.part("launches"), _placement.launching() as move_others:
            first = self._launch(min(count, batch), batch)
            move_others()  # CUPTI and collectors start threads at their first use
            return np.concatenate([first, self._launch(count - len(first), batch)])

    def _launch(self, count: int, batch: int) -> np.ndarray[Any, Any]:
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
        """Launch from several threads, each on its own stream; returns nanoseconds per launch over all of them."""
        streams = (ctypes.c_void_p * threads)(*(int(self.cuda.stream()) for _ in range(threads)))
        with self.part("threads"):
            took = self.launcher.launcher_threads(ctypes.byref(self.target), streams, threads, ctypes.c_uint64(count))
            if took == 0:
                raise RuntimeError("a launch failed in one of the threads")
            self.cuda.synchronize()
        return float(took) / (threads * count)

    def capture_graph(self, nodes: int) -> Any:
        """Return a graph of ``nodes`` consecutive empty kernels, which is captured, instantiated and warm."""
        with self.cuda.captured(self.stream) as graphs:
            self.cuda.launch_empty(nodes, self.stream)
        self.cuda.launch_graph(graphs[0], self.stream)
        self.cuda.synchronize()
        return graphs[0]

    def replay(self, graph: Any, count: int) -> float:
        """Replay a graph ``count`` times, waiting for the GPU after every 50; returns nanoseconds per replay."""
        with self.part("replays"), _placement.launching():
            before = time.perf_counter_ns()
            for index in range(count):
                self.cuda.launch_graph(graph, self.stream)
                if index % 50 == 49:
                    self.cuda.synchronize()
            self.cuda.synchronize()
            return (time.perf_counter_ns() - before) / count

    def keep_busy(self, kernel_ns: int, count: int) -> float:
        """Run ``count`` kernels of ``kernel_ns`` one after another; returns nanoseconds per kernel."""
        self.cuda.launch("spin", ctypes.c_longlong(kernel_ns), stream=self.stream)  # loads it
        self.cuda.synchronize()
        with self.part("busy"), _placement.launching():
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
    rounds: int = 5,
    after: Callable[[Any], str] | None = None,
) -> None:
    """Compare collectors by the results of ``measure``, each in a separate process; print, and save if requested.

    With the first figure come the libcupti that each process had mapped at its end, the card's clock then, and the time
    that the process took. With ``--json FILE`` what each process reports is a line of ``FILE.processes`` when it has
    ended, which is left if this process is killed.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=launches)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=240, help="begin no round that would end later than this")
    parser.add_argument(
        "--timeout", type=float, help="seconds that one collector's process may take (default: half of all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order of the collectors")
    parser.add_argument("--json", type=Path, help="also write the report here, with every sample")
    parser.add_argument("--simulated", action="store_true", help="on the simulator although there is a GPU")
    parser.add_argument("--only", action="append", choices=collectors, help="compare these; may be given several times")
    parser.add_argument("--collector", choices=collectors, help="run one, in this process, and print its figures")
    options = parser.parse_args()
    options.timeout = options.timeout or max(20.0, min(80.0, options.seconds / 2))
    if options.collector:
        collector = collectors[options.collector]()
        faulthandler.dump_traceback_later(0.9 * options.timeout)  # says where it was, if it is killed
        began = time.monotonic()
        program = program_for(collector)
        ready = time.monotonic()
        found = measure(collector, program, options.launches)
        seconds = {"getting ready": ready - began, "everything after it": time.monotonic() - ready, **program.seconds}
        facts_beside = surroundings_of_process() | {
            "seconds": ", ".join(f"{what} {each:.2f}" for what, each in seconds.items())
        }
        beside = {f"{next(iter(figures))}: {fact}": value for fact, value in facts_beside.items()}
        print(json.dumps(found | beside))
        return
    from cuda_program import why_no_gpu

    from collector import bench

    reason = "asked for" if options.simulated else why_no_gpu()
    placement = _placement.choose("" if reason else gpu_bus_id())
    if reason:
        print(
            f"On the simulator: {reason}. It stands for CUPTI and the driver, what these cost is not in the figures.\n"
        )
    arms: dict[str, Any] = {}
    for name in options.only or collectors:
        make = collectors[name]
        missing = why_missing(make(), simulated=bool(reason))
        command = [sys.executable, script, "--collector", name, "--launches", str(options.launches)]
        command += ["--timeout", str(options.timeout)]
        arms[name] = bench.Missing(missing) if missing else bench.Process(command)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_LIBRARY] = str(build_launcher(Path(folder)))
        if reason:
            os.environ.setdefault(simulated_cuda.VARIABLE, "1")
        if isinstance(placement, _placement.Placement):
            os.environ[_placement.VARIABLE] = placement.to_text()

        def progress(rounds: int, report: Any) -> None:
            print(f"round {rounds} of {options.rounds}", file=sys.stderr, flush=True)
            if options.json:
                report.save(options.json)

        def program_done(arm: str, seconds: float, found: Any) -> None:
            trouble = str(found) if isinstance(found, bench.ArmError) else ""
            print(f"{arm}: {trouble or 'done'} in {seconds:.1f} s", file=sys.stderr, flush=True)
            if processes:
                line = {"arm": arm, "seconds": seconds, **({"failed": trouble} if trouble else found)}
                with processes.open("a") as file:
                    file.write(json.dumps(line) + "\n")

        processes = options.json and options.json.with_name(f"{options.json.name}.processes")
        if processes:
            processes.write_text("")
        report = bench.compare_processes(
            arms, figures, name=Path(script).stem, rounds=options.rounds, max_seconds=options.seconds,
            timeout=options.timeout, seed=options.seed,
            surroundings=surroundings(bool(reason)) | _placement.facts_of(placement), progress=progress,
            program_done=program_done,
        )  # fmt: skip
    print(without_facts(report))
    print(facts(report))
    if after:
        print(after(report))
    versions = {**report.environment["libraries"], **report.environment["other_packages"]}
    print("\nwith " + ", ".join(f"{name} {version}" for name, version in versions.items()))
    print("; ".join(f"{what.replace('_', ' ')}: {cores}" for what, cores in _placement.facts_of(placement).items()))
    print("\nEach records: " + "; ".join(f"{name} - {collectors[name]().records}" for name in arms) + ".")
    if options.json:
        report.save(options.json)


def without_facts(report: Report) -> Report:
    """The report for printing: further facts of the processes are too long for columns."""
    comparisons = [
        replace(each, arms={name: replace(arm, facts={}) for name, arm in each.arms.items()})
        for each in report.comparisons
    ]
    return replace(report, comparisons=comparisons)


def facts(report: Report) -> str:
    """The facts that the processes of the last round reported beside each figure."""
    lines = ["\nBesides, in the last round:"]
    for each in report.comparisons:
        if any(arm.facts for arm in each.arms.values()):
            lines.append(f"\n  {each.title.partition(': ')[2]}")
        for name, arm in each.arms.items():
            if arm.facts:
                lines.append(f"    {name} - " + "; ".join(f"{fact}: {value}" for fact, value in arm.facts.items()))
    return "\n".join(lines) if len(lines) > 1 else ""


def surroundings(simulated: bool) -> dict[str, Any]:
    """The report's facts about the card, and about other packages that the report does not list by itself."""
    packages = {name: version for name in OTHERS if (version := version_of(name))}
    if simulated:
        return {"simulated": True, "other_packages": packages}
    from collector.sources.native import NativeSource

    found = NativeSource().probe()
    devices = found.get("devices") or [{"name": "GPU"}]
    keys = ("driver_version", "cuda_version", "cupti_path", "cupti_api_version")
    card = {"gpu": devices[0]["name"], "gpu_uuid": str(devices[0].get("uuid", ""))}
    features = [name for name, has in found["features"].items() if has]
    return card | {key: found[key] for key in keys} | {"other_packages": packages, "features": features}


def version_of(distribution: str) -> str:
    """Its version; empty if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def gpu_bus_id() -> str:
    """The first GPU's PCI address, such as ``0000:1B:00.0``, or empty; makes no context."""
    try:
        from cuda.bindings import driver
        from cuda_program import checked

        checked(driver.cuInit(0))
        address = checked(driver.cuDeviceGetPCIBusId(64, checked(driver.cuDeviceGet(0))))
        return bytes(address).split(b"\0")[0].decode()
    except Exception as error:  # the cores are then not chosen by the GPU, but measuring is still possible
        print(f"where the GPU is in this machine is not known: {error}", file=sys.stderr)
        return ""


def surroundings_of_process() -> dict[str, Any]:
    """The libcupti that this process has mapped, whoever loaded it, and the card's current state."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {Path(line.split()[-1]) for line in maps if "/" in line}
    cupti = sorted(path for path in mapped if path.name.startswith(("libcupti", "libcollector_simulator")))
    return {"libcupti": ", ".join("/".join(path.parts[-4:]) for path in cupti) or "none", "clock": clock_of_card()}


def clock_of_card() -> str:
    """The clock of the first GPU's multiprocessors, and the reason if it is throttled."""
    from collector import bench

    try:
        state = bench.find_gpu().state()
    except Exception as error:  # only reported beside the figures, which exist already
        return f"not known: {error}"
    if state is None:
        return "not known"
    return ", ".join([f"{state.sm_clock_mhz} MHz", *state.throttled_by])


def program_for(collector: Collector) -> Program:
    """The program that ``collector`` is to record in this process; PyTorch is loaded first if it is needed."""
    _placement.settle()
    if "torch" in collector.needs:
        import torch

        torch.cuda.init()
    return Program()


def collectors_but(*prefixes: str) -> dict[str, Callable[[], Collector]]:
    """The collectors without these prefixes that are of interest for more than their effects after their end."""
    return {
        name: make for name, make in COLLECTORS.items() if not name.startswith(prefixes) and not make().only_afterwards
    }


def begin_peak() -> int:
    """Reset the peak of this process's memory; returns the current memory in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def resident(which: str = "VmHWM") -> int:
    """``VmHWM`` (the peak) or ``VmRSS`` of this process, bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {which}")


def timed_ns(call: Callable[[], Any]) -> float:
    """Nanoseconds of one call."""
    before = time.perf_counter_ns()
    call()
    return float(time.perf_counter_ns() - before)
