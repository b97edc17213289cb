"""The GPU tests' own logic, run where there is no GPU: each must hold for the simulator too."""

import os
import re
import subprocess
import sys


def test_the_gpu_tests_pass_on_the_simulator(root):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(root / "tests" / "gpu")],
        cwd=root,
        env=os.environ | {"COLLECTOR_GPU_TESTS_SIMULATED": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 20, done.stdout


def test_a_required_gpu_that_is_missing_is_an_error_not_a_skip(root):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(root / "tests" / "gpu" / "test_gpu_records.py"),
        ],
        cwd=root,
        env=os.environ | {"COLLECTOR_REQUIRE_GPU": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "COLLECTOR_REQUIRE_GPU is set" in done.stdout
    assert "passed" not in done.stdout
