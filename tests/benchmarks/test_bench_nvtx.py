"""The benchmark of NVTX ranges, with so few turns that its figures mean nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


def test_every_row_has_a_figure(root):
    script = root / "benchmarks/nvtx.py"
    done = subprocess.run(
        [sys.executable, script, "--turns=100", "--rounds=1"], capture_output=True, text=True, check=False
    )
    if "needs a C compiler and NVTX's header" in done.stderr:
        pytest.skip(f"BENCHMARK NOT RUN: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == [
        "no tool",
        "handler, nothing traced",
        "traced",
        "traced, registered in a domain",
        "traced, with category, colour and payload",
        "domain left out",
        "libcupti",
    ]
    figures = [row[1:] for row in rows if row[1] != "not installed"]
    assert all(re.fullmatch(r"-?\d+\.\d+", figure) for row in figures for figure in row), done.stdout
