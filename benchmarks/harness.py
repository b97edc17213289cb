"""Claim: `collector.bench` gives steadier figures than triton.testing.do_bench, and sooner.

Of a vector add, an RMS norm and a matrix product: the run-to-run coefficient of variation of the reported median, and
the wall time until the median is known to 0.5 %, both as ratios to do_bench. Beside it do_bench_cudagraph, PyTorch's
Timer and CuPy's benchmark, where they are installed; what cannot be had is named, and the others are measured.

    harness.py                on a GPU: PyTorch's kernels, or where there is no PyTorch those of examples/bench_saxpy.py
    harness.py --simulated    tries the benchmark out on simulated kernels; its figures say nothing about any of them
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNS = 20
WALL_RUNS = 5
PRECISION = 0.005
LIMIT_MS = 20_000
REFERENCE = "do_bench"

Call = Callable[[], Any]
Measure = Callable[[Call], float]


@dataclass(frozen=True)
class Method:
    """A way to time a call. Both give ns."""

    median_ns: Measure
    """The median as it comes."""
    precise_ns: Measure | None
    """The median known to `PRECISION`; None where there is no telling how well it is known."""


@dataclass(frozen=True)
class Bench:
    """What is measured, and with what."""

    gpu: Any
    workloads: Mapping[str, Call]
    methods: Mapping[str, Method]
    unavailable: Mapping[str, str]
    """Method -> why there is none."""


def ours(gpu: Any) -> Method:
    """This harness."""

    def median_ns(call: Call) -> float:
        from collector import bench

        report = bench.compare({"call": call}, gpu=gpu, precision=PRECISION, max_seconds=LIMIT_MS / 1000)
        return report.comparison.arms["call"].median_ns.estimate

    return Method(median_ns, median_ns)


def triton_do_bench(do_bench: Callable[..., Any]) -> Method:
    """do_bench as it comes, and with its time budget doubled until the median is known to `PRECISION`."""

    def precise_ns(call: Call) -> float:
        from collector.bench.statistics import median

        budget_ms = 25
        while True:
            times = do_bench(call, rep=budget_ms, return_mode="all")
            interval = median([float(each) * 1e6 for each in times])
            if interval.relative_half_width <= PRECISION or budget_ms > LIMIT_MS:
                return interval.estimate
            budget_ms *= 2

    return Method(lambda call: float(do_bench(call, return_mode="median")) * 1e6, precise_ns)


def _do_bench() -> Method:
    from triton.testing import do_bench

    return triton_do_bench(do_bench)


def _do_bench_cudagraph() -> Method:
    from triton.testing import do_bench_cudagraph

    return Method(lambda call: float(do_bench_cudagraph(call, return_mode="median")) * 1e6, None)


def _torch_timer() -> Method:
    from torch.utils.benchmark import Timer

    def median_ns(call: Call) -> float:
        return float(Timer("call()", globals={"call": call}).blocked_autorange().median) * 1e9

    return Method(median_ns, None)


def _cupy() -> Method:
    from cupyx.profiler import benchmark

    def median_ns(call: Call) -> float:
        found = benchmark(call, (), n_repeat=100, max_duration=1.0, n_warmup=10)
        return statistics.median(found.gpu_times[0].tolist()) * 1e9

    return Method(median_ns, None)


PEERS: dict[str, Callable[[], Method]] = {
    REFERENCE: _do_bench,
    "do_bench_cudagraph": _do_bench_cudagraph,
    "torch Timer": _torch_timer,
    "cupyx benchmark": _cupy,
}


def methods(gpu: Any, peers: Mapping[str, Callable[[], Method]]) -> tuple[dict[str, Method], dict[str, str]]:
    """Ours and every peer that can be had, and why the others cannot."""
    found, unavailable = {"ours": ours(gpu)}, {}
    for name, make in peers.items():
        try:
            found[name] = make()
        except Exception as error:  # whatever a package that is missing, broken or different raises
            unavailable[name] = f"{type(error).__name__}: {error}"
    return found, unavailable


def torch_workloads() -> dict[str, Call]:
    """PyTorch's own kernels, with everything allocated beforehand."""
    import torch

    a, b = (torch.randn(1 << 14, device="cuda") for _ in range(2))
    total = torch.empty_like(a)
    x, weight = torch.randn(4096, 4096, device="cuda"), torch.ones(4096, device="cuda")
    m, n = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(m)
    return {
        "vector add 64 KiB": lambda: torch.add(a, b, out=total),
        "RMS norm 4096x4096": lambda: torch.nn.functional.rms_norm(x, (4096,), weight),
        "matrix product 4096": lambda: torch.matmul(m, n, out=product),
    }


def example_workloads() -> dict[str, Call]:
    """The kernels of examples/bench_saxpy.py, for a machine without PyTorch."""
    sys.path.insert(0, str(ROOT / "examples"))
    import bench_saxpy as example

    cuda = example.Cuda()
    found: dict[str, Call] = {}
    for told, n in (("saxpy 64 KiB", 1 << 14), ("saxpy 64 MiB", 1 << 24)):
        x, y, z = (cuda.allocate(4 * n) for _ in range(3))
        found[told] = example.arms(cuda, n, x, y, z)["one kernel"]
    return found


