"""The result of a comparison: plain data that saves and loads itself.

The file is JSON, version 1 of the schema ``collector-bench``:

* ``schema``, ``version``
* ``environment``: gpu, gpu_uuid, simulated, l2_bytes, driver_version, cuda_version, cupti_path, cupti_api_version,
  source, collector, python, platform, libraries {name: version}, git_revision (``+``: with changes), time, program,
  test (in files of the pytest fixture: a digest of the test's node id)
* ``comparisons``, a list; each has
    * ``name``, ``parameters`` {axis: value}, ``reference`` (the arm that ratios are relative to)
    * ``design``: the fields of `collector.bench.design.Design`, including the seed; for compared processes, ``clock``
      is ``reported`` and the other fields describe their rounds
    * ``unit`` of the samples: ns, bytes, or another
    * ``flops``, ``bytes`` of one call, or null; ``ceilings`` {bytes_per_s, flop_per_s, measured_with} or null
    * ``arms`` {name: {times_ns, span_ns, kernel_ns {kernel: [ns]}, throttled_ns, event_ns, kernels, launches, copies,
      memsets, synchronizations, calls_per_sample, facts}}: raw samples in ns per call, one for each round, and counts
      of one sample; ``calls_per_sample``: the number of calls that a clock of the host timed together; ``facts``
      {name: value}: further facts that a process reports
    * ``run_rounds``: the number of rounds in each run, in order; empty: all rounds are one run
    * ``failures`` {arm: reason}, ``warnings``
    * ``rounds``, ``warm_up_rounds``, ``throttled_rounds``, ``seconds``, ``stopped_by`` (precision, time, rounds)
    * ``states``: the readings of the card's sensors after every round; fields of `collector.bench.gpu.CardState`
    * ``probe_cold_ns``, ``probe_hot_ns``: time of a memory access with an empty cache, and of its repetition
    * ``event_overhead_ns``: time between two CUDA events with no work between them
    * ``clock_step_ns``: the resolution of the clock; 0: unknown
    * ``results`` {arm: {unit, statistic (median; geometric mean: of figures reported by processes), estimate, low,
      high, mean, p5, p95, variation, samples, outliers, modes, ratio, mean_ratio, verdict}}: statistics of the
      samples, for readers that do not compute them; `Report.load` recomputes and ignores these. ``low`` and ``high``
      are the ends of the 95 % interval, null if there is none. ``variation`` is the standard deviation over the mean.
      ``modes`` is [{share, median}, {share, median}], or null for one mode. ``ratio`` (of medians, by rounds or by
      runs) and ``mean_ratio`` are {estimate, low, high, p_value}, null for the reference. ``verdict`` is that of the
      report as a whole: reference, faster, slower, faster on average, slower on average, same, not enough data

A version of the schema may get further fields; unknown versions are refused.
"""

from __future__ import annotations

import functools
import html
import itertools
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from collector.bench import report_fields
from collector.bench.benchmark_errors import BenchmarkError
from collector.bench.benchmark_titles import axis_columns, benchmark_title
from collector.bench.design import Design
from collector.bench.environment import without_places
from collector.bench.result import Result
from collector.errors import InvalidFileError
from collector.files.atomic_files import atomic_write
from collector.runtime.later_modules import later_function
from collector.runtime.optional_packages import optional_package
from collector.statistics.modes import GPU_TICK_NS, Mode, two_modes
from collector.statistics.verdicts import (
    Interval,
    Ratio,
    Verdict,
    bootstrapped_median,
    mean_interval,
    mean_ratio,
    outliers,
    paired_ratio_of_runs,
    ratio_of_means_of_runs,
    spread,
    verdicts,
)
from collector.text.wording import counted

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

SCHEMA = "collector-bench"
VERSION = 1
_WRITTEN_BY = "collector bench --json FILE writes a report"


