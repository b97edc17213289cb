"""The GPU tests' own logic, run where there is no GPU: each must hold for the simulator too."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


@pytest.fixture
def gpu_report(load_script, tmp_path, monkeypatch):
    module = load_script("gpu_report")
    monkeypatch.setattr(module, "RUN", tmp_path)  # away from the checkout, whose `collector` has no extension
    return module


@pytest.fixture
def cupti_python(load_script):
    """A folder with NVIDIA's package, whose reader of records the tests compare ours with."""
    wheels = load_script("cuda_wheels")
    try:
        return str(wheels.cupti_python())
    except wheels.WheelMissingError:
        if os.environ.get("COLLECTOR_REQUIRE_WHEELS"):
            raise
        return ""


@pytest.mark.parametrize(
    "below",
    [
        pytest.param("1", marks=pytest.mark.exhaustive, id="stand-in"),
        pytest.param("bindings", id="real-cuda-bindings"),
    ],
)
def test_the_gpu_tests_pass_on_the_simulator(gpu_report, below, cupti_python, tmp_path):
    """In the way in which `make gpu` runs them."""
    if below == "bindings":
        nvrtc = pytest.importorskip("cuda.bindings.nvrtc", exc_type=ImportError)
        try:
            nvrtc.nvrtcVersion()
        except Exception as error:
            pytest.skip(f"NVRTC is not installed ({error})")
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), cupti_python]))
    environment = os.environ | {"COLLECTOR_GPU_TESTS_SIMULATED": below, "PYTHONPATH": paths}
    report = gpu_report.Report(tmp_path, environment, sys.executable, True, seconds=1500)
    modules = (*gpu_report.gpu_tests.CORE, *gpu_report.gpu_tests.FRAMEWORKS)
    gpu_report.run_tests("Tests", "tests.log", *modules, rest=True)(report, 1500)
    ((_, text),) = report.sections
    assert report.failed == [], text
    counts = [int(line.split(" passed")[0].rpartition("| ")[2]) for line in text.splitlines() if " passed" in line]
    assert len(counts) == gpu_report.gpu_tests.TOGETHER
    assert sum(counts) >= 85, text
    assert not cupti_python or "cupti-python is not installed" not in text


def test_a_required_gpu_that_is_missing_is_an_error_not_a_skip(root, tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(root / "pyproject.toml")]
    # One module: all have the same fixture.
    done = subprocess.run(
        [*command, "--rootdir", str(root), str(root / "tests" / "gpu" / "test_gpu_records.py")],
        cwd=tmp_path,
        env=os.environ | {"COLLECTOR_REQUIRE_GPU": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "COLLECTOR_REQUIRE_GPU is set" in done.stdout
    assert "passed" not in done.stdout
