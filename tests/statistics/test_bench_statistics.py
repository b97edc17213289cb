"""Intervals, ratios and verdicts, compared with published numbers or with their definitions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

import scipy.stats
from scipy.stats import binom

from collector.statistics.verdicts import (
    Interval,
    Ratio,
    bootstrapped_median,
    holm,
    independent_ratio,
    is_stationary,
    median,
    outliers,
    paired_ratio,
    paired_ratio_of_runs,
    verdicts,
)


def ratio(estimate, width, p_value):
    return Ratio(Interval(estimate, estimate - width, estimate + width), p_value, 100)


def test_the_medians_interval_is_that_of_the_order_statistics():
    # Binomial(20, 1/2): ranks 6 and 15 hold the median with 95.9 %, the closest pair of ranks that reaches 95 %.
    found = median(np.arange(1.0, 21.0))
    assert (found.estimate, found.low, found.high) == (10.5, 6.0, 15.0)


def test_five_samples_have_no_interval_and_six_have():
    assert not np.isfinite(median(range(1, 6)).high)
    assert (median(range(1, 7)).low, median(range(1, 7)).high) == (1.0, 6.0)


def test_an_arms_interval_is_the_bootstraps():
    # The bootstrap's distribution of the median of 21 is known: it is the k-th of them or a smaller one with the
    # probability that a binomial of 21 and k/21 exceeds 10. Its ends are where that passes 2.5 % and 97.5 %.
    samples = np.arange(1.0, 22.0)
    found = bootstrapped_median(samples)
    assert found.estimate == 11.0
    chance = [float(binom.sf(10, 21, k / 21)) for k in range(22)]
    assert (found.low, found.high) == (
        next(k for k in range(22) if chance[k] >= 0.025), next(k for k in range(22) if chance[k] >= 0.975)
    )  # fmt: skip
    assert bootstrapped_median(samples) == found


def test_the_bootstrap_makes_no_interval_of_what_has_none():
    assert not np.isfinite(bootstrapped_median(range(1, 6)).high)
    same = bootstrapped_median([3.0] * 30)
    assert (same.low, same.estimate, same.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("of", [median, bootstrapped_median])
@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")]])
def test_samples_that_are_no_numbers_are_refused(samples, of):
    with pytest.raises(ValueError, match="sample"):
        of(samples)


def test_a_paired_ratio_ignores_what_moves_a_whole_round():
    rounds = np.linspace(1, 5, 41)
    found = paired_ratio(rounds * 1.25, rounds)
    assert found.interval.estimate == pytest.approx(1.25)
    assert found.interval.relative_half_width < 1e-12
    assert found.p_value < 1e-10


def test_a_ratio_and_its_inverse_agree():
    random = np.random.default_rng(0)
    a, b = random.lognormal(0, 0.1, 51), random.lognormal(0.05, 0.1, 51)
    there, back = paired_ratio(a, b).interval, paired_ratio(b, a).interval
    assert there.estimate == pytest.approx(1 / back.estimate)
    assert there.low == pytest.approx(1 / back.high)


@pytest.mark.parametrize(("a", "b"), [([1.0, 2.0], [1.0]), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_a_ratio_needs_pairs_of_positive_times(a, b):
    with pytest.raises(ValueError, match=r"differ in number|positive"):
        paired_ratio(a, b)


def test_holm_against_its_definition():
    # 0.01 <= 0.05/4, 0.012 <= 0.05/3, 0.03 > 0.05/2: there it stops, also for the 0.04 after it.
    assert holm([0.03, 0.01, 0.04, 0.012], 0.05) == [False, True, False, True]
    assert holm([], 0.05) == []


def test_verdicts():
    ratios = [ratio(0.9, 0.01, 1e-9), ratio(1.1, 0.01, 1e-9), ratio(1.001, 0.002, 0.5), ratio(1.02, 0.05, 0.4)]
    listed = verdicts([(each, None) for each in ratios], [0.01] * 4)
    assert listed == ["faster", "slower", "same", "not enough data"]


def test_an_interval_up_to_the_limits_is_the_same_and_one_that_contains_equality_is_no_difference():
    ratios = [ratio(1.0, 0.25, 1.0), ratio(1.0, 0.26, 1e-9), ratio(1.25, 0.25, 1e-9), ratio(0.75, 0.25, 1e-9)]
    assert verdicts([(each, None) for each in ratios], [0.25] * 4) == ["same", *["not enough data"] * 3]


def test_runs_that_agree_by_chance_make_no_difference_certain():
    """Two runs of the same samples have no spread between them; the rounds decide."""
    random = np.random.default_rng(6)
    arm, reference = 1.01 * random.lognormal(0, 0.2, 40), random.lognormal(0, 0.2, 40)
    of_rounds = paired_ratio(np.tile(arm, 2), np.tile(reference, 2))
    assert of_rounds.p_value > 0.05
    assert paired_ratio_of_runs([arm] * 2, [reference] * 2) == of_rounds


def test_a_difference_that_only_many_comparisons_make_likely_is_no_verdict():
    one = ratio(1.1, 0.05, 0.02), None
    assert verdicts([one], [0.01]) == ["slower"]
    assert verdicts([one] + [(ratio(1.1, 0.2, 0.6), None)] * 9, [0.01] * 10)[0] == "not enough data"


def test_outliers_are_those_far_out():
    assert np.flatnonzero(outliers([10, 11, 10, 12, 11, 10, 40, 11])).tolist() == [6]


def test_a_warm_up_ends_when_two_windows_agree():
    falling = np.linspace(20, 10, 15)
    assert not is_stationary(falling, 15)
    assert not is_stationary([*falling, *[9.0] * 15], 15)
    assert is_stationary([*falling, *[10.0, 10.1] * 15], 15)


def test_runs_without_common_rounds_are_compared_by_bootstrap():
    random = np.random.default_rng(0)
    before = [random.lognormal(0, 0.02, 60)]
    same = independent_ratio([random.lognormal(0, 0.02, 50)], before)
    slower = independent_ratio([1.1 * random.lognormal(0, 0.02, 50)], before)
    assert same.interval.low < 1 < same.interval.high
    assert same.p_value > 0.05
    assert slower.interval.low < 1.1 < slower.interval.high
    assert slower.p_value < 1e-6
    with pytest.raises(ValueError, match="two samples"):
        independent_ratio([[1.0]], before)


@pytest.mark.medium
def test_the_samples_of_many_runs_are_not_resampled_all_at_once(monkeypatch):
    bootstrap, held = scipy.stats.bootstrap, []

    def counting(data, statistic, *, n_resamples, batch=None, **options):
        held.append((batch or n_resamples) * max(map(len, data)))
        return bootstrap(data, statistic, n_resamples=20, batch=batch, **options)

    monkeypatch.setattr(scipy.stats, "bootstrap", counting)
    runs = np.random.default_rng(1).normal(1000, 10, (50, 2000))
    bootstrapped_median(runs.ravel())
    independent_ratio(runs, runs[:1])
    independent_ratio(runs[:1], runs)
    assert len(held) == 3
    assert max(held) <= 1 << 21
