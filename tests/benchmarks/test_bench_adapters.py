"""The benchmark of adapters, with so few turns that its figures mean nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


def test_every_row_has_a_figure(root):
    command = [sys.executable, root / "benchmarks/adapters.py", "--turns=20", "--rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if re.search(r"\d \|$", line)]
    names = [row[0] for row in rows]
    assert {"native push and pop", "annotate", "annotate, one object"} <= set(names)
    assert (find_spec("torch") is not None) == ("module, annotate_modules" in names)
    assert all(re.fullmatch(r"\d+(\.\d+)?", figure) for row in rows for figure in row[1:]), done.stdout
