"""Shared by all tests: the modules and fixtures of `tests/support`, reference data, NVIDIA's wheels, the scripts."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))  # modules that tests of several rooms import
sys.path.insert(1, str(ROOT / "tests"))  # the package `reference`: slow, readable twins of native code

pytest_plugins = ["captures", "report_pages", "served_pages", "viewers"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting of pytest-timeout if that is not installed: `make quick` runs without it."""
    if importlib.util.find_spec("pytest_timeout") is None:
        parser.addini("timeout", "the limit of a test in seconds; without pytest-timeout nothing ends a test")


def pytest_configure(config: pytest.Config) -> None:
    """A run that leaves tests out tries fewer examples of each property."""
    if importlib.util.find_spec("hypothesis"):  # the tests that need a GPU run without it
        from properties import choose_examples

        choose_examples(config.option.markexpr)


_SECONDS = {"exhaustive": 6.0, "slow": 3.0, "medium": 0.3}
"""Marker -> about how long a test with it takes."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers of pytest-xdist begin with the longest files, so that none is left with one at the end."""
    if not hasattr(config, "workerinput"):
        return
    seconds: Counter[Path] = Counter()
    for item in items:
        seconds[item.path] += max((_SECONDS.get(mark.name, 0.0) for mark in item.iter_markers()), default=0.0) or 0.03
    items.sort(key=lambda item: -seconds[item.path])


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules live until the end: garbage collections need not search them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def not_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate a test run that a test starts, even if xdist or CI runs the outer test.

    In CI, pytest would repeat whole messages in its summary, and the plugin would add to the page of the job.
    """
    of_workers = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")
    for name in (*of_workers, "CI", "BUILD_NUMBER", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def not_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test inherit the NVTX handler of an earlier one, whose trace armed it for the process and its children."""
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)


@pytest.fixture(scope="session")
def load_module() -> Callable[[Path], ModuleType]:
    """Imports a file that is in no package."""

    def load(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def load_script(load_module: Callable[[Path], ModuleType]) -> Callable[[str], ModuleType]:
    """Imports `scripts/NAME.py`, so that a test can call the scripts of the Makefile."""
    return lambda name: load_module(ROOT / "scripts" / f"{name}.py")


@pytest.fixture(scope="session")
def cuda_wheels(load_script: Callable[[str], ModuleType]) -> ModuleType:
    """`scripts/cuda_wheels.py` with all wheels available; COLLECTOR_REQUIRE_WHEELS turns the skip into a failure."""
    module = load_script("cuda_wheels")
    try:
        for cuda in module.RELEASES:
            module.include_folders(cuda)
    except module.WheelMissingError as error:
        if os.environ.get("COLLECTOR_REQUIRE_WHEELS"):
            raise
        pytest.skip(f"NVIDIA'S HEADERS AND LIBRARIES WERE NOT COMPARED WITH: {error}")
    return module


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded traces and golden files, stored outside the repository: COLLECTOR_SHARED, or `shared` beside it."""
    folder = Path(os.environ.get("COLLECTOR_SHARED") or ROOT.parent / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"REFERENCE DATA MISSING: no {folder}/data; set COLLECTOR_SHARED to the folder that holds it")
    return folder
