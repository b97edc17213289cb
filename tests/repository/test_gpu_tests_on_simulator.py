"""The GPU tests' own logic, run where there is no GPU: each must hold for the simulator too."""

import os
import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


@pytest.fixture
def run_gpu_tests(root, tmp_path):
    """Runs tests/gpu in a process of its own, away from the checkout, whose own `collector` folder has no extension."""

    def run(**environment):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(root / "pyproject.toml")]
        return subprocess.run(
            [*command, "--rootdir", str(root), str(root / "tests" / "gpu")],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("below", ["1", "bindings"], ids=["stand-in", "real-cuda-bindings"])
def test_the_gpu_tests_pass_on_the_simulator(run_gpu_tests, below):
    if below == "bindings":
        nvrtc = pytest.importorskip("cuda.bindings.nvrtc", exc_type=ImportError)
        try:
            nvrtc.nvrtcVersion()
        except Exception as error:
            pytest.skip(f"NVRTC is not installed ({error})")
    done = run_gpu_tests(COLLECTOR_GPU_TESTS_SIMULATED=below)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 20, done.stdout


def test_a_required_gpu_that_is_missing_is_an_error_not_a_skip(run_gpu_tests):
    done = run_gpu_tests(COLLECTOR_REQUIRE_GPU="1", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "COLLECTOR_REQUIRE_GPU is set" in done.stdout
    assert "passed" not in done.stdout
