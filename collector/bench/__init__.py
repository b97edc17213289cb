"""Compares kernels by the GPU's own records.

>>> from collector import bench
>>> report = bench.compare({"torch": lambda: a @ b, "mine": lambda: my_matmul(a, b)}, check=bench.allclose(rtol=1e-2))
>>> print(report)

Needs scipy: ``pip install 'cupti-collector[bench]'``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_LAZY = {
    "ArmError": "benchmark_errors",
    "BenchmarkError": "benchmark_errors",
    "Case": "discovery",
    "Host": "gpu",
    "Missing": "processes",
    "Process": "processes",
    "Regression": "baseline",
    "Report": "benchmark_report",
    "SimulatedCard": "simulated_card",
    "allclose": "checks",
    "benchmark": "discovery",
    "case": "discovery",
    "compare": "comparing",
    "compare_processes": "processes",
    "find_gpu": "cuda_gpu",
    "parametrize": "discovery",
    "read_pandas": "benchmark_report",
    "regressions": "baseline",
    "rotating": "comparing",
}
"""Public name -> the module that is imported at its first use."""

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


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
