"""What tracing costs the program that is traced, on a real GPU, against other collectors and against the floor.

The floor is a CUPTI client that recycles zeroed buffers and throws every record away: what CUPTI itself costs. Each
collector runs in a process of its own, the collectors by turns in random order; the figures are medians over the
rounds. Launches are timed one by one in C++, on a warm context, without the waits in between.

    overhead.py                  every collector that is installed; needs a GPU and cuda-python
    overhead.py --simulated      tries the benchmark out on the simulator; its figures say nothing about a GPU
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "gpu"))  # cuda_program, simulated_cuda

import simulated_cuda  # noqa: E402

ALL_KINDS = (39, 5, 4, 10, 1, 22, 2, 38, 17)
COLLECTORS = {
    "none": ("nothing", ()),
    "floor, kernels": ("kernels, thrown away", ()),
    "floor, all": ("every kind we record, thrown away", ()),
    "collector, kernels": ("kernels", ()),
    "collector, all": ("kernels, copies, sets, both APIs, waits, annotations", ()),
    "kineto, CUDA": ("torch.profiler with ProfilerActivity.CUDA", ("torch",)),
    "kineto, CPU + CUDA": ("torch.profiler with both activities", ("torch",)),
    "proton": ("triton.profiler, its own format", ("triton", "torch")),
}
"""Name -> what it records, the packages it needs."""


class Target(ctypes.Structure):
    """`Target` of native/launcher.cpp."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("launch", "set_context", "synchronize", "context", "function")),
        ("simulated", ctypes.c_int32),
    )


def build_launcher(folder: Path) -> Path:
    """Compile native/launcher.cpp into ``folder``."""
    library = folder / "liblauncher.so"
    compiler = os.environ.get("CXX", "c++")
    source = HERE / "native" / "launcher.cpp"
    command = [compiler, "-std=c++17", "-O2", "-fPIC", "-shared", str(source), "-o", str(library), "-pthread", "-ldl"]
    subprocess.run(command, check=True)
    return library


class Program:
    """The program that is traced."""

    def __init__(self, library: Path) -> None:
        self.launcher = ctypes.CDLL(str(library))
        self.launcher.launcher_threads.restype = ctypes.c_uint64
        self.launcher.floor_stop.restype = ctypes.c_uint64
        if simulated_cuda.asked_for():
            simulated_cuda.install()
        from cuda_program import CudaProgram

        self.cuda = CudaProgram()
        self.stream = self.cuda.stream()
        self.target = self._simulated_target() if simulated_cuda.asked_for() else self._target()

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
        def launch(_function: int, _duration_ns: int, count: int) -> int:
            self.cuda.launch_empty(count, self.stream)
            return 0

        self.callback = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64)(launch)
        return Target(ctypes.cast(self.callback, ctypes.c_void_p).value, None, None, None, None, 1)

    def launch(self, count: int, batch: int = 1000) -> np.ndarray[Any, Any]:
        """Launch ``count`` empty kernels; returns the nanoseconds that each call took."""
        took = np.zeros(count, np.uint64)
        result = self.launcher.launcher_time(
            ctypes.byref(self.target), ctypes.c_void_p(int(self.stream)), ctypes.c_uint64(count),
            ctypes.c_uint64(batch), took.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip
        if result != 0:
            raise RuntimeError(f"a launch failed with {result}")
        return took

    def launch_from_threads(self, threads: int, count: int) -> float:
        """Launch from several threads, each on its own stream; returns nanoseconds per launch of all of them."""
        streams = (ctypes.c_void_p * threads)(*(int(self.cuda.stream()) for _ in range(threads)))
        took = self.launcher.launcher_threads(ctypes.byref(self.target), streams, threads, ctypes.c_uint64(count))
        if took == 0:
            raise RuntimeError("a launch failed in one of the threads")
        return took / (threads * count)

    def replay_graph(self, nodes: int, count: int) -> float:
        """Replay a graph of empty kernels; returns microseconds per replay."""
        with self.cuda.captured(self.stream) as graphs:
            self.cuda.launch_empty(nodes, self.stream)
        self.cuda.launch_graph(graphs[0], self.stream)
        self.cuda.synchronize()
        before = time.perf_counter()
        for index in range(count):
            self.cuda.launch_graph(graphs[0], self.stream)
            if index % 50 == 49:
                self.cuda.synchronize()
        self.cuda.synchronize()
        return 1e6 * (time.perf_counter() - before) / count


@contextlib.contextmanager
def collecting(name: str, program: Program, seen: dict[str, Any]) -> Iterator[None]:
    """Run the block under a collector; ``seen`` gets how long its end took and how many kernels it has."""
    kind, _, what = name.partition(", ")
    finish: Callable[[], Any]
    if kind == "none":
        finish = lambda: None  # noqa: E731
    elif kind == "floor":
        from collector import _native

        kinds = (10,) if what == "kernels" else ALL_KINDS
        path = _native.probe()["cupti_path"].encode()
        if program.launcher.floor_start(path, (ctypes.c_uint32 * len(kinds))(*kinds), len(kinds)) != 0:
            raise RuntimeError("the floor could not enable what it needs")

        def finish() -> None:
            seen["record_bytes"] = program.launcher.floor_stop()

    elif kind == "collector":
        import collector

        step = collector.trace(strict=True, **({"kinds": ("kernels",)} if what == "kernels" else {}))
        step.__enter__()

        def finish() -> None:
            step.__exit__(None, None, None)
            seen["kernels"], seen["losses"] = len(step.kernels), step.ledger.losses()

    elif kind == "kineto":
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CUDA] + ([ProfilerActivity.CPU] if "CPU" in what else [])
        profiler = profile(activities=activities)
        profiler.__enter__()

        def finish() -> None:
            profiler.__exit__(None, None, None)

    else:
        import triton.profiler as proton

        path = tempfile.mkdtemp()
        proton.start(str(Path(path) / "trace"), backend="cupti")
        finish = proton.finalize
    yield
    program.cuda.synchronize()
    before = time.perf_counter()
    finish()
    seen["stop_ms"] = 1e3 * (time.perf_counter() - before)


