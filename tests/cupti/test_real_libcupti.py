"""NVIDIA's own libcupti and headers, and our decoder: the same buffers, record for record.

`cuptiActivityGetNextRecord` needs no driver up to CUDA 13.1, so this runs everywhere. The newer ones answer only where
a driver is; tests/gpu holds those.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("collector._native", reason="the native extension is not built")

WALKABLE = ["12.0", "12.3", "12.4", "12.6", "12.8", "12.9", "13.0", "13.1"]


# The newest alone where quick is asked for: each takes a compiler and a process.
@pytest.fixture(
    scope="module", params=[*(pytest.param(cuda, marks=pytest.mark.slow) for cuda in WALKABLE[:-1]), WALKABLE[-1]]
)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def records_library(
    version: str, cuda_wheels: ModuleType, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """nvidia_records.cpp, compiled with the headers of this version."""
    library = tmp_path_factory.mktemp("records") / "librecords.so"
    try:
        cuda_wheels.build_records_library(version, root / "tests/cupti/nvidia_records.cpp", library)
    except subprocess.CalledProcessError as error:
        pytest.fail(error.stderr)
    return library


@pytest.mark.medium
def test_both_read_every_record_alike(
    version: str, records_library: Path, cuda_wheels: ModuleType, root: Path, tmp_path: Path
) -> None:
    major, minor = map(int, version.split("."))
    script = root / "tests/cupti/compare_with_libcupti.py"
    arguments = [str(records_library), str(cuda_wheels.libcupti(version)), str(major * 1000 + minor * 10)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COLLECTOR_LIB")}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
