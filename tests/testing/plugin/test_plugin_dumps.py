"""What the GPU did before a test failed: ``--gpu-record``."""

from __future__ import annotations

import pytest
from plugin_runs import run

from collector.recording.recording import Recording

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

pytest_plugins = ["pytester"]

SOURCE = """
import pytest

def test_before(simulated_gpu):
    simulated_gpu.launch("before")
    simulated_gpu.synchronize()

def test_fails(simulated_gpu):
    simulated_gpu.launch("inside")
    simulated_gpu.synchronize()
    assert False, "the program's own"

def test_passes(simulated_gpu):
    simulated_gpu.launch("after")

@pytest.mark.xfail
def test_expected():
    assert False

@pytest.fixture
def broken(simulated_gpu):
    yield
    simulated_gpu.launch("torn_down")
    simulated_gpu.synchronize()
    raise KeyError("broken")

def test_torn_down(broken):
    pass
"""


def kernels(journal) -> set[str]:
    return {kernel.name for kernel in Recording.load(journal).kernels}


def test_each_failing_test_has_a_dump(pytester):
    result = run(pytester, SOURCE, "--gpu-record=dumps", "--gpu-simulate", apart=True)
    result.assert_outcomes(passed=3, failed=1, errors=1, xfailed=1)
    first, second = sorted((pytester.path / "dumps").iterdir())
    assert "test-fails" in first.name
    assert "torn-down" in second.name
    assert kernels(first) == {"before", "inside"}
    assert kernels(second) == {"before", "inside", "after", "torn_down"}
    result.stdout.fnmatch_lines(["*- GPU before the failure -*", f"what the GPU did before it is in {first}"])
    result.stdout.fnmatch_lines([f"what the GPU did before it is in {second}"])


def test_beside_traces_and_limits(pytester):
    """Tests that are traced are parts of the recording, which loses nothing."""
    source = SOURCE.replace("def test_fails", "@pytest.mark.gpu_limits(kernels=0)\ndef test_fails").replace(
        'assert False, "the program\'s own"', ""
    )
    result = run(pytester, source, "--gpu-record=dumps", "--gpu-simulate", "--gpu-trace", apart=True)
    result.assert_outcomes(passed=3, failed=1, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["*kernels *1 *0 *1*"])
    first, _ = sorted((pytester.path / "dumps").iterdir())
    assert kernels(first) == {"before", "inside"}


def test_the_recorder_of_the_tests_is_used(pytester):
    source = f"""
import collector, pytest

@pytest.fixture(autouse=True)
def recorder(simulated_gpu, tmp_path_factory):
    with collector.record(folder="own", strict=True):
        yield
{SOURCE}"""
    result = run(pytester, source, "-p", "no:warnings", "--gpu-record=dumps", apart=True)
    result.assert_outcomes(passed=3, failed=1, errors=1, xfailed=1)
    assert [kernels(each) for each in (pytester.path / "own").iterdir() if "test-fails" in each.name] == [{"inside"}]


def test_without_a_gpu_there_is_one_line(pytester, monkeypatch):
    monkeypatch.setenv("COLLECTOR_LIBCUDA", "/nowhere/libcuda.so")
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", "/nowhere/libcupti.so")
    result = run(pytester, "def test_fails():\n    assert False\n", "--gpu-record=dumps", apart=True)
    result.assert_outcomes(failed=1)
    result.stderr.fnmatch_lines(["*--gpu-record: nothing is recorded: *"])
    assert not (pytester.path / "dumps").exists()
