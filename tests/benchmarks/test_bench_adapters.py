"""The benchmark of adapters, with so few turns that its figures mean nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

ADAPTERS = {"annotate_modules", "annotate_torch_steps", "annotate_triton_launches", "keras_names"}


def test_every_row_has_a_figure(root):
    command = [sys.executable, root / "benchmarks/adapters.py", "--turns=20", "--rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if re.search(r"\d \|$", line)]
    names = [row[0] for row in rows]
    assert {"native push and pop", "annotate", "annotate, one object"} <= set(names)
    with_torch = {"annotate_modules", "annotate_torch_steps"} if find_spec("torch") else set()
    with_triton = {"annotate_triton_launches"} if find_spec("triton") else set()
    with_keras = {"keras_names"} if find_spec("keras") and (with_torch or find_spec("tensorflow")) else set()
    assert {*with_torch, *with_triton, *with_keras} == ADAPTERS & set(names)
    assert all(re.fullmatch(r"\d+(\.\d+)?", figure) for row in rows for figure in row[1:]), done.stdout
