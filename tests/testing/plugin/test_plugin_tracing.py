"""The plugin's records and verdicts of each test, in whole pytest runs on the simulated GPU."""

import re
import sys

import pytest
from plugin_runs import needs_lines, report_of, run

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

ATTRIBUTED = """
import collector, pytest
from pathlib import Path

@pytest.fixture
def warm(simulated_gpu):
    simulated_gpu.memcpy("HtoD", 1000)
    simulated_gpu.synchronize()
    yield
    simulated_gpu.memset(500)
    simulated_gpu.synchronize()

def work(gpu, count=1):
    gpu.launch("sgemm", duration_ns=12_000, count=count)
    gpu.synchronize()

@pytest.mark.parametrize("count", [1, 2])
def test_parametrised(simulated_gpu, warm, count):
    work(simulated_gpu, count)

class TestOfClass:
    def test_method(self, simulated_gpu):
        work(simulated_gpu)

async def test_async(simulated_gpu, gpu_trace):
    import asyncio
    with gpu_trace(kernels=1) as step:
        await asyncio.sleep(0)
        work(simulated_gpu)
    assert step.kernels.names() == ["sgemm"]

def test_traces_itself(simulated_gpu, tmp_path):
    work(simulated_gpu)
    with collector.trace(tmp_path / "own.json") as step:
        work(simulated_gpu, 2)
    assert len(step.kernels) == 2
    work(simulated_gpu)

def test_several_steps(simulated_gpu, gpu_trace):
    with gpu_trace() as first:
        work(simulated_gpu, 3)
    with gpu_trace() as second:
        simulated_gpu.memcpy("DtoH", 10)
        work(simulated_gpu)
    assert (len(first.kernels), len(second.kernels), len(second.memcpys)) == (3, 1, 1)
    assert second.figures.kernels == 1

@pytest.mark.gpu_untraced("needs CUPTI for itself")
def test_untraced(simulated_gpu):
    work(simulated_gpu)

def test_cpu():
    pass
"""

ASYNC = """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True
"""


@pytest.fixture
def attributed(pytester):
    pytester.makeconftest(ASYNC)
    return ATTRIBUTED


@pytest.mark.medium
@pytest.mark.parametrize("simulate", [["--gpu-simulate"], []], ids=["of the run", "of the test"])
def test_every_test_has_its_own_figures_phase_by_phase(pytester, attributed, simulate):
    result = run(pytester, attributed, "--gpu-trace", "--gpu-report=out.json", *simulate)
    result.assert_outcomes(passed=8)
    _, tests = report_of(pytester)

    def figures(test, phase, *names):
        return tuple(tests[test]["phases"][phase]["figures"][name] for name in names)

    for count in (1, 2):
        test = f"test_parametrised[{count}]"
        assert figures(test, "setup", "memcpy_htod_bytes", "kernels") == (1000, 0)
        assert figures(test, "call", "kernels", "memcpys", "synchronizations") == (count, 0, 1)
        assert figures(test, "teardown", "memset_bytes", "kernels") == (500, 0)
    assert figures("TestOfClass::test_method", "call", "kernels", "device_time_ns") == (1, 12_000)
    assert figures("test_async", "call", "kernels") == (1,)
    assert figures("test_traces_itself", "call", "kernels", "launches") == (4, 4)
    assert figures("test_several_steps", "call", "kernels", "memcpy_dtoh_bytes") == (4, 10)
    assert tests["test_several_steps"]["steps"] == 2
    assert tests["test_untraced"]["untraced"] == "needs CUPTI for itself"
    assert tests["test_untraced"]["phases"] == {}
    assert all(
        test["phases"]["call"]["losses"] == []
        for name, test in tests.items()
        if "test_cpu" not in name and test["phases"]
    )
    assert "cudaLaunchKernel" not in result.stdout.str()


@pytest.mark.medium
def test_the_table_shows_the_ten_that_used_the_gpu_most(pytester):
    source = """
import pytest
@pytest.mark.parametrize("n", range(12))
def test_n(simulated_gpu, n):
    simulated_gpu.launch("sgemm", duration_ns=1000 * (n + 1))
def test_cpu(): pass
"""
    result = run(pytester, source, "--gpu-trace", "--gpu-simulate")
    result.assert_outcomes(passed=13)
    lines = result.stdout.lines
    (first,) = [i for i, line in enumerate(lines) if line.startswith("10 of 12 tests that used the GPU, simulated")]
    rows = [line.split() for line in lines[first:] if "::test_n" in line]
    assert [row[0] for row in rows] == [f"test_step.py::test_n[{n}]" for n in range(11, 1, -1)]
    assert rows[0][1:] == ["12", "µs", "1", "0", "0"]


