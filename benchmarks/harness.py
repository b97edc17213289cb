"""Claim: `collector.bench` gives steadier figures than triton.testing.do_bench, and sooner.

For a vector add, an RMS norm and a matrix product: the reported median, its run-to-run coefficient of variation, and
the wall time until the median is known to 0.5 %, the latter two also as ratios to do_bench. Further arms are
do_bench_cudagraph, flashinfer's bench_gpu_time, PyTorch's Timer and CuPy's benchmark, if they are installed; missing
ones are listed, and the others are measured. All take turns on one card; methods that record through CUPTI run in a
separate process. For a method that does not reach 0.5 % its precision is reported, and it is not run again. Below the
table is a breakdown of our own time.

    harness.py                on a GPU: PyTorch's kernels, or without PyTorch those of examples/bench_saxpy.py
    harness.py --simulated    tries the benchmark out on simulated kernels; its figures are meaningless
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from _timers import (
    PEERS,
    PRECISION,
    REFERENCE,
    WITH_CUPTI,
    Call,
    Elsewhere,
    Method,
    flashinfer_bench_gpu_time,
    ours,
    seconds_of,
    serve,
    triton_do_bench,
    where_ours_goes,
)

ROOT = Path(__file__).resolve().parent.parent
RUNS = 20
WALL_RUNS = 5
MOST_REST_S = 3.0


@dataclass(frozen=True)
class Bench:
    """The workloads and methods."""

    gpu: Any
    workloads: Mapping[str, Call]
    methods: Mapping[str, Method]
    unavailable: Mapping[str, str]
    """Method -> the reason why it is unavailable."""


@dataclass
class Figures:
    """The figures of one workload, by method."""

    medians_ns: dict[str, list[float]] = field(default_factory=dict)
    wall_s: dict[str, list[float]] = field(default_factory=dict)
    """Seconds until the median was known to `PRECISION`, or the method gave up."""
    half_widths: dict[str, list[float]] = field(default_factory=dict)
    """The precision reached by then."""
    failed: dict[str, str] = field(default_factory=dict)
    ours_goes_to: dict[str, Any] = field(default_factory=dict)
    """See `where_ours_goes`."""


def methods(gpu: Any, peers: Mapping[str, Callable[[], Method]]) -> tuple[dict[str, Method], dict[str, str]]:
    """Ours and every available peer, and the reasons why the others are unavailable."""
    found, unavailable = {"ours": ours(gpu)}, {}
    for name, make in peers.items():
        try:
            found[name] = make()
        except Exception as error:  # a package that is missing, broken or different may raise anything
            unavailable[name] = f"{type(error).__name__}: {error}"
    return found, unavailable


def elsewhere(
    name: str, workloads: Mapping[str, Call], until_the_end: contextlib.ExitStack, *options: str
) -> Callable[[], Method]:
    """Return a function that starts this script again, to run the peer there."""

    def start() -> Method:
        process = Elsewhere([sys.executable, __file__, "--serve", name, *options], workloads)
        until_the_end.callback(process.close)
        return process.method()

    return start


def torch_workloads() -> dict[str, Call]:
    """PyTorch's own kernels, with all memory allocated beforehand."""
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
    for title, n in (("saxpy 64 KiB", 1 << 14), ("saxpy 64 MiB", 1 << 24)):
        x, y, z = (cuda.allocate(4 * n) for _ in range(3))
        found[title] = example.arms(cuda, n, x, y, z)["one kernel"]
    return found


def simulated_workloads(card: Any) -> dict[str, Call]:
    """Kernels of known durations."""
    return {name: card.kernel("k", ns, noise=0.02) for name, ns in (("10 us", 10_000), ("1 ms", 1_000_000))}


