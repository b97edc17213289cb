"""Several runs of one benchmark, joined into a report whose intervals include the differences between runs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from collector import bench
from collector.bench.benchmark_report import Arm, Comparison, Report, runs_joined
from collector.statistics.verdicts import (
    ASSUMED_RUN_SPREAD,
    holm,
    independent_ratio,
    independent_ratio_of_means,
    mean_interval,
    mean_ratio,
    paired_ratio,
    paired_ratio_of_runs,
    ratio_of_means_of_runs,
)

DESIGN = {"clock": "cupti", "cache": "cold", "graph_calls": 0, "precision": 0.005, "seed": 7, "same_within": 0.01}


def run(random, mean=10_000.0, spread=0.01, rounds=20, run_spread=0.0):
    """The samples of one run, all of them slower or faster by what is the run's own."""
    return mean * np.exp(random.normal(0, run_spread)) * random.lognormal(0, spread, rounds)


def report(a, b, **more):
    comparison = Comparison(
        arms={"a": Arm(times_ns=a.tolist(), kernel_ns={"k": a.tolist()}), "b": Arm(times_ns=b.tolist())},
        reference="a", name="saxpy", design=DESIGN, rounds=len(a), stopped_by="precision", seconds=1.0,
        **more,
    )  # fmt: skip
    return Report([comparison], {"gpu": "Card", "gpu_uuid": "GPU-1", "simulated": False})


