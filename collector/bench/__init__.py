"""Compares kernels by the GPU's own records.

>>> from collector import bench
>>> report = bench.compare({"torch": lambda: a @ b, "mine": lambda: my_matmul(a, b)}, check=bench.allclose(rtol=1e-2))
>>> print(report)

Needs scipy: ``pip install 'cupti-collector[bench]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.runtime.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from collector.bench.baseline import Regression, regressions
    from collector.bench.benchmark_errors import ArmError, BenchmarkError
    from collector.bench.benchmark_report import Report, read_pandas
    from collector.bench.checks import allclose
    from collector.bench.comparing import compare, rotating
    from collector.bench.cuda_gpu import find_gpu
    from collector.bench.discovery import Case, benchmark, case, parametrize
    from collector.bench.gpu import Host
    from collector.bench.processes import Missing, Process, compare_processes
    from collector.bench.simulated_card import SimulatedCard

__all__ = [
    "ArmError",
    "BenchmarkError",
    "Case",
    "Host",
    "Missing",
    "Process",
    "Regression",
    "Report",
    "SimulatedCard",
    "allclose",
    "benchmark",
    "case",
    "compare",
    "compare_processes",
    "find_gpu",
    "parametrize",
    "read_pandas",
    "regressions",
    "rotating",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "ArmError": "collector.bench.benchmark_errors",
        "BenchmarkError": "collector.bench.benchmark_errors",
        "Case": "collector.bench.discovery",
        "Host": "collector.bench.gpu",
        "Missing": "collector.bench.processes",
        "Process": "collector.bench.processes",
        "Regression": "collector.bench.baseline",
        "Report": "collector.bench.benchmark_report",
        "SimulatedCard": "collector.bench.simulated_card",
        "allclose": "collector.bench.checks",
        "benchmark": "collector.bench.discovery",
        "case": "collector.bench.discovery",
        "compare": "collector.bench.comparing",
        "compare_processes": "collector.bench.processes",
        "find_gpu": "collector.bench.cuda_gpu",
        "parametrize": "collector.bench.discovery",
        "read_pandas": "collector.bench.benchmark_report",
        "regressions": "collector.bench.baseline",
        "rotating": "collector.bench.comparing",
    },
)
