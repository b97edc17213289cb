"""Leaks, broken CUDA contexts, missing GPUs, workers of pytest-xdist, and other plugins beside ours."""

import json
import re

import pytest
from plugin_runs import INI, needs_lines, report_of, run

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

LEAKS = """
import collector, pytest
kept = []

@pytest.fixture(scope="module")
def model(request):
    return []

@pytest.fixture
def buffer(simulated_gpu):
    address = simulated_gpu.malloc(4096)
    yield address
    simulated_gpu.free(address)

@pytest.mark.gpu_leaks
def test_leaks(simulated_gpu, buffer):
    with collector.annotate("layer1"):
        simulated_gpu.malloc(1000)
    address = simulated_gpu.malloc(24)
    simulated_gpu.free(address)

@pytest.mark.gpu_leaks
def test_frees(simulated_gpu, buffer):
    simulated_gpu.free(simulated_gpu.malloc(1000))

@pytest.mark.gpu_leaks
def test_fixture_frees(simulated_gpu, request):
    address = simulated_gpu.malloc(1000)
    request.addfinalizer(lambda: simulated_gpu.free(address))

@pytest.fixture(scope="module")
def wider(module_simulated_gpu):
    module_simulated_gpu.malloc(1 << 20)

@pytest.mark.gpu_leaks
def test_first_use_of_a_wider_fixture(wider, simulated_gpu):
    pass

def test_not_asked(simulated_gpu):
    simulated_gpu.malloc(1000)

def test_cpu():
    pass
"""


@pytest.mark.medium
@needs_lines
def test_a_leak_is_an_error_that_names_what_was_not_freed(pytester):
    result = run(pytester, LEAKS, "--gpu-simulate", "--gpu-report=out.json", "--gpu-lines")
    result.assert_outcomes(passed=6, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_leaks*",
            "test_step.py::test_leaks leaks GPU memory: the device's grew by 1,000 bytes, and 1 allocation was not *",
            "Allocated in the test and not freed:",
            "  address * bytes  device  call        annotation  line",
            "  0x7f* 1,000       0  cudaMalloc  layer1      test_step.py:18",
        ]
    )
    _, tests = report_of(pytester)
    (allocation,) = tests["test_leaks"]["leak"].pop("allocations")
    assert allocation.pop("address") >= 0x7F0000000000
    assert allocation == {
        "call": "cudaMalloc",
        "num_bytes": 1000,
        "device_id": 0,
        "annotation": "layer1",
        "line": "test_step.py:18",
    }
    assert tests["test_leaks"]["leak"] == {"device_bytes": 1000, "allocators": {}, "unfreed": 1}
    assert tests["test_leaks"]["outcome"] == "error"
    assert tests["test_frees"]["leak"] is None
    # What the check itself asks of the driver is not the test's.
    assert tests["test_frees"]["phases"]["call"]["figures"]["synchronizations"] == 0


@pytest.mark.medium
def test_a_simulated_gpu_of_the_test_alone_shows_its_leaks_too(pytester):
    result = run(pytester, LEAKS, "--gpu-leaks")
    result.assert_outcomes(passed=6, errors=2)
    for name in ("test_leaks", "test_not_asked"):
        leak = f"test_step.py::{name} leaks GPU memory: the device's grew by 1,000 bytes, and 1 allocation was not *"
        result.stdout.fnmatch_lines([leak])


FIXTURES = """
import pytest

@pytest.fixture
def never_frees(simulated_gpu):
    return simulated_gpu.malloc(1000)

@pytest.fixture
def frees(simulated_gpu):
    address = simulated_gpu.malloc(2000)
    yield
    simulated_gpu.free(address)
    simulated_gpu.malloc(300)  # in its teardown

@pytest.fixture(scope="module")
def model(module_simulated_gpu):
    address = module_simulated_gpu.malloc(1 << 20)
    yield
    module_simulated_gpu.free(address)

@pytest.fixture(scope="module", params=["a", "b"])
def weights(module_simulated_gpu, request):
    address = module_simulated_gpu.malloc(1 << 24)
    yield
    module_simulated_gpu.free(address)

@pytest.fixture(scope="class")
def lazy(module_simulated_gpu):
    module_simulated_gpu.malloc(4096)

@pytest.mark.gpu_leaks
class TestOfClass:
    def test_first(self, simulated_gpu, model, never_frees):
        pass

    def test_middle(self, simulated_gpu, model, frees):
        pass

    def test_clean(self, simulated_gpu, model, request):
        request.getfixturevalue("lazy")
        simulated_gpu.free(simulated_gpu.malloc(64))

    def test_each(self, simulated_gpu, weights, never_frees):
        pass

    def test_last(self, simulated_gpu, model):
        simulated_gpu.malloc(10)
"""