LIMITS = """
import collector, pytest

def train(gpu):
    with collector.annotate("layer1/conv"):
        gpu.launch("_Z5sgemmPf", stream=7, duration_ns=12_000, count=2)
    gpu.launch("bias_relu", stream=8, duration_ns=3_000)
    gpu.memcpy("HtoD", 4096)
    gpu.malloc(100)
    gpu.synchronize()

@pytest.mark.gpu_limits(
    kernels=3, launches=3, memcpys=1, memcpy_bytes=4096, memcpy_htod_bytes="4KiB", memcpy_dtoh_bytes=0, memsets=0,
    device_time="1ms", kernel_time="27us", synchronizations=1, allocations=1, streams=2, devices=1,
)
def test_kept(simulated_gpu):
    train(simulated_gpu)

@pytest.mark.gpu_limits(kernels=2, allocations=0, synchronizations=5)
def test_exceeded(simulated_gpu):
    train(simulated_gpu)

@pytest.mark.gpu_limits(kernels=0)
class TestOfClass:
    def test_inherits(self, simulated_gpu):
        train(simulated_gpu)

    @pytest.mark.gpu_limits(kernels=3)
    def test_nearest_wins(self, simulated_gpu):
        train(simulated_gpu)

@pytest.mark.gpu_limits(kernels=0)
def test_fixtures_are_not_limited(simulated_gpu, launched_before):
    pass

@pytest.fixture
def launched_before(simulated_gpu):
    train(simulated_gpu)

@pytest.mark.gpu_limits(kernels=2)
def test_fails_anyway(simulated_gpu):
    train(simulated_gpu)
    assert 1 == 2

@pytest.mark.xfail(strict=True)
@pytest.mark.gpu_limits(kernels=2)
def test_expected(simulated_gpu):
    train(simulated_gpu)

def test_step(simulated_gpu, gpu_trace):
    with gpu_trace(kernels=2):
        train(simulated_gpu)

def test_step_unit(simulated_gpu, gpu_trace):
    with gpu_trace(device_time=3):
        pass
"""


@pytest.mark.medium
@needs_lines
def test_limits_pass_and_fail_with_what_ran_and_where_from(pytester):
    result = run(pytester, LIMITS, "--gpu-simulate", "--gpu-report=out.json", "--gpu-lines")
    result.assert_outcomes(passed=3, failed=5, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*__ test_exceeded __*",
            "GPU limits exceeded in the call of test_step.py::test_exceeded",
            "  limit        measured  at most  too much",
            "  kernels             3        2         1",
            "  allocations         1        0         1",
            "What ran:",
            "  sgemm * 2 * 24 µs * 12 µs",
            "Where it came from:",
            "  layer1/conv  test_step.py:6   2 x sgemm",
            "  -            test_step.py:7   1 x bias_relu",
        ],
        consecutive=False,
    )
    result.stdout.fnmatch_lines(
        ["*__ test_fails_anyway __*", "*assert 1 == 2", "*GPU limits*", "*exceeded in the call of*"]
    )
    result.stdout.fnmatch_lines(["E * GPU limits exceeded in a step of test_step.py::test_step"])
    result.stdout.fnmatch_lines(['gpu_trace: device_time=3: it must be written as "250us"'])
    _, tests = report_of(pytester)
    assert tests["test_exceeded"]["outcome"] == "failed"
    assert tests["test_expected"]["outcome"] == "xfailed"
    assert tests["test_exceeded"]["limits"][0] == {"name": "kernels", "maximum": 2, "measured": 3, "exceeded": True}
    assert tests["test_kept"]["limits"][-1] == {"name": "devices", "maximum": 1, "measured": 1, "exceeded": False}


UNASKED = """
import sys, pytest

def launches(gpu):
    assert id(sys.gettrace()) == TRACE_ID
    for _ in range(3):
        gpu.launch("sgemm")
    gpu.malloc(64)

@pytest.mark.gpu_limits(kernels=1)
def test_limit(simulated_gpu):
    launches(simulated_gpu)

def test_step(simulated_gpu, gpu_trace):
    with gpu_trace(kernels=1):
        launches(simulated_gpu)

@pytest.mark.gpu_leaks
def test_leak(simulated_gpu):
    launches(simulated_gpu)
"""


@pytest.mark.medium
def test_a_message_without_a_line_says_how_to_get_it(pytester):
    result = run(pytester, UNASKED.replace("TRACE_ID", str(id(sys.gettrace()))), "--gpu-simulate")
    result.assert_outcomes(passed=1, failed=2, errors=1)
    remedy = "Lines that are not known: before Python 3.12 lines are noted only with --gpu-lines (gpu_lines = true in *"
    if sys.version_info < (3, 12):
        assert sum("--gpu-lines" in line for line in result.outlines) == 3
        result.stdout.fnmatch_lines([remedy])
    else:
        assert sum("test_step.py:7" in line for line in result.outlines) == 2
        assert sum("test_step.py:8" in line for line in result.outlines) == 3
        result.stdout.no_fnmatch_line("*Lines that are not known*")


