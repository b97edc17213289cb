"""What a comparison found: plain data that saves and loads itself.

The file is JSON, version 1 of the schema ``collector-bench``:

* ``schema``, ``version``
* ``environment``: gpu, gpu_uuid, simulated, l2_bytes, driver_version, cuda_version, cupti_path, cupti_api_version,
  source, collector, python, platform, libraries {name: version}, git_revision (``+``: with changes), time, program
* ``comparisons``, a list; of each
    * ``name``, ``parameters`` {axis: value}, ``reference`` (the arm that ratios are relative to)
    * ``design``: the fields of `collector.bench.design.Design`, the seed among them
    * ``flops``, ``bytes`` of one call, or null; ``ceilings`` {bytes_per_s, flop_per_s, measured_with} or null
    * ``arms`` {name: {times_ns, span_ns, kernel_ns {kernel: [ns]}, throttled_ns, event_ns, kernels, launches, copies,
      memsets, synchronizations}}: raw samples in ns per call, one for each round, and counts of one sample
    * ``failures`` {arm: what is wrong}, ``warnings``
    * ``rounds``, ``warm_up_rounds``, ``throttled_rounds``, ``seconds``, ``stopped_by`` (precision, time, rounds)
    * ``states``: what the card's sensors said before and after every round; fields of `collector.bench.gpu.CardState`
    * ``probe_cold_ns``, ``probe_hot_ns``: a touch of memory with the cache emptied, and straight after itself

A field may be added within a version; a version that is not known is refused.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.bench.errors import BenchmarkError
from collector.bench.statistics import Interval, Ratio, Verdict, median, paired_ratio, verdicts
from collector.errors import InvalidFileError, MissingDependencyError
from collector.files import atomic_write

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

SCHEMA = "collector-bench"
VERSION = 1


@dataclass(frozen=True)
class Arm:
    """One arm's samples, in ns per call and one for each round, and what one sample launched."""

    times_ns: Sequence[float]
    span_ns: Sequence[float] = ()
    kernel_ns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    throttled_ns: Sequence[float] = ()
    event_ns: Sequence[float] = ()
    kernels: Sequence[str] = ()
    launches: int = 0
    copies: int = 0
    memsets: int = 0
    synchronizations: int = 0

    @functools.cached_property
    def median_ns(self) -> Interval:
        """The median of its times, with its interval."""
        return median(self.times_ns)


