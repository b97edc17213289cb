"""Simulated GPUs in function and wider scopes, markers added by fixtures, `unittest`, paths in the ini file."""

import pytest
from plugin_runs import INI, report_of, run

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

OWN = """
import collector, pytest
from collector.testing import SimulatedGpu

@pytest.fixture
def gpu():
    with SimulatedGpu(cuda="12.4") as gpu:
        yield gpu
        gpu.launch("in_teardown")

@pytest.fixture(scope="class")
def class_gpu():
    with SimulatedGpu(cuda="12.4") as gpu:
        yield gpu

@pytest.mark.gpu_limits(kernels=1)
def test_kept(gpu):
    gpu.launch("sgemm")

@pytest.mark.gpu_limits(kernels=1)
def test_exceeded(gpu):
    gpu.launch("sgemm", count=2)

def test_step(gpu, gpu_trace):
    with gpu_trace(kernels=1) as step:
        gpu.launch("sgemm")
    assert step.kernels.names() == ["sgemm"]

@pytest.mark.gpu_limits(kernels=3)
def test_traces_itself(gpu):
    gpu.launch("sgemm")
    with collector.trace() as step:
        gpu.launch("sgemm")
    gpu.launch("sgemm")
    assert len(step.kernels) == 1

@pytest.mark.gpu_leaks
def test_leaks(gpu):
    gpu.malloc(100)

@pytest.mark.gpu_leaks
def test_frees(gpu):
    gpu.free(gpu.malloc(100))

@pytest.mark.gpu_limits(kernels=1)
class TestOfClass:
    def test_first(self, class_gpu):
        class_gpu.launch("sgemm")

    def test_second(self, class_gpu, gpu_trace):
        with gpu_trace(kernels=1) as step:
            class_gpu.launch("sgemm")

    def test_third(self, class_gpu):
        class_gpu.launch("sgemm", count=3)

@pytest.fixture
def needs_a_gpu():
    raise RuntimeError("no CUDA-capable device is detected")

@pytest.mark.gpu_limits(kernels=1)
def test_without_a_gpu(needs_a_gpu):
    pass

@pytest.mark.gpu_limits(kernels=1)
def test_of_no_gpu():
    pass

def test_with_the_plugins(simulated_gpu):
    simulated_gpu.launch("sgemm")
"""


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so")
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", "/nowhere/libcupti.so")


@pytest.mark.medium
@pytest.mark.parametrize("options", [[], ["--gpu-simulate"], ["--gpu-trace"]], ids=["plain", "simulate", "trace"])
def test_a_simulated_gpu_of_a_fixture_is_traced_like_any(pytester, no_driver, options):
    result = run(pytester, OWN, "--gpu-report=out.json", *options)
    result.assert_outcomes(passed=8, failed=2, errors=1, skipped=2)
    _, tests = report_of(pytester)
    assert {name: test["outcome"] for name, test in tests.items() if test["outcome"] != "passed"} == {
        "test_exceeded": "failed", "test_leaks": "error", "TestOfClass::test_third": "failed",
        "test_without_a_gpu": "skipped", "test_of_no_gpu": "skipped",
    }  # fmt: skip
    assert tests["test_leaks"]["leak"]["device_bytes"] == 100
    for name in ("test_kept", "TestOfClass::test_first", "test_step"):
        phases = tests[name]["phases"]
        assert phases["call"]["figures"]["kernels"] == 1
        assert not any(phase["losses"] for phase in phases.values()), name
    assert tests["test_kept"]["phases"]["teardown"]["figures"]["kernels"] == 1


WIDER = """
import pytest

@pytest.fixture(scope="SCOPE")
def weights(SCOPE_simulated_gpu):
    SCOPE_simulated_gpu.memcpy("HtoD", 4096)
    return SCOPE_simulated_gpu.malloc(4096)

class TestOfClass:
    @pytest.mark.gpu_limits(kernels=1)
    def test_first(self, weights, SCOPE_simulated_gpu, simulated_gpu, gpu_trace):
        assert simulated_gpu is SCOPE_simulated_gpu
        simulated_gpu.launch("sgemm")

    def test_second(self, weights, SCOPE_simulated_gpu, gpu_trace):
        with gpu_trace(kernels=0) as step:
            SCOPE_simulated_gpu.memcpy("DtoH", 16)
        assert len(step.memcpys) == 1

def test_after(simulated_gpu):
    simulated_gpu.launch("sgemm")
"""