@pytest.mark.medium
@needs_lines
@pytest.mark.parametrize("simulate", [["--gpu-simulate"], []], ids=["of the run", "of the module"])
def test_what_a_tests_own_fixtures_keep_is_its_leak_and_wider_ones_hide_none(pytester, simulate):
    result = run(pytester, FIXTURES, "--gpu-report=out.json", "--gpu-lines", *simulate)
    result.assert_outcomes(passed=6, errors=5)
    _, tests = report_of(pytester)
    leaks = {name.removeprefix("TestOfClass::"): test["leak"] for name, test in tests.items() if test["leak"]}
    assert {name: leak["device_bytes"] for name, leak in leaks.items()} == {
        "test_first": 1000, "test_middle": 300, "test_each[a]": 1000, "test_each[b]": 1000, "test_last": 10,
    }  # fmt: skip
    lines = {name: [one["line"] for one in leak["allocations"]] for name, leak in leaks.items()}
    assert lines == {
        "test_first": ["test_step.py:6"], "test_middle": ["test_step.py:13"], "test_each[a]": ["test_step.py:6"],
        "test_each[b]": ["test_step.py:6"], "test_last": ["test_step.py:47"],
    }  # fmt: skip


GARBAGE = """
import pytest

class Tensor:
    def __init__(self, gpu, num_bytes):
        self.itself = self  # only the garbage collector finds it
        self.gpu, self.address = gpu, gpu.malloc(num_bytes)
    def __del__(self):
        self.gpu.free(self.address)

kept = []

@pytest.mark.gpu_leaks
def test_garbage_is_no_leak(simulated_gpu):
    Tensor(simulated_gpu, 1000)

@pytest.mark.gpu_leaks
def test_only_what_is_kept_is_named(simulated_gpu):
    Tensor(simulated_gpu, 1000)
    kept.append(Tensor(simulated_gpu, 2000))
    pooled = simulated_gpu.malloc(512, stream=7)
    simulated_gpu.free(pooled, stream=9)
    simulated_gpu.malloc(64, kind="pinned")  # the host's
"""


COLLECTED_AT_ONCE = """
import gc
import pytest
from collector.testing.plugin.background_tracing import Tracing

closes = Tracing._close

@pytest.fixture(scope="session", autouse=True)
def busy():
    \"\"\"Garbage is collected by itself right after each trace has ended.\"\"\"
    def closes_and_makes_objects(self):
        closes(self)
        kept = [[] for _ in range(100_000)]
    Tracing._close = closes_and_makes_objects
    yield
    Tracing._close = closes
    assert gc.isenabled()
"""


@pytest.mark.slow
def test_garbage_that_is_collected_between_two_traces_is_no_leak(pytester):
    result = run(pytester, COLLECTED_AT_ONCE + GARBAGE, "--gpu-simulate", "--gpu-report=out.json", apart=True)
    result.assert_outcomes(passed=2, errors=1)
    _, tests = report_of(pytester)
    assert tests["test_only_what_is_kept_is_named"]["leak"]["unfreed"] == 1


@pytest.mark.medium
def test_garbage_and_host_memory_are_no_leaks(pytester):
    result = run(pytester, GARBAGE, "--gpu-simulate", "--gpu-report=out.json", "--gpu-lines", apart=True)
    result.assert_outcomes(passed=2, errors=1)
    _, tests = report_of(pytester)
    leak = tests["test_only_what_is_kept_is_named"]["leak"]
    assert (leak["device_bytes"], leak["unfreed"]) == (2000, 1)
    assert [(one["num_bytes"], one["line"]) for one in leak["allocations"]] == [(2000, "test_step.py:7")]
    result.stdout.no_fnmatch_line("*1,000*")


