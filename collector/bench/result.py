"""The statistics of one arm's samples: computed once, for all tables, pages and files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collector.statistics.modes import Mode
    from collector.statistics.verdicts import Interval, Ratio, Spread, Verdict


@dataclass(frozen=True)
class Result:
    """The statistics of one arm's samples. Figures are in ``unit``; ratios are relative to the reference arm."""

    unit: str
    statistic: Literal["median", "geometric mean"]
    """The meaning of ``typical``: the mean if each sample is a figure that a process reported."""
    typical: Interval
    spread: Spread
    samples: int
    outliers: int
    """Number of outliers; see `collector.statistics.verdicts.outliers`."""
    modes: tuple[Mode, Mode] | None
    """None where the samples have one mode."""
    ratio: Ratio | None
    """None for the reference."""
    mean_ratio: Ratio | None
    """None for the reference, and if ``ratio`` is of means already."""
    verdict: Verdict | Literal["reference"]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; infinite ends of intervals become None."""
        return {
            "unit": self.unit,
            "statistic": self.statistic,
            **self.typical.to_json(),
            **asdict(self.spread),
            "samples": self.samples,
            "outliers": self.outliers,
            "modes": None if self.modes is None else [asdict(each) for each in self.modes],
            "ratio": _ratio(self.ratio),
            "mean_ratio": _ratio(self.mean_ratio),
            "verdict": self.verdict,
        }


def _ratio(ratio: Ratio | None) -> dict[str, float | None] | None:
    return None if ratio is None else {**ratio.interval.to_json(), "p_value": ratio.p_value}