@pytest.mark.medium
@pytest.mark.parametrize("simulate", [[], ["--gpu-simulate"]], ids=["own", "of the run"])
@pytest.mark.parametrize(
    "scope", ["class", *(pytest.param(scope, marks=pytest.mark.slow) for scope in ("module", "package")), "session"]
)
def test_a_simulated_gpu_may_be_of_a_wider_scope(pytester, no_driver, scope, simulate):
    result = run(pytester, WIDER.replace("SCOPE", scope), "--gpu-report=out.json", "--gpu-leaks", *simulate)
    result.assert_outcomes(passed=3)
    _, tests = report_of(pytester)
    assert tests["TestOfClass::test_first"]["phases"]["setup"]["figures"]["memcpy_htod_bytes"] == 4096
    assert [len(test["phases"]) for test in tests.values()] == [3, 3, 3]


LATE = """
import pytest
from collector.testing import SimulatedGpu

@pytest.fixture
def gpu():
    with SimulatedGpu() as gpu:
        yield gpu

def adds(*marks):
    @pytest.fixture
    def fixture(request):
        for mark in marks:
            request.node.add_marker(mark)
    return fixture

limits = adds(pytest.mark.gpu_limits(kernels=1))
leaks = adds(pytest.mark.gpu_leaks)
untraced = adds(pytest.mark.gpu_untraced("on its own"), pytest.mark.gpu_limits(kernels=1))
needs = adds(pytest.mark.gpu(count=64))
wrong = adds(pytest.mark.gpu_limits(kernel=1))

def test_limits(gpu, limits):
    gpu.launch("sgemm", count=2)

def test_keeps_limits(gpu, limits):
    gpu.launch("sgemm")

def test_leaks(simulated_gpu, leaks):
    simulated_gpu.malloc(100)

def test_untraced(gpu, untraced):
    gpu.launch("sgemm")

def test_needs(needs):
    raise RuntimeError

def test_wrong(wrong):
    pass

def test_adds_limits_itself(gpu, request):
    request.node.add_marker(pytest.mark.gpu_limits(kernels=1))
    gpu.launch("sgemm", count=2)

def test_adds_leaks_itself(gpu, request):
    request.node.add_marker(pytest.mark.gpu_leaks)
"""


TOO_LATE = "a GPU marker was added while the test ran, which is too late"


@pytest.mark.medium
def test_markers_count_that_are_added_late(pytester, no_driver):
    result = run(pytester, LATE, "--gpu-report=out.json", "-rs")
    _, tests = report_of(pytester)
    assert {name: test["outcome"] for name, test in tests.items()} == {
        "test_limits": "failed", "test_keeps_limits": "passed", "test_leaks": "error", "test_untraced": "error",
        "test_needs": "skipped", "test_wrong": "error", "test_adds_limits_itself": "failed",
        "test_adds_leaks_itself": "error",
    }  # fmt: skip
    result.stdout.fnmatch_lines(["GPU limits exceeded in the call of test_step.py::test_limits"])
    result.stdout.fnmatch_lines(["marker gpu_limits: unknown limit 'kernel': choose from *"])
    result.stdout.fnmatch_lines(["*: needs a GPU: *"])
    assert sum(TOO_LATE in line for line in result.outlines) == 1


@pytest.mark.parametrize("option", ["--gpu-trace", "--gpu-report=out.json"])
def test_a_traced_test_may_limit_itself(pytester, no_driver, option):
    run(pytester, LATE, option, "-k", "adds_limits").assert_outcomes(failed=1)


def test_an_untraced_test_limits_itself_too_late(pytester, no_driver):
    result = run(pytester, LATE, "-k", "adds_limits")
    result.assert_outcomes(passed=1, errors=1)
    assert sum(TOO_LATE in line for line in result.outlines) == 1


