"""The server behind `collector attach`, attacked by threads of its own process; above all for the sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from injected_programs import simulator_environment

import collector.testing

pytestmark = [pytest.mark.simulator, pytest.mark.slow]
ROUNDS = 25


def test_requests_garbage_forks_and_an_end_at_once(tmp_path):
    programs = [Path(folder) / "control_hammer" for folder in collector.testing.__path__]
    program = next((path for path in programs if path.exists()), None)
    if program is None:
        pytest.skip("THE CONTROL SERVER WAS NOT ATTACKED: only a build in the tree has control_hammer")
    environment = simulator_environment() | {"TMPDIR": str(tmp_path)}
    environment["TSAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("TSAN_OPTIONS"), "die_after_fork=0"]))
    done = subprocess.run([program, str(ROUNDS)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    journals = list(tmp_path.glob("collector-*/*.journal"))
    assert journals
    for journal in journals:
        assert collector.load(journal).ledger.interrupted == 0
