"""The difference between the mean steps of two sides, compared with the tests of scipy whose assumptions hold."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy.stats import ttest_ind

from collector.statistics.step_differences import difference_of_steps, is_spread_assumed

RANDOM = np.random.default_rng(1)
MANY, FEW = RANDOM.normal(103, 2, 80), RANDOM.normal(100, 5, 6)
ALTERNATING = np.tile([99.0, 101.0], 40)


def single(steps):
    """Each step as a run of its own."""
    return np.split(steps, len(steps))


def expected(now, before, *, equal_var):
    found = ttest_ind(now, before, equal_var=equal_var)
    interval = found.confidence_interval(0.9)
    return pytest.approx((now.mean() - before.mean(), interval.low, interval.high, found.pvalue))


def test_steps_that_are_runs_of_their_own_have_the_interval_of_welch():
    found = difference_of_steps(single(MANY), single(FEW), (7.0, 9.0), 0.9)
    assert tuple(found) == expected(MANY, FEW, equal_var=False)


def test_steps_that_do_not_follow_each_other_have_the_interval_of_welch():
    found = difference_of_steps([ALTERNATING], [ALTERNATING + 1], (0.0, 0.0), 0.9)
    assert tuple(found) == expected(ALTERNATING, ALTERNATING + 1, equal_var=False)


def test_runs_of_equal_steps_have_the_interval_of_student():
    now, before = np.array([103.0, 99, 107]), np.array([100.0, 96, 98, 97])
    found = difference_of_steps([np.full(4, run) for run in now], [np.full(5, run) for run in before], (7.0, 9.0), 0.9)
    assert tuple(found) == expected(now, before, equal_var=True)


def test_steps_that_come_in_pairs_count_as_a_third():
    """Their correlation is a half."""
    pairs, still = np.repeat(MANY, 2), ALTERNATING / 100
    found = difference_of_steps([pairs], [still], (0.0, 0.0), 0.9)
    plain = ttest_ind(pairs, still, equal_var=False).confidence_interval(0.9)
    assert (found.high - found.low) / (plain.high - plain.low) == pytest.approx(3**0.5, rel=0.15)


def test_a_short_run_of_three_equal_steps_and_three_higher_ones_counts_as_two_steps():
    """Without its bias their correlation is 0.5 + (1 + 3 * 0.5) / 6."""
    found = difference_of_steps([np.array([1.0, 1, 1, 2, 2, 2])], [np.ones(6)], (0.0, 0.0), 0.9)
    variance, student = 0.3, 6.314  # of six steps; of one degree of freedom
    assert found.high - found.estimate == pytest.approx(student * (variance / 2) ** 0.5, rel=1e-3)


def test_the_spread_between_runs_is_assumed_where_each_side_has_one_run_of_several_steps():
    spread = difference_of_steps([ALTERNATING], [ALTERNATING], (3.0, 4.0), 0.9)
    assert spread.high == pytest.approx(1.645 * 5, rel=0.01)
    assert [is_spread_assumed(*runs) for runs in (([8], [1]), ([1], [1]), ([8], [8, 8]))] == [True, False, False]