def measure(name: str, library: Path, launches: int) -> dict[str, Any]:
    """Run every workload under one collector, in this process."""
    if "torch" in COLLECTORS[name][1]:
        import torch

        torch.cuda.init()
    program = Program(library)
    program.launch(2000)
    found: dict[str, Any] = {"name": name}
    one: dict[str, Any] = {}
    with collecting(name, program, one):
        before = time.perf_counter()
        took = program.launch(launches)
        found["launches_per_second"] = launches / (time.perf_counter() - before)
    found["launch_ns"] = {
        "mean": float(took.mean()),
        **{f"p{share}": float(np.percentile(took, share)) for share in (50, 99, 99.99)},
        "max": float(took.max()),
    }
    found["stop_ms"], found["kernels"] = one["stop_ms"], one.get("kernels")
    found["losses"] = one.get("losses", [])
    found["residual_ns"] = float(np.median(program.launch(launches // 4)))
    with collecting(name, program, {}):
        found["threads_ns"] = program.launch_from_threads(8, launches // 8)
    with collecting(name, program, {}):
        found["graph_us"] = program.replay_graph(100, max(launches // 100, 10))
    if name.startswith("collector"):
        found["sessions_ms"] = sessions(program)
    return found


def sessions(program: Program) -> dict[str, float]:
    """Open and close 30 sessions around 50 launches; returns the medians."""
    import collector

    opened, closed = [], []
    for _ in range(30):
        step = collector.trace(strict=True)
        before = time.perf_counter()
        step.__enter__()
        between = time.perf_counter()
        program.launch(50)
        after = time.perf_counter()
        step.__exit__(None, None, None)
        opened.append(between - before)
        closed.append(time.perf_counter() - after)
        if len(step.kernels) != 50:
            raise RuntimeError(f"a session has {len(step.kernels)} kernels of 50: {step.ledger.losses()}")
    return {"open": 1e3 * statistics.median(opened), "close": 1e3 * statistics.median(closed)}


def run_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run every collector ``options.rounds`` times, in processes of their own, in random order."""
    usable = [name for name, (_, needs) in COLLECTORS.items() if all(importlib.util.find_spec(one) for one in needs)]
    if simulated_cuda.asked_for():
        usable = [name for name in usable if not COLLECTORS[name][1]]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in usable}
    order = random.Random(1)
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        library = build_launcher(Path(folder))
        for _ in range(options.rounds):
            for name in order.sample(usable, len(usable)):
                if time.monotonic() > deadline and runs[name]:
                    continue
                runs[name].append(run_one(name, library, options.launches))
    return [combined(name, found) for name, found in runs.items()]


def run_one(name: str, library: Path, launches: int) -> dict[str, Any]:
    """Run one collector in a new process; a failure is a result."""
    command = [sys.executable, __file__, "--worker", name, "--library", str(library), "--launches", str(launches)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": "took longer than 90 s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def combined(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of one collector's rounds."""
    good = [run for run in runs if "failed" not in run]
    if not good:
        return {"name": name, "failed": runs[0]["failed"], "rounds": 0}
    middle: dict[str, Any] = {"name": name, "rounds": len(good), "kernels": good[-1]["kernels"]}
    for key in ("launches_per_second", "stop_ms", "residual_ns", "threads_ns", "graph_us"):
        middle[key] = statistics.median(run[key] for run in good)
    percentiles = good[0]["launch_ns"]
    middle["launch_ns"] = {key: statistics.median(run["launch_ns"][key] for run in good) for key in percentiles}
    middle["losses"] = sorted({loss for run in good for loss in run["losses"]})
    if "sessions_ms" in good[0]:
        middle["sessions_ms"] = good[0]["sessions_ms"]
    return middle


def print_table(rows: list[dict[str, Any]], launches: int) -> None:
    """Print what was measured; ``x floor`` compares what is added to an untraced launch."""
    by_name = {row["name"]: row for row in rows if "failed" not in row}
    plain = by_name["none"]["launch_ns"]["mean"] if "none" in by_name else 0.0
    print(f"{launches} launches of an empty kernel, one stream; 8 threads; a graph of 100 kernels\n")
    print(
        "| collector | launch mean ns | p50 | p99 | p99.99 | max | added | x floor "
        "| 8 threads ns | graph us | after ns | stop ms |"
    )
    print("| --- " * 12 + "|")
    for row in rows:
        if "failed" in row:
            print(f"| {row['name']} | not measured: {row['failed']} |" + " |" * 10)
            continue
        times = row["launch_ns"]
        added = times["mean"] - plain
        floor = by_name.get("floor, kernels" if row["name"].endswith("kernels") else "floor, all")
        against = added / (floor["launch_ns"]["mean"] - plain) if floor and row["name"] != "none" else None
        print(
            f"| {row['name']} | "
            + " | ".join(f"{times[key]:.0f}" for key in ("mean", "p50", "p99", "p99.99", "max"))
            + f" | {added:.0f} | {'' if against is None else f'{against:.2f}'} | {row['threads_ns']:.0f} "
            f"| {row['graph_us']:.1f} | {row['residual_ns']:.0f} | {row['stop_ms']:.1f} |"
        )
    for row in rows:
        if row.get("sessions_ms"):
            print(f"\n{row['name']}: a session opens in {row['sessions_ms']['open']:.2f} ms and closes in "
                  f"{row['sessions_ms']['close']:.2f} ms")  # fmt: skip
        for loss in row.get("losses", []):
            print(f"\n{row['name']}: {loss}")
    print("\nEach records: " + "; ".join(f"{name} - {COLLECTORS[name][0]}" for name in by_name) + ".")


def main() -> None:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=240, help="start no further round after this long")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--simulated", action="store_true", help="try the benchmark out on the simulator")
    parser.add_argument("--worker", choices=COLLECTORS, help=argparse.SUPPRESS)
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.simulated:
        os.environ[simulated_cuda.VARIABLE] = "1"
    if options.worker:
        print(json.dumps(measure(options.worker, options.library, options.launches)))
        return
    from cuda_program import why_no_gpu

    if not options.simulated and (reason := why_no_gpu()):
        print(f"Overhead is not measured: {reason}. Try the benchmark out with --simulated.")
        return
    rows = run_all(options)
    print_table(rows, options.launches)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
