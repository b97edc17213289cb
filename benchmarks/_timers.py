"""Ways to time a call on a GPU: this project's harness and those of others, by default and to a given precision.

Others stop when a time budget is spent. For a given precision, the budget is doubled until the interval of the median
is narrow enough. Methods that record through CUPTI run in a separate process: a process has one subscription, and a
client that finalizes CUPTI after each use takes it away from the others.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PRECISION = 0.005
LIMIT_MS = 2_000
"""The largest budget that is tried; ours gets the sum of all budgets up to it."""
FIRST_MS = 25
EMPTY_TRACES = 5
ANSWER_S = 90
"""The time limit for the answer of a method in a separate process."""

Call = Callable[[], Any]
Times = Callable[[Call, int], Sequence[float]]
"""Times of a call in ns, for a budget in ms."""


@dataclass(frozen=True)
class Precise:
    """A median in ns, and half the width of its interval relative to it."""

    ns: float
    half_width: float

    @property
    def reached(self) -> bool:
        """Whether the precision is reached."""
        return self.half_width <= PRECISION


@dataclass(frozen=True)
class Method:
    """A way to time a call."""

    median_ns: Callable[[Call], float]
    """The median with default settings."""
    precise: Callable[[Call], Precise]
    """The median known to `PRECISION`, or as precisely as `LIMIT_MS` permits."""


def ours(gpu: Any) -> Method:
    """This harness."""

    def precise(call: Call) -> Precise:
        from collector import bench

        report = bench.compare({"call": call}, gpu=gpu, precision=PRECISION, max_seconds=2 * LIMIT_MS / 1000)
        times = report.comparison.arms["call"].times_ns
        return of_times(times)

    return Method(lambda call: precise(call).ns, precise)


class Watched:
    """A card that adds up the duration and number of the harness's requests by kind."""

    def __init__(self, gpu: Any) -> None:
        self._gpu = gpu
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._asked = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._gpu, name)
        if not callable(found):
            return found

        def watched(*given: Any, **named: Any) -> Any:
            if self._asked:  # nested in another request, which includes it
                return found(*given, **named)
            self._asked, began = True, time.perf_counter()
            try:
                return found(*given, **named)
            finally:
                self._asked = False
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
                self.calls[name] = self.calls.get(name, 0) + 1

        return watched


def where_ours_goes(gpu: Any, call: Call) -> dict[str, Any]:
    """The parts of the wall time of one measurement by this harness, ms, and the number of its rounds."""
    import collector
    from collector import bench

    card = Watched(gpu)
    began = time.perf_counter()
    report = bench.compare({"call": call}, gpu=card, precision=PRECISION, max_seconds=2 * LIMIT_MS / 1000)
    took = time.perf_counter() - began
    traces = []
    for _ in range(EMPTY_TRACES):
        opened = time.perf_counter()
        with collector.trace(strict=True):
            pass
        traces.append(time.perf_counter() - opened)
    found = report.comparison
    return {
        "ms": took * 1e3,
        "rounds": found.rounds,
        "warm-up rounds": found.warm_up_rounds,
        "of the card, ms": {name: seconds * 1e3 for name, seconds in card.seconds.items()},
        "of the card, calls": card.calls,
        "everything else, ms": (took - sum(card.seconds.values())) * 1e3,
        "an empty trace, ms": statistics.median(traces) * 1e3,
    }


def of_times(times_ns: Sequence[float]) -> Precise:
    """The median of samples; all methods are judged by the same kind of interval."""
    from collector.statistics.verdicts import median

    interval = median(times_ns)
    half_width = interval.relative_half_width
    return Precise(interval.estimate, half_width if math.isfinite(half_width) else 1.0)


def doubling(times_ns: Times, first_ms: int = FIRST_MS) -> Callable[[Call], Precise]:
    """The median to `PRECISION`, with a doubling time budget."""

    def precise(call: Call) -> Precise:
        budget_ms = first_ms
        while True:
            found = of_times(times_ns(call, budget_ms))
            if found.reached or budget_ms > LIMIT_MS:
                return found
            budget_ms *= 2

    return precise


def triton_do_bench(do_bench: Callable[..., Any]) -> Method:
    """do_bench."""

    def times_ns(call: Call, budget_ms: int) -> list[float]:
        return [float(each) * 1e6 for each in do_bench(call, rep=budget_ms, return_mode="all")]

    return Method(lambda call: float(do_bench(call, return_mode="median")) * 1e6, doubling(times_ns))