@pytest.mark.medium
def test_memory_is_recorded_only_for_tests_that_are_judged_by_it(pytester):
    source = """
import pytest
RECORD = 49

def recorded(gpu):
    before = gpu.statistics().records.get(RECORD, 0)
    gpu.free(gpu.malloc(8))
    return gpu.statistics().records.get(RECORD, 0) - before

def test_plain(simulated_gpu):
    assert recorded(simulated_gpu) == 0

@pytest.mark.gpu_limits(allocations=1)
def test_limited(simulated_gpu):
    assert recorded(simulated_gpu) == 2

@pytest.mark.gpu_limits(kernels=1)
def test_limited_otherwise(simulated_gpu):
    assert recorded(simulated_gpu) == 0

@pytest.mark.gpu_leaks
def test_leaks(simulated_gpu):
    assert recorded(simulated_gpu) == 2

def test_step(simulated_gpu, gpu_trace):
    with gpu_trace(allocations=1) as step:
        assert recorded(simulated_gpu) == 2
    assert step.recording.memory_operations.num_bytes.tolist() == [8, 8]
    assert recorded(simulated_gpu) == 0
"""
    run(pytester, source, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json").assert_outcomes(passed=5)
    _, tests = report_of(pytester)
    figures = {name: test["phases"]["call"]["figures"] for name, test in tests.items()}
    assert {name: (each["allocations"], each["frees"]) for name, each in figures.items()} == {
        **dict.fromkeys(("test_plain", "test_limited", "test_limited_otherwise", "test_leaks"), (1, 1)),
        "test_step": (2, 2),
    }


@pytest.mark.medium
def test_every_gpu_test_is_looked_at_when_asked(pytester):
    result = run(pytester, LEAKS, "--gpu-simulate", "--gpu-leaks")
    result.assert_outcomes(passed=6, errors=2)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_leaks*", "*ERROR at teardown of test_not_asked*"])


BROKEN = """
import pytest

@pytest.mark.gpu_limits(kernels=5)
def test_before(simulated_gpu):
    simulated_gpu.launch("good")

def test_x(simulated_gpu):
    simulated_gpu.launch("writes_out_of_bounds")
    simulated_gpu.inject("error", target="cuCtxSynchronize", value=700, count=-1)

def test_gpu(simulated_gpu):
    simulated_gpu.launch("good")

@pytest.mark.gpu_limits(kernels=5)
@pytest.mark.gpu(simulate=True)
class TestOfClass:
    def test_marked(self):
        pass

def test_unmarked():
    if BROKEN_HERE:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

def test_cpu():
    pass
"""
NOT_RUN = (
    "not run because of test_step.py::test_x: it left this process's CUDA context unusable (CUDA_ERROR_ILLEGAL_ADDRESS)"
)


@pytest.mark.medium
def test_after_an_unrecoverable_error_gpu_tests_are_not_run_and_say_why(pytester):
    result = run(pytester, BROKEN.replace("BROKEN_HERE", "True"), "--gpu-simulate", "--gpu-report=out.json", "-rs")
    result.assert_outcomes(passed=2, failed=1, skipped=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "test_step.py::test_x left the CUDA context of this process unusable in its call: CUDA_ERROR_ILLEGAL_*",
            "*= GPU =*",
            "test_step.py::test_x left its process's CUDA context unusable: CUDA_ERROR_ILLEGAL_ADDRESS",
        ]
    )
    _, tests = report_of(pytester)
    assert {name for name, test in tests.items() if test["skipped_because"] == NOT_RUN} == {
        "test_gpu",
        "TestOfClass::test_marked",
        "test_unmarked",
    }


def test_a_test_that_fails_by_the_error_itself_says_what_follows_from_it(pytester):
    source = BROKEN.replace("BROKEN_HERE", "False").replace(
        "count=-1)", "count=-1)\n    raise RuntimeError('an illegal memory access was encountered')"
    )
    result = run(pytester, source, "--gpu-simulate")
    result.assert_outcomes(passed=3, failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        ["E *RuntimeError: an illegal memory access*", "the CUDA context of this process is unusable from here on: *"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "loadfile", "worksteal"])
def test_with_workers_the_one_whose_context_broke_is_replaced(pytester, dist):
    arguments = ["--gpu-simulate", "--gpu-report=out.json", "-n1", f"--dist={dist}"]
    result = run(pytester, BROKEN.replace("BROKEN_HERE", "False"), *arguments)
    result.assert_outcomes(passed=5, failed=1)
    _, tests = report_of(pytester)
    assert {name: test["outcome"] for name, test in tests.items() if test["outcome"] != "passed"} == {
        "test_x": "failed"
    }
    assert tests["test_gpu"]["phases"] == {} or tests["test_gpu"]["phases"]["call"]["figures"]["kernels"] == 1
    assert "crashed while running" not in result.stdout.str()


