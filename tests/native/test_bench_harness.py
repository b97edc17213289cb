"""benchmarks/harness.py: what it makes of do_bench's answers, on a stand-in that answers as triton's does."""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import sys
import time

import pytest

pytest.importorskip("scipy")


@pytest.fixture
def harness(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "tests" / "gpu")
    spec = importlib.util.spec_from_file_location("benchmark_harness", root / "benchmarks" / "harness.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark_harness", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(harness):
    with harness.prepared(simulated=True) as made:
        yield made


def test_both_find_the_kernels_time(setup):
    call = setup.workloads["10 us"]
    for measure in (setup.ours, setup.do_bench, setup.do_bench_to_precision):
        assert measure(call) == pytest.approx(10_000, rel=0.01)


def test_do_bench_gets_more_time_until_it_is_precise_enough(harness, setup):
    budgets = []

    def do_bench(fn, rep, return_mode):
        assert return_mode == "all"
        budgets.append(rep)
        spread = 0.05 / math.sqrt(rep)
        return [1.0 + spread * (index % 5 - 2) for index in range(11)]

    found = harness.Bench(setup.gpu, {}, do_bench).do_bench_to_precision(lambda: None)
    assert found == pytest.approx(1e6, rel=0.01)
    assert budgets[:3] == [25, 50, 100]
    assert budgets == [25 * 2**index for index in range(len(budgets))]
    assert 0.05 / math.sqrt(budgets[-1]) <= harness.PRECISION


def test_do_bench_is_given_up_on_at_the_limit(harness, setup):
    budgets = []

    def never(fn, rep, return_mode):
        budgets.append(rep)
        return [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]

    harness.Bench(setup.gpu, {}, never).do_bench_to_precision(lambda: None)
    assert budgets[-1] > harness.LIMIT_MS >= budgets[-2]


def test_the_stand_in_takes_and_returns_what_tritons_does(setup):
    do_bench = setup.triton_do_bench
    call = setup.workloads["1 ms"]
    assert isinstance(do_bench(call, return_mode="all"), list)
    assert do_bench(call, return_mode="min") < do_bench(call, return_mode="max")
    with pytest.raises(AssertionError):
        do_bench(call, return_mode="nonsense")
    testing = pytest.importorskip("triton.testing")
    assert list(inspect.signature(do_bench).parameters) == list(inspect.signature(testing.do_bench).parameters)


def test_a_row_has_the_ratios(harness):
    result = {"medians_ns": {"ours": [10_000, 10_100], "do_bench": [10_000, 10_200]},
              "wall_s": {"ours": [0.5], "do_bench": [1.0]}}  # fmt: skip
    row = harness.line("k", result)
    assert row == "| k | 2 | 10.05 | 10.10 | 0.704% | 1.400% | 0.50 | 0.500 | 1.000 | 0.50 |"


def test_out_of_time_there_are_two_runs_and_one_wall_time(harness, setup):
    found = harness.measured(setup, setup.workloads["10 us"], 20, deadline=time.monotonic() - 1)
    assert [len(values) for values in found["medians_ns"].values()] == [2, 2]
    assert [len(values) for values in found["wall_s"].values()] == [1, 1]


def test_it_prints_and_stores_every_workload(harness, monkeypatch, capsys, tmp_path):
    path = tmp_path / "h.json"
    monkeypatch.setattr(
        sys, "argv", ["harness.py", "--simulated", "--runs", "2", "--seconds", "0.1", "--json", str(path)]
    )
    assert harness.main() == 0
    assert capsys.readouterr().out.count("| 2 |") == 2
    assert set(json.loads(path.read_text())) == {"10 us", "1 ms"}


def test_without_torch_it_says_so(harness, monkeypatch, capsys):
    monkeypatch.setattr(harness, "missing", lambda: ["torch", "triton"])
    monkeypatch.setattr(sys, "argv", ["harness.py"])
    assert harness.main() == 0
    assert capsys.readouterr().out == "not run: needs torch, triton\n"
