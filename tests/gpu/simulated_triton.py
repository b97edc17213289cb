"""The parts of ``triton.testing.do_bench`` and ``flashinfer.testing.bench_gpu_time`` that `benchmarks/harness.py` uses.

They run on the simulated card. They take the same arguments, spend the same budgets (of the card's time), empty the
cache before every call, time by events, and return ms according to ``return_mode``, or a list.
"""

from __future__ import annotations

import statistics
from typing import Any

_ESTIMATES = 5


def do_bench_on(card):
    """Return a ``do_bench`` for calls of this `collector.bench.SimulatedCard`."""

    def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean") -> Any:
        assert return_mode in ("min", "max", "mean", "median", "all")
        fn()

        def timed_ms():
            return card.event_ns(fn, before=card.flush_l2) / 1e6

        estimate_ms = statistics.mean(timed_ms() for _ in range(_ESTIMATES))
        for _ in range(max(1, int(warmup / estimate_ms))):
            fn()
        times = [timed_ms() for _ in range(max(1, int(rep / estimate_ms)))]
        if return_mode == "all":
            return times
        return {"min": min, "max": max, "mean": statistics.mean, "median": statistics.median}[return_mode](times)

    return do_bench


def bench_gpu_time_on(card):
    """Return a ``bench_gpu_time`` for calls of this `collector.bench.SimulatedCard`."""

    def bench_gpu_time(
        fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, enable_cupti=False,
        cold_l2_cache=True,
    ) -> list[float]:  # fmt: skip
        before = card.flush_l2 if cold_l2_cache else None

        def timed_ms():
            return card.event_ns(fn, before=before) / 1e6

        estimate_ms = statistics.mean(timed_ms() for _ in range(_ESTIMATES))
        for _ in range(dry_run_iters or max(1, int(dry_run_time_ms / estimate_ms))):
            fn()
        return [timed_ms() for _ in range(repeat_iters or max(1, int(repeat_time_ms / estimate_ms)))]

    return bench_gpu_time