@pytest.mark.slow
def test_where_workers_are_not_replaced_tests_are_not_run_and_say_why(pytester):
    arguments = ["--gpu-simulate", "--gpu-report=out.json", "-n1", "--max-worker-restart=0"]
    run(pytester, BROKEN.replace("BROKEN_HERE", "False"), *arguments).assert_outcomes(passed=3, failed=1, skipped=2)
    _, tests = report_of(pytester)
    assert tests["test_gpu"]["skipped_because"] == NOT_RUN


MANY = """
import os, pytest

def work(gpu, n):
    gpu.launch(f"kernel_{n}", duration_ns=1000 * (n + 1))
    gpu.memcpy("HtoD", 64 * n)
    gpu.synchronize()

@pytest.mark.parametrize("n", range(8))
@pytest.mark.gpu_limits(kernels=1, memcpy_htod_bytes=256)
def test_n(simulated_gpu, n):
    work(simulated_gpu, n)

@pytest.mark.gpu(simulate=True, memory="50GiB")
@pytest.mark.parametrize("n", range(3))
def test_large(simulated_gpu, n):
    work(simulated_gpu, n)

@pytest.mark.gpu(simulate=True, count=2)
def test_two(simulated_gpu, gpu_devices):
    assert gpu_devices == (0, 1)

@pytest.mark.gpu(count=3, simulate=True)
def test_three():
    pass
"""


@pytest.mark.slow
def test_workers_give_the_same_report_as_one_process(pytester):
    arguments = ["--gpu-trace=traces", "--gpu-trace-keep=slow:3", "--gpu-report=out.json", "--gpu-simulate=2"]
    runs = []
    for workers in ([], ["-n4"]):
        result = run(pytester, MANY, *arguments, *workers)
        result.assert_outcomes(passed=9, failed=3, skipped=1)
        report, _ = report_of(pytester)
        traces = sorted(path.name for path in (pytester.path / "traces").iterdir())
        table = [line for line in result.stdout.lines if "::test_" in line and " µs " in line]
        runs.append((report, traces, table))
        for path in (pytester.path / "traces").iterdir():
            path.unlink()
    assert len(runs[0][1]) == 3
    assert len(runs[0][2]) == 10
    assert runs[0] == runs[1]


@pytest.mark.slow
def test_tests_that_declare_much_memory_do_not_run_at_once(pytester):
    source = """
import pytest, time, os
@pytest.mark.gpu(simulate=True, memory="50GiB")
@pytest.mark.parametrize("n", range(4))
def test_large(simulated_gpu, n):
    with open("log", "a") as log:
        log.write("begin\\n")
    time.sleep(0.3)
    with open("log", "a") as log:
        log.write("end\\n")
"""
    run(pytester, source, "--gpu-simulate", "-n4").assert_outcomes(passed=4)
    assert (pytester.path / "log").read_text().split() == ["begin", "end"] * 4


@pytest.mark.slow
def test_a_worker_that_crashes_costs_its_test_only(pytester):
    source = """
import os, pytest
@pytest.mark.gpu(simulate=True, memory="80GiB")
@pytest.mark.parametrize("n", range(6))
def test_n(simulated_gpu, n):
    simulated_gpu.launch("k")
    if n == 2:
        os._exit(3)
"""
    result = run(pytester, source, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json", "-n2")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*crashed while running 'test_step.py::test_n[[]2[]]'*"])
    _, tests = report_of(pytester)
    assert {name: test["outcome"] for name, test in tests.items()} == {
        f"test_n[{n}]": "crashed" if n == 2 else "passed" for n in range(6)
    }


@pytest.fixture
def no_gpu(monkeypatch):
    """An environment in which the driver lists no device."""
    from collector.testing.simulator.simulator_library import library_path

    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(library_path()))
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", str(library_path()))
    monkeypatch.setenv("COLLECTOR_SIMULATED_DEVICES", "0")


NEEDY = """
import pytest
@pytest.mark.gpu
def test_gpu(): pass
def test_fixture(gpu_trace): pass
def test_cpu(): pass
"""


