"""Changes of many figures: false discovery rate, the power of a number of steps, and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("scipy")

from collector.statistics.changes import changes, discoveries, steps_suffice
from collector.statistics.verdicts import holm

P_VALUES = [0.001, 0.008, 0.039, 0.041, 0.27]


def test_the_procedure_of_benjamini_and_hochberg_on_the_worked_figures():
    assert discoveries(P_VALUES) == [True, True, False, False, False]
    assert [p <= 0.05 for p in P_VALUES] == [True, True, True, True, False]
    assert discoveries([]) == []


def test_it_shows_at_least_what_holm_shows():
    random = np.random.default_rng(1)
    for _ in range(50):
        p_values = (random.random(12) ** 3).tolist()
        assert all(loose >= strict for loose, strict in zip(discoveries(p_values), holm(p_values, 0.05), strict=True))


@pytest.mark.parametrize(
    ("steps", "least_p"),
    [(3, 0.10), (5, 0.008), (8, 1.6e-4)],
)
def test_what_so_many_steps_can_show(steps, least_p):
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(range(steps), range(100, 100 + steps), method="exact").pvalue
    assert found == pytest.approx(2 / math.comb(2 * steps, steps)) == pytest.approx(least_p, rel=0.05)


def test_two_hundred_figures_need_eight_steps_of_each_side_and_one_needs_four():
    assert [steps_suffice(n, n, 200) for n in range(9)] == [False] * 8 + [True]
    assert [steps_suffice(n, n) for n in range(5)] == [False] * 4 + [True]
    assert not steps_suffice(0, 100)


def test_thousands_of_steps_have_more_orders_than_a_float_holds():
    assert steps_suffice(2000, 3000, 200)
    assert not steps_suffice(2000, 3000, rate=0.0)


def of(*rows):
    return np.array(rows, np.int64)


def test_verdicts():
    jitter = np.arange(8)
    before = of(1000 + jitter, 1000 + jitter, 1000 + jitter, 3 + 0 * jitter, 0 * jitter, 500 + jitter, 1000 + jitter)
    now = of(1200 + jitter, 800 + jitter, 1001 + jitter, 9 + 0 * jitter, 400 + jitter, 0 * jitter, 1012 + jitter)
    found = changes(before, now, least=20)
    assert [each.verdict for each in found] == ["slower", "faster", "no change shown", "small", "new", "gone", "small"]
    assert found[0].ratio.low < 1.2 < found[0].ratio.high
    assert found[0].ratio.estimate == pytest.approx(1.199, abs=0.001)
    assert found[3].ratio is None
    assert math.isnan(found[3].p_value)


def test_three_steps_of_each_side_are_not_enough():
    (found,) = changes(of([1000, 1001, 1002]), of([5000, 5001, 5002]), least=1)
    assert (found.verdict, found.ratio) == ("not enough steps", None)


def test_a_figure_that_is_missing_in_some_steps_has_no_ratio_and_a_verdict():
    (found,) = changes(of([0, 0, 10, 0, 11, 0, 0, 0]), of([100, 90, 95, 97, 120, 99, 93, 98]), least=1)
    assert (found.verdict, found.ratio) == ("slower", None)


@pytest.mark.slow
def test_figures_that_do_not_change_are_seldom_said_to():
    random = np.random.default_rng(7)
    said = 0
    for _ in range(100):
        before, now = (np.exp(random.normal(7, 0.2, (20, 10))) for _ in range(2))
        said += any(each.verdict in ("slower", "faster") for each in changes(before, now, least=0))
    assert said <= 12  # 5 % of the comparisons on average


def test_no_figures():
    assert changes(np.zeros((0, 4)), np.zeros((0, 4)), least=1) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [((1287, 3077, 3820, 1919), (2305, 4986, 4025, 4904)), ((12, 0, 3, 5), (0, 7, 9, 4))],
    ids=["ratio of means", "rank test"],
)
def test_the_order_of_the_steps_does_not_matter(before, now):
    found = changes(of(before), of(now), least=0)
    assert repr(changes(of(before[::-1]), of(now), least=0)) == repr(found)
    assert repr(changes(of(before), of(now[::-1]), least=0)) == repr(found)