KEPT = """
import gc, pytest
from collector.recording.recording import Recording

def recordings():
    gc.collect()
    return sum(isinstance(each, Recording) for each in gc.get_objects())

@pytest.fixture(params=range(4))
def earlier(request, simulated_gpu, gpu_trace):
    simulated_gpu.launch("in_setup")
    yield recordings()
    simulated_gpu.launch("in_teardown")

@pytest.mark.gpu_limits(kernels=1)
@pytest.mark.gpu_leaks
@pytest.mark.parametrize("ending", ["passes", "fails", "exceeds"])
def test_n(simulated_gpu, gpu_trace, earlier, ending):
    with gpu_trace() as step:
        simulated_gpu.launch("sgemm", count=2 if ending == "exceeds" else 1)
    assert earlier <= MOST
    assert ending != "fails", "on purpose"
"""


@pytest.mark.medium
@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="plain"),
        pytest.param(["--gpu-trace=traces", "--gpu-trace-keep=always"], id="kept", marks=pytest.mark.slow),
    ],
)
def test_recordings_go_with_their_test(pytester, options):
    # The last failure's frames hold its step: Python keeps them as sys.last_traceback. In a process of its own, because
    # pytester notes every hook's arguments, and with them every failure.
    result = run(pytester, KEPT.replace("MOST", "5"), "--gpu-simulate", *options, apart=True)
    result.assert_outcomes(passed=4, failed=8)
    assert not re.search(r"assert \d+ <= 5", str(result.stdout))


LOSSY = """
import collector, pytest

@pytest.mark.gpu_limits(kernels=0)
def test_limit(simulated_gpu):
    simulated_gpu.inject("dropped_record")
    simulated_gpu.launch("sgemm")

def test_step(simulated_gpu, gpu_trace):
    simulated_gpu.inject("zero_timestamps")
    with gpu_trace() as step:
        simulated_gpu.launch("sgemm")

@pytest.mark.gpu_limits(kernels=0)
def test_partial_own_trace(simulated_gpu):
    with collector.trace(kinds=["memcpys", "runtime_api"]):
        simulated_gpu.launch("sgemm")

@pytest.mark.gpu_limits(kernels=0)
def test_skipped(simulated_gpu):
    simulated_gpu.inject("dropped_record")
    simulated_gpu.launch("sgemm")
    pytest.skip("by itself")
"""


PEER_COPIES = """
import pytest

@pytest.mark.gpu(simulate=True, count=2)
@pytest.mark.gpu_limits(memcpy_ptop_bytes="1MiB")
def test_recorded(simulated_gpu):
    simulated_gpu.memcpy_peer(0, 1, 1 << 20)

@pytest.mark.gpu(simulate=True, count=2)
@pytest.mark.gpu_limits(memcpy_ptop_bytes="1MiB")
def test_exceeded(simulated_gpu):
    simulated_gpu.memcpy_peer(0, 1, (1 << 20) + 1)

@pytest.mark.gpu(simulate=True, count=2)
@pytest.mark.gpu_limits(memcpys=1)
def test_not_recorded(simulated_gpu):
    simulated_gpu.memcpy_peer(0, 1, 1 << 20)

@pytest.mark.gpu(simulate=True, count=2)
def test_step(simulated_gpu, gpu_trace):
    with gpu_trace(memcpy_ptop_bytes="1MiB") as step:
        simulated_gpu.memcpy_peer(0, 1, 1 << 20)
    assert len(step.memcpys) == 1
"""


@pytest.mark.medium
def test_copies_between_gpus_are_recorded_for_their_own_limit_alone(pytester):
    result = run(pytester, PEER_COPIES, "--gpu-trace")
    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_not_recorded*",
            "GPU limits were not judged, because the trace is incomplete: 1 copy, perhaps between GPUs, has no*",
            "*GPU limits exceeded*",
            "*memcpy_ptop_bytes*1,048,577*",
        ]
    )


@pytest.mark.medium
def test_a_limit_is_never_judged_on_a_lossy_trace(pytester):
    result = run(pytester, LOSSY, "--gpu-simulate", "--gpu-report=out.json")
    result.assert_outcomes(passed=3, errors=3, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_limit*",
            "GPU limits were not judged, because the trace is incomplete: CUPTI dropped 1 record*",
            "*ERROR at teardown of test_step*",
            "a step cannot be judged, because its trace is incomplete: 1 activity has no usable time*",
            "*ERROR at teardown of test_partial_own_trace*",
            "GPU limits were not judged*; a trace that the test made itself recorded no kernels*",
        ]
    )
    _, tests = report_of(pytester)
    assert tests["test_limit"]["outcome"] == "error"
    assert tests["test_limit"]["limits"] == [{"name": "kernels", "maximum": 0, "measured": None, "exceeded": None}]