@pytest.mark.parametrize(
    ("which", "outcome"),
    [("test_limits", "failed"), ("test_keeps_limits", "passed"), ("test_adds_leaks_itself", "errors")],
)
def test_the_first_marker_of_a_run_may_be_late(pytester, no_driver, which, outcome):
    result = run(pytester, LATE.replace("simulated_gpu", "gpu"), "-k", which)
    passed = {"passed": 1} if outcome != "failed" else {}
    result.assert_outcomes(**{**passed, outcome: 1})
    assert "INTERNALERROR" not in str(result.stdout)


UNITTEST = """
import unittest
import pytest
from collector.testing import SimulatedGpu

class Launches:
    @classmethod
    def setUpClass(cls):
        cls.context = SimulatedGpu()
        cls.gpu = cls.context.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    def prepare(self):
        self.gpu.launch("prepares", count=5)

@pytest.mark.gpu_limits(kernels=2, launches=2)
class TestPlain(Launches, unittest.TestCase):
    def setUp(self):
        self.prepare()

    def tearDown(self):
        self.gpu.launch("cleans", count=5)

    def test_keeps(self):
        self.gpu.launch("sgemm", count=2)

    def test_exceeds(self):
        self.gpu.launch("sgemm", count=3)

    def test_fails(self):
        self.gpu.launch("sgemm", count=3)
        self.fail("on purpose")

    @unittest.skip("on purpose")
    def test_skipped(self):
        pass

@pytest.mark.gpu_limits(kernels=2)
class TestAsync(Launches, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.prepare()

    async def test_keeps(self):
        self.gpu.launch("sgemm", count=2)

    async def test_exceeds(self):
        self.gpu.launch("sgemm", count=3)
"""


@pytest.mark.medium
def test_limits_are_for_the_method_of_a_unittest(pytester, no_driver):
    result = run(pytester, UNITTEST, "--gpu-report=out.json")
    result.assert_outcomes(passed=2, failed=3, skipped=1)
    _, tests = report_of(pytester)
    measured = {name: test["limits"][0]["measured"] for name, test in tests.items() if test["limits"]}
    assert measured == {
        "TestPlain::test_keeps": 2, "TestPlain::test_exceeds": 3, "TestPlain::test_fails": 3,
        "TestPlain::test_skipped": 0, "TestAsync::test_keeps": 2, "TestAsync::test_exceeds": 3,
    }  # fmt: skip
    result.stdout.fnmatch_lines(["  kernels          3        2         1", "  launches         3        2         1"])
    result.stdout.no_fnmatch_line("*cleans*")
    assert tests["TestPlain::test_keeps"]["phases"]["call"]["figures"]["kernels"] == 12


OF_UNITTEST = """
import unittest
import pytest
from collector.testing import SimulatedGpu

class TestOwn(unittest.TestCase):
    def setUp(self):
        context = SimulatedGpu()
        self.gpu = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    @pytest.mark.gpu_limits(kernels=2)
    def test_keeps(self):
        self.gpu.launch("sgemm", count=2)

    @pytest.mark.gpu_limits(kernels=2)
    def test_exceeds(self):
        self.gpu.launch("sgemm", count=3)

    @pytest.mark.gpu_leaks
    def test_leaks(self):
        self.gpu.malloc(100)

class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        context = SimulatedGpu()
        self.gpu = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    @pytest.mark.gpu_limits(kernels=2)
    async def test_keeps(self):
        self.gpu.launch("sgemm", count=2)

@pytest.mark.gpu_limits(kernels=2)
class TestWithout(unittest.TestCase):
    def setUp(self):
        if "raises" in self._testMethodName:
            raise RuntimeError("no CUDA-capable device is detected")
        if "closed" in self._testMethodName:
            with SimulatedGpu():
                pass

    def test_plain(self):
        self.fail("the test must not run")

    def test_raises(self):
        self.fail("the test must not run")

    def test_closed(self):
        self.fail("the test must not run")

    @unittest.expectedFailure
    def test_expected(self):
        self.fail("the test must not run")

@pytest.mark.gpu_limits(kernels=2)
class TestWrong(unittest.TestCase):
    def setUp(self):
        with SimulatedGpu():
            raise RuntimeError("on purpose")

    def test_fails(self):
        pass
"""


