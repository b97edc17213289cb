"""Claim: `collector.bench` gives steadier figures than triton.testing.do_bench, and sooner.

Of a vector add, an RMS norm and a matrix product: the run-to-run coefficient of variation of the reported median, and
the wall time until the median is known to 0.5 %, both as ratios to do_bench. Needs a GPU, torch and triton.

    harness.py                   on a GPU
    harness.py --simulated       tries the benchmark out on simulated kernels; its figures say nothing about either
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS = 20
WALL_RUNS = 5
PRECISION = 0.005
LIMIT_MS = 20_000

Call = Callable[[], Any]
Measure = Callable[[Call], float]


@dataclass(frozen=True)
class Bench:
    """What is measured, and with what."""

    gpu: Any
    workloads: dict[str, Call]
    triton_do_bench: Callable[..., Any]

    def ours(self, call: Call) -> float:
        """Median in ns by this harness, known to `PRECISION`."""
        from collector import bench

        report = bench.compare({"call": call}, gpu=self.gpu, precision=PRECISION, max_seconds=LIMIT_MS / 1000)
        return report.comparison.arms["call"].median_ns.estimate

    def do_bench(self, call: Call) -> float:
        """Median in ns by do_bench as it comes."""
        return float(self.triton_do_bench(call, return_mode="median")) * 1e6

    def do_bench_to_precision(self, call: Call) -> float:
        """Median in ns by do_bench with the time budget doubled until the median is known to `PRECISION`."""
        from collector.bench.statistics import median

        budget_ms = 25
        while True:
            times = self.triton_do_bench(call, rep=budget_ms, return_mode="all")
            interval = median([float(each) * 1e6 for each in times])
            if interval.relative_half_width <= PRECISION or budget_ms > LIMIT_MS:
                return interval.estimate
            budget_ms *= 2


def torch_workloads() -> dict[str, Call]:
    """Torch's own kernels, with everything allocated beforehand."""
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


def missing() -> list[str]:
    """What it would take to run this here."""
    absent = [name for name in ("torch", "triton", "scipy") if importlib.util.find_spec(name) is None]
    if not absent:
        import torch

        absent = [] if torch.cuda.is_available() else ["an NVIDIA GPU"]
    return absent


@contextlib.contextmanager
def prepared(*, simulated: bool) -> Iterator[Bench]:
    """What to measure, on the GPU or simulated."""
    from collector import bench

    if not simulated:
        from triton.testing import do_bench

        yield Bench(bench.find_gpu(), torch_workloads(), do_bench)
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "gpu"))
    from simulated_triton import do_bench_on

    with bench.SimulatedCard(seed=1) as card:
        kernels = {"10 us": 10_000, "1 ms": 1_000_000}
        yield Bench(card, {name: card.kernel("k", ns, noise=0.02) for name, ns in kernels.items()}, do_bench_on(card))


def variation(values: list[float]) -> float:
    """The coefficient of variation."""
    return statistics.stdev(values) / statistics.mean(values)


def seconds_of(measure: Measure, call: Call) -> float:
    """Wall time of one measurement."""
    began = time.perf_counter()
    measure(call)
    return time.perf_counter() - began


def measured(setup: Bench, call: Call, runs: int, deadline: float) -> dict[str, Any]:
    """Every figure of one workload; fewer runs where the time is up, but two."""
    found: dict[str, list[float]] = {"ours": [], "do_bench": []}
    for index in range(runs):  # alternating, so that both see the same card
        if index >= 2 and time.monotonic() > deadline:
            break
        found["ours"].append(setup.ours(call))
        found["do_bench"].append(setup.do_bench(call))
    walls: dict[str, list[float]] = {"ours": [], "do_bench": []}
    for index in range(WALL_RUNS):
        if index >= 1 and time.monotonic() > deadline:
            break
        walls["ours"].append(seconds_of(setup.ours, call))
        walls["do_bench"].append(seconds_of(setup.do_bench_to_precision, call))
    return {"medians_ns": found, "wall_s": walls}


def line(name: str, result: dict[str, Any]) -> str:
    """One row of the table."""
    (ours, theirs), (wall, their_wall) = (result[key].values() for key in ("medians_ns", "wall_s"))
    spread, their_spread = variation(ours), variation(theirs)
    seconds, their_seconds = statistics.median(wall), statistics.median(their_wall)
    against = f"{spread / their_spread:.2f}" if their_spread else "theirs is 0"
    return (
        f"| {name} | {len(ours)} | {statistics.median(ours) / 1e3:.2f} | {statistics.median(theirs) / 1e3:.2f} "
        f"| {spread:.3%} | {their_spread:.3%} | {against} | {seconds:.3f} | {their_seconds:.3f} "
        f"| {seconds / their_seconds:.2f} |"
    )


def main() -> int:
    """Measure and print one line for each workload, as they are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=300, help="for all workloads together, about")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    parser.add_argument("--simulated", action="store_true", help="try the benchmark out on simulated kernels")
    options = parser.parse_args()
    absent = [] if options.simulated else missing()
    if absent:
        print(f"not run: needs {', '.join(absent)}")
        return 0
    results: dict[str, Any] = {}
    began = time.monotonic()
    with prepared(simulated=options.simulated) as setup:
        print(f"{setup.gpu.name}; medians to {PRECISION:.1%}; ratios to do_bench, less is better\n")
        print(
            "| workload | runs | ours us | do_bench us | our variation | theirs | ratio | our wall s | theirs | ratio |"
        )
        print("| --- " * 10 + "|")
        for index, (name, call) in enumerate(setup.workloads.items(), 1):
            deadline = began + options.seconds * index / len(setup.workloads)
            results[name] = measured(setup, call, options.runs, deadline)
            print(line(name, results[name]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
