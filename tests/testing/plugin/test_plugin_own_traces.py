"""Tests that trace themselves: the plugin counts their work too, or says that it could not."""

import pytest
from plugin_runs import report_of, run

pytestmark = [pytest.mark.simulator, pytest.mark.medium]

pytest_plugins = ["pytester"]

HEAD = """
import collector, pytest

def work(gpu, count=1):
    gpu.launch("sgemm", duration_ns=12_000, count=count)
    gpu.synchronize()

"""

OVER_ITS_LIMIT = {
    "in a warm-up": """
@pytest.mark.gpu_limits(kernels=3)
def test_limit(simulated_gpu):
    with collector.trace(schedule=collector.schedule(wait=1, warmup=1, active=1), strict=True) as session:
        for _ in range(4):
            work(simulated_gpu)
            session.step()
""",
    "in a step of a recorder": """
@pytest.mark.gpu_limits(kernels=2)
def test_limit(simulated_gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        work(simulated_gpu)
        with collector.trace(strict=True) as step:
            work(simulated_gpu)
        assert len(step.kernels) == 1
        work(simulated_gpu)
        assert len(collector.load(recorder.dump().path).kernels) == 3
""",
}

NOT_COUNTED = {
    "discarded its warm-up": """
@pytest.mark.gpu_limits(kernels=9)
def test_limit(simulated_gpu):
    with collector.trace(schedule=collector.schedule(warmup=3, active=1)) as session:
        work(simulated_gpu)
        session.step()
        work(simulated_gpu)
""",
    "discarded its warm-up ": """
@pytest.mark.gpu_limits(kernels=9)
def test_limit(simulated_gpu, tmp_path):
    with collector.record(folder=tmp_path):
        with collector.trace(schedule=collector.schedule(warmup=1, active=1), strict=True) as session:
            for _ in range(2):
                work(simulated_gpu)
                session.step()
""",
    "recorded nothing: *": """
@pytest.mark.filterwarnings("ignore")
@pytest.mark.gpu_limits(kernels=9)
def test_limit(simulated_gpu):
    simulated_gpu.inject("error", target="cuptiSubscribe", value=39)
    with collector.trace() as step:
        work(simulated_gpu)
    assert step.unavailable
""",
}


@pytest.mark.parametrize("source", OVER_ITS_LIMIT.values(), ids=OVER_ITS_LIMIT)
def test_work_in_a_recording_of_the_test_counts(pytester, source):
    result = run(pytester, HEAD + source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["GPU limits exceeded in the call of *test_limit"])


@pytest.mark.parametrize("loss", NOT_COUNTED)
def test_a_limit_is_not_judged_without_the_work_that_no_recording_has(pytester, loss):
    result = run(pytester, HEAD + NOT_COUNTED[loss])
    result.assert_outcomes(passed=1, errors=1)
    line = f"GPU limits were not judged*incomplete*a trace that the test made itself {loss.strip()}"
    result.stdout.fnmatch_lines([line])


def test_a_leak_in_a_warm_up_is_found(pytester):
    source = """
@pytest.mark.gpu_leaks
def test_leak(simulated_gpu):
    with collector.trace(schedule=collector.schedule(warmup=1, active=1), strict=True) as session:
        simulated_gpu.malloc(4096)
        session.step()
        work(simulated_gpu)
        session.step()
"""
    run(pytester, HEAD + source).assert_outcomes(passed=1, errors=1)


def test_what_follows_the_last_step_of_a_schedule_counts_once(pytester):
    source = """
def test_waits(simulated_gpu):
    with collector.trace(schedule=collector.schedule(active=1), strict=True) as session:
        simulated_gpu.launch("sgemm")
        session.step()
        simulated_gpu.synchronize()
    assert len(session.kernels) == 1
"""
    run(pytester, HEAD + source, "--gpu-report=out.json").assert_outcomes(passed=1)
    _, tests = report_of(pytester)
    figures = tests["test_waits"]["phases"]["call"]["figures"]
    assert (figures["kernels"], figures["synchronizations"]) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--gpu-trace",)], ids=["alone", "traced"])
def test_recorders_work_in_traced_tests(pytester, options):
    source = """
def test_recorder(simulated_gpu, tmp_path):
    with collector.record(folder=tmp_path, strict=True) as recorder:
        work(simulated_gpu, 2)
        dump = recorder.dump()
    assert len(collector.load(dump.path).kernels) == 2
    work(simulated_gpu)

def test_next(simulated_gpu):
    work(simulated_gpu)
"""
    run(pytester, HEAD + source, *options, "--gpu-report=out.json").assert_outcomes(passed=2)
    _, tests = report_of(pytester)
    kernels = [tests[name]["phases"]["call"]["kernels"] for name in ("test_recorder", "test_next")]
    assert [sum(each["count"] for each in of_test) for of_test in kernels] == [3, 1]


def test_a_report_alone_counts_the_work(pytester):
    source = "def test_work(simulated_gpu):\n    work(simulated_gpu, 5)\n"
    run(pytester, HEAD + source, "--gpu-report=out.json").assert_outcomes(passed=1)
    report, tests = report_of(pytester)
    assert tests["test_work"]["phases"]["call"]["kernels"][0]["count"] == report["totals"]["kernels"] == 5
