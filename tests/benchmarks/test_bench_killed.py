"""The benchmark of killed programs: their journal is read, and records kept in memory are lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collector.bench.benchmark_report import Report

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator


@pytest.mark.slow
def test_only_a_journal_outlives_the_program(root, tmp_path):
    file = tmp_path / "killed.json"
    command = [sys.executable, str(root / "benchmarks" / "killed.py"), "--simulated", "--rounds=1", "--launches=100000"]
    done = subprocess.run([*command, "--json", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    comparison = Report.load(file).comparisons[0]
    assert list(comparison.arms) == ["collector, all, journal"]
    facts = comparison.arms["collector, all, journal"].facts
    assert 0 < facts["in files"] <= facts["launched"] + 100_000
    assert facts["launched"] >= 100_000
    for name in ("collector, kernels", "collector, all"):
        assert "it left nothing" in comparison.failures[name]
