"""Claim: `collector.bench` gives steadier figures than triton.testing.do_bench, and sooner.

On a GPU with torch and triton: of a vector add, an RMS norm and a matrix product, the run-to-run coefficient of
variation of the reported median over 20 runs, and the wall time until the median is known to 0.5 %, both as ratios to
do_bench. Says what is missing where it cannot run.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

RUNS = 20
PRECISION = 0.005
LIMIT_MS = 20_000

Measure = Callable[[Callable[[], Any]], float]


def workloads() -> dict[str, Callable[[], Any]]:
    """What is measured, by torch's own kernels, with everything allocated beforehand."""
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


def ours(call: Callable[[], Any]) -> float:
    """Median in ns by this harness, known to `PRECISION`."""
    from collector import bench

    report = bench.compare({"call": call}, precision=PRECISION, max_seconds=LIMIT_MS / 1000)
    return report.comparison.arms["call"].median_ns.estimate


def do_bench(call: Callable[[], Any]) -> float:
    """Median in ns by do_bench as it comes."""
    from triton.testing import do_bench as triton_do_bench

    return float(triton_do_bench(call, return_mode="median")) * 1e6


def do_bench_to_precision(call: Callable[[], Any]) -> float:
    """Median in ns by do_bench with the time budget doubled until the median is known to `PRECISION`."""
    from triton.testing import do_bench as triton_do_bench

    from collector.bench.statistics import median

    budget_ms = 25
    while True:
        interval = median([float(each) * 1e6 for each in triton_do_bench(call, rep=budget_ms, return_mode="all")])
        if interval.relative_half_width <= PRECISION or budget_ms > LIMIT_MS:
            return interval.estimate
        budget_ms *= 2


def seconds_of(measure: Measure, call: Callable[[], Any]) -> float:
    """Wall time of one measurement."""
    began = time.perf_counter()
    measure(call)
    return time.perf_counter() - began


def main() -> int:
    """Measure and print one line for each workload."""
    missing = [name for name in ("torch", "triton", "scipy") if importlib.util.find_spec(name) is None]
    if not missing:
        import torch

        missing = [] if torch.cuda.is_available() else ["an NVIDIA GPU"]
    if missing:
        print(f"not run: needs {', '.join(missing)}")
        return 0
    from collector import bench

    print(f"{bench.find_gpu().name}; {RUNS} runs, medians to {PRECISION:.1%}; ratios to do_bench, less is better")
    for name, call in workloads().items():
        found: dict[str, list[float]] = {"ours": [], "do_bench": []}
        for _ in range(RUNS):  # alternating, so that both see the same card
            found["ours"].append(ours(call))
            found["do_bench"].append(do_bench(call))
        variation = {who: statistics.stdev(values) / statistics.mean(values) for who, values in found.items()}
        walls = [
            statistics.median(seconds_of(measure, call) for _ in range(5)) for measure in (ours, do_bench_to_precision)
        ]
        print(
            f"{name:22} ours {statistics.median(found['ours']) / 1e3:9.2f} us, do_bench "
            f"{statistics.median(found['do_bench']) / 1e3:9.2f} us; variation {variation['ours']:.3%} against "
            f"{variation['do_bench']:.3%}: {variation['ours'] / variation['do_bench']:.2f}x; "
            f"wall {walls[0]:.3f} s against {walls[1]:.3f} s: {walls[0] / walls[1]:.2f}x"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