def test_runs_become_one_report_that_knows_which_rounds_are_whose(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    random = np.random.default_rng(0)
    runs = [report(run(random, rounds=rounds), run(random, rounds=rounds)) for rounds in (30, 40, 35)]
    both = runs_joined(runs)
    both.save(tmp_path / "r.json")
    found = Report.load(tmp_path / "r.json").comparison
    assert list(found.run_rounds) == [30, 40, 35]
    assert found.rounds == 105
    assert [list(each) for each in found.runs("b")] == [list(each.comparison.arms["b"].times_ns) for each in runs]
    assert len(found.arms["a"].kernel_ns["k"]) == 105
    again = runs_joined([both, runs[0]]).comparison
    assert list(again.run_rounds) == [30, 40, 35, 30]
    assert "105 rounds in 3 runs" in str(both)


def test_an_arm_that_one_run_lacks_is_a_failure_and_the_others_stay():
    random = np.random.default_rng(0)
    whole = report(run(random), run(random))
    (comparison,) = whole.comparisons
    del (arms := dict(comparison.arms))["a"]
    half = Report(
        [Comparison(arms=arms, reference="b", name="saxpy", design=DESIGN, failures={"a": "arm 'a': it broke"})],
        whole.environment,
    )
    found = runs_joined([whole, half]).comparison
    assert (list(found.arms), found.reference) == (["b"], "b")
    assert dict(found.failures) == {"a": "arm 'a': it broke"}
    assert sum(found.run_rounds) == 40


def test_runs_that_were_measured_differently_or_elsewhere_are_not_joined():
    random = np.random.default_rng(0)
    one = report(run(random), run(random))
    hot = Report(
        [Comparison(arms=one.comparison.arms, reference="a", name="saxpy", design={**DESIGN, "cache": "hot"})],
        one.environment,
    )
    with pytest.raises(bench.BenchmarkError, match="runs differ in cache: cold and hot"):
        runs_joined([one, hot])
    with pytest.raises(bench.BenchmarkError, match="different cards"):
        runs_joined([one, Report(one.comparisons, {**one.environment, "gpu_uuid": "GPU-2"})])


@pytest.mark.slow
@pytest.mark.parametrize(("now", "before"), [(3, 3), pytest.param(1, 5, marks=pytest.mark.exhaustive)])
def test_what_differs_from_run_to_run_is_called_a_change_no_more_often_than_stated(now, before):
    random = np.random.default_rng(5)
    wrong = held = 0
    for _ in range(200):
        sides = [[run(random, run_spread=0.03) for _ in range(count)] for count in (now, before)]
        found = independent_ratio(*sides)
        wrong += holm([found.p_value], 0.05)[0] and found.interval.low > 1
        held += found.interval.low <= 1 <= found.interval.high
    assert held >= 186
    assert wrong <= 10


def test_without_the_runs_the_same_drift_would_be_called_a_change():
    random = np.random.default_rng(5)
    sides = [[run(random, run_spread=0.03) for _ in range(3)] for _ in range(2)]
    pooled = [[np.concatenate(side)] for side in sides]
    spread = independent_ratio(*sides).interval
    assert spread.relative_half_width > 3 * ASSUMED_RUN_SPREAD
    assert spread.relative_half_width > independent_ratio(*pooled).interval.relative_half_width


@pytest.mark.slow
def test_a_real_change_is_seen_through_the_differences_between_runs():
    random = np.random.default_rng(6)
    held = seen = 0
    for _ in range(200):
        before = [run(random, run_spread=0.01) for _ in range(4)]
        found = independent_ratio([run(random, mean=11_000, run_spread=0.01) for _ in range(4)], before)
        held += found.interval.low <= 1.1 <= found.interval.high
        seen += found.p_value < 0.05 and found.interval.low > 1
    assert held >= 184  # 185; of 800 others 95.0 %
    assert seen >= 194


@pytest.mark.slow
def test_one_run_on_each_side_is_taken_to_differ_as_runs_do():
    random = np.random.default_rng(7)
    wrong = sum(
        independent_ratio([run(random, run_spread=ASSUMED_RUN_SPREAD)], [run(random, run_spread=ASSUMED_RUN_SPREAD)])
        .interval.low > 1
        for _ in range(200)
    )  # fmt: skip
    assert wrong <= 10
    assert independent_ratio([run(random)], [run(random, 8_000)]).interval.low > 1.2


@pytest.mark.slow
def test_arms_that_runs_place_differently_have_a_ratio_as_wide_as_that():
    random = np.random.default_rng(8)
    held = pooled_held = 0
    for _ in range(200):
        shared = [random.lognormal(0, 0.05) for _ in range(3)]
        a = [run(random) * each for each in shared]
        b = [run(random, run_spread=0.02) * each for each in shared]
        found = paired_ratio_of_runs(b, a).interval
        held += found.low <= 1 <= found.high
        pooled = paired_ratio(np.concatenate(b), np.concatenate(a)).interval
        pooled_held += pooled.low <= 1 <= pooled.high
    assert held >= 186
    assert pooled_held < 120


UNEVEN = (1000, 30, 30, 30, 30)


@pytest.mark.parametrize("runs", [[0.0, 0.01, 0.02, 0.03, 0.04], [0.04, 0.0, 0.01, 0.02, 0.03]])
def test_a_long_run_counts_as_much_as_a_short_one_where_runs_decide(runs):
    times = [np.full(rounds, 100 * np.exp(effect)) for rounds, effect in zip(UNEVEN, runs, strict=True)]
    reference = [np.full(rounds, 100.0) for rounds in UNEVEN]
    # t(0.975, 4) = 2.7764 of logarithms with a mean of 0.02 and a standard error of sqrt(0.00025 / 5).
    reach = 2.776445 * 0.00005**0.5
    for of_runs in (paired_ratio_of_runs, ratio_of_means_of_runs):
        found = of_runs(times, reference)
        assert np.log([found.interval.estimate, found.interval.low, found.interval.high]) == pytest.approx(
            [0.02, 0.02 - reach, 0.02 + reach], abs=1e-6
        )
        assert found.p_value == pytest.approx(0.04742, abs=1e-4)
        assert found.rounds == 1120


@pytest.mark.slow
@pytest.mark.parametrize("of_runs", [paired_ratio_of_runs, ratio_of_means_of_runs, independent_ratio_of_means])
def test_the_interval_of_runs_of_different_lengths_holds_the_truth_as_often_as_stated(of_runs):
    random = np.random.default_rng(10)
    held = wrong = 0
    for _ in range(400):
        sides = [[run(random, rounds=rounds, run_spread=0.02) for rounds in UNEVEN] for _ in range(2)]
        found = of_runs(*sides)
        held += found.interval.low <= 1 <= found.interval.high
        wrong += found.p_value < 0.05
    assert held >= 372  # 93 %, as above
    assert wrong <= 28


@pytest.mark.exhaustive
def test_the_interval_to_a_baseline_of_runs_of_different_lengths_holds_the_truth():
    random = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        sides = [[run(random, rounds=rounds, run_spread=0.02) for rounds in (150, 15, 15, 15)] for _ in range(2)]
        found = independent_ratio(*sides).interval
        held += found.low <= 1 <= found.high
    assert held >= 186


@pytest.mark.slow
@pytest.mark.parametrize("run_spread", [0.0, 0.002, 0.02])
def test_the_ratio_interval_and_p_value_of_runs_agree(run_spread):
    random = np.random.default_rng(12)
    for _ in range(100):
        sides = [[run(random, rounds=rounds, run_spread=run_spread) for rounds in UNEVEN] for _ in range(2)]
        for of_runs in (paired_ratio_of_runs, ratio_of_means_of_runs, independent_ratio_of_means):
            found = of_runs(*sides)
            assert found.interval.low <= found.interval.estimate <= found.interval.high
            if found.p_value < 0.05:
                assert not found.interval.low <= 1 <= found.interval.high


def test_one_run_is_what_it_was():
    random = np.random.default_rng(9)
    a, b = run(random), run(random)
    assert paired_ratio_of_runs([b], [a]) == paired_ratio(b, a)


def test_means_of_what_processes_report():
    # t(0.975, 2) = 4.3027 of the logarithms 0, 0.01, 0.02 with a standard error of 0.01 / sqrt(3).
    found = mean_interval(np.exp([0.0, 0.01, 0.02]))
    reach = 4.302653 * 0.01 / 3**0.5
    assert found.estimate == pytest.approx(np.exp(0.01))
    assert (found.low, found.high) == pytest.approx((np.exp(0.01 - reach), np.exp(0.01 + reach)))
    assert not np.isfinite(mean_interval([3.0]).high)
    assert mean_interval([3.0, 3.0]).relative_half_width == 0
    assert mean_ratio([2.0, 2.0], [1.0, 1.0]).p_value == 0
    assert mean_ratio([2.0, 2.0], [2.0, 2.0]).p_value == 1
    assert mean_ratio([2.0], [1.0]).p_value == 1
    with pytest.raises(ValueError, match="positive"):
        mean_interval([1.0, 0.0])