@contextlib.contextmanager
def prepared(*, simulated: bool) -> Iterator[Bench]:
    """What to measure, on the GPU or simulated.

    Raises:
        collector.UnavailableError: there is no GPU.
    """
    from collector import bench

    if not simulated:
        gpu = bench.find_gpu()
        try:
            workloads = torch_workloads()
            torch_trouble = ""
        except Exception as error:
            workloads, torch_trouble = example_workloads(), f"{type(error).__name__}: {error}"
        found, unavailable = methods(gpu, PEERS)
        yield Bench(gpu, workloads, found, unavailable | ({"torch's kernels": torch_trouble} if torch_trouble else {}))
        return
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    from simulated_triton import do_bench_on

    with bench.SimulatedCard(seed=1) as card:
        kernels = {"10 us": 10_000, "1 ms": 1_000_000}
        workloads = {name: card.kernel("k", ns, noise=0.02) for name, ns in kernels.items()}
        found, unavailable = methods(card, {REFERENCE: lambda: triton_do_bench(do_bench_on(card))})
        yield Bench(card, workloads, found, unavailable)


def seconds_of(measure: Measure, call: Call) -> float:
    """Wall time of one measurement."""
    began = time.perf_counter()
    measure(call)
    return time.perf_counter() - began


def measured(setup: Bench, call: Call, runs: int, deadline: float) -> dict[str, Any]:
    """Every figure of one workload; fewer runs where the time is up, but two. What raises is out, and named."""
    failed: dict[str, str] = {}

    def each_in_turn(kind: str, rounds: int, least: int, until: float) -> dict[str, list[float]]:
        figures: dict[str, list[float]] = {}
        for index in range(rounds):  # by turns, so that all see the same card
            if index >= least and time.monotonic() > until:
                break
            for name, method in setup.methods.items():
                measure = method.median_ns if kind == "median" else method.precise_ns
                if measure is None or name in failed:
                    continue
                take = measure if kind == "median" else partial(seconds_of, measure)
                try:
                    figures.setdefault(name, []).append(take(call))
                except Exception as error:
                    failed[name] = f"{type(error).__name__}: {error}"
        return figures

    began = time.monotonic()
    medians = each_in_turn("median", runs, 2, began + (deadline - began) * 0.6)
    walls = each_in_turn("wall", WALL_RUNS, 1, deadline)
    return {"medians_ns": medians, "wall_s": walls, "failed": failed}


def variation(values: list[float]) -> float:
    """The coefficient of variation."""
    return statistics.stdev(values) / statistics.mean(values)


HEADINGS = ("workload", "timed by", "runs", "median us", "variation", "of do_bench's", "s to 0.5 %", "of do_bench's")


def lines(name: str, result: Mapping[str, Any]) -> list[str]:
    """A row for each method."""
    medians: Mapping[str, list[float]] = {
        method: values for method, values in result["medians_ns"].items() if len(values) > 1
    }
    walls: Mapping[str, list[float]] = result["wall_s"]
    spread = {method: variation(values) for method, values in medians.items()}
    seconds = {method: statistics.median(values) for method, values in walls.items() if values}
    rows = []
    for method, values in medians.items():
        cells = [name, method, str(len(values)), f"{statistics.median(values) / 1e3:.2f}", f"{spread[method]:.3%}"]
        cells += [_over(spread, method), f"{seconds[method]:.3f}" if method in seconds else "", _over(seconds, method)]
        rows.append(f"| {' | '.join(cells)} |")
    rows += [f"| {name} | {method} | failed: {why} |" for method, why in result["failed"].items()]
    return rows


def _over(figures: Mapping[str, float], method: str) -> str:
    reference = figures.get(REFERENCE)
    if method == REFERENCE or method not in figures or reference is None:
        return ""
    return f"{figures[method] / reference:.2f}" if reference else "theirs is 0"


def main() -> int:
    """Measure and print the rows of each workload, as they are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=300, help="for all workloads together, about")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    parser.add_argument("--simulated", action="store_true", help="try the benchmark out on simulated kernels")
    options = parser.parse_args()
    from collector.errors import UnavailableError

    results: dict[str, Any] = {}
    began = time.monotonic()
    with contextlib.ExitStack() as open_until_the_end:
        try:
            setup = open_until_the_end.enter_context(prepared(simulated=options.simulated))
        except (UnavailableError, ImportError) as error:
            print(f"not run: {error}")
            return 0
        print(f"{setup.gpu.name}; medians to {PRECISION:.1%}; ratios to do_bench, less is better")
        for name, why in setup.unavailable.items():
            print(f"not available: {name} ({why})")
        print(f"\n| {' | '.join(HEADINGS)} |\n{'| --- ' * len(HEADINGS)}|")
        for index, (name, call) in enumerate(setup.workloads.items(), 1):
            deadline = began + options.seconds * index / len(setup.workloads)
            results[name] = measured(setup, call, options.runs, deadline)
            print("\n".join(lines(name, results[name])), flush=True)
            if options.json:
                told = {**results, "not available": dict(setup.unavailable)}
                options.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
