"""Comparison of a report with an earlier report of the same card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.bench.benchmark_errors import BenchmarkError
from collector.statistics.verdicts import (
    ASSUMED_RUN_SPREAD,
    CONFIDENCE,
    Interval,
    Ratio,
    holm,
    independent_ratio,
    independent_ratio_of_means,
)

if TYPE_CHECKING:
    from collector.bench.benchmark_report import Comparison, Report

_SAME_DESIGN = ("clock", "cache", "graph_calls")


@dataclass(frozen=True)
class Regression:
    """One arm compared with its earlier measurement."""

    title: str
    arm: str
    unit: str
    """The unit of both intervals."""
    before: Interval
    now: Interval
    ratio: Ratio
    """The median time now divided by the median time before."""
    mean_ratio: Ratio | None
    """The same for the means; None if each sample was reported by a process, because the ratio is then of means
    already."""
    differs: bool
    """Whether it changed, with an error rate of 5 % over all arms together (Holm)."""
    differs_on_average: bool
    """Whether its mean changed, with the same error rate."""
    fail_above: float

    @property
    def failed(self) -> bool:
        """Whether its median or its mean is significantly slower, and by more than the threshold."""
        return any(map(self._is_slower, self._changed))

    @property
    def decisive(self) -> Ratio:
        """The ratio that decides the verdict: that of the medians, unless only that of the means is significant."""
        return next(filter(self._is_slower, self._changed), next(iter(self._changed), self.ratio))

    @property
    def on_average(self) -> str:
        """`` on average`` if the means decide the verdict."""
        return " on average" if self.decisive is self.mean_ratio else ""

    @property
    def verdict(self) -> str:
        """``REGRESSION`` if it failed; else ``faster``, ``slower``, either ``on average``, or ``no change seen``."""
        if self.failed:
            return "REGRESSION"
        if not self._changed:
            return "no change seen"
        return ("slower" if self.decisive.interval.estimate > 1 else "faster") + self.on_average

    @property
    def _changed(self) -> list[Ratio]:
        """The ratios that differ significantly from 1."""
        tested = ((self.ratio, self.differs), (self.mean_ratio, self.differs_on_average))
        return [ratio for ratio, differs in tested if ratio is not None and differs]

    def _is_slower(self, ratio: Ratio) -> bool:
        return ratio.interval.low > 1 and ratio.interval.estimate > 1 + self.fail_above


def regressions(
    now: Report, before: Report, *, fail_above: float = 0.03, allow_other_machine: bool = False
) -> tuple[list[Regression], list[str]]:
    """Compare every arm of ``now`` with the same arm of ``before``; also return the reasons for arms left out.

    Args:
        now: the new measurement.
        before: the baseline. If it or ``now`` has several runs, the spread of runs is part of every interval.
        fail_above: the share by which an arm may become slower.
        allow_other_machine: compare even if the cards differ.

    Raises:
        BenchmarkError: the baseline is of another card, or the reports have no arm in common.
    """
    _check_machine(now.environment, before.environment, allow_other_machine)
    past = {each.title: each for each in before.comparisons}
    pairs: list[tuple[Comparison, Comparison, str, Ratio, Ratio | None]] = []
    notes = not_compared(now, before)
    one_each = False
    for each in now.comparisons:
        earlier = past.get(each.title)
        if earlier is None or any(each.design.get(key) != earlier.design.get(key) for key in _SAME_DESIGN):
            continue
        for name in each.arms:
            if name not in earlier.arms or not _comparable(each, earlier, name):
                continue
            now_runs, past_runs = each.runs(name), earlier.runs(name)
            one_each = one_each or len(now_runs) == len(past_runs) == 1
            means = None if each.is_reported else independent_ratio_of_means(now_runs, past_runs)
            pairs.append((each, earlier, name, independent_ratio(now_runs, past_runs), means))
    if not pairs:
        raise BenchmarkError(f"the baseline has nothing in common with this report: {'; '.join(notes)}")
    if now.environment.get("driver_version") != before.environment.get("driver_version"):
        notes.append("the baseline was measured with another driver")
    if one_each:
        notes.append(
            f"one run each: how runs differ is not known and taken to be {ASSUMED_RUN_SPREAD:.0%}; "
            "measure several (--runs)"
        )
    tested = [ratio for *_, of_medians, of_means in pairs for ratio in (of_medians, of_means) if ratio is not None]
    differs = iter(holm([ratio.p_value for ratio in tested], 1 - CONFIDENCE))
    found = [
        Regression(
            title=each.title,
            arm=arm,
            unit=each.unit,
            before=earlier.interval(arm),
            now=each.interval(arm),
            ratio=ratio,
            mean_ratio=means,
            differs=next(differs),
            differs_on_average=means is not None and next(differs),
            fail_above=fail_above,
        )
        for each, earlier, arm, ratio, means in pairs
    ]
    return found, notes


def not_compared(now: Report, before: Report) -> list[str]:
    """The reasons why comparisons or arms have no counterpart: only one report has them, or the method differs."""
    past = {each.title: each for each in before.comparisons}
    notes: list[str] = []
    for each in now.comparisons:
        if each.title in past:
            notes += _differences(each, past[each.title])
        else:
            notes.append(f"{each.title or 'the comparison'} is not in the baseline")
    missing = missing_titles(now, before)
    return notes + [f"{title or 'the comparison'} of the baseline was not measured" for title in missing]


def missing_titles(now: Report, before: Report) -> list[str]:
    """The titles of the benchmarks of the baseline that are not in the report now."""
    titles = {each.title for each in now.comparisons}
    return [each.title for each in before.comparisons if each.title not in titles]


def unmeasured(now: Report, before: Report) -> list[str]:
    """The reasons why a report cannot show that nothing regressed: failures, and what the baseline alone measured."""
    arms = {each.title: each for each in now.comparisons}
    missing = [f"{title or 'the comparison'} was not measured" for title in missing_titles(now, before)]
    missing += [
        f"{each.title or 'the comparison'}: arm {name} was not measured"
        for each in before.comparisons
        if each.title in arms
        for name in each.arms
        if name not in {*arms[each.title].arms, *arms[each.title].failures}
    ]
    return [*(f"{place}: {why}" for place, why in now.failures.items()), *missing]


def _comparable(now: Comparison, before: Comparison, arm: str) -> bool:
    """Whether both have samples of ``arm`` with a known spread, or in both every sample is a run."""
    sides = now.runs(arm), before.runs(arm)
    return all(len(run) == 1 for runs in sides for run in runs) or all(sum(map(len, runs)) > 1 for runs in sides)


def _differences(now: Comparison, before: Comparison) -> list[str]:
    title = now.title or "the comparison"
    notes = [
        f"{title}: {key} is {now.design.get(key)} now and was {before.design.get(key)}"
        for key in _SAME_DESIGN
        if now.design.get(key) != before.design.get(key)
    ]
    notes += [f"{title}: arm {name} is not in the baseline" for name in now.arms if name not in before.arms]
    notes += [f"{title}: arm {name} of the baseline was not measured" for name in before.arms if name not in now.arms]
    notes += [
        f"{now.title} {name}: one sample cannot be compared with several".strip()
        for name in now.arms
        if name in before.arms and not _comparable(now, before, name)
    ]
    return notes


def _check_machine(now: Mapping[str, Any], before: Mapping[str, Any], allowed: bool) -> None:
    for key, what in (("gpu_uuid", "card"), ("simulated", "kind of card")):
        if now.get(key) != before.get(key) and not allowed:
            raise BenchmarkError(
                f"the baseline is of another {what}: {before.get('gpu')} ({before.get(key)}), "
                f"and this one is {now.get('gpu')} ({now.get(key)})",
                "Measure a baseline here, or allow it: --allow-other-machine",
            )
