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
def test_the_least_p_that_a_number_of_steps_can_show(steps, least_p):
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


def test_a_figure_of_no_time_on_both_sides_is_neither_new_nor_gone():
    nothing, something = np.zeros(8, np.int64), np.full(8, 500)
    for least in (0, 20):
        found = changes(of(nothing, nothing, something), of(nothing, something, nothing), least=least)
        assert [each.verdict for each in found] == ["small", "new", "gone"]


def test_three_steps_of_each_side_are_not_enough():
    (found,) = changes(of([1000, 1001, 1002]), of([5000, 5001, 5002]), least=1)
    assert (found.verdict, found.ratio) == ("not enough steps", None)


def test_a_figure_that_is_missing_in_some_steps_has_no_ratio_and_a_verdict():
    (found,) = changes(of([0, 0, 10, 0, 11, 0, 0, 0]), of([100, 90, 95, 97, 120, 99, 93, 98]), least=1)
    assert (found.verdict, found.ratio) == ("slower", None)


def test_a_figure_that_is_missing_in_a_step_of_one_run_changes_by_more_than_runs_may_differ():
    """Runs are assumed to differ by 1 % of their means: by 2.8 % of two, with the errors of the means of 0.25 % each.

    If only one side differed, 2.1 % were enough.
    """
    before = 10_000 + np.arange(400) % 7
    before[100] = 0
    runs = ([400], [400])
    for factor, verdict in ((1.025, "no change shown"), (1.05, "slower"), (0.975, "no change shown"), (0.95, "faster")):
        (found,) = changes(of(before), of(np.round(before * factor)), least=1, runs=runs)
        assert (found.verdict, found.ratio) == (verdict, None)


def share_shown(before, now, runs=None):
    """The share of figures that are called changed, each by a comparison of its own."""
    single = [changes(a[None], b[None], least=0, runs=runs)[0] for a, b in zip(before, now, strict=True)]
    return sum(each.verdict in ("slower", "faster") for each in single) / len(single)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "now"),
    [((100, 0.01), (5, 0.05)), ((5, 0.05), (100, 0.01)), ((100, 0.05), (5, 0.01)), ((50, 0.02), (1, 0.02))],
)
def test_sides_of_different_numbers_and_spreads_have_the_error_rate(before, now):
    random = np.random.default_rng(4)
    sides = [1e6 * np.exp(random.normal(0, spread, (800, steps))) for steps, spread in (before, now)]
    assert 0.02 < share_shown(*sides) < 0.08


def steps_of_runs(random, count, run_spread, *runs, correlation=0.0, spread=0.02):
    """Steps of some comparisons, run after run, whose noise is correlated from step to step."""
    found = []
    for steps in runs:
        noise = random.normal(0, spread, (count, steps))
        for step in range(1, steps):
            noise[:, step] = correlation * noise[:, step - 1] + noise[:, step] * math.sqrt(1 - correlation**2)
        found.append(noise + random.normal(0, run_spread, (count, 1)))
    return 1e6 * np.exp(np.hstack(found))


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("runs", [(50,), (50, 50, 50), (10, 10, 10, 10)])
def test_runs_that_differ_and_steps_that_follow_each_other_have_the_error_rate(runs, correlation):
    random = np.random.default_rng(5)
    sides = [steps_of_runs(random, 400, 0.01, *runs, correlation=correlation) for _ in range(2)]
    assert share_shown(*sides, (runs, runs)) < 0.085
    assert share_shown(sides[0], 1.2 * sides[1], (runs, runs)) > 0.95


def test_one_recording_of_each_side_shows_no_change_within_the_spread_between_runs():
    steps = 1_000_000 + np.arange(50) % 7
    (found,) = changes(of(steps), of(steps + 20_000), least=1, runs=([50], [50]))
    assert (found.verdict, round(found.ratio.low, 3), round(found.ratio.high, 3)) == ("no change shown", 0.992, 1.049)
    assert changes(of(steps), of(steps + 20_000), least=1)[0].verdict == "slower"
    assert changes(of(steps), of(steps + 60_000), least=1, runs=([50], [50]))[0].verdict == "slower"


def test_a_figure_that_is_missing_in_some_steps_of_one_recording_has_the_spread_between_runs():
    before, now = (np.append(0, 1_000_000 + np.arange(49) % 7 + more) for more in (0, 20_000))
    assert changes(of(before), of(now), least=1, runs=([50], [50]))[0].verdict == "no change shown"


def test_a_single_step_has_the_spread_of_the_other_side():
    (found,) = changes(of(1000 + np.arange(50)), of([1025]), least=1)
    assert found.verdict == "no change shown"
    assert found.ratio.low < 0.98 < 1.02 < found.ratio.high
    (found,) = changes(of(1000 + np.arange(50)), of([2025]), least=1)
    assert found.verdict == "slower"


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