def triton_do_bench_cudagraph(do_bench_cudagraph: Callable[..., Any]) -> Method:
    """do_bench_cudagraph: always ten replays of a graph of 20 ms, so it is repeated. The cache stays warm."""

    def times_ns(call: Call, budget_ms: int) -> list[float]:
        answers = [do_bench_cudagraph(call, return_mode="all") for _ in range(budget_ms // 200)]
        return [float(each) * 1e6 for answer in answers for each in answer]

    median_ns = lambda call: float(do_bench_cudagraph(call, return_mode="median")) * 1e6  # noqa: E731
    return Method(median_ns, doubling(times_ns, 200))


def flashinfer_bench_gpu_time(bench_gpu_time: Callable[..., Any]) -> Method:
    """bench_gpu_time: CUPTI with cupti-python 13 or newer, else CUDA events; the cache is emptied."""

    def times_ns(call: Call, budget_ms: int = 100) -> list[float]:
        return [float(each) * 1e6 for each in bench_gpu_time(call, repeat_time_ms=budget_ms, enable_cupti=True)]

    return Method(lambda call: statistics.median(times_ns(call)), doubling(times_ns))


def _do_bench() -> Method:
    from triton.testing import do_bench

    return triton_do_bench(do_bench)


def _do_bench_cudagraph() -> Method:
    from triton.testing import do_bench_cudagraph

    return triton_do_bench_cudagraph(do_bench_cudagraph)


def _flashinfer() -> Method:
    from flashinfer.testing import bench_gpu_time

    return flashinfer_bench_gpu_time(bench_gpu_time)


def _torch_timer() -> Method:
    from torch.utils.benchmark import Timer

    def median_ns(call: Call) -> float:
        return float(Timer("call()", globals={"call": call}).blocked_autorange().median) * 1e9

    def times_ns(call: Call, budget_ms: int) -> list[float]:
        found = Timer("call()", globals={"call": call}).blocked_autorange(min_run_time=budget_ms / 1000)
        return [float(each) * 1e9 for each in found.times]

    return Method(median_ns, doubling(times_ns, 200))


def _cupy() -> Method:
    from cupyx.profiler import benchmark

    def times_ns(call: Call, budget_ms: int, repeats: int = 10_000_000) -> list[float]:
        found = benchmark(call, (), n_repeat=repeats, max_duration=budget_ms / 1000, n_warmup=10)
        return [each * 1e9 for each in found.gpu_times[0].tolist()]

    return Method(lambda call: statistics.median(times_ns(call, 1000, 100)), doubling(times_ns))


REFERENCE = "do_bench"
PEERS: dict[str, Callable[[], Method]] = {
    REFERENCE: _do_bench,
    "do_bench_cudagraph": _do_bench_cudagraph,
    "flashinfer": _flashinfer,
    "torch Timer": _torch_timer,
    "cupyx benchmark": _cupy,
}
WITH_CUPTI = ("flashinfer",)
"""Peers that run in a separate process."""


class Elsewhere:
    """A method in a separate process, which makes the same workloads and gets requests by their names.

    Raises RuntimeError if that process returns no figure: with the method's error, or with the end of the process.
    """

    def __init__(self, command: Sequence[str], workloads: Mapping[str, Call], seconds: float = ANSWER_S) -> None:
        self._workloads, self._seconds = workloads, seconds
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def method(self) -> Method:
        """The method."""
        return Method(lambda call: self._ask("median", call).ns, lambda call: self._ask("precise", call))

    def close(self) -> None:
        """End the process, with the processes that it started."""
        with contextlib.suppress(ProcessLookupError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _ask(self, kind: str, call: Call) -> Precise:
        (name,) = (name for name, each in self._workloads.items() if each is call)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # there is no answer then, which is reported
            self._process.stdin.write(json.dumps([kind, name]).encode() + b"\n")
        return Precise(**self._answer())

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], self._seconds)[0]:
            self.close()
            raise RuntimeError(f"no answer for {self._seconds} s")
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise RuntimeError(f"its process ended with {f'signal {-status}' if status < 0 else f'status {status}'}")
        kind, answer = json.loads(line)
        if kind == "failed":
            raise RuntimeError(answer)
        found: dict[str, float] = answer
        return found


def serve(make: Callable[[], tuple[Mapping[str, Call], Method]]) -> None:
    """Answer the requests of `Elsewhere` from standard input, until its end."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output that a package prints is not an answer

    @contextlib.contextmanager
    def answered() -> Iterator[dict[str, float]]:
        found: dict[str, float] = {}
        try:
            yield found
        except Exception as error:
            print(json.dumps(["failed", f"{type(error).__name__}: {error}"]), file=answers)
        else:
            print(json.dumps(["found", found]), file=answers)

    with answered():
        workloads, method = make()
    for line in sys.stdin:
        with answered() as found:
            kind, name = json.loads(line)
            call = workloads[name]
            answer = method.precise(call) if kind == "precise" else Precise(method.median_ns(call), 0.0)
            found |= {"ns": answer.ns, "half_width": answer.half_width}


def seconds_of(measure: Callable[[Call], Precise], call: Call) -> tuple[float, Precise]:
    """Wall time of one measurement, and its result."""
    began = time.perf_counter()
    found = measure(call)
    return time.perf_counter() - began, found
