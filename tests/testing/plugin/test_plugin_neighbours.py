"""The plugin beside others that use the GPU or share it out: benchmarks, PyTorch's profiler, sessions, workers."""

import json

import pytest
from plugin_runs import report_of, run

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]


@pytest.fixture
def driver_with(monkeypatch):
    """Makes the driver of the runs list so many devices."""
    from collector.testing.simulator.simulator_library import library_path

    for name in ("COLLECTOR_LIBCUDA", "COLLECTOR_LIBCUPTI"):
        monkeypatch.setenv(name, str(library_path()))
    return lambda count: monkeypatch.setenv("COLLECTOR_SIMULATED_DEVICES", str(count))


MEASURED = """
import pytest
from collector import bench

def measure(gpu_benchmark):
    with bench.SimulatedCard(seed=1) as card:
        return gpu_benchmark({"fast": card.kernel("f", 10_000), "slow": card.kernel("s", 20_000)}, gpu=card, seed=1)

def test_measured(gpu_benchmark):
    report = measure(gpu_benchmark)
    assert 1.9 < report.comparison.ratios["slow"].interval.estimate < 2.1

@pytest.mark.gpu_limits(kernels=1_000_000)
def test_limited(gpu_benchmark):
    measure(gpu_benchmark)

def test_plain(simulated_gpu):
    simulated_gpu.launch("k")
"""


@pytest.mark.slow
def test_gpu_benchmark_measures_and_traces_by_itself_in_a_traced_run(pytester):
    pytest.importorskip("scipy")
    result = run(pytester, MEASURED, "--gpu-trace", "--gpu-report=out.json", "-k", "not limited", apart=True)
    result.assert_outcomes(passed=2)
    _, tests = report_of(pytester)
    assert tests["test_measured"]["untraced"] == "gpu_benchmark measures its call, and traces it itself"
    assert "call" not in tests["test_measured"]["phases"]
    assert tests["test_plain"]["phases"]["call"]["figures"]["kernels"] == 1


@pytest.mark.slow
def test_a_limit_on_what_gpu_benchmark_traces_is_an_error_that_says_why(pytester, driver_with):
    pytest.importorskip("scipy")
    driver_with(1)
    result = run(pytester, MEASURED, "-k", "limited", apart=True)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["GPU limits were not judged*: a trace that the test made itself recorded no *"])


TORCH = {
    "torch/__init__.py": "from torch import autograd",
    "torch/autograd/__init__.py": "from torch.autograd import profiler",
    "torch/autograd/profiler.py": """
from collector import _native

_is_profiler_enabled = False
ours_was_on = []

def _prepare_profiler(config, activities):
    global _is_profiler_enabled
    ours_was_on.append(_native.is_active())
    _is_profiler_enabled = True

def _disable_profiler():
    global _is_profiler_enabled
    ours_was_on.append(_native.is_active())
    _is_profiler_enabled = False

class profile:
    def __enter__(self):
        _prepare_profiler(None, ())
    def __exit__(self, *exc):
        _disable_profiler()
""",
}
"""As much of PyTorch's profiler as stands between it and CUPTI."""

PROFILED = """
import pytest
from torch.autograd import profiler
from collector import _native

def test_profiled(simulated_gpu):
    simulated_gpu.launch("before")
    assert _native.is_active()
    with profiler.profile():
        assert not _native.is_active()
        simulated_gpu.launch("profiled")
    assert _native.is_active()
    simulated_gpu.launch("after")
    simulated_gpu.launch("after")
    assert profiler.ours_was_on == [False, False]

@pytest.mark.gpu_limits(kernels=0)
def test_limited(simulated_gpu):
    with profiler.profile():
        simulated_gpu.launch("profiled")

def test_fails_within(simulated_gpu):
    with profiler.profile():
        raise ValueError("in the profiled part")

def test_next(simulated_gpu):
    simulated_gpu.launch("k")
"""


