"""The pytest fixture ``gpu_benchmark``: the benchmark harness in a test, compared with stored baselines.

>>> def test_matmul(gpu_benchmark):
...     report = gpu_benchmark({"torch": reference, "mine": mine}, check=bench.allclose(rtol=1e-2))
...     assert report.verdicts[0]["mine"] in ("faster", "same")

``--gpu-benchmark-save=FOLDER`` stores a report for each test, or adds a run to an existing one, so that a baseline
contains the spread of runs. ``--gpu-benchmark-baseline=FOLDER`` fails a test if one of its arms is slower than the
baseline by more than ``--gpu-benchmark-fail-above`` (3 %) and beyond the interval.
"""

from __future__ import annotations

import contextlib
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from collector.bench.benchmark_report import Report


_WITHOUT_BASELINE: pytest.StashKey[list[str]] = pytest.StashKey()
_IN_REPORT = "collector_gpu_benchmarks_without_baseline"
"""Attribute of a test's report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("gpu-benchmark", "benchmarks of GPU work (collector)")
    group.addoption("--gpu-benchmark-save", metavar="FOLDER", help="store every gpu_benchmark report here")
    group.addoption("--gpu-benchmark-baseline", metavar="FOLDER", help="fail tests slower than the reports here")
    group.addoption(
        "--gpu-benchmark-fail-above",
        metavar="SHARE",
        type=float,
        default=0.03,
        help="the share of slowdown that fails (0.03)",
    )


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return a function that measures one callable, or a mapping of arms, and returns the report.

    It takes the options of `collector.bench.compare`, and fails the test for an arm that cannot be measured or has
    become slower than its baseline. A second call within a test is stored under a separate name.
    """
    calls = 0

    def measure(arms: Callable[[], Any] | Mapping[str, Callable[[], Any]], **options: Any) -> Report:
        from collector.bench.comparing import compare
        from collector.text.node_ids import node_id

        nonlocal calls
        calls += 1
        chosen = {"call": arms} if callable(arms) else arms
        report = compare(chosen, **{"name": request.node.name, **options})
        if report.failures:
            pytest.fail("\n".join(report.failures.values()), pytrace=False)
        file = f"{_file_stem(node_id(request.node))}{f'-{calls}' if calls > 1 else ''}.json"
        _hold_against_baseline(report, request.node, file)
        saved = request.config.getoption("--gpu-benchmark-save")
        if saved:
            Path(saved).mkdir(parents=True, exist_ok=True)
            _with_earlier_runs(report, Path(saved) / file).save(Path(saved) / file)
        return report

    return measure


def _with_earlier_runs(report: Report, file: Path) -> Report:
    """The report with the stored runs, if they are of the same card and were measured in the same way."""
    from collector.bench.benchmark_errors import BenchmarkError
    from collector.bench.benchmark_report import Report, runs_joined

    if file.exists():
        with contextlib.suppress(BenchmarkError):
            return runs_joined([Report.load(file), report])
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the benchmarks without a baseline into the report, which pytest-xdist sends to the process that prints."""
    report = yield
    without = item.stash.get(_WITHOUT_BASELINE, [])
    if without:
        setattr(report, _IN_REPORT, without.copy())
        without.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the benchmarks without a baseline."""
    reports = chain.from_iterable(terminalreporter.stats.values())
    without = {file for report in reports for file in getattr(report, _IN_REPORT, ())}
    if without:
        terminalreporter.section("gpu_benchmark: no baseline to compare with")
        for file in sorted(without):
            terminalreporter.line(file)


def _hold_against_baseline(report: Report, test: pytest.Item, file: str) -> None:
    config = test.config
    folder = config.getoption("--gpu-benchmark-baseline")
    if not folder:
        return
    if not (Path(folder) / file).exists():
        test.stash.setdefault(_WITHOUT_BASELINE, []).append(str(Path(folder) / file))
        return
    from collector.bench.baseline import regressions
    from collector.bench.benchmark_report import Report

    before = Report.load(Path(folder) / file)
    found, _ = regressions(report, before, fail_above=config.getoption("--gpu-benchmark-fail-above"))
    slower = [each for each in found if each.failed]
    if slower:
        lines = [
            f"{each.arm}: {each.decisive.interval.estimate:.3f} times its baseline{each.on_average} "
            f"({each.decisive.interval.low:.3f}..{each.decisive.interval.high:.3f})"
            for each in slower
        ]
        pytest.fail("slower than the baseline: " + "; ".join(lines), pytrace=False)


def _file_stem(node_id: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", node_id)
