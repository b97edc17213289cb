"""A simulated card with kernels of known duration, so that a measurement can be compared with the truth.

>>> with SimulatedCard(seed=1) as card:
...     fast, slow = card.kernel("fast", mean_ns=10_000), card.kernel("slow", mean_ns=10_500, noise=0.02)
...     report = bench.compare({"fast": fast, "slow": slow}, gpu=card)

All effects of a real card on times can be simulated: noise, outliers, two modes, drift, throttling, differing runs, and
a cache that makes the first call after a flush slower.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.bench.gpu import CardState
from collector.bench.roofline import Ceilings
from collector.testing.simulator.simulated_gpu import SimulatedGpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_STREAM = 7
_GAP_NS = 400
_BASE_CLOCK_MHZ = 1980


@dataclass(frozen=True)
class Throttling:
    """A period in which the card is throttled; calls are counted from the card's first."""

    first_call: int
    calls: int
    slowdown: float = 1.4


@dataclass(frozen=True)
class PowerCap:
    """A limit that the card's own work reaches: it is throttled until it has been idle for a while."""

    after_ns: float
    """The time of work without a pause, after which the card is throttled."""
    recovery_s: float
    slowdown: float = 1.1


class SimulatedCard:
    """A `collector.bench.gpu.Gpu` on the simulator. A context manager that opens its own `SimulatedGpu`."""

    simulated = True
    name = "Simulated card"
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    l2_bytes = 50 << 20

    def __init__(
        self,
        seed: int = 0,
        *,
        run_spread: float = 0.0,
        drift: float = 0.0,
        throttling: Throttling | None = None,
        power_cap: PowerCap | None = None,
        cold_slowdown: float = 1.5,
        flush_works: bool = True,
        reports_state: bool = True,
        event_error: float = 0.0,
        event_overhead_ns: float = 0.0,
    ) -> None:
        """Make a card.

        Args:
            seed: the seed of all random numbers.
            run_spread: relative standard deviation of all times between cards, like that of real runs.
            drift: relative slowdown over 1000 calls, linear.
            throttling: the period of throttling, if any.
            power_cap: the limit of its power, if any.
            cold_slowdown: the time of a call with a cold cache divided by that with a warm one.
            flush_works: whether `flush_l2` empties the cache; a harness must detect it if not.
            reports_state: whether its sensors answer.
            event_error: relative error of its CUDA events.
            event_overhead_ns: the time that its events add to each measurement.
        """
        self._random = np.random.default_rng(seed)
        self._run_factor = math.exp(np.random.default_rng([seed, 1]).normal(0.0, run_spread))
        self._drift = drift
        self._throttling = throttling
        self._power_cap = power_cap
        self._work_ns, self._worked_at = 0.0, time.monotonic()
        self._cold_slowdown = cold_slowdown
        self._flush_works = flush_works
        self._reports_state = reports_state
        self._event_error = event_error
        self._event_overhead_ns = event_overhead_ns
        self._gpu = SimulatedGpu(name=self.name, gap_ns=_GAP_NS)
        self._kernels_ns = self._kernels = 0
        self._captured: list[str | tuple[str, int]] | None = None
        self._graphs = 0
        self._calls = 0
        self._is_cold = False

    def __enter__(self) -> SimulatedCard:
        self._gpu.__enter__()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._gpu.__exit__(exc_type, exc, traceback)

    @property
    def gpu(self) -> SimulatedGpu:
        """The simulated GPU, for other launches."""
        return self._gpu

    def kernel(
        self,
        name: str,
        mean_ns: float,
        *,
        noise: float = 0.01,
        outliers: float = 0.0,
        second_mode: float = 0.0,
        memory_bound: bool = False,
        result: Any = None,
    ) -> Callable[[], Any]:
        """Return a call that launches one kernel.

        Args:
            name: the kernel's name.
            mean_ns: its median duration in ns, without the card's effects.
            noise: relative standard deviation (log-normal).
            outliers: share of calls that take three times as long.
            second_mode: share of calls that take 10 % longer, like kernels with another memory placement.
            memory_bound: whether a cold cache slows it.
            result: the result of the call.
        """

        def call() -> Any:
            duration = mean_ns * math.exp(self._random.normal(0.0, noise)) * self._slowdown(memory_bound)
            if self._random.random() < outliers:
                duration *= 3.0
            if self._random.random() < second_mode:
                duration *= 1.1
            self._execute(name, max(1, round(duration)))
            return result

        return call

    def synchronize(self) -> None:
        """See `collector.bench.gpu.Gpu.synchronize`."""
        self._gpu.synchronize()

    def flush_l2(self) -> None:
        """See `collector.bench.gpu.Gpu.flush_l2`."""
        self._gpu.memset(2 * self.l2_bytes, stream=_STREAM, duration_ns=30_000)
        self._is_cold = self._flush_works

    def touch(self) -> None:
        """See `collector.bench.gpu.Gpu.touch`."""
        slowdown = self._slowdown(memory_bound=True)
        duration = 10_000 * math.exp(self._random.normal(0.0, 0.01)) * slowdown
        self._gpu.memcpy("DtoD", self.l2_bytes // 4, stream=_STREAM, duration_ns=round(duration))

    def event_ns(self, call: Callable[[], Any], before: Callable[[], Any] | None = None) -> float:
        """See `collector.bench.gpu.Gpu.event_ns`."""
        if before is not None:
            before()
        begin, launched = self._kernels_ns, self._kernels
        call()
        taken = self._kernels_ns - begin + _GAP_NS * max(0, self._kernels - launched - 1)
        self._gpu.synchronize()
        return taken * (1 + self._event_error) + self._event_overhead_ns

    def event_overhead_ns(self) -> float:
        """See `collector.bench.gpu.Gpu.event_overhead_ns`."""
        return self._event_overhead_ns

    def graph(self, call: Callable[[], Any], calls: int) -> Callable[[], Any]:
        """See `collector.bench.gpu.Gpu.graph`. Every replay draws new durations."""
        self._graphs += 1
        graph_id = self._graphs

        def replay() -> None:
            self._captured = []
            for _ in range(calls):
                call()
            nodes, self._captured = self._captured, None
            self._gpu.launch_graph(nodes, stream=_STREAM, graph_id=graph_id)

        return replay

    def measure_ceilings(self) -> Ceilings:
        """See `collector.bench.roofline.MeasuresCeilings`."""
        return Ceilings(bytes_per_s=4e12, flop_per_s=7e14, measured_with="the simulator's constants")

    def state(self) -> CardState | None:
        """See `collector.bench.gpu.Gpu.state`."""
        if not self._reports_state:
            return None
        if self._is_throttled():
            return CardState(1200, 3201, 88, 700.0, ("SwThermalSlowdown",))
        if self._is_capped():
            return CardState(1500, 3201, 70, 700.0, ("SwPowerCap",))
        return CardState(_BASE_CLOCK_MHZ, 3201, 60, 400.0)

    def _execute(self, name: str, duration_ns: int) -> None:
        self._kernels_ns += duration_ns
        self._kernels += 1
        self._work_ns += duration_ns
        self._worked_at = time.monotonic()
        if self._captured is not None:
            self._captured.append((name, duration_ns))
        else:
            self._gpu.launch(name, stream=_STREAM, duration_ns=duration_ns)

    def _is_throttled(self) -> bool:
        episode = self._throttling
        return episode is not None and 0 <= self._calls - episode.first_call < episode.calls

    def _is_capped(self) -> bool:
        if self._power_cap is None:
            return False
        if time.monotonic() - self._worked_at >= self._power_cap.recovery_s:
            self._work_ns = 0.0
        return self._work_ns > self._power_cap.after_ns

    def _slowdown(self, memory_bound: bool) -> float:
        slowdown = self._run_factor * (1 + self._drift * self._calls / 1000)
        if self._is_throttled() and self._throttling is not None:
            slowdown *= self._throttling.slowdown
        if self._is_capped() and self._power_cap is not None:
            slowdown *= self._power_cap.slowdown
        if memory_bound and self._is_cold:
            slowdown *= self._cold_slowdown
        self._is_cold = False
        self._calls += 1
        return slowdown