@pytest.mark.medium
def test_pytorchs_profiler_has_cupti_for_itself_and_the_rest_is_traced(pytester):
    for name, text in TORCH.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pytester.syspathinsert()
    result = run(pytester, PROFILED, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json")
    result.assert_outcomes(passed=3, failed=1, errors=1)
    held = "PyTorch's profiler held CUPTI for a part of the test"
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_limited*", f"GPU limits were not judged, because the trace is incomplete: {held}"]
    )
    _, tests = report_of(pytester)
    call = tests["test_profiled"]["phases"]["call"]
    assert (call["figures"]["kernels"], call["losses"]) == (3, [held])
    assert {kernel["name"] for kernel in call["kernels"]} == {"before", "after"}
    following = tests["test_next"]["phases"]["call"]
    assert (following["figures"]["kernels"], following["losses"]) == (1, [])


@pytest.mark.medium
def test_a_session_within_a_step_of_the_test_is_refused_and_the_step_goes_on(pytester):
    source = """
import collector, pytest
from collector.errors import SessionActiveError

def test_nested(simulated_gpu, gpu_trace):
    with gpu_trace() as step:
        simulated_gpu.launch("first")
        with pytest.raises(SessionActiveError, match="another session is already tracing"):
            with collector.trace(strict=True):
                pass
        simulated_gpu.launch("second")
    assert step.kernels.names() == ["first", "second"]

def test_nested_without_strict(simulated_gpu, gpu_trace):
    with collector.trace() as step:
        simulated_gpu.launch("first")
        with pytest.warns(collector.CollectorWarning, match="another session is already tracing"):
            with collector.trace():
                simulated_gpu.launch("second")
    assert step.kernels.names() == ["first", "second"]
"""
    run(pytester, source, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json").assert_outcomes(passed=2)
    _, tests = report_of(pytester)
    call = tests["test_nested_without_strict"]["phases"]["call"]
    assert (call["figures"]["kernels"], call["losses"]) == (2, [])


DEVICES = """
import json, os, pytest

@pytest.mark.gpu(count=2)
@pytest.mark.parametrize("n", range(4))
def test_n(gpu_devices, worker_id, n):
    assert gpu_devices == (0, 1)
    with open("seen", "a") as seen:
        seen.write(json.dumps([worker_id, os.environ.get("CUDA_VISIBLE_DEVICES")]) + "\\n")
"""


def seen_by(pytester):
    """Worker -> the devices it saw, in its order."""
    rows = [json.loads(line) for line in (pytester.path / "seen").read_text().splitlines()]
    assert len(rows) == 4
    return dict(rows)


@pytest.mark.slow
def test_each_worker_begins_with_another_device(pytester, driver_with):
    driver_with(3)
    run(pytester, DEVICES, "-n2", "--dist=each", "-k", "0 or 1").assert_outcomes(passed=4)
    assert seen_by(pytester) == {"gw0": "0,1,2", "gw1": "1,2,0"}


@pytest.mark.slow
def test_workers_share_out_only_the_devices_that_were_visible(pytester, driver_with, monkeypatch):
    driver_with(2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb")
    run(pytester, DEVICES, "-n2", "--dist=each", "-k", "0 or 1").assert_outcomes(passed=4)
    assert seen_by(pytester) == {"gw0": "GPU-aa,GPU-bb", "gw1": "GPU-bb,GPU-aa"}


def test_one_process_leaves_the_devices_as_they_are(pytester, driver_with, monkeypatch):
    driver_with(2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    run(pytester, DEVICES).assert_outcomes(passed=4)
    assert seen_by(pytester) == {"master": None}


@pytest.mark.medium
def test_the_installed_plugin_gives_pytest_no_reason_to_warn(pytester):
    """The import hook of an editable install is imported before any plugin, and pytest could not rewrite it."""
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert "PytestAssertRewriteWarning" not in result.stdout.str() + result.stderr.str()
