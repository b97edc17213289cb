"""Random programs that mix sessions, schedules, recorders, graphs, ranges, tasks, threads and forks record exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import collector

pytestmark = pytest.mark.simulator

pytest.importorskip("hypothesis")
PROGRAM = Path(__file__).resolve().parents[1] / "support" / "mixed_features.py"


@pytest.mark.parametrize("mode", ["plain", "listening", "recorded"])
@pytest.mark.parametrize(
    "number", [pytest.param(15, marks=pytest.mark.medium), pytest.param(60, marks=pytest.mark.exhaustive)], ids=str
)
def test_every_recording_has_what_was_launched_in_it_and_nothing_else(mode: str, number: int, tmp_path: Path) -> None:
    output, launched = tmp_path / "run.gpurec", tmp_path / "launched.json"
    by = (
        [sys.executable, "-m", "collector", "run", "-q", "--nvtx", "-o", str(output), "--"]
        if mode == "recorded"
        else []
    )
    done = subprocess.run(
        [*by, sys.executable, str(PROGRAM), mode, str(number), str(launched)],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    if mode != "recorded":
        return
    step = collector.load(output)
    expected = Counter((table, key) for table, key, _ in json.loads(launched.read_text()))
    found = Counter(("kernels", kernel.name) for kernel in step.recording.kernels)
    for table in ("memcpys", "memsets"):
        found.update((table, num_bytes) for num_bytes in getattr(step.recording, table).num_bytes.tolist())
    assert found == expected
    assert step.ledger.record_losses() == []
