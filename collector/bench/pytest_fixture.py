"""The pytest fixture ``gpu_benchmark``: the benchmark harness in a test, compared with stored baselines.

>>> def test_matmul(gpu_benchmark):
...     report = gpu_benchmark({"torch": reference, "mine": mine}, check=bench.allclose(rtol=1e-2))
...     assert report.verdicts[0]["mine"] in ("faster", "same")

``--gpu-benchmark-save=FOLDER`` stores a report for each test, or adds a run to an existing one, so that a baseline
contains the spread of runs; a stored report of other arms, or measured in another way or on another card, is replaced.
``--gpu-benchmark-baseline=FOLDER`` fails a test if one of its arms is slower than the baseline by more than
``--gpu-benchmark-fail-above`` (3 %) and beyond the interval. The terminal summary lists the replaced reports, and the
tests and arms that were not compared.

The file of a test is named after its node id. Different node ids can give the same name, so the file contains a digest
of the node id, and where the file of this name is another test's, the name gets the digest as well.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from collector.bench.benchmark_report import Report


_NOTES: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()
"""Section of the terminal summary -> lines about the test."""
_IN_REPORT = "collector_gpu_benchmark_notes"
"""Attribute of a test's report."""
_NOT_COMPARED = "gpu_benchmark: not compared with a baseline"
_REPLACED = "gpu_benchmark: stored reports that were replaced, not extended"
_SAVE, _BASELINE = "--gpu-benchmark-save", "--gpu-benchmark-baseline"
_FOLDERS: pytest.StashKey[dict[str, Path | None]] = pytest.StashKey()
"""Option -> its folder; None: the option is not given."""
_TEST = "test"
"""Entry of a stored report's environment: the digest of the test's node id."""
_LONGEST = 255
"""Bytes of a file's name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("gpu-benchmark", "benchmarks of GPU work (collector)")
    group.addoption(_SAVE, metavar="FOLDER", help="store every gpu_benchmark report here")
    group.addoption(_BASELINE, metavar="FOLDER", help="fail tests slower than the reports here")
    group.addoption(
        "--gpu-benchmark-fail-above",
        metavar="SHARE",
        type=float,
        default=0.03,
        help="the share of slowdown that fails (0.03)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Determine the folders, whose placeholders may not have a value.

    Raises:
        pytest.UsageError: one cannot be filled in.
    """
    config.stash[_FOLDERS] = {option: _folder(config, option) for option in (_SAVE, _BASELINE)}


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return a function that measures one callable, or a mapping of arms, and returns the report.

    It takes the options of `collector.bench.compare`, and fails the test for an arm that cannot be measured or has
    become slower than its baseline. A second call within a test is stored under a separate name.
    """
    calls = 0

    def measure(arms: Callable[[], Any] | Mapping[str, Callable[[], Any]], **options: Any) -> Report:
        from collector.bench.comparing import compare
        from collector.errors import CollectorError
        from collector.text.node_ids import node_id

        nonlocal calls
        calls += 1
        chosen = {"call": arms} if callable(arms) else arms
        report = compare(chosen, **{"name": request.node.name, **options})
        if report.failures:
            pytest.fail("\n".join(report.failures.values()), pytrace=False)
        test = f"{node_id(request.node)}{f'-{calls}' if calls > 1 else ''}"
        _hold_against_baseline(report, request.node, test)
        folder = request.config.stash[_FOLDERS][_SAVE]
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _save(report, request.node, test, folder)
            except (CollectorError, OSError) as error:
                pytest.fail(f"the report of {test} cannot be stored: {error}", pytrace=False)
        return report

    return measure


def _folder(config: pytest.Config, option: str) -> Path | None:
    """The folder that an option names, whatever folder a test works in later."""
    given = config.getoption(option)
    if not given:
        return None
    from collector.errors import OutputError
    from collector.files.atomic_files import expanded
    from collector.formats.output_paths import filled_in
    from collector.text.terminal import printable

    try:
        return Path(config.invocation_params.dir, filled_in(expanded(given), None))
    except OutputError as error:
        raise pytest.UsageError(printable(str(error))) from None


def _save(report: Report, item: pytest.Item, test: str, folder: Path) -> None:
    """Store the report, together with the stored runs if they are of the same arms, measured in the same way."""
    from collector.bench.baseline import not_compared
    from collector.bench.benchmark_errors import BenchmarkError
    from collector.bench.benchmark_report import runs_joined

    file, stored = _stored(folder, test)
    if stored is not None:
        differences = not_compared(report, stored)
        try:
            report = report if differences else runs_joined([stored, report])
        except BenchmarkError as error:
            differences = [str(error)]
        _note(item, _REPLACED, file, differences)
    replace(report, environment={**report.environment, _TEST: _digest(test)}).save(file)


def _stored(folder: Path, test: str) -> tuple[Path, Report | None]:
    """The file of a test's report in ``folder``, and the report; None: it is not stored yet."""
    from collector.bench.benchmark_report import Report

    stem, digest = re.sub(r"[^\w.=-]+", "_", test), _digest(test)
    plain, unique = folder / f"{stem}.json", folder / f"{stem[:50]}-{digest}.json"
    if unique.exists():
        return unique, Report.load(unique)
    if len(os.fsencode(plain.name)) > _LONGEST:
        return unique, None
    stored = Report.load(plain) if plain.exists() else None
    if stored is None or stored.environment.get(_TEST, digest) == digest:
        return plain, stored
    return unique, None


def _digest(test: str) -> str:
    return hashlib.sha256(test.encode(errors="surrogatepass")).hexdigest()[:12]


def _note(item: pytest.Item, section: str, file: Path, lines: list[str]) -> None:
    """Add lines about a test's file to a section of the terminal summary."""
    here = item.config.invocation_params.dir
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    if lines:
        item.stash.setdefault(_NOTES, {}).setdefault(section, []).extend(f"{shown}: {line}" for line in lines)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the notes on a test into its report, which pytest-xdist sends to the process that prints."""
    report = yield
    notes = item.stash.get(_NOTES, {})
    if notes:
        setattr(report, _IN_REPORT, notes)
        del item.stash[_NOTES]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the benchmarks and arms that were not compared, and the stored reports that were replaced."""
    notes: dict[str, set[str]] = {}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        for section, lines in getattr(report, _IN_REPORT, {}).items():
            notes.setdefault(section, set()).update(lines)
    for section, found in sorted(notes.items()):
        terminalreporter.section(section)
        for line in sorted(found):
            terminalreporter.line(line)


def _hold_against_baseline(report: Report, item: pytest.Item, test: str) -> None:
    folder = item.config.stash[_FOLDERS][_BASELINE]
    if folder is None:
        return
    from collector.bench.baseline import not_compared, regressions

    file, before = _stored(folder, test)
    if before is None:
        _note(item, _NOT_COMPARED, file, ["there is no report"])
        return
    _note(item, _NOT_COMPARED, file, not_compared(report, before))
    found, notes = regressions(report, before, fail_above=item.config.getoption("--gpu-benchmark-fail-above"))
    slower = [each for each in found if each.failed]
    if slower:
        lines = [
            f"{each.arm}: {each.decisive.interval.estimate:.3f} times its baseline{each.on_average} "
            f"({each.decisive.interval.low:.3f}..{each.decisive.interval.high:.3f})"
            for each in slower
        ]
        pytest.fail("\n".join([f"slower than the baseline: {'; '.join(lines)}", *notes]), pytrace=False)
