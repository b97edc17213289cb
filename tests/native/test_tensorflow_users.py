"""TensorFlow's users change one import line: the same program with TensorFlow's own profiler, and with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("tensorflow") is None:
    pytest.skip("NOTHING WAS HELD AGAINST TENSORFLOW ITSELF: it is not installed", allow_module_level=True)
pytestmark = pytest.mark.slow

RUNS = Path(__file__).resolve().parent / "tensorflow_runs.py"


@pytest.fixture(scope="module")
def same() -> dict[str, Any]:
    """Of every use, whether what is printed and what is returned is TensorFlow's, and whether that is anything."""
    done = subprocess.run(
        [sys.executable, str(RUNS)],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def test_every_use_gives_what_tensorflow_gives(same):
    uses = {name: found for name, found in same.items() if name not in ("timelines", "names that are missing")}
    assert len(uses) == 23
    assert [name for name, found in uses.items() if found != [True, True, True]] == []


def test_every_name_is_there(same):
    assert same["names that are missing"] == []


def test_timelines_are_the_same(same):
    assert same["timelines"] == [True] * 4
