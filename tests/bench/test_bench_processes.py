"""Programs as arms: each started anew in every round, and compared by what they report."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest

pytest.importorskip("scipy")

from collector import bench
from collector.bench.benchmark_report import Report


def program(text, **environment):
    return bench.Process([sys.executable, "-c", text], environment)


def says(**figures):
    return program(f"print('noise'); print({json.dumps(json.dumps(figures))})")


def test_each_figure_is_a_comparison_and_what_cannot_run_says_why(tmp_path):
    arms = {
        "none": says(launch=1_000.0, peak=4e6, **{"launch: p99": 17}),
        "ours": says(launch=1_500.0, peak="it holds everything on the device"),
        "theirs": bench.Missing("torch is not installed"),
    }
    report = bench.compare_processes(arms, {"launch": "ns", "peak": "bytes"}, name="cost", rounds=2, seed=3)
    launch, peak = report.comparisons
    assert (launch.title, launch.unit, peak.title, peak.unit) == ("cost: launch", "ns", "cost: peak", "bytes")
    assert list(launch.arms["ours"].times_ns) == [1_500.0, 1_500.0]
    assert launch.ratios["ours"].interval.estimate == pytest.approx(1.5)
    assert dict(launch.arms["none"].facts) == {"p99": 17}
    assert dict(launch.failures) == {"theirs": "arm 'theirs': torch is not installed"}
    assert peak.failures["ours"] == "arm 'ours': it holds everything on the device"
    report.save(tmp_path / "r.json")
    text = str(Report.load(tmp_path / "r.json"))
    for phrase in ("torch is not installed", "4 MB", "1.5 µs", "2 rounds, each arm in a new process", "seed 3", "p99"):
        assert phrase in text
    assert report.environment["python"]


@pytest.mark.medium
def test_every_round_starts_every_program_anew_in_an_order_of_its_own(tmp_path):
    log = tmp_path / "log"
    text = f"import os; open({str(log)!r}, 'a').write(os.environ['ARM']); print('{{\"pid\": %d}}' % os.getpid())"
    arms = {name: program(text, ARM=name) for name in "abcd"}
    report = bench.compare_processes(arms, {"pid": "1"}, rounds=4, seed=1)
    rounds = [log.read_text()[index : index + 4] for index in range(0, 16, 4)]
    assert all(sorted(each) == list("abcd") for each in rounds)
    assert len(set(rounds)) > 1
    pids = [pid for arm in report.comparison.arms.values() for pid in arm.times_ns]
    assert len(set(pids)) == 16
    log.unlink()
    bench.compare_processes(arms, {"pid": "1"}, rounds=4, seed=1)
    assert log.read_text() == "".join(rounds)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (program("import sys; sys.exit('no driver here')"), "it ended with status 1: no driver here"),
        (program("import os; os.abort()"), "it ended with signal 6"),
        pytest.param(
            program("import time; print('begun', flush=True); time.sleep(10_000)"),
            "longer than 20 s",
            marks=pytest.mark.slow,
        ),
        (program("print('hello')"), "is not a JSON object: 'hello'"),
        (program("print('[1]')"), "is not a JSON object: '[1]'"),
        (program("pass"), "is not a JSON object: ''"),
        (bench.Process(["/no/such/program"]), "cannot be started"),
        (says(other=1.0), "does not report this"),
        (says(cost=-1.0), "not all positive numbers"),
        (says(cost=float("nan")), "not all positive numbers"),
    ],
    ids=["status", "signal", "endless", "words", "list", "silent", "missing", "other", "negative", "nan"],
)
def test_a_program_that_fails_is_named_and_the_others_are_compared(bad, message):
    arms = {"good": says(cost=2.0), "bad": bad, "better": says(cost=1.0)}
    comparison = bench.compare_processes(arms, {"cost": "s"}, rounds=2, timeout=20).comparison
    assert set(comparison.arms) == {"good", "better"}
    assert comparison.failures["bad"].startswith("arm 'bad': ")
    assert message in comparison.failures["bad"]


def test_an_arm_that_fails_only_later_is_out_and_the_first_that_works_is_the_reference(tmp_path):
    once = tmp_path / "once"
    text = (
        f"import pathlib, sys; once = pathlib.Path({str(once)!r}); once.exists() and sys.exit('again');"
        "once.touch(); print('{\"t\": 1}')"
    )
    report = bench.compare_processes({"first": program(text), "second": says(t=3)}, {"t": "ns"}, rounds=3)
    assert report.comparison.reference == "second"
    assert len(report.comparison.arms["second"].times_ns) == 3
    assert "again" in report.comparison.failures["first"]


@pytest.mark.medium
def test_no_further_round_begins_when_the_time_would_be_exceeded():
    reports = []
    report = bench.compare_processes(
        {"slow": program("import time; time.sleep(0.3); print('{\"t\": 1}')")},
        {"t": "ns"}, rounds=50, max_seconds=0.5, progress=lambda rounds, report: reports.append((rounds, str(report))),
    )  # fmt: skip
    assert report.comparison.rounds == len(report.comparison.arms["slow"].times_ns) == 1
    assert report.comparison.stopped_by == "time"
    assert report.comparison.warnings == ["one round only: nothing is known of how rounds differ"]
    assert [rounds for rounds, _ in reports] == [1]
    assert re.search(r"slow +1 ns +unknown", reports[0][1])


@pytest.mark.medium
def test_the_first_round_is_in_the_given_order_and_ends_when_the_time_is_up():
    report = bench.compare_processes(
        {"a": says(t=2.0), "slow": program("import time; time.sleep(0.6); print('{\"t\": 1}')"), "late": says(t=3.0)},
        {"t": "ns"}, max_seconds=0.5,
    )  # fmt: skip
    assert list(report.comparison.arms) == ["a", "slow"]
    assert report.comparison.stopped_by == "time"
    assert "no time was left: the arms before it took 0.5 s" in report.comparison.failures["late"]


@pytest.mark.medium
def test_a_process_of_another_session_that_holds_the_pipes_is_not_waited_for(tmp_path):
    child = "import time; time.sleep(3600)"
    text = (
        f"import pathlib, subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {child!r}], "
        f"start_new_session=True); pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))"
    )
    try:
        with pytest.raises(bench.BenchmarkError, match="longer than 2 s"):
            bench.compare_processes({"a": program(text)}, {"t": "ns"}, rounds=1, timeout=2)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.medium
def test_the_error_of_a_time_limit_begins_with_the_innermost_function():
    text = (
        "import faulthandler, time\nfaulthandler.dump_traceback_later(0.3)\n"
        + "".join(f"def f{n}(): f{n - 1}()\n" for n in range(1, 30))
        + "def f0(): time.sleep(60)\nf29()"
    )
    with pytest.raises(bench.BenchmarkError, match=r"longer than 2 s.* in f0"):
        bench.compare_processes({"a": program(text)}, {"t": "ns"}, rounds=1, timeout=2)


def test_the_report_of_each_program_is_passed_on_when_it_has_ended():
    told = []
    bench.compare_processes(
        {"good": says(t=2.0, u=5), "bad": program("raise SystemExit('no luck')")}, {"t": "ns"}, rounds=1,
        program_done=lambda arm, seconds, found: told.append((arm, seconds > 0, found)),
    )  # fmt: skip
    assert told[0] == ("good", True, {"t": 2.0, "u": 5})
    assert told[1][:2] == ("bad", True)
    assert isinstance(told[1][2], bench.ArmError)
    assert "no luck" in str(told[1][2])


def test_with_nothing_to_compare_there_is_an_error():
    with pytest.raises(bench.BenchmarkError, match=r"no arm could be measured.*not here"):
        bench.compare_processes({"a": bench.Missing("not here")}, {"t": "ns"})
    with pytest.raises(bench.BenchmarkError, match="no arm reports any of: t"):
        bench.compare_processes({"a": says(u=1.0)}, {"t": "ns"}, rounds=1)
    for options in ({"rounds": 0}, {"max_seconds": 0}, {"timeout": -1}):
        with pytest.raises(ValueError, match="must be positive"):
            bench.compare_processes({"a": says(t=1.0)}, {"t": "ns"}, **options)
    with pytest.raises(ValueError, match="nothing to compare"):
        bench.compare_processes({}, {"t": "ns"})


def test_reports_of_processes_serve_as_baselines_with_each_process_as_a_run():
    def report(*times):
        from collector.bench.benchmark_report import Arm, Comparison

        design = {"clock": "reported", "same_within": 0.02, "seed": 1}
        comparison = Comparison(arms={"a": Arm(times_ns=list(times))}, reference="a", design=design)
        return Report([comparison], {"gpu_uuid": "GPU-1"})

    before = report(100, 103, 98)
    (same,), notes = bench.regressions(report(101, 99, 102), before)
    assert (same.failed, notes) == (False, [])
    assert bench.regressions(report(121, 119, 124), before)[0][0].failed
