"""The modules that only these tests import, and the simulator's library where the package was not built."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def not_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test run that a test starts be one of its own, also where xdist runs the test that starts it, or CI does.

    In CI pytest prints whole messages in its summary once more.
    """
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
