"""How samples are spread, ratios of means, and what both change in verdicts and comparisons with a baseline."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties import examples

pytest.importorskip("scipy")

from collector import bench
from collector.bench.benchmark_report import Arm, Comparison, Report
from collector.statistics.verdicts import (
    Interval,
    Ratio,
    independent_ratio_of_means,
    ratio_of_means,
    ratio_of_means_of_runs,
    spread,
    verdicts,
)

DESIGN = {"clock": "cupti", "cache": "cold", "graph_calls": 0, "precision": 0.005, "seed": 7, "same_within": 0.01}

time = st.floats(1, 1e9)
times = st.lists(time, min_size=1, max_size=60)
pairs = st.lists(st.tuples(time, time), min_size=2, max_size=40)


def slower_in_some(share, by=1.4, count=400, seed=0, noise=0.01):
    """Times of a kernel that takes ``by`` times as long in ``share`` of its calls."""
    random = np.random.default_rng(seed)
    return (10_000 * random.lognormal(0, noise, count) * np.where(random.random(count) < share, by, 1.0)).tolist()


def report(**arms):
    made = {name: Arm(times_ns=values) for name, values in arms.items()}
    comparison = Comparison(arms=made, reference=next(iter(made)), name="saxpy", design=DESIGN, rounds=400)
    return Report([comparison], {"gpu": "Card", "gpu_uuid": "GPU-1", "simulated": False})


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(times, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_a_spread_lies_within_its_samples_and_scales_with_them(values, factor, random):
    found = spread(values)
    tolerance = 1e-9 * max(values)
    assert min(values) - tolerance <= found.p5 <= np.median(values) + tolerance
    assert np.median(values) - tolerance <= found.p95 <= max(values) + tolerance
    assert min(values) - tolerance <= found.mean <= max(values) + tolerance
    assert 0 <= found.variation <= math.sqrt(len(values))
    shuffled = list(values)
    random.shuffle(shuffled)
    assert spread(shuffled).mean == pytest.approx(found.mean)
    scaled = spread([factor * value for value in values])
    assert (scaled.p5, scaled.p95) == (pytest.approx(factor * found.p5), pytest.approx(factor * found.p95))
    assert scaled.variation == pytest.approx(found.variation, abs=1e-6)


def test_a_spread_against_its_definition():
    found = spread(range(1, 102))  # 101 numbers: percentiles fall on samples
    assert (found.mean, found.p5, found.p95) == (51.0, 6.0, 96.0)
    assert found.variation == pytest.approx(math.sqrt(101 * 102 / 12) / 51)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(pairs, st.floats(0.01, 100))
def test_a_ratio_of_means_is_that_of_the_means_and_its_inverse_agrees(values, factor):
    arm, reference = (np.asarray(each) for each in zip(*values, strict=True))
    found, inverse = ratio_of_means(arm, reference), ratio_of_means(reference, arm)
    assert found.interval.estimate == pytest.approx(arm.mean() / reference.mean())
    assert found.interval.low <= found.interval.estimate <= found.interval.high
    assert inverse.interval.low == pytest.approx(1 / found.interval.high, rel=1e-6)
    assert inverse.p_value == pytest.approx(found.p_value, abs=1e-9)
    scaled = ratio_of_means(factor * arm, reference)
    assert scaled.interval.high / found.interval.high == pytest.approx(factor, rel=1e-6)
    narrower = ratio_of_means(arm, reference, confidence=0.5).interval
    assert found.interval.low <= narrower.low * (1 + 1e-9)
    assert narrower.high <= found.interval.high * (1 + 1e-9)
    assert (found.p_value < 0.0499) <= (not found.interval.low <= 1 <= found.interval.high)


def test_a_ratio_of_means_ignores_what_moves_a_whole_round():
    rounds = np.linspace(1, 5, 41)
    found = ratio_of_means(rounds * 1.25, rounds)
    assert (found.interval.low, found.interval.high) == (pytest.approx(1.25), pytest.approx(1.25))
    assert not np.isfinite(ratio_of_means([1.0], [1.0]).interval.high)


def test_runs_that_differ_make_the_ratio_of_means_as_wide_as_they_are():
    random = np.random.default_rng(0)
    references = [random.lognormal(0, 0.01, 50) for _ in range(3)]
    arms = [factor * random.lognormal(0, 0.01, 50) for factor in (1.0, 1.1, 1.2)]
    found = ratio_of_means_of_runs(arms, references).interval
    assert found.estimate == pytest.approx(1.1, rel=0.01)
    assert found.low < 1.0 < 1.2 < found.high
    alone = ratio_of_means_of_runs(arms[:1], references[:1])
    assert alone == ratio_of_means(arms[0], references[0])


@pytest.mark.parametrize(
    "values", [([1.0, 2.0], [1.0]), ([0.0, 1.0], [1.0, 1.0]), ([], [])], ids=["unequal", "zero", "none"]
)
def test_a_ratio_of_means_needs_pairs_of_positive_times(values):
    with pytest.raises(ValueError, match=r"sample|positive"):
        ratio_of_means(*values)


# Of 1,000 experiments with a true coverage of 95 %, fewer than 930 hold the truth in 3 of 1,000 cases.
@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("count", [30, 300])
def test_the_interval_holds_the_true_ratio_of_means(share, count):
    held = dismissed = 0
    truth = 1.05 * (1 + 0.4 * share)
    for seed in range(1000):
        arm = slower_in_some(share, seed=seed, count=count)
        reference = slower_in_some(0, seed=10_000 + seed, count=count)
        found = ratio_of_means(1.05 * np.asarray(arm), reference)
        held += found.interval.low <= truth <= found.interval.high
        equal = ratio_of_means(arm, slower_in_some(share, seed=20_000 + seed, count=count))
        dismissed += equal.p_value < 0.05
    assert held >= 930 if (share, count) != (0.1, 30) else held >= 880  # 3 slow calls of 30, or none at all
    assert dismissed <= 70


def of(estimate, width, p_value):
    return Ratio(Interval(estimate, estimate - width, estimate + width), p_value, 100)


@pytest.mark.parametrize(
    ("medians", "means", "message"),
    [
        (of(1.001, 0.002, 0.5), of(1.16, 0.02, 1e-9), "slower on average"),
        (of(1.001, 0.02, 0.5), of(0.9, 0.02, 1e-9), "faster on average"),
        (of(0.9, 0.01, 1e-9), of(1.16, 0.02, 1e-9), "slower on average"),
        (of(1.1, 0.01, 1e-9), of(1.16, 0.02, 1e-9), "slower"),
        (of(1.1, 0.01, 1e-9), of(1.05, 0.2, 0.5), "slower"),
        (of(1.001, 0.002, 0.5), of(1.1, 0.3, 0.5), "same"),
        (of(1.001, 0.002, 0.5), of(1.004, 0.003, 1e-9), "same"),
        (of(1.1, 0.3, 0.5), of(1.001, 0.002, 0.5), "not enough data"),
        (of(1.1, 0.01, 1e-9), None, "slower"),
    ],
)
def test_a_difference_of_means_that_medians_do_not_show_is_a_verdict(medians, means, message):
    assert verdicts([(medians, means)], [0.01]) == [message]


def test_verdicts_are_corrected_over_medians_and_means_together():
    message = verdicts([(of(1.2, 0.1, 0.03), of(1.2, 0.1, 0.03))], [0.01])
    assert message == ["not enough data"]  # 0.03 > 0.05 / 2
    assert verdicts([(of(1.2, 0.1, 0.03), None)], [0.01]) == ["slower"]


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4])
def test_a_kernel_slower_by_40_percent_in_some_calls_is_reported(share):
    made = report(plain=slower_in_some(0, seed=1), slow=slower_in_some(share))
    result = made.results[0]["slow"]
    assert result.ratio.interval.estimate < 1.02
    assert result.outliers == 0 or share < 0.25
    assert result.mean_ratio.interval.low < 1 + 0.4 * share < result.mean_ratio.interval.high
    assert result.verdict in ("slower", "slower on average")
    assert result.spread.p95 > 1.35 * result.spread.p5
    assert result.modes[1].share == pytest.approx(share, abs=0.06)
    text = " ".join(str(made).split())
    assert f"slow has two modes: {result.modes[0].share:.0%} of its samples are around" in text
    assert f"{result.mean_ratio.interval.estimate:.4f}" in text


def test_equal_arms_are_not_reported_to_differ():
    made = report(plain=slower_in_some(0, seed=1), same=slower_in_some(0, seed=2))
    result = made.results[0]["same"]
    assert (result.modes, result.verdict) == (None, "same")
    assert "note" not in str(made)


@pytest.mark.medium
def test_a_baseline_notices_calls_that_became_slower_when_the_median_did_not():
    before, now = report(a=slower_in_some(0, seed=1)), report(a=slower_in_some(0.3))
    (found,), _ = bench.regressions(now, before, fail_above=0.03)
    assert not found.differs
    assert found.ratio.interval.estimate < 1.02
    assert found.mean_ratio.interval.low > 1.03
    assert (found.failed, found.verdict) == (True, "REGRESSION")
    (found,), _ = bench.regressions(now, before, fail_above=0.3)
    assert (found.failed, found.verdict) == (False, "slower on average")
    (found,), _ = bench.regressions(before, now, fail_above=0.03)
    assert (found.failed, found.verdict) == (False, "faster on average")
    (found,), _ = bench.regressions(report(a=slower_in_some(0, seed=2)), before, fail_above=0.0)
    assert (found.failed, found.verdict) == (False, "no change seen")


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(times.filter(lambda each: len(each) > 1), min_size=1, max_size=3), times.filter(lambda x: len(x) > 1))
def test_a_ratio_of_independent_means_and_its_inverse_agree(now, before):
    found, inverse = independent_ratio_of_means(now, [before]), independent_ratio_of_means([before], now)
    by_rounds = np.concatenate(now).mean() / np.mean(before)
    by_runs = np.exp(np.mean([np.log(np.mean(run)) for run in now])) / np.mean(before)
    assert found.interval.estimate in (pytest.approx(by_rounds), pytest.approx(by_runs))
    assert found.interval.low <= found.interval.estimate * (1 + 1e-9)
    assert found.interval.estimate <= found.interval.high * (1 + 1e-9)
    if inverse.interval.low > 0 and np.isfinite(inverse.interval.high):
        assert inverse.interval.low == pytest.approx(1 / found.interval.high, rel=1e-6)
    assert inverse.p_value == pytest.approx(found.p_value, abs=1e-9)


@pytest.mark.slow
def test_two_sets_of_means_are_equal_as_often_as_they_should_be():
    """Three runs on each side that differ by 3 % and by nothing else are called different in about 5 %."""
    random, different = np.random.default_rng(3), 0
    for _ in range(300):
        sides = [[math.exp(random.normal(0, 0.03)) * random.lognormal(0, 0.01, 30) for _ in range(3)] for _ in "ab"]
        different += independent_ratio_of_means(*sides).p_value < 0.05
    assert different <= 27  # 9 %: more have a chance of one in a thousand
