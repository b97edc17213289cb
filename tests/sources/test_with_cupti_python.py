"""The tests that need NVIDIA's package cupti-python, with it: nothing else installs it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture
def package(load_script: Any) -> Path:
    """The folder that contains the package."""
    if any(importlib.metadata.distributions(name="cupti-python")):
        pytest.skip("it is installed: the tests have run with it")
    wheels: ModuleType = load_script("cuda_wheels")
    try:
        return wheels.cupti_python()
    except wheels.WheelMissingError as error:
        if os.environ.get("COLLECTOR_REQUIRE_WHEELS"):
            raise
        pytest.skip(f"CUPTI-PYTHON WAS NOT COMPARED WITH: {error}")


@pytest.mark.slow
def test_records_are_read_as_nvidia_s_package_reads_them(package: Path, root: Path, tmp_path: Path) -> None:
    files = [HERE / f"test_cupti_python_{name}.py" for name in ("agrees", "source")]
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c", root / "pyproject.toml"]
    paths = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*command, "--rootdir", root, *files, "-k", "real_package or read_alike"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 13, done.stdout
    assert "not installed" not in done.stdout
