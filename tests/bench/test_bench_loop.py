"""Calls that are shorter than the host's clock resolves, on a clock and calls of known duration."""

from __future__ import annotations

import time

import pytest

import collector
from collector import bench
from collector.bench import experiment

pytest.importorskip("scipy")


class Clock:
    """A clock that moves in steps, and only while something takes time."""

    def __init__(self, step_ns):
        self.step_ns = step_ns
        self.exact_ns = 0.0

    def __call__(self):
        self.exact_ns += 15.0  # what a reading takes
        return int(self.exact_ns // self.step_ns) * self.step_ns

    def call(self, taking_ns):
        def work():
            self.exact_ns += taking_ns
            work.calls += 1

        work.calls = 0
        return work


@pytest.fixture(params=["wall", "cpu"])
def clock(request, monkeypatch):
    made = Clock(100)
    made.name = request.param
    monkeypatch.setattr(time, experiment._HOST_CLOCKS[made.name], made)
    return made


def test_calls_shorter_than_a_step_are_timed_many_at_once(clock):
    arms = {"30 ns": clock.call(30.0), "36 ns": clock.call(36.0), "1 ms": clock.call(1e6)}
    comparison = bench.compare(arms, gpu=bench.Host(), clock=clock.name, max_rounds=60, seed=1).comparison
    assert comparison.clock_step_ns == 100
    for name, true_ns in (("30 ns", 30), ("36 ns", 36), ("1 ms", 1e6)):
        arm = comparison.arms[name]
        assert arm.median_ns.estimate == pytest.approx(true_ns, rel=0.003)
        assert arm.calls_per_sample == 1 if true_ns == 1e6 else arm.calls_per_sample * true_ns >= 100_000
    assert comparison.ratios["36 ns"].interval.estimate == pytest.approx(1.2, rel=0.003)
    assert comparison.modes("30 ns") is None
    assert f"up to {comparison.arms['30 ns'].calls_per_sample} calls in a sample" in str(bench.Report([comparison], {}))


def test_calls_that_the_clock_resolves_are_made_once_in_a_sample(clock):
    call = clock.call(15_000.0)
    comparison = bench.compare({"call": call}, gpu=bench.Host(), clock=clock.name, max_rounds=60).comparison
    assert comparison.arms["call"].calls_per_sample == 1
    samples = comparison.warm_up_rounds + comparison.rounds
    assert call.calls <= 2 * samples + 10  # one more each to fill the cache, and some before


@pytest.mark.medium
def test_a_long_call_is_made_once_to_calibrate():
    calls = []

    def waiting():
        calls.append(0.0)
        time.sleep(0.15)

    for clock in experiment._HOST_CLOCKS:
        one = experiment._Experiment({"call": waiting}, experiment.Design(clock=clock), bench.Host(), None, None)
        assert one.calls_per_sample(waiting, one.host_clock) == 1
    assert len(calls) == 2


def test_a_call_that_waits_is_not_repeated_until_it_has_taken_processor_time():
    one = experiment._Experiment({}, experiment.Design(clock="cpu"), bench.Host(), None, None)
    one.clock_step_ns = 1e9
    assert one.calls_per_sample(lambda: time.sleep(0.03), time.process_time_ns) == 1


def test_on_a_gpu_every_call_of_a_sample_is_waited_for_and_the_cache_is_only_empty_once(monkeypatch):
    made = Clock(100)
    monkeypatch.setattr(time, "perf_counter_ns", made)
    with bench.SimulatedCard() as card:
        waits = made.call(20.0)
        monkeypatch.setattr(card, "synchronize", waits)
        comparison = bench.compare({"call": made.call(30.0)}, gpu=card, clock="wall", max_rounds=60).comparison
    assert comparison.arms["call"].median_ns.estimate == pytest.approx(50, rel=0.003)
    assert "call: only the first call of each sample finds the cache empty" in comparison.warnings


@pytest.mark.simulator
@pytest.mark.medium
def test_a_trace_around_the_measurement_is_in_the_times_of_the_host_and_excludes_those_of_cupti():
    arms = {"call": lambda: 100}
    with bench.SimulatedCard() as card:
        alone = bench.compare(arms, gpu=card, clock="returned", max_rounds=30).comparison
        with collector.trace():
            traced = bench.compare(arms, gpu=card, clock="returned", max_rounds=30).comparison
            with pytest.raises(collector.SessionActiveError, match="End it first"):
                bench.compare({"kernel": lambda: card.gpu.launch("a")}, gpu=card, max_rounds=30)
    warning = "a trace was open: the times include the cost of tracing"
    assert (warning in alone.warnings, warning in traced.warnings) == (False, True)


def test_the_hosts_clocks_have_a_step():
    for clock in experiment._HOST_CLOCKS.values():
        assert 0 < experiment._step_ns(getattr(time, clock)) < 1e9
    assert experiment._step_ns(lambda: 5) == 1.0


def test_runs_that_were_calibrated_differently_are_joined(tmp_path):
    from collector.bench.benchmark_report import Arm, Comparison, Report, runs_joined

    design = {"clock": "wall", "cache": "cold", "graph_calls": 0, "precision": 0.005, "seed": 7}
    reports = [
        Report([Comparison({"a": Arm([30.0] * 30, calls_per_sample=count)}, "a", design=design)], {})
        for count in (1000, 900)
    ]
    runs_joined(reports).save(tmp_path / "r.json")
    assert Report.load(tmp_path / "r.json").comparison.arms["a"].calls_per_sample == 900