@contextlib.contextmanager
def prepared(wanted: Collection[str] = tuple(PEERS), *, simulated: bool) -> Iterator[Bench]:
    """The workloads, on the GPU or simulated, and the wanted peers.

    Raises:
        collector.UnavailableError: there is no GPU.
    """
    from collector import bench

    with contextlib.ExitStack() as until_the_end:
        if not simulated:
            gpu = bench.find_gpu()
            torch_trouble = {}
            try:
                workloads = torch_workloads()
            except Exception as error:
                workloads = example_workloads()
                torch_trouble["torch's kernels"] = f"{type(error).__name__}: {error}"
            peers = {
                name: elsewhere(name, workloads, until_the_end) if name in WITH_CUPTI else make
                for name, make in PEERS.items()
                if name in wanted
            }
            found, unavailable = methods(gpu, peers)
            yield Bench(gpu, workloads, found, unavailable | torch_trouble)
            return
        sys.path.insert(0, str(ROOT / "tests" / "gpu"))
        from simulated_triton import do_bench_on

        card = until_the_end.enter_context(bench.SimulatedCard(seed=1))
        workloads = simulated_workloads(card)
        peers = {
            REFERENCE: lambda: triton_do_bench(do_bench_on(card)),
            "flashinfer": elsewhere("flashinfer", workloads, until_the_end, "--simulated"),
        }
        found, unavailable = methods(card, {name: make for name, make in peers.items() if name in wanted})
        yield Bench(card, workloads, found, unavailable)


def serve_peer(name: str, *, simulated: bool) -> None:
    """Run as the process of a peer."""
    if not simulated:
        serve(lambda: (torch_workloads(), PEERS[name]()))
        return
    from collector import bench

    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    from simulated_triton import bench_gpu_time_on

    with bench.SimulatedCard(seed=2) as card:
        serve(lambda: (simulated_workloads(card), flashinfer_bench_gpu_time(bench_gpu_time_on(card))))


def measured(setup: Bench, call: Call, runs: int, deadline: float, pause_s: float = 0.0) -> Figures:
    """Every figure of one workload; fewer runs (at least two) if the time is up. Methods that raise are failures.

    Before each measurement the card is idle for ``pause_s``, and until it is not throttled, `MOST_REST_S` at most: one
    that a method has heated slows the next method down.
    """
    found = Figures()
    began = time.monotonic()
    half_time = began + (deadline - began) * 0.6

    def in_turn(take: Callable[[str, Method], None]) -> None:  # so that all measure the same state of the card
        for name, method in setup.methods.items():
            if name not in found.failed:
                rest(setup.gpu, pause_s)
                try:
                    take(name, method)
                except Exception as error:
                    found.failed[name] = f"{type(error).__name__}: {error}"

    def median(name: str, method: Method) -> None:
        found.medians_ns.setdefault(name, []).append(method.median_ns(call))

    def wall(name: str, method: Method) -> None:
        if any(width > PRECISION for width in found.half_widths.get(name, ())):
            return
        seconds, precise = seconds_of(method.precise, call)
        found.wall_s.setdefault(name, []).append(seconds)
        found.half_widths.setdefault(name, []).append(precise.half_width)

    for index in range(runs):
        if index < 2 or time.monotonic() <= half_time:
            in_turn(median)
    for index in range(WALL_RUNS):
        if index < 1 or time.monotonic() <= deadline:
            in_turn(wall)
    if "ours" not in found.failed:
        try:
            found.ours_goes_to = where_ours_goes(setup.gpu, call)
        except Exception as error:
            found.ours_goes_to = {"failed": f"{type(error).__name__}: {error}"}
    return found


def rest(gpu: Any, pause_s: float) -> None:
    """Leave the card idle for a while."""
    time.sleep(pause_s)
    until = time.monotonic() + MOST_REST_S
    while pause_s and (state := gpu.state()) is not None and state.throttled_by and time.monotonic() < until:
        time.sleep(0.05)


def variation(values: list[float]) -> float:
    """The coefficient of variation."""
    return statistics.stdev(values) / statistics.mean(values)


HEADINGS = ("workload", "timed by", "runs", "median us", "variation", "of do_bench's", "s to 0.5 %", "of do_bench's")