def test_without_a_gpu_tests_that_need_one_are_skipped_with_the_reason(pytester, no_gpu):
    result = run(pytester, NEEDY, "-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * test_step.py:3: needs a GPU: cuInit failed: CUDA_ERROR_NO_DEVICE (100)"])


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "workers"])
def test_a_required_gpu_that_is_missing_fails_the_run_at_once(pytester, no_gpu, workers):
    result = run(pytester, NEEDY, "--require-gpu", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "ERROR: --require-gpu: there is no usable GPU: cuInit failed: CUDA_ERROR_NO_DEVICE (100)"
    assert result.stderr.str().count(message) == 1
    assert "skipped" not in result.stdout.str()


@pytest.mark.medium
def test_a_required_gpu_that_is_there_changes_nothing(pytester, no_gpu, monkeypatch):
    monkeypatch.setenv("COLLECTOR_SIMULATED_DEVICES", "1")
    run(pytester, NEEDY, "--require-gpu", apart=True).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("stated", "given"),
    [("", ["--require-gpu", "--gpu-simulate"]), ("require_gpu = true\ngpu_simulate = 2\n", [])],
    ids=["command line", "ini file"],
)
def test_a_required_gpu_cannot_be_simulated(pytester, no_gpu, stated, given):
    result = run(pytester, NEEDY, *given, ini=INI + stated)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = (
        "--require-gpu and --gpu-simulate exclude each other: simulated GPUs run none of the tests that need a real"
    )
    assert message in result.stderr.str()
    run(pytester, None, *given, "--gpu-simulate=off", "--collect-only", ini=INI + stated).assert_outcomes()


def test_of_required_and_simulated_gpus_the_command_line_decides(pytester, no_gpu):
    required = run(pytester, NEEDY, "--require-gpu", ini=INI + "gpu_simulate = 2\n")
    assert "--require-gpu: there is no usable GPU: cuInit failed" in required.stderr.str()
    simulated = run(pytester, None, "--gpu-simulate", "-rs", ini=INI + "require_gpu = true\n")
    simulated.assert_outcomes(passed=1, skipped=2)
    assert "this run simulates its GPUs" in simulated.stdout.str()


def test_x_and_lf_see_our_failures_as_any_other(pytester):
    source = """
import pytest
def test_a(): pass
@pytest.mark.gpu_limits(kernels=0)
def test_b(simulated_gpu): simulated_gpu.launch("k")
def test_c(): pass
"""
    ini = INI.replace("-p no:cacheprovider", "")
    run(pytester, source, "-x", "--gpu-simulate", ini=ini).assert_outcomes(passed=1, failed=1)
    run(pytester, None, "--lf", "--gpu-simulate", ini=ini).assert_outcomes(failed=1)


@pytest.mark.parametrize("missing", ["terminal", "xdist", "junitxml", "logging", "skipping", "unraisableexception"])
def test_it_does_without_other_plugins(pytester, missing):
    source = "def test_a(simulated_gpu): simulated_gpu.launch('k')"
    result = run(pytester, source, "--gpu-trace", "--gpu-simulate", "--gpu-report=out.json", "-p", f"no:{missing}")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    report, _ = report_of(pytester)
    assert report["totals"]["kernels"] == 1


@pytest.mark.slow
def test_it_works_where_plugins_are_loaded_by_name_only(pytester, monkeypatch):
    """By name, pytest imports the whole package through its own hook, also that of an editable installation."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    source = "def test_a(simulated_gpu): simulated_gpu.launch('k')"
    result = run(pytester, source, "-p", "collector", "--gpu-report=out.json", apart=True)
    result.assert_outcomes(passed=1)
    assert report_of(pytester)[0]["totals"]["kernels"] == 1


@pytest.mark.medium
def test_it_can_be_switched_off(pytester):
    source = "import pytest\n@pytest.mark.gpu\ndef test_a(): pass"
    result = run(pytester, source, "-p", "no:collector", apart=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*'gpu' not found in `markers` configuration option"])


@pytest.mark.slow
def test_it_and_pytest_benchmark_do_not_touch_each_other(pytester):
    pytest.importorskip("pytest_benchmark")
    source = """
import pytest
def test_fast(benchmark, simulated_gpu):
    benchmark.pedantic(simulated_gpu.launch, args=("k",), rounds=20, iterations=1)