@pytest.mark.medium
def test_where_nothing_can_be_traced_limits_are_errors_and_other_tests_run(pytester, monkeypatch):
    source = """
import pytest
@pytest.mark.gpu_limits(kernels=0)
def test_limit(): pass
def test_cpu(): pass
"""
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", "/nowhere/libcupti.so")
    from collector.testing.simulator.simulator_library import library_path

    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(library_path()))
    result = run(pytester, source, "--gpu-trace")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["GPU limits were not judged, because the trace is incomplete: */nowhere/libcupti.so*"])
    result.stdout.fnmatch_lines(["*GPU activity was not traced: */nowhere/libcupti.so*"])


@pytest.mark.medium
def test_marker_arguments_are_checked_at_collection(pytester):
    source = """
import pytest
@pytest.mark.gpu_limits(kernel=1)
def test_unknown_limit(): pass
@pytest.mark.gpu_limits(kernels=-1)
def test_negative(): pass
@pytest.mark.gpu_limits(device_time="250")
def test_no_unit(): pass
@pytest.mark.gpu_limits
def test_no_limit(): pass
@pytest.mark.gpu(count=0)
def test_no_count(): pass
@pytest.mark.gpu(memory="16 gigs")
def test_unknown_unit(): pass
@pytest.mark.gpu(2)
def test_positional(): pass
@pytest.mark.gpu(cuda="12")
def test_unknown_argument(): pass
@pytest.mark.gpu(compute_capability="8.0")
def test_capability(): pass
@pytest.mark.gpu_leaks(10)
def test_leaks(): pass
def test_good(): pass
"""
    expected_lines = [
        "test_step.py::test_unknown_limit: marker gpu_limits: unknown limit 'kernel': choose from kernels, *",
        "test_step.py::test_negative: marker gpu_limits: kernels=-1: it must not be negative",
        "test_step.py::test_no_unit: marker gpu_limits: device_time='250' has no unit: use one of ns, us, ms, s",
        "test_step.py::test_no_limit: marker gpu_limits: it names no limit: choose from kernels, *",
        "test_step.py::test_no_count: marker gpu: count=0 must be a whole number of 1 or more",
        "test_step.py::test_unknown_unit: marker gpu: memory='16 gigs': unknown unit 'gigs'*",
        "test_step.py::test_positional: marker gpu: it takes arguments by name only, not 2",
        "test_step.py::test_unknown_argument: marker gpu: unknown argument 'cuda', choose from count, *",
        "test_step.py::test_capability: marker gpu: compute_capability='8.0' must be two whole numbers*",
        "test_step.py::test_leaks: marker gpu_leaks: it takes arguments by name only, not 10",
    ]
    result = run(pytester, source)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=10)
    result.stdout.fnmatch_lines(expected_lines)
    result = run(pytester, None, "--continue-on-collection-errors")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=10, passed=1)


@pytest.mark.medium
def test_a_limit_of_one_case_is_nearer_than_those_of_its_function_and_class(pytester):
    source = """
import pytest
@pytest.mark.gpu_limits(kernels=0)
class TestOfClass:
    @pytest.mark.gpu_limits(kernels=1)
    @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.gpu_limits(kernels=2))])
    def test_both(self, simulated_gpu, n):
        simulated_gpu.launch("sgemm", count=n)

    @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.gpu_limits(kernels=2))])
    def test_case(self, simulated_gpu, n):
        simulated_gpu.launch("sgemm", count=n)
"""
    run(pytester, source, "--gpu-report=out.json").assert_outcomes(passed=3, failed=1)
    _, tests = report_of(pytester)
    assert {name.removeprefix("TestOfClass::"): test["outcome"] for name, test in tests.items()} == {
        "test_both[1]": "passed", "test_both[2]": "passed", "test_case[1]": "failed", "test_case[2]": "passed",
    }  # fmt: skip


@pytest.mark.medium
def test_markers_and_fixtures_document_themselves(pytester):
    run(pytester, "", "--markers").stdout.fnmatch_lines(
        ["@pytest.mark.gpu(count=1, *", "@pytest.mark.gpu_limits(**limits): *device_time*", "@pytest.mark.gpu_leaks: *"]
    )
    fixtures = run(pytester, "", "--fixtures").stdout.str()
    for name in ("gpu_trace", "gpu_devices", "simulated_gpu"):
        assert f"{name} -- " in fixtures
        assert "no docstring" not in fixtures.split(f"{name} -- ")[1].split("\n\n")[0]
    assert "--gpu-trace-keep=WHICH" in run(pytester, "", "--help").stdout.str()