@pytest.mark.medium
@pytest.mark.parametrize("options", [[], ["--gpu-simulate"], ["--gpu-trace"]], ids=["plain", "simulate", "trace"])
def test_a_unittest_may_open_a_simulated_gpu_in_its_set_up(pytester, no_driver, options):
    result = run(pytester, OF_UNITTEST, "--gpu-report=out.json", "-rs", *options)
    _, tests = report_of(pytester)
    assert {name: test["outcome"] for name, test in tests.items()} == {
        "TestOwn::test_keeps": "passed", "TestOwn::test_exceeds": "failed", "TestOwn::test_leaks": "error",
        "TestAsync::test_keeps": "passed",
        **dict.fromkeys(
            (f"TestWithout::test_{name}" for name in ("plain", "raises", "closed", "expected")), "skipped"
        ),
        "TestWrong::test_fails": "failed",
    }  # fmt: skip
    result.assert_outcomes(passed=3, failed=2, errors=1, skipped=4)
    why = "needs a real GPU" if options == ["--gpu-simulate"] else "needs a GPU"
    assert all(why in test["skipped_because"] for test in tests.values() if test["outcome"] == "skipped")
    assert tests["TestOwn::test_leaks"]["leak"]["device_bytes"] == 100
    measured = {
        name: test["limits"][0]["measured"] for name, test in tests.items() if "TestOwn" in name and test["limits"]
    }
    assert measured == {"TestOwn::test_keeps": 2, "TestOwn::test_exceeds": 3}
    result.stdout.fnmatch_lines(["E*RuntimeError: on purpose"])
    result.stdout.no_fnmatch_line("*incomplete*")


BY_NAME = """
import pytest

def launch(request, **limits):
    gpu = request.getfixturevalue("simulated_gpu")
    with request.getfixturevalue("gpu_trace")(**limits) as step:
        gpu.launch("sgemm", count=2)
    return step

@pytest.fixture
def step(request):
    return launch(request, kernels=2)

@pytest.mark.parametrize("lossy", [False, True])
def test_in_the_call(request, lossy):
    if lossy:
        request.getfixturevalue("simulated_gpu").inject("dropped_record")
    assert len(launch(request, kernels=2).kernels) == 2 - lossy

def test_in_the_setup(step):
    assert len(step.kernels) == 2

def test_exceeded(request):
    launch(request, kernels=1)

def test_devices(request):
    assert request.getfixturevalue("gpu_devices") == (0,)
"""


@pytest.mark.medium
@pytest.mark.parametrize("first", ["test_in_the_call", "test_in_the_setup", "test_exceeded", "test_devices"])
def test_a_fixture_that_is_looked_up_by_its_name_starts_the_plugin(pytester, no_driver, first):
    result = run(pytester, BY_NAME, f"test_step.py::{first}", "test_step.py", "-rA", "--tb=short")
    result.assert_outcomes(passed=4, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_in_the_call[[]True[]]*",
            "a step cannot be judged, because its trace is incomplete*",
        ]
    )
    result.stdout.fnmatch_lines(["FAILED *test_exceeded - Failed: GPU limits exceeded in a step of*"])


def test_paths_of_the_ini_file_are_relative_to_the_root_folder(pytester, monkeypatch):
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)
    source = "def test_fails(simulated_gpu):\n    simulated_gpu.launch('sgemm')\n    assert False\n"
    run(pytester, source, f"--rootdir={pytester.path}", "..", ini=f"{INI}gpu_trace = traces\ngpu_report = out.json\n")
    assert (pytester.path / "out.json").is_file()
    assert len(list((pytester.path / "traces").iterdir())) == 1
    run(pytester, None, "--gpu-report=out.json", "..", ini=f"{INI}gpu_report = elsewhere.json\n")
    assert [path.name for path in below.iterdir()] == ["out.json"]