def lines(name: str, result: Figures) -> list[str]:
    """A row for each method."""
    medians = {method: values for method, values in result.medians_ns.items() if len(values) > 1}
    spread = {method: variation(values) for method, values in medians.items()}
    widest = {method: max(values) for method, values in result.half_widths.items()}
    seconds = {
        method: statistics.median(values) for method, values in result.wall_s.items() if widest[method] <= PRECISION
    }
    rows = []
    for method, values in medians.items():
        cells = [name, method, str(len(values)), f"{statistics.median(values) / 1e3:.2f}", f"{spread[method]:.3%}"]
        short = f"{widest[method]:.2%} after {max(result.wall_s[method]):.1f}" if method in widest else ""
        cells += [_over(spread, method), f"{seconds[method]:.3f}" if method in seconds else short]
        rows.append(f"| {' | '.join([*cells, _over(seconds, method)])} |")
    rows += [f"| {name} | {method} | failed: {why} |" for method, why in result.failed.items()]
    return rows


def where(name: str, found: Mapping[str, Any]) -> str:
    """A line with the breakdown of our own time; empty if unknown."""
    if "ms" not in found:
        return f"{name}: what ours spends its time on is not known: {found['failed']}" if found else ""
    calls = found["of the card, calls"]
    parts = [f"{what} {ms:.1f} ({calls[what]} times)" for what, ms in found["of the card, ms"].items()]
    return (
        f"{name}: ours took {found['ms']:.1f} ms, {found['rounds']} rounds and {found['warm-up rounds']} to warm up: "
        f"{', '.join(parts)}, everything else {found['everything else, ms']:.1f}; "
        f"an empty trace takes {found['an empty trace, ms']:.1f}"
    )


def _over(figures: Mapping[str, float], method: str) -> str:
    reference = figures.get(REFERENCE)
    if method == REFERENCE or method not in figures or reference is None:
        return ""
    return f"{figures[method] / reference:.2f}" if reference else "theirs is 0"


def main() -> int:
    """Measure and print the rows of each workload as they are finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=300, help="for all workloads together, about")
    parser.add_argument("--pause", type=float, default=0.3, help="seconds for which the card is idle before each run")
    parser.add_argument("--workload", help="only those whose name contains this")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    parser.add_argument("--simulated", action="store_true", help="try the benchmark out on simulated kernels")
    parser.add_argument("--only", action="append", choices=PEERS, help="this peer; may be given several times")
    parser.add_argument("--serve", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve_peer(options.serve, simulated=options.simulated)
        return 0
    from collector.errors import UnavailableError

    results: dict[str, Any] = {}
    spent: list[str] = []
    began = time.monotonic()
    with contextlib.ExitStack() as open_until_the_end:
        try:
            setup = open_until_the_end.enter_context(prepared(options.only or PEERS, simulated=options.simulated))
        except (UnavailableError, ImportError) as error:
            print(f"not run: {error}")
            return 0
        print(f"{setup.gpu.name}; medians to {PRECISION:.1%}; ratios to do_bench, less is better")
        for name, why in setup.unavailable.items():
            print(f"not available: {name} ({why})")
        print(f"\n| {' | '.join(HEADINGS)} |\n{'| --- ' * len(HEADINGS)}|")
        chosen = {name: call for name, call in setup.workloads.items() if (options.workload or "") in name}
        for index, (name, call) in enumerate(chosen.items(), 1):
            deadline = began + options.seconds * index / len(chosen)
            found = measured(setup, call, options.runs, deadline, options.pause)
            results[name] = asdict(found)
            print("\n".join(lines(name, found)), flush=True)
            spent.append(where(name, found.ours_goes_to))
            if options.json:
                document = {**results, "not available": dict(setup.unavailable)}
                options.json.write_text(json.dumps(document, indent=1) + "\n")
        print("\n" + "\n".join(spent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
