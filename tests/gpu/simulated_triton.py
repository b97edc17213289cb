"""``triton.testing.do_bench`` as far as `benchmarks/harness.py` uses it, played by the simulated card.

It takes the same arguments, spends the same budgets (of the card's time), empties the cache before every call and times
by events, and returns what ``return_mode`` asks for, in ms.
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
