"""Inputs that fuzzing found, read by the native scanner of Chrome traces alone: each is read or refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import collector.testing

READERS = ("collector_timeline", "profiler_timeline", "tensorflow_timeline")


def test_the_scanners_finds_still_hold(root):
    folders = [Path(folder) for folder in collector.testing.__path__]
    program = next((folder / "replay_scanner" for folder in folders if (folder / "replay_scanner").exists()), None)
    if program is None:
        pytest.skip("WHAT FUZZING FOUND WAS NOT TRIED AGAIN: only an editable install builds replay_scanner")
    files = [file for reader in READERS for file in sorted((root / "fuzz" / "corpus" / reader).iterdir())]
    done = subprocess.run([program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.match(rf"{len(files)} inputs", done.stdout)