@dataclass(frozen=True)
class Comparison:
    """Arms that did the same work, measured in the same rounds."""

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
    states: Sequence[Mapping[str, Any]] = ()
    probe_cold_ns: Sequence[float] = ()
    probe_hot_ns: Sequence[float] = ()

    @property
    def title(self) -> str:
        """``saxpy[n=256]``."""
        values = ",".join(f"{axis}={value}" for axis, value in self.parameters.items())
        return f"{self.name}[{values}]" if values else self.name

    @functools.cached_property
    def ratios(self) -> dict[str, Ratio]:
        """Every other arm's time over the reference's, round by round."""
        reference = self.arms[self.reference].times_ns
        return {
            name: paired_ratio(arm.times_ns, reference) for name, arm in self.arms.items() if name != self.reference
        }

    def flop_per_s(self, arm: str) -> float | None:
        """FLOP/s that ``arm`` achieved at its median; None without ``flops``."""
        return None if self.flops is None else self.flops / self.arms[arm].median_ns.estimate * 1e9

    def bytes_per_s(self, arm: str) -> float | None:
        """Bytes/s that ``arm`` achieved at its median; None without ``bytes``."""
        return None if self.bytes is None else self.bytes / self.arms[arm].median_ns.estimate * 1e9

    def share_of_roof(self, arm: str) -> float | None:
        """What ``arm`` achieved of what the measured ceilings allow at its intensity (roofline); None if unknown.

        Source: Williams, Waterman, Patterson, *Roofline*, CACM 52(4), 2009. The attainable rate is the lesser of the
        two limits, so the share of it is the greater of the two shares.
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
    """Comparisons that were made together, and where. ``print(report)`` shows it."""

    comparisons: Sequence[Comparison]
    environment: Mapping[str, Any]

    @functools.cached_property
    def verdicts(self) -> list[dict[str, Verdict]]:
        """Of each comparison, what is to be said of each arm against the reference; one is wrong in 5 % of reports."""
        keys = [(index, arm) for index, each in enumerate(self.comparisons) for arm in each.ratios]
        within = [float(self.comparisons[index].design.get("same_within", 0.01)) for index, _ in keys]
        found: list[dict[str, Verdict]] = [{} for _ in self.comparisons]
        said = verdicts([self.comparisons[index].ratios[arm] for index, arm in keys], within)
        for (index, arm), verdict in zip(keys, said, strict=True):
            found[index][arm] = verdict
        return found

    @property
    def comparison(self) -> Comparison:
        """The one comparison of a report that holds one.

        Raises:
            ValueError: it holds several, or none.
        """
        (only,) = self.comparisons
        return only

    @property
    def failures(self) -> dict[str, str]:
        """Everything that could not be measured: ``benchmark: arm`` -> why."""
        return {
            f"{each.title}: {arm}".removeprefix(": "): why
            for each in self.comparisons
            for arm, why in each.failures.items()
        }

    def __str__(self) -> str:
        from collector.bench.table import as_text

        return as_text(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all.

        Raises:
            collector.OutputError: the file cannot be written.
        """
        content = {"schema": SCHEMA, "version": VERSION, **asdict(self)}
        with atomic_write(path) as file:
            file.write(json.dumps(content, indent=1, allow_nan=False, default=str).encode())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Report:
        """Read what `save` wrote.

        Raises:
            collector.InvalidFileError: it is something else, of another schema, or holds what is no number.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        except (OSError, ValueError) as error:
            raise InvalidFileError(f"cannot read {path}: {error}") from error
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise InvalidFileError(f"{path} is not a benchmark report: it has no schema {SCHEMA!r}")
        if content.get("version") != VERSION:
            raise InvalidFileError(
                f"{path} has version {content.get('version')} of the schema, this program reads {VERSION}",
                "Measure again",
            )
        try:
            return Report([_comparison(each) for each in content["comparisons"]], dict(content["environment"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidFileError(f"{path} is a damaged benchmark report: {error!r}") from error

    def to_pandas(self) -> pd.DataFrame:
        """One row for each kept sample: benchmark, every axis, arm, round, time_ns.

        Raises:
            collector.MissingDependencyError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingDependencyError("pandas is not installed", "pip install pandas") from error
        rows = [
            {"benchmark": each.name, **each.parameters, "arm": name, "round": index, "time_ns": taken}
            for each in self.comparisons
            for name, arm in each.arms.items()
            for index, taken in enumerate(arm.times_ns)
        ]
        return pandas.DataFrame(rows)


def joined(reports: Sequence[Report]) -> Report:
    """Put the comparisons of several reports of one machine into one.

    Raises:
        BenchmarkError: there are none, or they are of different cards.
    """
    if not reports:
        raise BenchmarkError("there is no report to join")
    cards = {report.environment.get("gpu_uuid") for report in reports}
    if len(cards) > 1:
        raise BenchmarkError(f"these reports are of different cards: {', '.join(sorted(map(str, cards)))}")
    return replace(reports[0], comparisons=[each for report in reports for each in report.comparisons])


def _comparison(content: Mapping[str, Any]) -> Comparison:
    known = Comparison.__dataclass_fields__
    arms = {
        name: Arm(**{key: value for key, value in arm.items() if key in Arm.__dataclass_fields__})
        for name, arm in content["arms"].items()
    }
    if content["reference"] not in arms:
        raise ValueError(f"the reference {content['reference']!r} is none of its arms")
    for name, arm in arms.items():
        if len(arm.times_ns) != len(arms[content["reference"]].times_ns) or not arm.times_ns:
            raise ValueError(f"arm {name!r} has {len(arm.times_ns)} samples")
        if any(not isinstance(each, (int, float)) or not 0 < each < math.inf for each in arm.times_ns):
            raise ValueError(f"arm {name!r} has a sample that is no positive number")
    return Comparison(**{**{key: value for key, value in content.items() if key in known}, "arms": arms})


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")
