"""What several test folders share: where reference data lies, NVIDIA's wheels, and skips nobody can overlook."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load_script(name: str) -> ModuleType:
    """Import `scripts/NAME.py`, which is no package, so that a test can call what the Makefile runs."""
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def skip_or_fail(reason: str, require: str) -> None:
    """Skip with `reason`, or fail where the environment variable `require` says that skipping is not good enough."""
    if os.environ.get(require):
        pytest.fail(f"{require} is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded traces and golden files, kept outside the repository: COLLECTOR_SHARED, or `shared` beside it."""
    folder = Path(os.environ.get("COLLECTOR_SHARED") or ROOT.parent / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"REFERENCE DATA MISSING: no {folder}/data; set COLLECTOR_SHARED to the folder that holds it")
    return folder