@dataclass(frozen=True)
class Arm:
    """One arm's samples, in ns per call with one per round, and the counts of one sample."""

    times_ns: Sequence[float] = field(repr=False)
    span_ns: Sequence[float] = field(default=(), repr=False)
    kernel_ns: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)
    throttled_ns: Sequence[float] = field(default=(), repr=False)
    event_ns: Sequence[float] = field(default=(), repr=False)
    kernels: Sequence[str] = ()
    launches: int = 0
    copies: int = 0
    memsets: int = 0
    synchronizations: int = 0
    calls_per_sample: int = 1
    """Calls in one sample: a clock of the host that does not resolve one call measures several together."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def median_ns(self) -> Interval:
        """The median of its times, with its bootstrap interval."""
        return bootstrapped_median(self.times_ns)


@dataclass(frozen=True)
class Comparison:
    """Arms for the same work, measured in the same rounds."""

    arms: Mapping[str, Arm]
    reference: str
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    design: Mapping[str, Any] = field(default_factory=dict)
    flops: float | None = None
    bytes: float | None = None
    ceilings: Mapping[str, Any] | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    rounds: int = 0
    warm_up_rounds: int = 0
    throttled_rounds: int = 0
    seconds: float = 0.0
    stopped_by: str = ""
    states: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    probe_cold_ns: Sequence[float] = field(default=(), repr=False)
    probe_hot_ns: Sequence[float] = field(default=(), repr=False)
    event_overhead_ns: float = 0.0
    """Overhead: time between two CUDA events with no work between them."""
    clock_step_ns: float = 0.0
    """Resolution of the clock; 0: not known."""
    unit: str = "ns"
    """Unit of the samples."""
    run_rounds: Sequence[int] = ()
    """Number of rounds in each run, in order; empty: all are of one run."""

    @property
    def title(self) -> str:
        """``saxpy[n=256]``."""
        return benchmark_title(self.name, self.parameters)

    @property
    def is_reported(self) -> bool:
        """Whether each sample was reported by a separate process: the median of many, and a run by itself."""
        return self.design.get("clock") == "reported"

    def interval(self, arm: str) -> Interval:
        """The typical value of ``arm`` with its interval: the median of rounds, or the mean of reported figures."""
        return mean_interval(self.arms[arm].times_ns) if self.is_reported else self.arms[arm].median_ns

    def runs(self, arm: str) -> list[Sequence[float]]:
        """The samples of ``arm``, run by run."""
        times = self.arms[arm].times_ns
        if self.is_reported:
            return [[each] for each in times]
        ends = list(itertools.accumulate(self.run_rounds or [len(times)]))
        return [times[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    @functools.cached_property
    def ratios(self) -> dict[str, Ratio]:
        """Every other arm's time divided by the reference's, per round."""
        others = [name for name in self.arms if name != self.reference]
        if self.is_reported:
            reference = self.arms[self.reference].times_ns
            return {name: mean_ratio(self.arms[name].times_ns, reference) for name in others}
        references = self.runs(self.reference)
        return {name: paired_ratio_of_runs(self.runs(name), references) for name in others}

    @functools.cached_property
    def mean_ratios(self) -> dict[str, Ratio]:
        """Every other arm's mean divided by the reference's; empty if each sample was reported by a process."""
        if self.is_reported:
            return {}
        references = self.runs(self.reference)
        others = [name for name in self.arms if name != self.reference]
        return {name: ratio_of_means_of_runs(self.runs(name), references) for name in others}

    def modes(self, arm: str) -> tuple[Mode, Mode] | None:
        """The two modes of ``arm``'s samples in the first run that has two; None if all runs have one mode."""
        if self.is_reported:
            return None
        step = self.clock_step_ns or (GPU_TICK_NS if self.design.get("clock") == "cupti" else 1.0)
        step /= self.design.get("graph_calls") or self.arms[arm].calls_per_sample
        apart = float(self.design.get("same_within", Design.same_within))
        found = (two_modes(run, resolution=step, apart=apart) for run in self.runs(arm))
        return next((modes for modes in found if modes), None)

    def flop_per_s(self, arm: str) -> float | None:
        """FLOP/s of ``arm`` at its median; None without ``flops``."""
        return None if self.flops is None else self.flops / self.arms[arm].median_ns.estimate * 1e9

    def bytes_per_s(self, arm: str) -> float | None:
        """Bytes/s of ``arm`` at its median; None without ``bytes``."""
        return None if self.bytes is None else self.bytes / self.arms[arm].median_ns.estimate * 1e9

    def share_of_roof(self, arm: str) -> float | None:
        """The share of the measured ceilings that ``arm`` achieved at its intensity (roofline); None if unknown.

        Source: Williams, Waterman, Patterson, *Roofline*, CACM 52(4), 2009. The attainable rate is the lower of the two
        limits, so the share of it is the larger of the two shares.
        """
        roof = self.ceilings or {}
        shares = [
            achieved / ceiling
            for achieved, ceiling in (
                (self.flop_per_s(arm), roof.get("flop_per_s")),
                (self.bytes_per_s(arm), roof.get("bytes_per_s")),
            )
            if achieved is not None and ceiling
        ]
        return max(shares, default=None)