@pytest.mark.gpu_limits(kernels=20)
def test_limited(benchmark, simulated_gpu):
    benchmark.pedantic(simulated_gpu.launch, args=("k",), rounds=20, iterations=1)

def test_plain(simulated_gpu):
    simulated_gpu.launch("k")
"""
    # Before its version 5 the plugin itself uses what Python 3.12 deprecates.
    ini = f"{INI.replace('-p no:benchmark', '')}    ignore:datetime.datetime.utcnow:DeprecationWarning\n"
    arguments = ["--gpu-trace", "--gpu-simulate", "--gpu-report=out.json", "--benchmark-json=bench.json"]
    run(pytester, source, *arguments, ini=ini, apart=True).assert_outcomes(passed=3)
    rounds = {
        b["name"]: b["stats"]["rounds"] for b in json.loads((pytester.path / "bench.json").read_text())["benchmarks"]
    }
    assert rounds == {"test_fast": 20, "test_limited": 20}
    _, tests = report_of(pytester)
    assert tests["test_fast"]["untraced"] == "pytest-benchmark measures its call"
    assert "call" not in tests["test_fast"]["phases"]
    assert tests["test_limited"]["phases"]["call"]["figures"]["kernels"] == 20
    assert tests["test_plain"]["phases"]["call"]["figures"]["kernels"] == 1


@pytest.mark.medium
def test_nothing_of_ours_is_imported_until_it_is_asked_for(pytester):
    source = """
import sys
def test_a():
    ours = sorted(name for name in sys.modules if name.startswith("collector."))
    print("IMPORTED", *ours)
    assert "numpy" not in sys.modules
"""
    result = run(pytester, source, "-s", apart=True)
    result.assert_outcomes(passed=1)
    (line,) = (line for line in result.stdout.lines if "IMPORTED" in line)
    assert set(re.sub(r".*IMPORTED ", "", line).split()) == {
        "collector.tracing",
        "collector.tracing.annotate",
        "collector.tracing.resumed_bodies",
        "collector.bench",
        "collector.bench.pytest_fixture",
        "collector.errors",
        "collector.runtime",
        "collector.runtime.names_on_demand",
        "collector.testing",
        "collector.testing.plugin",
        "collector.testing.plugin.marker_names",
        "collector.testing.plugin.switch_words",
    }


REPLACED = """
import os, pathlib, threading
import pytest

@pytest.mark.parametrize(("owner", "name", "value"), [
    (os, "getpid", lambda: 42),
    (os, "name", "nt"),
    (pathlib.Path, "iterdir", None),
    (threading, "enumerate", None),
])
def test_replaces(session_simulated_gpu, monkeypatch, owner, name, value):
    session_simulated_gpu.launch("kernel")
    monkeypatch.setattr(owner, name, value)

@pytest.mark.gpu_limits(kernels=1)
def test_next(session_simulated_gpu):
    session_simulated_gpu.launch("kernel")
"""


@pytest.mark.medium
def test_functions_that_tests_replace_do_not_end_the_run_or_the_tracing(pytester):
    """`monkeypatch` restores them in the teardown of a test, after the plugin has ended the trace of its call."""
    result = run(pytester, REPLACED, "--gpu-report=out.json", "--gpu-simulate", apart=True)
    result.assert_outcomes(passed=5)
    _, tests = report_of(pytester)
    assert [test["phases"]["call"]["figures"]["kernels"] for test in tests.values()] == [1, 1, 1, 1, 1]
    assert all(test["phases"]["call"]["losses"] == [] for test in tests.values()), tests


FORGETS = """
import sys

def test_forgets(session_simulated_gpu):
    session_simulated_gpu.launch("kernel")
    for name in [name for name in sys.modules if name.partition(".")[0] == "collector"]:
        del sys.modules[name]

def test_next(session_simulated_gpu):
    session_simulated_gpu.launch("kernel")
"""


@pytest.mark.slow
def test_modules_that_a_test_forgets_cost_its_artifacts_and_do_not_end_the_run(pytester):
    """A test of lazy imports imports this package anew, whose classes are then others."""
    pytest.importorskip("pyarrow")
    result = run(pytester, FORGETS, "--gpu-dataset=out", "--gpu-trace=traces", "--gpu-simulate", apart=True)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["tests could not be added to the dataset: unexpected TypeError: a dataset takes *"])
