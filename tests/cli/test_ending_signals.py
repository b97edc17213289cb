"""A command that a signal ends, as `timeout` and batch systems do, leaves no temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import collector
from collector.cli import main
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


@pytest.fixture
def step(tmp_path) -> Path:
    with SimulatedGpu() as gpu, collector.trace(tmp_path / "step.json"):
        for _ in range(100):
            gpu.launch("kernel")
    return tmp_path / "step.json"


@pytest.mark.medium
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_query_that_a_signal_ends_leaves_no_database(step, tmp_path, number):
    pytest.importorskip("duckdb")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    endless = "select count(*) from range(100000) a, range(100000) b, range(100000) c where a.range + b.range = c.range"
    process = subprocess.Popen(
        [sys.executable, "-m", "collector", "sql", step, endless],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not list(temporary.iterdir()):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)  # in the query, or before it
    process.send_signal(number)
    output, _ = process.communicate()
    assert (process.returncode, output) == (128 + number, "")
    assert list(temporary.iterdir()) == []


def test_a_file_that_is_being_written_is_removed(step, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())

    def end(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100_000):
            pass

    monkeypatch.setattr("pathlib.Path.replace", end)
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(step), "-o", str(tmp_path / "drawn.json")])
    assert ended.value.code == 128 + signal.SIGTERM
    assert sorted(tmp_path.iterdir()) == before
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_the_program_ignores_or_handles_is_its_own(step, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("collector.cli.summary.run", lambda _: seen.append(signal.getsignal(signal.SIGTERM)) or 0)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert main(["summary", str(step)]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIG_IGN]