@dataclass(frozen=True)
class Report:
    """Comparisons that were made together, and their environment. ``print(report)`` shows it."""

    comparisons: Sequence[Comparison]
    environment: Mapping[str, Any]

    @functools.cached_property
    def verdicts(self) -> list[dict[str, Verdict]]:
        """For each comparison, the verdict on each arm against the reference; 5 % of reports contain a wrong one."""
        keys = [(index, arm) for index, each in enumerate(self.comparisons) for arm in each.ratios]
        within = [float(self.comparisons[index].design.get("same_within", Design.same_within)) for index, _ in keys]
        found: list[dict[str, Verdict]] = [{} for _ in self.comparisons]
        ratios = [
            (self.comparisons[index].ratios[arm], self.comparisons[index].mean_ratios.get(arm)) for index, arm in keys
        ]
        for (index, arm), verdict in zip(keys, verdicts(ratios, within), strict=True):
            found[index][arm] = verdict
        return found

    @functools.cached_property
    def results(self) -> list[dict[str, Result]]:
        """For each comparison: arm -> its result, as shown in tables, pages and files."""
        return [
            {arm: _result(each, arm, verdict_of.get(arm, "reference")) for arm in each.arms}
            for each, verdict_of in zip(self.comparisons, self.verdicts, strict=True)
        ]

    @property
    def comparison(self) -> Comparison:
        """The comparison of a report that contains exactly one.

        Raises:
            ValueError: it contains several, or none.
        """
        (only,) = self.comparisons
        return only

    @property
    def failures(self) -> dict[str, str]:
        """All failures: ``benchmark: arm`` -> reason."""
        return {
            f"{each.title}: {arm}".removeprefix(": "): why
            for each in self.comparisons
            for arm, why in each.failures.items()
        }

    def __repr__(self) -> str:
        return f"<Report: {'; '.join(each.title or ', '.join(each.arms) for each in self.comparisons)}>"

    def __str__(self) -> str:
        return str(later_function("benchmark_report_as_text")(self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as JSON, completely or not at all.

        Raises:
            collector.OutputError: the file cannot be written.
        """
        content = {"schema": SCHEMA, "version": VERSION, **asdict(self)}
        for each, results in zip(content["comparisons"], self.results, strict=True):
            each["results"] = {arm: result.to_json() for arm, result in results.items()}
        with atomic_write(path) as file:
            file.write(json.dumps(content, indent=1, allow_nan=False, default=str).encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Report:
        """Read a file that `save` wrote.

        Raises:
            collector.InvalidFileError: it is not there, another file, of another schema, or contains invalid numbers.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        except FileNotFoundError as error:
            raise InvalidFileError(f"cannot read {path}: there is no file of this name", _WRITTEN_BY) from error
        except OSError as error:
            raise InvalidFileError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            why = "it is not text" if isinstance(error, UnicodeDecodeError) else f"it is not JSON ({error})"
            raise InvalidFileError(f"{path} is not a benchmark report: {why}", _WRITTEN_BY) from error
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise InvalidFileError(f"{path} is not a benchmark report: it has no schema {SCHEMA!r}", _WRITTEN_BY)
        if content.get("version") != VERSION:
            raise InvalidFileError(
                f"{path} has version {content.get('version')} of the schema, this program reads {VERSION}",
                "Measure again",
            )
        try:
            environment = without_places(report_fields.checked_environment(content["environment"]))
            return Report([_comparison(each) for each in content["comparisons"]], environment)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidFileError(f"{path} is a damaged benchmark report: {error!r}") from error

    def to_pandas(self) -> pd.DataFrame:
        """One row for each kept sample: benchmark, every axis, arm, round, time_ns; see `read_pandas` for files.

        Samples in a unit other than ns have a column named after their unit. An axis with the name of another column
        has the column ``axis NAME``.

        Raises:
            collector.MissingDependencyError: pandas is not installed.
        """
        columns = [(each, "time_ns" if each.unit == "ns" else each.unit) for each in self.comparisons]
        named = axis_columns(
            [axis for each in self.comparisons for axis in each.parameters],
            {"benchmark", "arm", "round", *(column for _, column in columns)},
        )
        rows = [
            {
                "benchmark": each.name,
                **{named[axis]: value for axis, value in each.parameters.items()},
                "arm": name,
                "round": index,
                column: taken,
            }
            for each, column in columns
            for name, arm in each.arms.items()
            for index, taken in enumerate(arm.times_ns)
        ]
        frame: pd.DataFrame = optional_package("pandas").DataFrame(rows)
        return frame


def read_pandas(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the samples of a stored report as a data frame; see `Report.to_pandas`.

    Raises:
        collector.InvalidFileError: it is not a report; see `Report.load`.
        collector.MissingDependencyError: pandas is not installed.
    """
    return Report.load(path).to_pandas()


def joined(reports: Sequence[Report]) -> Report:
    """Combine the comparisons of several reports of one machine in one report.

    Raises:
        BenchmarkError: there are no reports, or they are of different cards.
    """
    if not reports:
        raise BenchmarkError("there is no report to join")
    cards = {report.environment.get("gpu_uuid") for report in reports}
    if len(cards) > 1:
        raise BenchmarkError(f"these reports are of different cards: {', '.join(sorted(map(str, cards)))}")
    return replace(reports[0], comparisons=[each for report in reports for each in report.comparisons])


def runs_joined(reports: Sequence[Report]) -> Report:
    """Combine several runs of the same benchmarks on one machine in one report, in which each counts as a run.

    A comparison keeps the arms that all its runs have; the others become its failures.

    Raises:
        BenchmarkError: there are no runs, the cards differ, or two runs of a benchmark differ in their design.
    """
    joined(reports)  # checks the machine
    by_title: dict[str, list[Comparison]] = {}
    for each in (each for report in reports for each in report.comparisons):
        by_title.setdefault(each.title, []).append(each)
    return replace(reports[0], comparisons=[_one_of_runs(each) for each in by_title.values()])


def _one_of_runs(runs: Sequence[Comparison]) -> Comparison:
    first = runs[0]
    if len(runs) == 1:
        return first
    for each in runs[1:]:
        for key in ("clock", "cache", "graph_calls"):
            if each.design.get(key) != first.design.get(key):
                raise BenchmarkError(
                    f"{first.title or 'the comparison'}: runs differ in {key}: {first.design.get(key)} and "
                    f"{each.design.get(key)}",
                    "Measure all runs in the same way",
                )
    kept = [arm for arm in first.arms if all(arm in each.arms for each in runs)]
    if not kept:
        raise BenchmarkError(f"{first.title or 'the comparison'}: no arm could be measured in every run")
    failures = {arm: f"arm {arm!r}: not measured in every run" for each in runs for arm in each.arms}
    failures |= {arm: why for each in reversed(runs) for arm, why in each.failures.items()}
    stopped = [each.stopped_by for each in runs]
    return replace(
        first,
        arms={arm: _arm_of_runs([each.arms[arm] for each in runs]) for arm in kept},
        reference=first.reference if first.reference in kept else kept[0],
        failures={arm: why for arm, why in failures.items() if arm not in kept},
        warnings=list(dict.fromkeys(warning for each in runs for warning in each.warnings)),
        run_rounds=[rounds for each in runs for rounds in (each.run_rounds or [len(each.arms[kept[0]].times_ns)])],
        stopped_by=next((each for each in stopped if each != "precision"), stopped[0]),
        rounds=sum(each.rounds for each in runs),
        warm_up_rounds=sum(each.warm_up_rounds for each in runs),
        throttled_rounds=sum(each.throttled_rounds for each in runs),
        seconds=sum(each.seconds for each in runs),
        states=[state for each in runs for state in each.states],
        probe_cold_ns=[ns for each in runs for ns in each.probe_cold_ns],
        probe_hot_ns=[ns for each in runs for ns in each.probe_hot_ns],
    )


def _arm_of_runs(runs: Sequence[Arm]) -> Arm:
    kernels = dict.fromkeys(kernel for each in runs for kernel in each.kernel_ns)
    return replace(
        runs[0],
        times_ns=[ns for each in runs for ns in each.times_ns],
        span_ns=[ns for each in runs for ns in each.span_ns],
        kernel_ns={kernel: [ns for each in runs for ns in each.kernel_ns.get(kernel, ())] for kernel in kernels},
        throttled_ns=[ns for each in runs for ns in each.throttled_ns],
        event_ns=[ns for each in runs for ns in each.event_ns],
        calls_per_sample=min(each.calls_per_sample for each in runs),
    )


def _result(comparison: Comparison, arm: str, verdict: Verdict | Literal["reference"]) -> Result:
    times = comparison.arms[arm].times_ns
    return Result(
        unit=comparison.unit,
        statistic="geometric mean" if comparison.is_reported else "median",
        typical=comparison.interval(arm),
        spread=spread(times),
        samples=len(times),
        outliers=int(outliers(times).sum()),
        modes=comparison.modes(arm),
        ratio=comparison.ratios.get(arm),
        mean_ratio=comparison.mean_ratios.get(arm),
        verdict=verdict,
    )


def _comparison(content: Mapping[str, Any]) -> Comparison:
    arms = {
        name: Arm(**report_fields.checked(arm, report_fields.ARM, f"arm {name!r}"))
        for name, arm in content["arms"].items()
    }
    if content["reference"] not in arms:
        raise ValueError(f"the reference {content['reference']!r} is not one of its arms")
    for name, arm in arms.items():
        if len(arm.times_ns) != len(arms[content["reference"]].times_ns) or not arm.times_ns:
            raise ValueError(f"arm {name!r} has {counted('{} sample[|s]', len(arm.times_ns))}")
        if not all(map(report_fields.is_positive, arm.times_ns)):
            raise ValueError(f"arm {name!r} has a sample that is not a positive number")
    found = Comparison(arms=arms, **report_fields.checked(content, report_fields.COMPARISON, "a comparison"))
    design = report_fields.checked(found.design, report_fields.DESIGN, "a design")
    missing = {"clock", "seed", *(() if found.is_reported else ("cache", "precision"))} - design.keys()
    if missing:
        raise ValueError(f"its design has no {', '.join(sorted(missing))}")
    if found.run_rounds and sum(found.run_rounds) != len(arms[found.reference].times_ns):
        samples = counted("{} sample[|s]", len(arms[found.reference].times_ns))
        raise ValueError(f"runs of {list(found.run_rounds)} rounds, and {samples}")
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")
